// Package rocpd reads rocpd databases, which rocprofv3 writes.
package rocpd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/profile"
	"github.com/chimbuko/chimbuko/internal/source/sqlitefile"
	"github.com/chimbuko/chimbuko/internal/source/sqlitetrace"
)

// Format is the format of the databases.
var Format = sqlitetrace.Format{
	Name: "rocpd", Program: "rocpd", Command: "rocprofv3 --sys-trace",
	Recognize: func(db *sqlitefile.DB) bool { return len(suffixes(db)) > 0 }, Read: read,
}

// suffixes returns the suffixes of the names of tables: one for each process that wrote into the database.
func suffixes(db *sqlitefile.DB) (all []string) {
	for _, t := range db.Tables() {
		if suffix, ok := strings.CutPrefix(t.Name, "rocpd_metadata"); ok && db.Table("rocpd_string"+suffix) != nil {
			all = append(all, suffix)
		}
	}
	slices.Sort(all)
	return all
}

// tables are the tables of a suffix.
type tables struct {
	*sqlitetrace.Builder
	part    int64 // number of the suffix
	strings *sqlitetrace.Texts
	kernels *sqlitetrace.Texts
	agents  map[int64]agent
	threads map[int64]int64      // thread of the system by row id
	queues  map[int64]profile.ID // of devices, which are used instead of streams

	// By row id; nil without such a table.
	events, starts, ends, tracks, threadRows *sqlitefile.Rows
}

// agent is a processor.
type agent struct {
	number int64 // among those of its type
	gpu    bool
	name   string
}

func read(b *sqlitetrace.Builder) error {
	for part, suffix := range suffixes(b.DB) {
		b.Suffix = suffix
		r := &tables{
			Builder: b, part: int64(part), strings: b.Texts("rocpd_string", "id", "string"),
			kernels: b.Texts("rocpd_info_kernel_symbol", "id", "display_name", "kernel_name"),
			threads: make(map[int64]int64), queues: make(map[int64]profile.ID),
			events: b.ByID("rocpd_event", "id", "??stack_id", "??parent_stack_id", "??correlation_id", "?category_id", "??extdata"),
			tracks: b.ByID("rocpd_track", "id", "??pid", "??tid", "??agent_id", "??queue_id", "??stream_id"),
		}
		if b.DB.Table("rocpd_timestamp"+suffix) != nil {
			r.starts, r.ends = b.ByID("rocpd_timestamp", "id", "value"), b.ByID("rocpd_timestamp", "id", "value")
		}
		if b.DB.Table("rocpd_info_thread"+suffix) != nil {
			r.threadRows = b.ByID("rocpd_info_thread", "id", "?tid")
		}
		r.readAgents()
		for _, t := range []struct {
			name    string
			columns []string
			read    func(*sqlitefile.Rows, *location) error
		}{
			{"rocpd_region", []string{"?name_id"}, r.readRegion},
			{"rocpd_kernel_dispatch", []string{
				"?kernel_id", "?grid_size_x", "?grid_size_y", "?grid_size_z", "?workgroup_size_x", "?workgroup_size_y", "?workgroup_size_z",
			}, r.readKernel},
			{"rocpd_memory_copy", []string{"?name_id", "?size", "?dst_agent_id", "?src_agent_id"}, r.readCopy},
		} {
			if err := r.each(t.name, t.columns, t.read); err != nil {
				return err
			}
		}
		r.describe()
	}
	return nil
}

// key returns the number of a process among those of all suffixes.
func (r *tables) key(pid int64) int64 { return r.part<<32 | pid&math.MaxUint32 }

// readAgents reads the processors.
func (r *tables) readAgents() {
	r.agents = make(map[int64]agent)
	rows := r.Rows("rocpd_info_agent", "id", "?type", "??type_index", "??logical_index", "??product_name", "??model_name", "?name")
	for rows != nil && rows.Next() && len(r.agents) < 1<<12 {
		id, _ := rows.Int(0)
		number, ok := rows.Int(2)
		if !ok {
			if number, ok = rows.Int(3); !ok {
				number = id
			}
		}
		name := cmp.Or(string(rows.Text(4)), string(rows.Text(5)), string(rows.Text(6)))
		r.agents[id] = agent{number: number, gpu: string(rows.Text(1)) == "GPU", name: name}
	}
}

