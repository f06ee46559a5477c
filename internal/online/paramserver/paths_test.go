package paramserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// callsContribution is a contribution of one call of each function in the one before it.
func callsContribution(key trace.RankKey, step, depth int, names ...string) *deltas.Contribution {
	c := contribution(key, step)
	c.PathDepth = depth
	for i, name := range names {
		c.Paths = append(c.Paths, callpath.NamedEntry{Parent: int32(i) - 1, Name: name, Sums: callpath.Sums{Calls: 1, Exclusive: 10}})
	}
	return c
}

// pathsText is a list of paths: main=1/10 is one call of 10 microseconds.
func pathsText(list []summary.Path) string {
	texts, all := make([]string, len(list)), make([]string, len(list))
	for i, p := range list {
		if texts[i] = p.Name; p.Parent >= 0 {
			texts[i] = texts[p.Parent] + "/" + p.Name
		}
		all[i] = fmt.Sprintf("%s=%d/%d", texts[i], p.Calls, p.Exclusive)
	}
	return strings.Join(all, " ")
}

// TestCallPathsFoldWhereAnyAnalyzerFoldsThem has three analyzers, of which the
// second has so many paths that only the outermost remain.
func TestCallPathsFoldWhereAnyAnalyzerFoldsThem(t *testing.T) {
	w := newWorld(t, Config{Ranks: 3})
	traces := map[trace.RankKey][]*deltas.Contribution{
		{Program: 0, Rank: 0}: {
			callsContribution(trace.RankKey{Program: 0, Rank: 0}, 0, callpath.MaxDepth, "main", "solve", "send"),
			callsContribution(trace.RankKey{Program: 0, Rank: 0}, 1, callpath.MaxDepth, "main", "write"),
		},
		{Program: 0, Rank: 1}: {
			callsContribution(trace.RankKey{Program: 0, Rank: 1}, 0, callpath.MaxDepth, "main", "solve"),
			callsContribution(trace.RankKey{Program: 0, Rank: 1}, 1, 1, "main", callpath.OtherName),
		},
		{Program: 0, Rank: 2}: {callsContribution(trace.RankKey{Program: 0, Rank: 2}, 0, callpath.MaxDepth, "start")},
	}
	var analyzers []*testAnalyzer
	for key, steps := range traces {
		traces[key] = append(steps, endContribution(key, len(steps)-1))
		analyzers = append(analyzers, newAnalyzer(t, w, fmt.Sprint("analyzer", key.Rank), 1,
			map[trace.RankKey][]*deltas.Contribution{key: traces[key]}))
	}
	settle(w, analyzers...)
	const want = "main=4/40 main/(other paths)=5/50 start=1/10"
	if got := pathsText(w.state(0).Paths()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	w.save(0)
	w.kill(0)
	w.start(0)
	o, err := w.state(0).Outcome(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := pathsText(o.Paths); got != want || o.Tally.Count(tally.PathFolded) != 5 {
		t.Errorf("in the end %s, %d calls folded; want %s and 5", got, o.Tally.Count(tally.PathFolded), want)
	}
}

func TestWaitingCallPathsAreBounded(t *testing.T) {
	w := newWorld(t, Config{})
	w.kill(0)
	key := trace.RankKey{Program: 0, Rank: 3}
	var steps []*deltas.Contribution
	for step := range 40 {
		c := callsContribution(key, step, callpath.MaxDepth, "main")
		for i := range 1600 { // which count for 100 functions
			c.Paths = append(c.Paths, callpath.NamedEntry{Name: fmt.Sprint("f", i), Sums: callpath.Sums{Calls: 1, Exclusive: 1}})
		}
		steps = append(steps, c)
	}
	a := newAnalyzer(t, w, "a", 1, map[trace.RankKey][]*deltas.Contribution{key: append(steps, endContribution(key, 39))})
	a.cfg.MaxSeparate = 1000
	a.start()
	a.readAll()
	if n := a.client.Progress().Separate; n > 0 || a.client.Lag() == 0 {
		t.Errorf("%d functions of %d steps wait one by one", n, a.client.Lag())
	}
	w.start(0)
	settle(w, a)
	if list := w.state(0).Paths(); len(list) != 1601 || list[0].Calls != 40 || list[1600].Calls != 40 {
		t.Errorf("%d paths, want 1601 with 40 calls each", len(list))
	}
}
