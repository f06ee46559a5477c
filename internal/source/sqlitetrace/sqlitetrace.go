// Package sqlitetrace reads traces in SQLite databases: exports of Nsight Systems, and rocpd, which rocprofv3 writes. It looks up
// tables and columns, because they vary by version, and reports what is missing.
//
// A process is a rank. Nsight exports may contain several processes, and so may rocpd databases that were merged.
package sqlitetrace

import (
	"cmp"
	"errors"
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

// IsTrace reports whether a file is a SQLite database with tables of a trace, or one whose tables are unreadable.
func IsTrace(path string) bool {
	if !IsDatabase(path) {
		return false
	}
	db, err := sqlitefile.Open(path, nil)
	if err != nil {
		return true
	}
	defer db.Close() //nolint:errcheck // only read from
	return formatOf(db) != nil
}

// formatOf returns the function that reads the format of a database, or nil.
func formatOf(db *sqlitefile.DB) func(b *builder) error {
	switch {
	case isNsight(db):
		return readNsight
	case len(rocpdSuffixes(db)) > 0:
		return readRocpd
	}
	return nil
}

// builder collects the processes of a database.
type builder struct {
	db        *sqlitefile.DB
	path      string
	opt       profile.Options
	format    string
	suffix    string // of the names of tables
	processes map[int64]*process
	order     []*process
	ids       map[int64]profile.ID
	queues    map[int64]profile.ID // of devices, which are used instead of streams
	missing   []string             // tables and columns
	tally     tally.Tally
	checked   int // events since the memory of all files was checked
	event     profile.Event
	text      []byte // of arguments of the event
	nameBytes []byte
}

// process is a process of a database.
type process struct {
	*profile.File
	id   int64
	gpu  bool // has work on a GPU
	rank int64
}

// Open reads and sorts the events of a database. It returns a File for each process with events, at least one. If the
// database is damaged, its readable part is kept, and the error comes at the end of the steps.
func Open(path string, opt profile.Options) ([]*profile.File, error) {
	db, err := sqlitefile.Open(path, opt.Read)
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // only read from
	b := &builder{
		db: db, path: path, opt: opt, processes: make(map[int64]*process), ids: make(map[int64]profile.ID), queues: make(map[int64]profile.ID),
	}
	read := formatOf(db)
	if read == nil {
		err = errors.New("a SQLite database without the tables of Nsight Systems or rocpd")
	} else if err = read(b); err == nil {
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

func (b *builder) files() []*profile.File {
	all := make([]*profile.File, 0, len(b.order))
	for _, p := range b.order {
		all = append(all, p.File)
	}
	return all
}

// maxProcesses limits the processes of a database.
const maxProcesses = 1 << 12

// process returns a process by its id, or nil if there are too many.
func (b *builder) process(id int64) *process {
	p := b.processes[id]
	if p == nil && len(b.order) < maxProcesses {
		p = &process{File: profile.New(b.path, b.opt), id: id, rank: -1}
		b.processes[id] = p
		b.order = append(b.order, p)
	}
	return p
}

// number returns the id of a process, thread, device or stream.
func (b *builder) number(n int64) profile.ID {
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

// begin starts an event.
func (b *builder) begin(category profile.Category, name []byte, start, end int64) *profile.Event {
	b.event = profile.Event{Category: category, Name: name, Start: start, Duration: end - start}
	b.text = b.text[:0]
	return &b.event
}

// setArg sets an argument of the event to numbers.
func (b *builder) setArg(a profile.Arg, numbers ...int64) {
	at := len(b.text)
	for i, n := range numbers {
		if i > 0 {
			b.text = append(b.text, ',')
		}
		b.text = strconv.AppendInt(b.text, n, 10)
	}
	b.event.Args[a] = b.text[at:len(b.text):len(b.text)]
}

// add adds the event to a process.
func (b *builder) add(pid int64) error {
	e := &b.event
	p := b.process(pid)
	if p == nil {
		b.tally.Add(tally.ProgramImplausible, 1)
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

// lack notes a table or column that is missing.
func (b *builder) lack(name string) {
	b.missing = append(b.missing, name)
	b.tally.Add(tally.ColumnsMissing, 1)
}

// byID returns the rows of a table to find by their number, or nil if that is impossible. Columns are those of rows.
func (b *builder) byID(table, key string, columns ...string) *sqlitefile.Rows {
	switch t := b.db.Table(table + b.suffix); {
	case t == nil:
		b.lack(table)
		return nil
	case !t.HasRowID(key):
		b.lack(table + "." + key)
		return nil
	}
	return b.rows(table, columns...)
}

// rows returns the rows of a table with columns, or nil if the table or a required column is missing. Columns that begin with ? are
// optional; those that begin with ?? are not reported as missing.
func (b *builder) rows(table string, columns ...string) *sqlitefile.Rows {
	t := b.db.Table(table + b.suffix)
	if t == nil {
		return nil
	}
	for i, c := range columns {
		name := strings.TrimLeft(c, "?")
		columns[i] = name
		if t.Column(name) >= 0 || strings.HasPrefix(c, "??") {
			continue
		}
		b.lack(table + "." + name)
		if name == c {
			b.tally.Add(tally.TableMisshapen, 1)
			return nil
		}
	}
	return t.Rows(columns...)
}

// finish binds ranks and reports damage.
func (b *builder) finish() error {
	damage, damaged := b.db.Damage()
	if len(b.order) == 0 {
		if damaged > 0 {
			return fmt.Errorf("byte %d: %w", damage[0].Offset, damage[0].Err)
		}
		return errors.New("no calls, ranges or GPU activities (record them with nsys profile --trace=cuda,nvtx or rocprofv3 --sys-trace)")
	}
	b.bindRanks()
	first := b.order[0].File
	b.tally.Add(tally.PartUnreadable, damaged)
	if name := b.db.Pending(); name != "" {
		b.tally.Add(tally.NotClosed, 1)
	}
	first.Tally().Merge(&b.tally)
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
		p.Format = b.format
		if err := p.Finish(); err != nil {
			return err
		}
	}
	return nil
}

// single returns the process with work on a GPU, or the only process, or nil if there are several.
func (b *builder) single() (p *process) {
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
func (b *builder) bindRanks() {
	isRank := func(p *process) bool { return p.gpu || p.rank >= 0 }
	if slices.ContainsFunc(b.order, isRank) {
		b.order = slices.DeleteFunc(b.order, func(p *process) bool {
			if isRank(p) {
				return false
			}
			b.tally.Add(tally.ProcessOmitted, 1)
			p.Close()
			return true
		})
	}
	owners := make(map[trace.Rank]bool)
	var silent []*process
	for _, p := range b.order {
		if rank := trace.Rank(p.rank); p.rank >= 0 && p.rank < math.MaxInt32 && !owners[rank] {
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
			b.tally.Add(tally.RankAssumed, 1)
		}
	}
	slices.SortStableFunc(b.order, func(x, y *process) int { return cmp.Compare(x.Ranks[0], y.Ranks[0]) })
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

// rankOf returns the rank of a process by its environment, or -1, and the number of ranks, or 0.
func rankOf(environment func(name string) (string, bool)) (rank int64, world int) {
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

// texts finds texts of a table by their row ids, and keeps some.
type texts struct {
	rows    *sqlitefile.Rows // nil if there is no table
	columns int
	kept    map[int64]string
	bytes   int
}

// maxTexts is the number of bytes of texts to keep.
const maxTexts = 8 << 20

// texts returns the texts in columns of a table, the first that is not empty, by a key.
func (b *builder) texts(table, key string, columns ...string) *texts {
	return &texts{kept: make(map[int64]string), rows: b.byID(table, key, slices.Clone(columns)...), columns: len(columns)}
}

// get returns a text, or "" if there is none. The text does not change.
func (t *texts) get(id int64) string {
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

// name returns a text as the name of a function, or a name that says which is missing.
func (b *builder) name(t *texts, id int64, ok bool, unknown string) []byte {
	if ok {
		if text := t.get(id); text != "" {
			return b.setName(text)
		}
	}
	b.tally.Add(tally.NamesUnknown, 1)
	return b.setName(unknown)
}

// setName returns a name as bytes that are valid until the next call.
func (b *builder) setName(name string) []byte {
	b.nameBytes = append(b.nameBytes[:0], name...)
	return b.nameBytes
}