// place are the columns of all events: older schemas have times and places in the row, newer ones in other tables.
var place = []string{
	"??start", "??end", "??start_id", "??end_id", "??pid", "??tid", "??agent_id", "??queue_id", "??stream_id", "??track_id", "?event_id",
}

const places = 11 // columns of place

// each calls add with the events of a table that have times, with columns after those of place.
func (r *tables) each(table string, columns []string, add func(rows *sqlitefile.Rows, l *location) error) error {
	t := r.DB.Table(table + r.Suffix)
	if t == nil {
		return nil
	}
	if t.Column("start") < 0 && (t.Column("start_id") < 0 || r.starts == nil) {
		r.Lack(table + ".start")
		r.Tally.Add(tally.TableMisshapen, 1)
		return nil
	}
	rows := r.Rows(table, append(slices.Clip(place), columns...)...)
	var l location
	for rows != nil && rows.Next() {
		if ok := r.locate(rows, &l); !ok {
			continue
		}
		if err := add(rows, &l); err != nil {
			return err
		}
	}
	return nil
}

// location is the place and time of an event. Unknown row numbers are -1.
type location struct {
	start, end, pid, tid, agent, queue, stream int64
}

// locate sets the location of an event, and reports whether its times are known.
func (r *tables) locate(rows *sqlitefile.Rows, l *location) bool {
	number := func(rows *sqlitefile.Rows, column int, otherwise int64) int64 {
		if n, ok := rows.Int(column); ok {
			return n
		}
		return otherwise
	}
	time := func(direct int, values *sqlitefile.Rows) (int64, bool) {
		if at, ok := rows.Int(direct); ok {
			return at, true
		}
		if id, ok := rows.Int(direct + 2); ok && values != nil && values.Find(id) {
			return values.Int(0)
		}
		return 0, false
	}
	var ok1, ok2 bool
	l.start, ok1 = time(0, r.starts)
	l.end, ok2 = time(1, r.ends)
	if !ok1 || !ok2 {
		r.Tally.Add(tally.TimeImplausible, 1)
		return false
	}
	l.pid, l.tid, l.agent = number(rows, 4, -1), number(rows, 5, -1), number(rows, 6, -1)
	l.queue, l.stream = number(rows, 7, -1), number(rows, 8, -1)
	if id, ok := rows.Int(9); ok && r.tracks != nil && r.tracks.Find(id) {
		l.pid, l.tid, l.agent = number(r.tracks, 0, l.pid), number(r.tracks, 1, l.tid), number(r.tracks, 2, l.agent)
		l.queue, l.stream = number(r.tracks, 3, l.queue), number(r.tracks, 4, l.stream)
	}
	return true
}

// findEvent moves to the description of an event. It returns false if it is missing.
func (r *tables) findEvent(rows *sqlitefile.Rows) bool {
	id, ok := rows.Int(places - 1)
	return ok && r.events != nil && r.events.Find(id)
}

// correlation returns the id that an activity shares with the call that launched it: the number of the call, which is that of the
// parent of an activity. The column correlation_id is a number of the user.
func (r *tables) correlation(columns ...int) uint64 {
	for _, c := range columns {
		if id, ok := r.events.Int(c); ok && id > 0 {
			return uint64(id)
		}
	}
	return 0
}

// thread returns the thread of the system of a row of rocpd_info_thread.
func (r *tables) thread(row int64) int64 {
	tid, ok := r.threads[row]
	if !ok {
		tid = row
		if r.threadRows != nil && r.threadRows.Find(row) {
			if n, ok := r.threadRows.Int(0); ok {
				tid = n
			}
		}
		if len(r.threads) > 1<<16 { // of a damaged file
			clear(r.threads)
		}
		r.threads[row] = tid
	}
	return tid
}

