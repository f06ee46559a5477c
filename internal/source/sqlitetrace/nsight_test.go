package sqlitetrace_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/profile"
	"github.com/chimbuko/chimbuko/internal/source/sqlitetrace"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
	"github.com/chimbuko/chimbuko/internal/testkit/sqlitetest"
)

func open(t testing.TB, path string) []*profile.File {
	t.Helper()
	files, err := sqlitetrace.Open(path, profile.Options{Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Cleanup(f.Close)
	}
	return files
}

// content is what a file contains.
type content struct {
	lines    []string // thread, time since the first event, kind and name
	first    trace.Ticks
	metadata map[string]string // of thread 0
	gpus     []trace.GPU
	works    map[string]trace.Work
	tally    tally.Tally
	err      error
}

func read(t testing.TB, f *profile.File) *content {
	t.Helper()
	c := &content{metadata: make(map[string]string), works: make(map[string]trace.Work)}
	r, err := f.Steps(&c.tally)
	if err != nil {
		t.Fatal(err)
	}
	threads := make(map[trace.Thread][]trace.Event)
	for {
		s, err := r.Next(t.Context())
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.err = err
			}
			break
		}
		for _, m := range s.Metadata {
			if m.Thread == 0 {
				c.metadata[m.Key] = m.Value
			}
		}
		for _, b := range s.Batches {
			threads[b.Thread] = append(threads[b.Thread], b.Events...)
			if first := b.Events[0].Time; c.first == 0 || first < c.first {
				c.first = first
			}
		}
	}
	for _, thread := range slices.Sorted(maps.Keys(threads)) {
		for _, e := range threads[thread] {
			name, _ := r.Names().Func(f.Ranks[0], e.Func())
			if e.Kind == trace.Count {
				name, _ = r.Names().Counter(f.Ranks[0], e.Counter())
				name += fmt.Sprintf(" = %d", e.Value)
			}
			c.lines = append(c.lines, fmt.Sprintf("%d %d %v %s", thread, e.Time-c.first, e.Kind, name))
		}
		if gpu, ok := r.Names().GPU(f.Ranks[0], thread); ok {
			c.gpus = append(c.gpus, gpu)
		}
	}
	for id, name := range r.Names().Funcs() {
		c.works[name] = r.Names().Work(id)
	}
	return c
}

// checkProgram compares a file with the program that it is of.
func checkProgram(t *testing.T, f *profile.File, p *sqlitetest.Program, want []string, format, gpu string) *content {
	t.Helper()
	c := read(t, f)
	if a, b := strings.Join(c.lines, "\n"), strings.Join(want, "\n"); a != b || c.err != nil {
		t.Errorf("got\n%s\nwant\n%s\nerror %v", a, b, c.err)
	}
	if !slices.Equal(f.Ranks, []trace.Rank{trace.Rank(p.Rank)}) || !f.RankKnown || f.Format != format {
		t.Errorf("%s of ranks %v, %v", f.Format, f.Ranks, f.RankKnown)
	}
	if !slices.Equal(c.gpus, []trace.GPU{{Device: "0", Stream: "7"}, {Device: "0", Stream: "13"}}) {
		t.Errorf("GPUs are %v", c.gpus)
	}
	if c.metadata["GPU 0"] != gpu || c.metadata["Process name"] != "./train" || c.metadata["Hostname"] != p.Host() {
		t.Errorf("metadata is %v", c.metadata)
	}
	if c.works["gemm(float*) [grid 8×2×1, block 128×1×1]"] != trace.Compute || c.works["train"] != trace.HostWork ||
		c.works["ncclDevKernel_AllReduce_Sum_f32(args) [grid 8×2×1, block 128×1×1]"] != trace.Communication {
		t.Errorf("kinds of work are %v", c.works)
	}
	return c
}

