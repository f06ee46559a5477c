package storetest

import (
	"math"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// pathStats returns call paths of two programs.
func pathStats() []provenance.PathStats {
	return []provenance.PathStats{
		{Node: 1, FID: -1, Func: "main"}, // never ended
		{Node: 2, Parent: 1, FID: 3, Func: "solve > \"all\"", Calls: 7, Exclusive: 1 << 60},
		{Node: 3, Parent: 2, FID: 3, Func: "solve > \"all\"", Calls: 1},
		{Node: 4, Parent: 3, FID: -1, Func: "(other paths)", Calls: math.MaxInt64, Exclusive: math.MaxInt64},
		{Node: 5, Parent: 1, FID: 4, Func: "send", Calls: 2, Exclusive: 9},
		{Node: 6, FID: 4, Func: "send", Calls: 1, Exclusive: 1},
		{Node: 7, PID: math.MaxInt32, FID: 0, Func: "main", Calls: 3, Exclusive: 4},
	}
}

const pathSQL = "SELECT pid, call_path, depth, fid, func, calls, exclusive_us FROM path_stats WHERE run = $1 ORDER BY pid, call_path"

var pathTests = []test{
	{"stores calls by call path", func(f *fixture) {
		f.write(&provdb.Batch{Paths: pathStats()})
		solve := `main > solve > "all"`
		f.want([][]any{
			{int64(0), "main", int64(1), int64(-1), "main", int64(0), int64(0)},
			{int64(0), "main > send", int64(2), int64(4), "send", int64(2), int64(9)},
			{int64(0), solve, int64(2), int64(3), `solve > "all"`, int64(7), int64(1 << 60)},
			{int64(0), solve + ` > solve > "all"`, int64(3), int64(3), `solve > "all"`, int64(1), int64(0)},
			{int64(0), solve + ` > solve > "all" > (other paths)`, int64(4), int64(-1), "(other paths)", int64(math.MaxInt64), int64(math.MaxInt64)},
			{int64(0), "send", int64(1), int64(4), "send", int64(1), int64(1)},
			{int64(math.MaxInt32), "main", int64(1), int64(0), "main", int64(3), int64(4)},
		}, pathSQL, int64(f.run))
	}},
	{"a call path has its parent", func(f *fixture) {
		f.write(&provdb.Batch{Paths: pathStats()})
		f.want([][]any{{"main", nil}, {"send", nil}, {"main > send", "main"}, {`main > solve > "all"`, "main"}}, `SELECT s.call_path, p.call_path
			FROM path_stats s LEFT JOIN path_stats p ON p.run = s.run AND p.pid = s.pid AND p.path = s.parent
			WHERE s.run = $1 AND s.pid = 0 AND s.depth <= 2 ORDER BY s.depth, s.call_path`, int64(f.run))
	}},
	{"paths of executions have the same numbers", func(f *fixture) {
		r := Records(1, 1)[0]
		var paths []provenance.PathStats
		for i := range r.CallStack {
			e := r.CallStack[len(r.CallStack)-1-i]
			paths = append(paths, provenance.PathStats{PID: r.PID, Node: i + 1, Parent: i, FID: e.FID, Func: e.Func, Calls: int64(i)})
		}
		f.write(&provdb.Batch{Paths: paths})
		f.write(records(r))
		f.want([][]any{{int64(len(paths) - 1)}}, "SELECT s.calls FROM path_stats s JOIN anomalies a ON a.run = s.run AND a.pid = s.pid AND "+
			"a.path = s.path")
	}},
	{"call paths replace all of the run, and other writes keep them", func(f *fixture) {
		other := f.createRun("other")
		f.writeTo(other, &provdb.Batch{Paths: pathStats()})
		f.write(&provdb.Batch{Paths: pathStats()})
		f.write(&provdb.Batch{Paths: pathStats()[:2]})
		f.write(&provdb.Batch{Anomalies: Records(2, 1), Functions: funcStats()})
		f.update(provdb.Run{ID: f.run, State: provdb.Finished, Started: started})
		const count = "SELECT count(*), sum(calls)::BIGINT FROM path_stats WHERE run = $1 AND pid = 0 AND func <> '(other paths)'"
		f.want([][]any{{int64(2), int64(7)}}, count, int64(f.run))
		f.want([][]any{{int64(5), int64(11)}}, count, int64(other))
	}},
	{"paths with names of the same text are merged", func(f *fixture) {
		deep := strings.Repeat("x", 3000)
		f.write(&provdb.Batch{Paths: []provenance.PathStats{
			{Node: 1, Func: "a\x00", Calls: 1, Exclusive: 10},
			{Node: 2, Parent: 1, Func: deep, Calls: 2, Exclusive: 20},
			{Node: 3, Func: provenance.Text("a\x00"), Calls: 4, Exclusive: 40},
			{Node: 4, Parent: 3, Func: deep, Calls: 8, Exclusive: 80},
		}})
		name := provenance.Text("a\x00")
		f.want([][]any{
			{int64(0), name, int64(1), int64(0), name, int64(5), int64(50)},
			{int64(0), name + " > " + deep, int64(2), int64(0), deep, int64(10), int64(100)},
		}, pathSQL, int64(f.run))
	}},
	{"rejects call paths that are not a tree", func(f *fixture) {
		f.write(&provdb.Batch{Paths: pathStats()[:1]})
		for _, bad := range [][]provenance.PathStats{
			{{Node: 2, Func: "f"}},
			{{Node: 1, Parent: 1, Func: "f"}},
			{{Node: 1, Parent: -1, Func: "f"}},
			{{Node: 1, Func: "f"}, {Node: 1, Func: "g"}},
			{{Node: 1, Func: "f"}, {Node: 2, Parent: 1, PID: 1, Func: "g"}},
			{{Node: 1, Func: "f", PID: math.MaxUint32}},
			{{Node: 1, Func: "f", Calls: -1}},
			{{Node: 1, Func: "f", Exclusive: trace.Ticks(-1)}},
		} {
			if err := f.store.Write(f.Context(), f.run, &provdb.Batch{Paths: bad}); err == nil || !strings.Contains(err.Error(), "call path ") {
				f.Errorf("%+v: got %v, want an error about a call path", bad, err)
			}
		}
		f.want([][]any{{int64(1)}}, "SELECT count(*) FROM path_stats")
	}},
}