// readRegion reads a call of HIP, HSA, RCCL or others, or a range of roctx.
func (r *tables) readRegion(rows *sqlitefile.Rows, l *location) error {
	id, ok := rows.Int(places)
	name := r.Name(r.strings, id, ok, "call")
	kind, correlation, known := "", uint64(0), r.findEvent(rows)
	if known {
		number, _ := r.events.Int(3)
		kind, correlation = r.strings.Get(number), r.correlation(0, 2)
	}
	category, async := categoryOf(kind, name), false
	if category == profile.Annotation {
		async = bytes.HasPrefix(name, []byte("roctxProcessRange")) || bytes.HasPrefix(name, []byte("roctxRangeStart"))
		if known {
			if text := message(r.events.Text(4)); len(text) > 0 {
				name = text
			}
		}
	}
	return r.addRegion(l, category, name, correlation, async, rows.ID())
}

// addRegion adds a region. One that may overlap others of its thread has a thread of its own.
func (r *tables) addRegion(l *location, category profile.Category, name []byte, correlation uint64, async bool, row int64) error {
	times := []int64{l.start, l.end}
	if !async {
		times = times[:1]
	}
	for i, at := range times {
		e := r.Begin(category, name, at, at)
		if async {
			e.Kind, e.Key = profile.AsyncBegin+profile.Kind(i), uint64(row)<<1|1
		} else {
			e.Duration = l.end - l.start
		}
		e.Process, e.Thread, e.Correlation = r.Number(l.pid), r.Number(r.thread(l.tid)), correlation
		if err := r.Add(r.key(l.pid)); err != nil {
			return err
		}
	}
	return nil
}

// categoryOf returns the category of a region by that of the trace, such as HIP_RUNTIME_API_EXT or rocm_marker_api, and by its name.
func categoryOf(text string, name []byte) profile.Category {
	text = strings.ToUpper(text)
	switch {
	case strings.Contains(text, "MARKER") || strings.Contains(text, "ROCTX") || bytes.HasPrefix(name, []byte("roctx")):
		return profile.Annotation
	case strings.Contains(text, "HIP") || strings.Contains(text, "HSA") || bytes.HasPrefix(name, []byte("hip")):
		return profile.Runtime
	}
	return profile.Other
}

