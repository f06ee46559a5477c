package sqlitetest

import (
	"fmt"
	"strings"
	"testing"
)

// The generations of Nsight's schema.
const (
	Nsight2 = iota // 2.x, of 2021 and 2022: texts of ranges in their table, variables separated by NUL
	Nsight3        // 3.x, since 2023: texts by number, contexts of devices, a table of MPI's ranks
)

// Nsight writes an export of programs, each of which is a process.
func Nsight(tb testing.TB, path string, generation int, programs ...*Program) {
	tb.Helper()
	w := nsight{generation: generation, ids: make(map[string]int)}
	w.create()
	for _, p := range programs {
		w.write(p)
	}
	w.describe(programs)
	Write(tb, path, w.sql...)
}

type nsight struct {
	generation int
	ids        map[string]int
	sql        []string
}

func (w *nsight) add(statement string) { w.sql = append(w.sql, statement) }

// text returns the number of a text.
func (w *nsight) text(s string) int {
	id, ok := w.ids[s]
	if !ok {
		id = len(w.ids)
		w.ids[s] = id
		w.add(insert("StringIds", id, s))
	}
	return id
}

// create creates tables as the exporter does: comments in SQL, and since 3.x only tables and
// columns with rows.
func (w *nsight) create() {
	context := ""
	if w.generation == Nsight3 {
		context = "greenContextId INTEGER, -- Green context ID.\n"
	}
	activity := "start INTEGER NOT NULL, -- Event start timestamp (ns).\nend INTEGER NOT NULL, deviceId INTEGER NOT NULL, " +
		"contextId INTEGER NOT NULL, " + context + "streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
	for _, table := range []string{
		"StringIds (\n  -- Texts, which repeat.\n\n  id INTEGER NOT NULL PRIMARY KEY, -- ID reference value.\n  value TEXT NOT NULL)",
		"CUPTI_ACTIVITY_KIND_KERNEL (" + activity + "demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, " +
			"gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, " +
			"blockZ INTEGER NOT NULL)",
		"CUPTI_ACTIVITY_KIND_MEMCPY (" + activity + "bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL)",
		"CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, " +
			"correlationId INTEGER, nameId INTEGER NOT NULL REFERENCES StringIds(id), returnValue INTEGER NOT NULL, callchainId INTEGER)",
		"NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, " +
			"text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER REFERENCES StringIds(id), domainId INTEGER)",
		"ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER)",
		"PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT)",
		"TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT)",
		"TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL, nameEnum INTEGER NOT NULL, " +
			"value TEXT NOT NULL)",
		"TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT)",
		map[int]string{Nsight2: "EXPORT_META_DATA", Nsight3: "META_DATA_EXPORT"}[w.generation] + " (name TEXT NOT NULL, value TEXT)",
	} {
		w.add("CREATE TABLE " + table)
	}
	if w.generation == Nsight3 {
		w.add("CREATE TABLE MPI_RANKS (globalTid INTEGER NOT NULL, rank INTEGER NOT NULL)")
	}
}

// write writes the events of a program.
func (w *nsight) write(p *Program) {
	pid := 1<<48 | p.PID()<<24
	tid := pid | p.PID()
	calls := map[string]string{"launch": "cudaLaunchKernel_v7000", "copy": "cudaMemcpyAsync_v3020", "wait": "cudaDeviceSynchronize_v3020"}
	activity := func(s span, more ...any) []any {
		values := []any{s.start, s.end, 0, 1}
		if w.generation == Nsight3 {
			values = append(values, nil)
		}
		return append(append(values, s.stream, s.correlation, pid), more...)
	}
	if w.generation == Nsight3 && !p.Silent {
		w.add(insert("MPI_RANKS", tid, p.Rank))
	}
	for n := range p.Steps {
		s := p.step(n)
		for _, k := range s.kernels {
			short, _, _ := strings.Cut(k.name, "(")
			w.add(insert("CUPTI_ACTIVITY_KIND_KERNEL", activity(k, w.text(k.name), w.text(short), nil, 8, 2, 1, 128, 1, 1)...))
		}
		w.add(insert("CUPTI_ACTIVITY_KIND_MEMCPY", activity(s.transfer, 4096, 1)...))
		for _, c := range s.calls {
			w.add(insert("CUPTI_ACTIVITY_KIND_RUNTIME", c.start, c.end, 0, tid, c.correlation, w.text(calls[c.name]), 0, nil))
		}
		w.mark(tid, s.annotation)
	}
	for i := range p.Ranges {
		w.mark(tid, p.Ranges[i].span())
	}
	w.add(insert("NVTX_EVENTS", 5, nil, 75, nil, nil, nil, "domain", tid, nil, nil, 1))
	w.add(insert("ThreadNames", w.text("worker"), 10, tid))
	w.add(insert("PROCESSES", pid, p.PID(), "./train"))
	w.add(insert("PROCESSES", 1<<48|99<<24, 99, "bash"))
}

// mark writes a range of a process with this first thread.
func (w *nsight) mark(tid int64, s span) {
	text, id := any(s.name), any(nil)
	if w.generation == Nsight3 {
		text, id = nil, w.text(s.name)
	}
	w.add(insert("NVTX_EVENTS", s.start, s.end, 59, nil, nil, nil, text, tid+s.thread, nil, id, 0))
}

// describe writes the tables about the whole export.
func (w *nsight) describe(programs []*Program) {
	w.add(insert("TARGET_INFO_SESSION_START_TIME", Base, "", ""))
	w.add(insert("TARGET_INFO_SYSTEM_ENV", 1<<48, "Local (CLI)", "Hostname", 3, programs[0].Host()))
	w.add(insert("TARGET_INFO_GPU", 1<<48, 0, "NVIDIA A100-SXM4-80GB"))
	if w.generation == Nsight3 {
		w.add(insert("META_DATA_EXPORT", "EXPORT_PRODUCT_VERSION", "2025.1.1"))
		return
	}
	w.add(insert("EXPORT_META_DATA", "EXPORT_PRODUCT_VERSION", "2022.2.1"))
	if p := programs[0]; len(programs) == 1 && !p.Silent { // long enough for several pages
		variables := []string{
			"PATH=" + strings.Repeat("/usr/bin:", 2000), fmt.Sprint("PMI_RANK=", p.Rank), fmt.Sprint("PMI_SIZE=", p.World), "X=1",
		}
		value := "'" + strings.Join(variables, "' || char(0) || '") + "'"
		w.add("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (" + fmt.Sprint(1<<48) + ", 'Local (CLI)', 'DeviceEnvironment', 9, " + value + ")")
	}
}
