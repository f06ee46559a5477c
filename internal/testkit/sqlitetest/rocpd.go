package sqlitetest

import (
	"fmt"
	"strings"
	"testing"
)

// The generations of rocpd's schema. Both have the version 3.
const (
	RocpdInline = iota // of ROCm 7: times and places in the rows of events
	RocpdTracks        // times in a table of timestamps, places in a table of tracks
)

// Rocpd writes the database of a program, or those of several in one file.
func Rocpd(tb testing.TB, path string, generation int, programs ...*Program) {
	tb.Helper()
	var statements []string
	for _, p := range programs {
		w := rocpd{generation: generation, suffix: fmt.Sprintf("_%08x_0000_7000", p.PID()), ids: make(map[string]int)}
		w.create()
		w.describe(p)
		w.write(p)
		statements = append(statements, w.sql...)
	}
	Write(tb, path, statements...)
}

type rocpd struct {
	generation int
	suffix     string
	ids        map[string]int
	sql        []string
	events     int
	times      int
	tracks     int
}

func (w *rocpd) insert(table string, values ...any) {
	w.sql = append(w.sql, insert("`"+table+w.suffix+"`", values...))
}

// text returns the number of a text.
func (w *rocpd) text(s string) int {
	id, ok := w.ids[s]
	if !ok {
		id = len(w.ids) + 1
		w.ids[s] = id
		w.insert("rocpd_string", id, "guid", s)
	}
	return id
}

// create creates tables and views.
func (w *rocpd) create() {
	const id = `"id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT DEFAULT "x, (" NOT NULL, `
	host := `"nid" INTEGER NOT NULL, "pid" INTEGER NOT NULL, "tid" INTEGER, `
	gpu := host + `"agent_id" INTEGER NOT NULL, "queue_id" INTEGER, "stream_id" INTEGER, `
	copied := host + `"queue_id" INTEGER, "stream_id" INTEGER, `
	times := `"start" BIGINT NOT NULL, "end" BIGINT NOT NULL, `
	if w.generation == RocpdTracks {
		host, gpu, copied = `"track_id" INTEGER NOT NULL, `, `"track_id" INTEGER NOT NULL, `, `"track_id" INTEGER NOT NULL, `
		times = `"start_id" INTEGER NOT NULL, "end_id" INTEGER NOT NULL, `
	}
	tables := map[string]string{
		"rocpd_metadata":  `"id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "tag" TEXT NOT NULL, "value" TEXT NOT NULL`,
		"rocpd_string":    id + `"string" TEXT NOT NULL UNIQUE ON CONFLICT ABORT`,
		"rocpd_info_node": id + `"hash" BIGINT NOT NULL UNIQUE, "machine_id" TEXT NOT NULL UNIQUE, "hostname" TEXT`,
		"rocpd_info_process": id + `"nid" INTEGER NOT NULL, "ppid" INTEGER, "pid" INTEGER NOT NULL, "command" TEXT, ` +
			`"environment" JSONB DEFAULT "{}" NOT NULL`,
		"rocpd_info_thread": id + `"nid" INTEGER NOT NULL, "ppid" INTEGER, "pid" INTEGER NOT NULL, "tid" INTEGER NOT NULL, "name" TEXT`,
		"rocpd_info_agent": id + `"nid" INTEGER NOT NULL, "pid" INTEGER NOT NULL, "type" TEXT CHECK ("type" IN ('CPU', 'GPU')), ` +
			`"logical_index" INTEGER, "type_index" INTEGER, "name" TEXT, "product_name" TEXT`,
		"rocpd_info_kernel_symbol": id + `"nid" INTEGER NOT NULL, "pid" INTEGER NOT NULL, "kernel_name" TEXT, "display_name" TEXT`,
		"rocpd_track": id + `"nid" INTEGER NOT NULL, "pid" INTEGER, "tid" INTEGER, "agent_id" INTEGER, "queue_id" INTEGER, ` +
			`"stream_id" INTEGER, FOREIGN KEY (tid) REFERENCES x (id)`,
		"rocpd_event": id + `"category_id" INTEGER, "stack_id" INTEGER, "parent_stack_id" INTEGER, "correlation_id" INTEGER, ` +
			`"extdata" JSONB DEFAULT "{}" NOT NULL`,
		"rocpd_region": id + host + times + `"name_id" INTEGER NOT NULL, "event_id" INTEGER`,
		"rocpd_kernel_dispatch": id + gpu + times + `"kernel_id" INTEGER NOT NULL, "workgroup_size_x" INTEGER NOT NULL, ` +
			`"workgroup_size_y" INTEGER NOT NULL, "workgroup_size_z" INTEGER NOT NULL, "grid_size_x" INTEGER NOT NULL, ` +
			`"grid_size_y" INTEGER NOT NULL, "grid_size_z" INTEGER NOT NULL, "event_id" INTEGER`,
		"rocpd_memory_copy": id + copied + times + `"name_id" INTEGER NOT NULL, "dst_agent_id" INTEGER, "src_agent_id" INTEGER, ` +
			`"size" INTEGER NOT NULL, "event_id" INTEGER`,
	}
	if w.generation == RocpdTracks {
		tables["rocpd_timestamp"] = id + `"value" BIGINT NOT NULL, "phase" INTEGER CHECK ("phase" IN (0, 1, 2)), "track_id" INTEGER`
	}
	for name, columns := range tables {
		w.sql = append(w.sql, "CREATE TABLE IF NOT EXISTS `"+name+w.suffix+"` ("+columns+")",
			fmt.Sprintf("CREATE VIEW IF NOT EXISTS %s AS SELECT * FROM `%[1]s%s`", name, w.suffix))
	}
}