// openProgram opens a trace of one generation with a program.
func openProgram(t *testing.T, write func(testing.TB, string, int, ...*sqlitetest.Program), generation int) (*profile.File, *sqlitetest.Program) {
	t.Helper()
	p := &sqlitetest.Program{Rank: 3, World: 4, Steps: 3, Slow: map[int]bool{1: true}}
	path := filepath.Join(t.TempDir(), "trace.sqlite")
	write(t, path, generation, p)
	if !sqlitetrace.IsTrace(path) {
		t.Error("the trace is not recognized")
	}
	files := open(t, path)
	if len(files) != 1 {
		t.Fatalf("%d files", len(files))
	}
	return files[0], p
}

func dumpNsight(p *sqlitetest.Program) []string {
	return p.Dump("cudaLaunchKernel", "cudaMemcpyAsync", "cudaDeviceSynchronize", "Memcpy HtoD")
}

func TestNsightExports(t *testing.T) {
	for name, generation := range map[string]int{"2.x": sqlitetest.Nsight2, "3.x": sqlitetest.Nsight3} {
		t.Run(name, func(t *testing.T) {
			f, p := openProgram(t, sqlitetest.Nsight, generation)
			c := checkProgram(t, f, p, dumpNsight(p), "Nsight", "NVIDIA A100-SXM4-80GB")
			if c.first != sqlitetest.Base+1_000_000 || c.tally.Count(tally.ColumnsMissing) != 0 || c.tally.Count(tally.EventsIgnored) != 1 {
				t.Errorf("begins at %d; counts %v", c.first, c.tally.Notes())
			}
			if generation == sqlitetest.Nsight2 && f.World != 4 {
				t.Errorf("%d ranks", f.World)
			}
		})
	}
}

func TestProcessesOfAnExportAreRanks(t *testing.T) {
	for silent, want := range map[bool][]trace.Rank{false: {1, 2, 5}, true: {0, 1, 2}} {
		var programs []*sqlitetest.Program
		for _, rank := range []int{5, 2, 1} {
			programs = append(programs, &sqlitetest.Program{Rank: rank, World: 6, Steps: 2, Silent: silent})
		}
		path := filepath.Join(t.TempDir(), "rank9.sqlite")
		sqlitetest.Nsight(t, path, sqlitetest.Nsight3, programs...)
		var ranks []trace.Rank
		var counts tally.Tally
		for _, f := range open(t, path) {
			c := read(t, f)
			ranks = append(ranks, f.Ranks...)
			counts.Merge(&c.tally)
			if got, want := len(c.lines), len(dumpNsight(programs[0])); got != want {
				t.Errorf("rank %d has %d events, want %d", f.Ranks[0], got, want)
			}
		}
		if !slices.Equal(ranks, want) || (counts.Count(tally.RankAssumed) > 0) != silent {
			t.Errorf("ranks are %v, want %v; counts %v", ranks, want, counts.Notes())
		}
	}
}

func TestRankOfASilentExportIsInItsName(t *testing.T) {
	dir := t.TempDir()
	for name, known := range map[string]bool{"rank7.sqlite": true, "report.sqlite": false} {
		path := filepath.Join(dir, name)
		sqlitetest.Nsight(t, path, sqlitetest.Nsight2, &sqlitetest.Program{Steps: 1, Silent: true})
		f := open(t, path)[0]
		if f.RankKnown != known || known && f.Ranks[0] != 7 {
			t.Errorf("%s: ranks %v, %v", name, f.Ranks, f.RankKnown)
		}
	}
}

