package rocpd_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/rocpd"
	"github.com/chimbuko/chimbuko/internal/testkit/sqlitetest"
)

func dumpRocpd(p *sqlitetest.Program) []string {
	return p.Dump("hipLaunchKernel", "hipMemcpyAsync", "hipDeviceSynchronize", "Memcpy HtoD")
}

func TestRocpdDatabases(t *testing.T) {
	for name, generation := range map[string]int{"times in rows": sqlitetest.RocpdInline, "tracks": sqlitetest.RocpdTracks} {
		t.Run(name, func(t *testing.T) {
			f, p := sqlitetest.OpenProgram(t, sqlitetest.Rocpd, generation, rocpd.Format)
			c := sqlitetest.Check(t, f, p, dumpRocpd(p), "rocpd", "AMD Instinct MI300X")
			if c.Tally.Count(tally.ColumnsMissing) != 0 || f.World != 4 || c.Metadata["Schema version"] != "3" || !f.Properties.SinceBoot {
				t.Errorf("%d ranks, metadata %v, counts %v", f.World, c.Metadata, c.Tally.Notes())
			}
		})
	}
}

func TestMergedRocpdDatabases(t *testing.T) {
	a, b := &sqlitetest.Program{Rank: 1, World: 2, Steps: 2}, &sqlitetest.Program{Rank: 0, World: 2, Steps: 3}
	path := filepath.Join(t.TempDir(), "results.db")
	sqlitetest.Rocpd(t, path, sqlitetest.RocpdInline, a, b)
	files := sqlitetest.Open(t, path, rocpd.Format)
	if len(files) != 2 {
		t.Fatalf("%d files", len(files))
	}
	for i, p := range []*sqlitetest.Program{b, a} {
		sqlitetest.Check(t, files[i], p, dumpRocpd(p), "rocpd", "AMD Instinct MI300X")
	}
}

// TestOtherRocpdColumns reads a database without descriptions of events and with few columns.
func TestOtherRocpdColumns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rank6.db")
	sqlitetest.Write(
		t, path, "CREATE TABLE rocpd_metadata (id INTEGER PRIMARY KEY, tag TEXT, value TEXT)",
		"CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string TEXT)", "INSERT INTO rocpd_string VALUES (1, 'hipFree'), (2, 'solve')",
		"CREATE TABLE rocpd_region (id INTEGER PRIMARY KEY, pid INT, tid INT, start INT, end INT, name_id INT)",
		"INSERT INTO rocpd_region VALUES (1, 9, 9, 100, 120, 1), (2, 9, 9, 90, 200, 2), (3, 9, 9, 300, 290, 2), (4, 9, 9, NULL, 290, 2)",
		"CREATE TABLE rocpd_kernel_dispatch (id INTEGER PRIMARY KEY, pid INT, queue_id INT, stream_id INT, start INT, end INT, kernel_id INT)",
		"INSERT INTO rocpd_kernel_dispatch VALUES (1, 9, 4, 0, 110, 150, 3), (2, 9, 5, 0, 120, 160, 3), (3, 9, 5, 2, 120, 160, 3)",
		"CREATE TABLE rocpd_memory_copy (id INTEGER PRIMARY KEY, pid INT, size INT)",
	)
	f := sqlitetest.Open(t, path, rocpd.Format)[0]
	c := sqlitetest.Read(t, f)
	want := []string{
		"0 0 enter solve", "0 10 enter hipFree", "0 30 exit hipFree", "0 110 exit solve",
		"1 30 enter kernel", "1 70 exit kernel", "2 20 enter kernel", "2 60 exit kernel", "3 30 enter kernel", "3 70 exit kernel",
	}
	if !slices.Equal(c.Lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(c.Lines, "\n"), strings.Join(want, "\n"))
	}
	if got := fmt.Sprint(c.GPUs); got != "[{0  2} {0  queue 4} {0  queue 5}]" || f.Ranks[0] != trace.Rank(6) || !f.RankKnown {
		t.Errorf("GPUs are %s, ranks %v", got, f.Ranks)
	}
	for kind, n := range map[tally.Kind]int64{tally.NamesUnknown: 3, tally.TimeImplausible: 2, tally.TableMisshapen: 1} {
		if got := c.Tally.Count(kind); got != n {
			t.Errorf("%s is %d, want %d", kind.Name(), got, n)
		}
	}
	for _, missing := range []string{"rocpd_event", "rocpd_info_kernel_symbol", "rocpd_kernel_dispatch.grid_size_x", "rocpd_memory_copy.start"} {
		if !strings.Contains(c.Metadata["Missing columns"], missing) {
			t.Errorf("%s is not in %q", missing, c.Metadata["Missing columns"])
		}
	}
}
