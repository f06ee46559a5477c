// Package sqlitetest writes small traces as Nsight Systems and rocprofv3 do, in several generations of their schemas, for tests. The
// only package that uses modernc.org/sqlite.
package sqlitetest

import (
	"cmp"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver
)

// Write creates a database by SQL statements.
func Write(tb testing.TB, path string, statements ...string) {
	tb.Helper()
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec("PRAGMA synchronous=OFF; BEGIN;" + strings.Join(together(statements), ";\n") + "; COMMIT")
	}
	if err != nil {
		tb.Fatal(err)
	}
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
}

// together returns the statements with one for all rows of a table between others: each takes long to compile with the race detector.
func together(statements []string) (all []string) {
	rows := make(map[string]*strings.Builder) // of each table
	end := func() {
		for _, into := range slices.Sorted(maps.Keys(rows)) {
			all = append(all, rows[into].String())
		}
		clear(rows)
	}
	for _, s := range statements {
		into, values, ok := strings.Cut(s, " VALUES (")
		if !ok || !strings.HasPrefix(into, "INSERT INTO ") {
			end()
			all = append(all, s)
			continue
		}
		if b := rows[into]; b != nil {
			b.WriteString(",\n(" + values)
		} else {
			rows[into] = new(strings.Builder)
			rows[into].WriteString(s)
		}
	}
	end()
	return all
}

// Program is a program on one GPU: each step launches a kernel, a copy and a collective operation, and waits for them.
type Program struct {
	Rank, World int
	Steps       int
	Slow        map[int]bool // steps whose kernel takes 20 times as long
	Silent      bool         // the trace does not contain the rank
	Shift       int64        // nanoseconds to add to all times
	Hostname    string       // "" is a host for every two ranks
	// Ranges are more ranges of its threads, outer ones before inner ones.
	Ranges []Range
}

// Range is a range that a program marks: with NVTX or roctx.
type Range struct {
	Name       string
	Thread     int
	Start, End int64 // nanoseconds
}

// Base is the time of the first step in nanoseconds since 1970.
const Base = 1_700_000_000_000_000_000

// PID returns the process of the program.
func (p *Program) PID() int64 { return 4000 + int64(p.Rank) }

// Host returns the host of the program.
func (p *Program) Host() string { return cmp.Or(p.Hostname, fmt.Sprint("node", p.Rank/2)) }

// Times of a step in nanoseconds.
const (
	stepTime   = 10_000_000
	kernelTime = 200_000
	slowFactor = 20
)

// span is a call or an activity of a step, from its start.
type span struct {
	name        string // of the texts
	start, end  int64
	correlation int64 // 0 without one
	stream      int64
	thread      int64 // after the first one of the process
}

// step is what happens in a step: a range, calls of the API, two kernels and a copy.
type step struct {
	annotation span
	calls      []span
	kernels    []span
	transfer   span
}

// step returns a step.
func (p *Program) step(n int) step {
	at, id := int64(n)*stepTime+1_000_000+p.Shift, int64(10*n)
	duration := int64(kernelTime)
	if p.Slow[n] {
		duration *= slowFactor
	}
	during := func(name string, start, duration, correlation, stream int64) span {
		return span{name: name, start: at + start, end: at + start + duration, correlation: correlation, stream: stream}
	}
	return step{
		annotation: during("train", 0, duration+800_000, 0, 0),
		calls: []span{
			during("launch", 10_000, 5_000, id+1, 0), during("copy", 20_000, 5_000, id+2, 0), during("launch", 30_000, 5_000, id+3, 0),
			during("wait", 40_000, duration+500_000, id+4, 0),
		},
		kernels: []span{
			during("gemm(float*)", 100_000, duration, id+1, 7),
			during("ncclDevKernel_AllReduce_Sum_f32(args)", 300_000+duration, 50_000, id+3, 13),
		},
		transfer: during("copy", 200_000, 10_000, id+2, 13),
	}
}

// span returns a range as a span.
func (r *Range) span() span {
	return span{name: r.Name, start: r.Start, end: r.End, thread: int64(r.Thread)}
}

// threads returns the number of threads of the host.
func (p *Program) threads() int64 {
	n := 1
	for i := range p.Ranges {
		n = max(n, p.Ranges[i].Thread+1)
	}
	return int64(n)
}

// insert returns a statement. Texts are quoted, and nil is NULL.
func insert(table string, values ...any) string {
	texts := make([]string, 0, len(values))
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			texts = append(texts, "NULL")
		case string:
			texts = append(texts, "'"+strings.ReplaceAll(v, "'", "''")+"'")
		default:
			texts = append(texts, fmt.Sprint(v))
		}
	}
	return "INSERT INTO " + table + " VALUES (" + strings.Join(texts, ", ") + ")"
}

// Dump returns the events of the program as a reader must return them: thread, time since the first event, kind and name. Threads are
// the host and the streams 7 and 13.
func (p *Program) Dump(launch, transfer, wait, copied string) (lines []string) {
	first := 1_000_000 + p.Shift
	threads := make([][]string, 3)
	add := func(thread int, at int64, format string, args ...any) {
		threads[thread] = append(threads[thread], fmt.Sprintf("%d %d ", thread, at-first)+fmt.Sprintf(format, args...))
	}
	names := map[string]string{"launch": launch, "copy": transfer, "wait": wait}
	call := func(thread int, s span, name string) {
		add(thread, s.start, "enter %s", name)
		if s.correlation != 0 && name != wait {
			add(thread, s.start, "counter Correlation ID = %d", s.correlation)
		}
		add(thread, s.end, "exit %s", name)
	}
	for n := range p.Steps {
		s := p.step(n)
		add(0, s.annotation.start, "enter train")
		for _, c := range s.calls {
			call(0, c, names[c.name])
		}
		add(0, s.annotation.end, "exit train")
		call(1, s.kernels[0], s.kernels[0].name+" [grid 8×2×1, block 128×1×1]")
		call(2, s.transfer, copied+" [4096 bytes]")
		call(2, s.kernels[1], s.kernels[1].name+" [grid 8×2×1, block 128×1×1]")
	}
	return append(append(threads[0], threads[1]...), threads[2]...)
}