// message returns the text of a roctx range in {"message": "…"}, or nil.
func message(extra []byte) []byte {
	_, rest, ok := bytes.Cut(extra, []byte(`"message"`))
	if !ok {
		return nil
	}
	_, rest, _ = bytes.Cut(rest, []byte(`"`))
	if text, _, ok := bytes.Cut(rest, []byte(`"`)); ok && !bytes.Contains(text, []byte(`\`)) {
		return text
	}
	var object struct{ Message string }
	if json.Unmarshal(extra, &object) != nil {
		return nil
	}
	return []byte(object.Message)
}

// addActivity adds the event, which has been begun, as an activity of a GPU.
func (r *tables) addActivity(rows *sqlitefile.Rows, l *location) error {
	e := r.Event()
	e.Start, e.Duration = l.start, l.end-l.start
	if r.findEvent(rows) {
		e.Correlation = r.correlation(1, 0, 2)
	}
	device := max(l.agent, 0)
	if a, ok := r.agents[l.agent]; ok {
		device = a.number
	}
	e.Process, e.Thread = r.Number(device), r.Number(max(l.stream, 0))
	if l.stream <= 0 && l.queue > 0 { // the default stream, or unknown: a queue runs one activity at a time
		e.Thread = r.queue(l.queue)
	}
	return r.Add(r.key(l.pid))
}

// queue returns the id of a queue without stream.
func (r *tables) queue(n int64) profile.ID {
	id, ok := r.queues[n]
	if !ok {
		if len(r.queues) > 1<<12 {
			clear(r.queues)
		}
		id = profile.ID{Text: fmt.Appendf(nil, "queue %d", n)}
		r.queues[n] = id
	}
	return id
}

// readKernel reads a kernel. Its grid has work items, those of other profilers blocks.
func (r *tables) readKernel(rows *sqlitefile.Rows, l *location) error {
	id, ok := rows.Int(places)
	r.Begin(profile.Kernel, bytes.TrimSuffix(r.Name(r.kernels, id, ok, "kernel"), []byte(".kd")), 0, 0)
	var grid, block [3]int64
	ok = true
	for i := range 3 {
		items, ok1 := rows.Int(places + 1 + i)
		size, ok2 := rows.Int(places + 4 + i)
		ok = ok && ok1 && ok2 && size > 0 && items < math.MaxInt64-size
		grid[i], block[i] = (items+size-1)/max(size, 1), size
	}
	if ok {
		r.SetArg(profile.Grid, grid[:]...)
		r.SetArg(profile.Block, block[:]...)
	}
	return r.addActivity(rows, l)
}

// copyNames are shorter names of copies.
var copyNames = map[string]string{
	"MEMORY_COPY_HOST_TO_DEVICE": "Memcpy HtoD", "MEMORY_COPY_DEVICE_TO_HOST": "Memcpy DtoH",
	"MEMORY_COPY_DEVICE_TO_DEVICE": "Memcpy DtoD", "MEMORY_COPY_HOST_TO_HOST": "Memcpy HtoH",
}

// readCopy reads a copy of memory.
func (r *tables) readCopy(rows *sqlitefile.Rows, l *location) error {
	id, ok := rows.Int(places)
	name := r.Name(r.strings, id, ok, "Memcpy")
	if short, ok := copyNames[string(name)]; ok {
		name = r.SetName(short)
	}
	r.Begin(profile.Transfer, name, 0, 0)
	if size, ok := rows.Int(places + 1); ok {
		r.SetArg(profile.Bytes, size)
	}
	for i := range 2 { // the GPU among its ends
		if a, ok := rows.Int(places + 2 + i); ok && (r.agents[a].gpu || l.agent < 0) && !r.agents[l.agent].gpu {
			l.agent = a
		}
	}
	return r.addActivity(rows, l)
}

// describe sets names, ranks, hosts and devices of the processes.
func (r *tables) describe() {
	var devices []profile.Device
	for _, a := range r.agents {
		if a.gpu {
			devices = append(devices, profile.Device{ID: int(a.number), Name: a.name})
		}
	}
	slices.SortFunc(devices, func(a, b profile.Device) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Name, b.Name)) })
	hosts := r.Texts("rocpd_info_node", "id", "hostname")
	version := ""
	for rows := r.Rows("rocpd_metadata", "tag", "value"); rows != nil && rows.Next(); {
		if string(rows.Text(0)) == "schema_version" {
			version = string(rows.Text(1))
		}
	}
	rows := r.Rows("rocpd_info_process", "id", "?pid", "?nid", "?command", "?environment")
	for rows != nil && rows.Next() {
		id, _ := rows.Int(0)
		p := r.Process(r.key(id))
		if p == nil {
			continue
		}
		node, _ := rows.Int(2)
		p.Properties = profile.Properties{Host: hosts.Get(node), Devices: devices, SinceBoot: true}
		if version != "" {
			p.Properties.Facts = []profile.Fact{{Key: "Schema version", Value: version}}
		}
		program, _, _ := strings.Cut(string(rows.Text(3)), " ")
		p.NameProcess(r.Number(id).Text, program)
		var environment map[string]any
		_ = json.Unmarshal(rows.Text(4), &environment) // without variables if it is damaged
		p.Rank, p.Properties.World = sqlitetrace.RankOf(func(name string) (string, bool) {
			value, ok := environment[name]
			return fmt.Sprint(value), ok
		})
	}
	names := r.Rows("rocpd_info_thread", "?pid", "?tid", "??name")
	for names != nil && names.Next() {
		id, _ := names.Int(0)
		tid, _ := names.Int(1)
		if p := r.Process(r.key(id)); p != nil && len(names.Text(2)) > 0 {
			p.NameThread(r.Number(id), r.Number(tid), string(names.Text(2)))
		}
	}
}