// TestOtherColumnsAndEvents reads a table without some columns, and rows of unusual kinds.
func TestOtherColumnsAndEvents(t *testing.T) {
	const tid = 1<<48 | 77<<24 | 77
	path := filepath.Join(t.TempDir(), "report.sqlite")
	sqlitetest.Write(
		t, path, "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)", "INSERT INTO StringIds VALUES (1, 'cuLaunchKernel'), (2, 'k'), (3, 'MPI_Bcast')",
		"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, streamId INT, correlationId INT, shortName INT)",
		"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 150, 7, 5, 2), (0, 0, 7, 6, 2), (200, 190, 7, 6, 2), (300, 310, 7, NULL, 99)",
		"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT, globalTid INT, correlationId INT, nameId INT)",
		fmt.Sprintf("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 30, 0, %d, 5, 1), (9, 31, 67, %[1]d, 5, 1)", tid),
		"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, streamId INT, correlationId INT, bytes INT)",
		"INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (400, 410, 7, 8, 64)",
		"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (copyKind INT)",
		"CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT, graphId INT)",
		fmt.Sprintf("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (500, 510, 0, 7, 9, %d, 4)", tid),
		"CREATE TABLE MPI_COLLECTIVES_EVENTS (start INT, end INT, globalTid INT, textId INT)",
		fmt.Sprintf("INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (600, 610, %d, 3)", tid),
		"CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT)",
		fmt.Sprintf("INSERT INTO NVTX_EVENTS VALUES (700, 790, 60, 'a', %d), (710, 800, 60, 'b', %[1]d), (720, NULL, 59, 'open', %[1]d), "+
			"(730, 740, 59, 'aten::add, seq = 12, op_id = 345', %[1]d), (5, 6, 34, 'mark', %[1]d)", tid),
	)
	c := read(t, open(t, path)[0])
	want := []string{
		"0 0 enter cuLaunchKernel", "0 0 counter Correlation ID = 5", "0 20 exit cuLaunchKernel", "0 590 enter MPI_Bcast", "0 600 exit MPI_Bcast",
		"0 720 enter aten::add", "0 730 exit aten::add",
		"1 90 enter k", "1 90 counter Correlation ID = 5", "1 140 exit k", "1 290 enter kernel", "1 300 exit kernel",
		"1 390 enter Memset [64 bytes]", "1 390 counter Correlation ID = 8", "1 400 exit Memset [64 bytes]",
		"1 490 enter CUDA graph 4", "1 490 counter Correlation ID = 9", "1 500 exit CUDA graph 4",
		"3 690 enter a", "3 780 exit a", "4 700 enter b", "4 790 exit b",
	}
	if !slices.Equal(c.lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(c.lines, "\n"), strings.Join(want, "\n"))
	}
	for kind, n := range map[tally.Kind]int64{
		tally.NamesUnknown: 1, tally.EventsIgnored: 3, tally.TimeImplausible: 2, tally.TableMisshapen: 1,
	} {
		if got := c.tally.Count(kind); got != n {
			t.Errorf("%s is %d, want %d", kind.Name(), got, n)
		}
	}
	for _, missing := range []string{"CUPTI_ACTIVITY_KIND_KERNEL.gridX", "CUPTI_ACTIVITY_KIND_MEMCPY.start", "NVTX_EVENTS.textId"} {
		if !strings.Contains(c.metadata["Missing columns"], missing) {
			t.Errorf("%s is not in %q", missing, c.metadata["Missing columns"])
		}
	}
}

func TestDatabasesThatAreNoTraces(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ sql, want string }{
		"other": {"CREATE TABLE x (y INT)", "without the tables of Nsight Systems or rocpd"},
		"empty": {"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); CREATE TABLE TARGET_INFO_GPU (id INT)", "no calls, ranges or GPU activities"},
	} {
		path := filepath.Join(dir, name)
		sqlitetest.Write(t, path, c.sql)
		if _, err := sqlitetrace.Open(path, profile.Options{}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want %s", err, c.want)
		}
		if sqlitetrace.IsTrace(path) != (name == "empty") {
			t.Errorf("%s: recognized is %v", name, sqlitetrace.IsTrace(path))
		}
	}
}

// samples returns small traces of all kinds.
func samples(tb testing.TB) map[string][]byte {
	tb.Helper()
	p := &sqlitetest.Program{Rank: 1, World: 2, Steps: 100}
	dir := tb.TempDir()
	all := make(map[string][]byte)
	for name, write := range writers {
		path := filepath.Join(dir, name)
		write(tb, path, p)
		b, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		all[name] = b
	}
	return all
}

