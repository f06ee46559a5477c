// Package sqlitetrace reads traces in SQLite databases, whose formats are packages of their own. It looks up tables and columns,
// because they vary by version, reports missing ones, and collects the events of processes.
//
// A process is a rank. A database may contain several.
package sqlitetrace

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/profile"
	"github.com/chimbuko/chimbuko/internal/source/sqlitefile"
)

// IsDatabase reports whether a file is a SQLite database.
func IsDatabase(path string) bool { return sqlitefile.IsDatabase(path) }

// Format is a format of traces in databases.
type Format struct {
	Name      string                       // as in trace info
	Program   string                       // that writes it
	Command   string                       // to record it
	Recognize func(db *sqlitefile.DB) bool // by its tables
	Read      func(b *Builder) error
}

// IsTrace reports whether a file is a SQLite database with a trace of a format, or one whose tables are unreadable.
func IsTrace(path string, formats ...Format) bool {
	if !IsDatabase(path) {
		return false
	}
	db, err := sqlitefile.Open(path, nil)
	if err != nil {
		return true
	}
	defer db.Close() //nolint:errcheck // only read from
	return slices.ContainsFunc(formats, func(f Format) bool { return f.Recognize(db) })
}

// Builder collects the processes of a database.
type Builder struct {
	DB     *sqlitefile.DB
	Suffix string // of the names of tables
	Tally  tally.Tally

	path      string
	opt       profile.Options
	format    Format
	processes map[int64]*Process
	order     []*Process
	ids       map[int64]profile.ID
	missing   []string // tables and columns
	checked   int      // events since the memory of all files was checked
	event     profile.Event
	text      []byte // of arguments of the event
	nameBytes []byte
}

// Process is a process of a database.
type Process struct {
	*profile.File
	ID   int64
	Rank int64 // -1 if it is unknown
	gpu  bool  // has work on a GPU
}