const (
	rocpdNode = 11
	rocpdCPU  = 1
	rocpdGPU  = 5
)

// event adds the description of an event. The number of a call is that of the parent of its activities.
func (w *rocpd) event(category string, s span, parent int64, extra string) int {
	w.events++
	w.insert("rocpd_event", w.events, "guid", w.text(category), s.correlation, parent, 0, extra)
	return w.events
}

// where returns the values of the place and time of an event: for a host thread if the agent is 0, for a copy if it is -1.
func (w *rocpd) where(p *Program, s span, agent int) (values []any) {
	if w.generation == RocpdTracks {
		w.tracks++
		w.insert("rocpd_track", w.tracks, "guid", rocpdNode, p.PID(), p.PID()+s.thread, max(agent, 0), 1, s.stream)
		w.times += 2
		w.insert("rocpd_timestamp", w.times-1, "guid", s.start, 1, w.tracks)
		w.insert("rocpd_timestamp", w.times, "guid", s.end, 2, w.tracks)
		return []any{w.tracks, w.times - 1, w.times}
	}
	values = []any{rocpdNode, p.PID(), p.PID() + s.thread}
	switch {
	case agent > 0:
		values = append(values, agent, 1, s.stream)
	case agent < 0:
		values = append(values, nil, s.stream)
	}
	return append(values, s.start, s.end)
}

// describe writes the tables about a program.
func (w *rocpd) describe(p *Program) {
	environment := fmt.Sprintf(`{"PATH": "%s", "OMPI_COMM_WORLD_RANK": "%d", "OMPI_COMM_WORLD_SIZE": "%d"}`,
		strings.Repeat("/opt/rocm:", 900), p.Rank, p.World)
	if p.Silent {
		environment = "{}"
	}
	w.insert("rocpd_metadata", 1, "schema_version", "3")
	w.insert("rocpd_info_node", rocpdNode, "guid", 99, "machine", p.Host())
	w.insert("rocpd_info_process", p.PID(), "guid", rocpdNode, 1, p.PID(), "./train --fast", environment)
	for i := range p.threads() {
		w.insert("rocpd_info_thread", p.PID()+i, "guid", rocpdNode, 1, p.PID(), p.PID()+i, nil)
	}
	w.insert("rocpd_info_agent", rocpdCPU, "guid", rocpdNode, p.PID(), "CPU", 0, 0, "cpu", "EPYC")
	w.insert("rocpd_info_agent", rocpdGPU, "guid", rocpdNode, p.PID(), "GPU", 1, 0, "gfx942", "AMD Instinct MI300X")
}

// mark writes a range.
func (w *rocpd) mark(p *Program, s span) {
	event := w.event("MARKER_CORE_RANGE_API", s, 0, fmt.Sprintf(`{"message": %q}`, s.name))
	w.insert("rocpd_region", append(append([]any{nil, "guid"}, w.where(p, s, 0)...), w.text("roctxThreadRangeA"), event)...)
}

// write writes the events of a program.
func (w *rocpd) write(p *Program) {
	calls := map[string]string{"launch": "hipLaunchKernel", "copy": "hipMemcpyAsync", "wait": "hipDeviceSynchronize"}
	kernels := make(map[string]int)
	for n := range p.Steps {
		s := p.step(n)
		for _, c := range s.calls {
			event := w.event("HIP_RUNTIME_API_EXT", c, 0, "{}")
			w.insert("rocpd_region", append(append([]any{nil, "guid"}, w.where(p, c, 0)...), w.text(calls[c.name]), event)...)
		}
		w.mark(p, s.annotation)
		for _, k := range s.kernels {
			if kernels[k.name] == 0 {
				kernels[k.name] = len(kernels) + 1
				w.insert("rocpd_info_kernel_symbol", kernels[k.name], "guid", rocpdNode, p.PID(), "_Z4mangled.kd", k.name)
			}
			event := w.event("KERNEL_DISPATCH", k, k.correlation, "{}")
			w.insert("rocpd_kernel_dispatch", append(append([]any{nil, "guid"}, w.where(p, k, rocpdGPU)...),
				kernels[k.name], 128, 1, 1, 1024, 2, 1, event)...)
		}
		event := w.event("MEMORY_COPY", s.transfer, s.transfer.correlation, "{}")
		w.insert("rocpd_memory_copy", append(append([]any{nil, "guid"}, w.where(p, s.transfer, -1)...),
			w.text("MEMORY_COPY_HOST_TO_DEVICE"), rocpdGPU, rocpdCPU, 4096, event)...)
	}
	for i := range p.Ranges {
		w.mark(p, p.Ranges[i].span())
	}
}