var writers = map[string]func(tb testing.TB, path string, p *sqlitetest.Program){
	"nsight2": func(tb testing.TB, path string, p *sqlitetest.Program) {
		sqlitetest.Nsight(tb, path, sqlitetest.Nsight2, p)
	},
	"nsight3": func(tb testing.TB, path string, p *sqlitetest.Program) {
		sqlitetest.Nsight(tb, path, sqlitetest.Nsight3, p)
	},
	"rocpd-inline": func(tb testing.TB, path string, p *sqlitetest.Program) {
		sqlitetest.Rocpd(tb, path, sqlitetest.RocpdInline, p)
	},
	"rocpd-tracks": func(tb testing.TB, path string, p *sqlitetest.Program) {
		sqlitetest.Rocpd(tb, path, sqlitetest.RocpdTracks, p)
	},
}

func TestDamagedTracesAreReadUpToAnError(t *testing.T) {
	for name, whole := range samples(t) {
		path := filepath.Join(t.TempDir(), name)
		write := func(b []byte) {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(whole)
		all := len(read(t, open(t, path)[0]).lines)
		broken := slices.Clone(whole)
		clear(broken[len(broken)*4/5/4096*4096:][:4096])
		write(broken)
		f := open(t, path)[0]
		c := read(t, f)
		if len(c.lines) == 0 || len(c.lines) >= all || c.err == nil || !strings.Contains(c.err.Error(), path+": byte ") ||
			c.tally.Count(tally.PartUnreadable) == 0 || len(f.Gaps) == 0 {
			t.Errorf("%s: %d of %d events, error %v, counts %v", name, len(c.lines), all, c.err, c.tally.Notes())
		}
		write(whole[:len(whole)*2/3])
		files, err := sqlitetrace.Open(path, profile.Options{})
		if err == nil {
			err = read(t, files[0]).err
			files[0].Close()
		}
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error of a cut file is %v", name, err)
		}
	}
}

// check reads a damaged trace and returns the number of its events, and whether losses were reported. Times must not decrease
// on a thread, and calls must be nested.
func check(t *testing.T, path, temp string) (events int, reported bool, err error) {
	files, err := sqlitetrace.Open(path, profile.Options{MaxEvents: 100, Temp: temp})
	if err != nil {
		if !strings.Contains(err.Error(), path) {
			return 0, true, fmt.Errorf("the error names no file: %w", err)
		}
		return 0, true, nil
	}
	for _, f := range files {
		defer f.Close()
		depth := make(map[string]int)
		last := make(map[string]int64)
		c := read(t, f)
		reported = reported || c.err != nil || len(c.tally.Notes()) > 0
		events += len(c.lines)
		for _, line := range c.lines {
			var thread, kind string
			var at int64
			if _, err := fmt.Sscan(line, &thread, &at, &kind); err != nil {
				return 0, false, err
			}
			if at < last[thread] {
				return 0, false, fmt.Errorf("%s after %d", line, last[thread])
			}
			last[thread] = at
			switch kind {
			case "enter":
				depth[thread]++
			case "exit":
				depth[thread]--
			}
			if depth[thread] < 0 {
				return 0, false, fmt.Errorf("%s without enter", line)
			}
		}
	}
	return events, reported, nil
}

// TestDamagedTraces reads mutations of traces of all generations. A file that is cut is reported, or has all events.
func TestDamagedTraces(t *testing.T) {
	for name, whole := range samples(t) {
		t.Run(name, func(t *testing.T) {
			dir, temp := t.TempDir(), t.TempDir()
			path := filepath.Join(dir, name)
			all := -1
			damage.Run(t, damage.Format{Files: damage.Files{name: whole}, Read: func(files damage.Files) error {
				if err := files.Write(dir); err != nil {
					return err
				}
				events, reported, err := check(t, path, temp)
				if all < 0 { // undamaged
					all = events
				}
				if err == nil && events < all && !reported && len(files[name]) < len(whole) {
					err = fmt.Errorf("%d of %d events without a reported damage", events, all)
				}
				return err
			}})
		})
	}
}

func FuzzOpen(f *testing.F) {
	for _, whole := range samples(f) {
		f.Add(whole)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "x.sqlite")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := check(t, path, t.TempDir()); err != nil {
			t.Error(err)
		}
	})
}