// Open reads and sorts the events of a database in one of the formats. It returns a File for each process with events, at least
// one. It keeps the readable part of a damaged database, and the steps end with the error.
func Open(path string, opt profile.Options, formats ...Format) ([]*profile.File, error) {
	db, err := sqlitefile.Open(path, opt.Read)
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // only read from
	b := &Builder{DB: db, path: path, opt: opt, processes: make(map[int64]*Process), ids: make(map[int64]profile.ID)}
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Recognize(db) })
	if i < 0 {
		return nil, fmt.Errorf("%s: a SQLite database without the tables of %s", path, programs(formats))
	}
	b.format = formats[i]
	if err = b.format.Read(b); err == nil {
		err = b.finish()
	}
	if err != nil {
		for _, p := range b.order {
			p.Close()
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b.files(), nil
}

// programs lists the programs that write formats.
func programs(formats []Format) string {
	var all []string
	for _, f := range formats {
		all = append(all, f.Program)
	}
	return strings.Join(all, " or ")
}

func (b *Builder) files() []*profile.File {
	all := make([]*profile.File, 0, len(b.order))
	for _, p := range b.order {
		all = append(all, p.File)
	}
	return all
}

// maxProcesses limits the processes of a database.
const maxProcesses = 1 << 12

// Process returns a process with events by its id, or nil.
func (b *Builder) Process(id int64) *Process { return b.processes[id] }

// Processes returns the processes with events, in the order of their first ones.
func (b *Builder) Processes() []*Process { return b.order }

// processOf returns a process by its id, or nil if there are too many.
func (b *Builder) processOf(id int64) *Process {
	p := b.processes[id]
	if p == nil && len(b.order) < maxProcesses {
		p = &Process{File: profile.New(b.path, b.opt), ID: id, Rank: -1}
		b.processes[id] = p
		b.order = append(b.order, p)
	}
	return p
}

// Number returns the id of a process, thread, device or stream.
func (b *Builder) Number(n int64) profile.ID {
	id, ok := b.ids[n]
	if !ok {
		if len(b.ids) > 1<<16 { // of a damaged file
			clear(b.ids)
		}
		id = profile.ID{Text: strconv.AppendInt(nil, n, 10), Number: n, IsNumber: true}
		b.ids[n] = id
	}
	return id
}

// Begin starts an event, which Add adds.
func (b *Builder) Begin(category profile.Category, name []byte, start, end int64) *profile.Event {
	b.event = profile.Event{Category: category, Name: name, Start: start, Duration: end - start}
	b.text = b.text[:0]
	return &b.event
}

// SetArg sets an argument of the event to numbers.
func (b *Builder) SetArg(a profile.Arg, numbers ...int64) {
	at := len(b.text)
	for i, n := range numbers {
		if i > 0 {
			b.text = append(b.text, ',')
		}
		b.text = strconv.AppendInt(b.text, n, 10)
	}
	b.event.Args[a] = b.text[at:len(b.text):len(b.text)]
}

// Event returns the event that has begun.
func (b *Builder) Event() *profile.Event { return &b.event }

// Add adds the event to a process.
func (b *Builder) Add(pid int64) error {
	e := &b.event
	p := b.processOf(pid)
	if p == nil {
		b.Tally.Add(tally.ProgramImplausible, 1)
		return nil
	}
	if e.Duration < 0 || e.Start > math.MaxInt64/2 || e.Start < math.MinInt64/2 {
		p.Tally().Add(tally.TimeImplausible, 1)
		return nil
	}
	p.gpu = p.gpu || e.Category.OnDevice()
	if err := p.Add(e); err != nil {
		return err
	}
	const interval = 1 << 12
	if b.checked++; b.checked < interval || len(b.order) == 1 {
		return nil
	}
	b.checked = 0
	return profile.LimitMemory(b.files())
}

// Lack notes a missing table or column.
func (b *Builder) Lack(name string) {
	b.missing = append(b.missing, name)
	b.Tally.Add(tally.ColumnsMissing, 1)
}

// ByID returns the rows of a table to find by their number, or nil if that is impossible. Columns are those of rows.
func (b *Builder) ByID(table, key string, columns ...string) *sqlitefile.Rows {
	switch t := b.DB.Table(table + b.Suffix); {
	case t == nil:
		b.Lack(table)
		return nil
	case !t.HasRowID(key):
		b.Lack(table + "." + key)
		return nil
	}
	return b.Rows(table, columns...)
}

// Rows returns the rows of a table with columns, or nil if the table or a required column is missing. Columns that begin with ? are
// optional; those that begin with ?? are not reported as missing.
func (b *Builder) Rows(table string, columns ...string) *sqlitefile.Rows {
	t := b.DB.Table(table + b.Suffix)
	if t == nil {
		return nil
	}
	for i, c := range columns {
		name := strings.TrimLeft(c, "?")
		columns[i] = name
		if t.Column(name) >= 0 || strings.HasPrefix(c, "??") {
			continue
		}
		b.Lack(table + "." + name)
		if name == c {
			b.Tally.Add(tally.TableMisshapen, 1)
			return nil
		}
	}
	return t.Rows(columns...)
}

// finish binds ranks and reports damage.
func (b *Builder) finish() error {
	damage, damaged := b.DB.Damage()
	if len(b.order) == 0 {
		if damaged > 0 {
			return fmt.Errorf("byte %d: %w", damage[0].Offset, damage[0].Err)
		}
		return fmt.Errorf("no calls, ranges or GPU activities (record them with %s)", b.format.Command)
	}
	b.bindRanks()
	first := b.order[0].File
	b.Tally.Add(tally.PartUnreadable, damaged)
	if name := b.DB.Pending(); name != "" {
		b.Tally.Add(tally.NotClosed, 1)
	}
	first.Tally().Merge(&b.Tally)
	if len(damage) > 0 {
		first.Err = fmt.Errorf("%s: byte %d: %w", b.path, damage[0].Offset, damage[0].Err)
	}
	for _, d := range damage {
		first.Gaps = append(first.Gaps, profile.Gap{Kind: tally.PartUnreadable, Offset: d.Offset, Length: d.Length})
	}
	if info, err := os.Stat(b.path); err == nil {
		first.Size, first.Modified = info.Size(), info.ModTime()
	}
	slices.Sort(b.missing)
	if b.missing = slices.Compact(b.missing); len(b.missing) > 0 {
		first.Properties.Facts = append(first.Properties.Facts, profile.Fact{Key: "Missing columns", Value: strings.Join(b.missing, ", ")})
	}
	for _, p := range b.order {
		p.Format = b.format.Name
		if err := p.Finish(); err != nil {
			return err
		}
	}
	return nil
}

// Single returns the process with work on a GPU, or the only process, or nil if there are several.
func (b *Builder) Single() (p *Process) {
	for _, o := range b.order {
		switch {
		case len(b.order) > 1 && !o.gpu:
		case p != nil:
			return nil
		default:
			p = o
		}
	}
	return p
}

// bindRanks gives each process a rank of its own. Processes without a rank and without GPU work are left out beside others.
func (b *Builder) bindRanks() {
	isRank := func(p *Process) bool { return p.gpu || p.Rank >= 0 }
	if slices.ContainsFunc(b.order, isRank) {
		b.order = slices.DeleteFunc(b.order, func(p *Process) bool {
			if isRank(p) {
				return false
			}
			b.Tally.Add(tally.ProcessOmitted, 1)
			p.Close()
			return true
		})
	}
	owners := make(map[trace.Rank]bool)
	var silent []*Process
	for _, p := range b.order {
		if rank := trace.Rank(p.Rank); p.Rank >= 0 && p.Rank < math.MaxInt32 && !owners[rank] {
			p.Properties.Rank = &rank
			owners[rank] = true
		} else {
			silent = append(silent, p)
		}
		p.BindRank(len(b.order) == 1)
	}
	if len(b.order) > 1 {
		next := trace.Rank(0)
		for _, p := range silent {
			for owners[next] {
				next++
			}
			owners[next] = true
			p.Ranks[0], p.RankKnown = next, true
			b.Tally.Add(tally.RankAssumed, 1)
		}
	}
	slices.SortStableFunc(b.order, func(x, y *Process) int { return cmp.Compare(x.Ranks[0], y.Ranks[0]) })
}

// rankVariables are environment variables with the rank of a process, and those with the number of ranks. Launchers may be
// nested: those that start a process for each GPU come first.
var rankVariables = [][2]string{
	{"RANK", "WORLD_SIZE"}, // only together, because the name is not specific
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"PMIX_RANK", ""},
	{"PMI_RANK", "PMI_SIZE"},
	{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
	{"PALS_RANKID", ""},
	{"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
	{"SLURM_PROCID", "SLURM_NTASKS"},
	{"RANK", ""},
}

// RankOf returns the rank of a process by its environment, or -1, and the number of ranks, or 0.
func RankOf(environment func(name string) (string, bool)) (rank int64, world int) {
	number := func(name string) (int64, bool) {
		text, ok := environment(name)
		n, err := strconv.ParseInt(text, 10, 31)
		return n, ok && err == nil && n >= 0
	}
	for _, v := range rankVariables {
		n, ok := number(v[0])
		size, sized := number(v[1])
		if ok && (sized || v[0] != "RANK" || v[1] == "") {
			return n, int(size)
		}
	}
	return -1, 0
}

// Texts finds texts of a table by their row ids, and keeps some.
type Texts struct {
	rows    *sqlitefile.Rows // nil without a table
	columns int
	kept    map[int64]string
	bytes   int
}

// maxTexts is the number of bytes of texts to keep.
const maxTexts = 8 << 20

// Texts returns the texts in columns of a table, the first that is not empty, by a key.
func (b *Builder) Texts(table, key string, columns ...string) *Texts {
	return &Texts{kept: make(map[int64]string), rows: b.ByID(table, key, slices.Clone(columns)...), columns: len(columns)}
}

// Get returns a text, or "" if it is missing. The text stays valid.
func (t *Texts) Get(id int64) string {
	if text, ok := t.kept[id]; ok {
		return text
	}
	text := ""
	if t.rows != nil && t.rows.Find(id) {
		for i := 0; i < t.columns && text == ""; i++ {
			text = string(t.rows.Text(i))
		}
	}
	if t.bytes += len(text) + 64; t.bytes > maxTexts {
		clear(t.kept)
		t.bytes = 0
	}
	t.kept[id] = text
	return text
}

// Name returns a text as the name of a function, or a name that states the missing id.
func (b *Builder) Name(t *Texts, id int64, ok bool, unknown string) []byte {
	if ok {
		if text := t.Get(id); text != "" {
			return b.SetName(text)
		}
	}
	b.Tally.Add(tally.NamesUnknown, 1)
	return b.SetName(unknown)
}

// SetName returns a name as bytes that are valid until the next call.
func (b *Builder) SetName(name string) []byte {
	b.nameBytes = append(b.nameBytes[:0], name...)
	return b.nameBytes
}
