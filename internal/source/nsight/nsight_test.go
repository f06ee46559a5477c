package nsight_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/nsight"
	"github.com/chimbuko/chimbuko/internal/testkit/sqlitetest"
)

func dumpNsight(p *sqlitetest.Program) []string {
	return p.Dump("cudaLaunchKernel", "cudaMemcpyAsync", "cudaDeviceSynchronize", "Memcpy HtoD")
}

func TestNsightExports(t *testing.T) {
	for name, generation := range map[string]int{"2.x": sqlitetest.Nsight2, "3.x": sqlitetest.Nsight3} {
		t.Run(name, func(t *testing.T) {
			f, p := sqlitetest.OpenProgram(t, sqlitetest.Nsight, generation, nsight.Format)
			c := sqlitetest.Check(t, f, p, dumpNsight(p), "Nsight", "NVIDIA A100-SXM4-80GB")
			if c.First != sqlitetest.Base+1_000_000 || c.Tally.Count(tally.ColumnsMissing) != 0 || c.Tally.Count(tally.EventsIgnored) != 1 {
				t.Errorf("begins at %d; counts %v", c.First, c.Tally.Notes())
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
		for _, f := range sqlitetest.Open(t, path, nsight.Format) {
			c := sqlitetest.Read(t, f)
			ranks = append(ranks, f.Ranks...)
			counts.Merge(&c.Tally)
			if got, want := len(c.Lines), len(dumpNsight(programs[0])); got != want {
				t.Errorf("rank %d has %d events, want %d", f.Ranks[0], got, want)
			}
		}
		if !slices.Equal(ranks, want) || (counts.Count(tally.RankAssumed) > 0) != silent {
			t.Errorf("ranks are %v, want %v; counts %v", ranks, want, counts.Notes())
		}
	}
}

func TestRankOfExportWithoutOutputIsInItsName(t *testing.T) {
	dir := t.TempDir()
	for name, known := range map[string]bool{"rank7.sqlite": true, "report.sqlite": false} {
		path := filepath.Join(dir, name)
		sqlitetest.Nsight(t, path, sqlitetest.Nsight2, &sqlitetest.Program{Steps: 1, Silent: true})
		f := sqlitetest.Open(t, path, nsight.Format)[0]
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
	c := sqlitetest.Read(t, sqlitetest.Open(t, path, nsight.Format)[0])
	want := []string{
		"0 0 enter cuLaunchKernel", "0 0 counter Correlation ID = 5", "0 20 exit cuLaunchKernel", "0 590 enter MPI_Bcast", "0 600 exit MPI_Bcast",
		"0 720 enter aten::add", "0 730 exit aten::add",
		"1 90 enter k", "1 90 counter Correlation ID = 5", "1 140 exit k", "1 290 enter kernel", "1 300 exit kernel",
		"1 390 enter Memset [64 bytes]", "1 390 counter Correlation ID = 8", "1 400 exit Memset [64 bytes]",
		"1 490 enter CUDA graph 4", "1 490 counter Correlation ID = 9", "1 500 exit CUDA graph 4",
		"3 690 enter a", "3 780 exit a", "4 700 enter b", "4 790 exit b",
	}
	if !slices.Equal(c.Lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(c.Lines, "\n"), strings.Join(want, "\n"))
	}
	for kind, n := range map[tally.Kind]int64{
		tally.NamesUnknown: 1, tally.EventsIgnored: 3, tally.TimeImplausible: 2, tally.TableMisshapen: 1,
	} {
		if got := c.Tally.Count(kind); got != n {
			t.Errorf("%s is %d, want %d", kind.Name(), got, n)
		}
	}
	for _, missing := range []string{"CUPTI_ACTIVITY_KIND_KERNEL.gridX", "CUPTI_ACTIVITY_KIND_MEMCPY.start", "NVTX_EVENTS.textId"} {
		if !strings.Contains(c.Metadata["Missing columns"], missing) {
			t.Errorf("%s is not in %q", missing, c.Metadata["Missing columns"])
		}
	}
}
