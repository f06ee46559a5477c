package ranks_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
)

const windows = 64

// run returns n ranks, 4 on each host, of which those of node0001 are 1.9 times slower in the second
// half, and the findings about them.
func run(n int) ranks.Data {
	p := new(provenance.Peers)
	known := make(map[trace.RankKey]string)
	half := 32.0
	for r := range n {
		key := trace.RankKey{Rank: trace.Rank(r)}
		known[key] = fmt.Sprintf("node%04d", r/4)
		l := provenance.RankLoad{
			RID: key.Rank, TID: provenance.AllThreads, Host: known[key], Role: 1, Peers: n - 1, Elapsed: 64e6, Useful: 40e6, Wait: 24e6,
			Ratio: new(1.004),
		}
		slow := r/4 == 1
		if slow {
			l.Ratio, l.Pattern, l.From, l.Saved, l.Share = new(1.45), provenance.Since, &half, 9e6, 0.14
		}
		for w := range windows {
			ratio := 1.0 + 0.01*float64((r+w)%3)
			if slow && w >= windows/2 {
				ratio = 1.9
			}
			l.Windows = append(l.Windows, provenance.LoadWindow{From: float64(w), To: float64(w + 1), Ratio: &ratio})
		}
		p.Loads = append(p.Loads, l)
	}
	p.Slow = []provenance.SlowPeer{{
		Pattern: provenance.Since, Host: "node0001", Ranks: []trace.Rank{4, 5, 6, 7}, TID: provenance.AllThreads, Role: 1, Ratio: 1.9,
		From: half, Saved: 9e6, Share: 0.14, Twin: new(trace.Rank(2)), Functions: []provenance.SlowFunction{{Func: "push", Calls: 9}},
	}}
	p.Efficiency = []provenance.Efficiency{{Entire: true, To: 64, Ranks: n, Parallel: 0.73, LoadBalance: 0.8, Communication: 0.9125}}
	links := ranks.Links{
		Finding:    func(*provenance.SlowPeer) (int, string) { return 3, "abc" },
		FunctionID: func(f trace.FuncKey) string { return "id of " + f.Name },
	}
	lost := map[ranks.LostKey]trace.Ticks{{RankKey: trace.RankKey{Rank: 2}, TID: provenance.AllThreads}: 77}
	return ranks.Data{Peers: p, Known: known, Lost: lost, Links: links}
}

// place returns the row of a place.
func place(t *testing.T, table *api.RankTable, name string) api.RankRow {
	t.Helper()
	for i := range table.Rows {
		if table.Rows[i].Place == name {
			return table.Rows[i]
		}
	}
	t.Fatalf("no %q in %+v", name, table.Rows)
	return api.RankRow{}
}

func TestRowsOfRanksAndHosts(t *testing.T) {
	d := run(16)
	byRank := ranks.New(d, ranks.Params{By: ranks.ByRank})
	if len(byRank.Rows) != 16 || byRank.Total != 16 || len(byRank.Windows) != windows || len(byRank.Slow) != 1 || len(byRank.Missing) != 0 {
		t.Fatalf("%d of %d rows, %d windows, %+v, %+v", len(byRank.Rows), byRank.Total, len(byRank.Windows), byRank.Slow, byRank.Missing)
	}
	if s := byRank.Slow[0]; s.Place != "node0001" || len(s.Ranks) != 4 || *s.Twin != 2 || s.Functions[0].FunctionID != "id of push" {
		t.Errorf("%+v", s)
	}
	slow := place(t, byRank, "rank 5")
	if slow.Host != "node0001" || *slow.Ratio != 1.45 || slow.Pattern != "since" || *slow.From != 32 || slow.To != nil || slow.Finding != 3 ||
		slow.FindingKey != "abc" || *slow.Ratios[0] > 1.1 || *slow.Ratios[windows-1] != 1.9 || slow.Saved != 9e6 {
		t.Errorf("%+v", slow)
	}
	if healthy := place(t, byRank, "rank 2"); healthy.Pattern != "" || healthy.Finding != 0 || *healthy.Lost != 77 || *healthy.Ratio != 1 {
		t.Errorf("%+v", healthy)
	}
	byHost := ranks.New(d, ranks.Params{By: ranks.ByHost})
	if len(byHost.Rows) != 4 {
		t.Fatalf("%d hosts", len(byHost.Rows))
	}
	host := place(t, byHost, "node0001")
	if host.Ranks != 4 || host.FirstRank != 4 || host.LastRank != 7 || host.Useful != 160e6 || host.Share != 0.14 || host.Finding != 3 {
		t.Errorf("%+v", host)
	}
	if only := ranks.New(d, ranks.Params{By: ranks.ByRank, Host: "node0002"}); len(only.Rows) != 4 {
		t.Errorf("%d ranks of a host", len(only.Rows))
	}
	if role := place(t, ranks.New(d, ranks.Params{By: ranks.ByRole}), "role 1"); role.Ranks != 16 || role.Finding != 3 {
		t.Errorf("%+v", role)
	}
}

// Ranks and windows without data have no ratio, and data without peers have the ratio 0.
func TestMissingDataIsMissing(t *testing.T) {
	d := run(8)
	d.Known[trace.RankKey{Rank: 8}] = "node0002"
	d.Known[trace.RankKey{Rank: 9}] = "node0002"
	d.Peers.Loads[0].Windows = d.Peers.Loads[0].Windows[:10]
	d.Peers.Loads[1].Windows[3].Ratio, d.Peers.Loads[1].Ratio = nil, nil
	table := ranks.New(d, ranks.Params{By: ranks.ByRank})
	if len(table.Missing) != 1 || table.Missing[0].Ranks != "8-9" || table.Missing[0].Host != "node0002" || table.Missing[0].Count != 2 {
		t.Errorf("%+v", table.Missing)
	}
	missing := place(t, table, "rank 9")
	if missing.Missing != 1 || missing.Ratio != nil || missing.Role != 0 {
		t.Errorf("%+v", missing)
	}
	for _, ratio := range missing.Ratios {
		if ratio != nil {
			t.Fatalf("ratio %v of a rank without data", *ratio)
		}
	}
	if short := place(t, table, "rank 0"); short.Ratios[9] == nil || short.Ratios[10] != nil {
		t.Error("a window without data has a ratio, or one with data has none")
	}
	if alone := place(t, table, "rank 1"); *alone.Ratios[3] != 0 || alone.Ratio != nil {
		t.Errorf("a window without comparable work: %+v", alone)
	}
	if host := place(t, ranks.New(d, ranks.Params{By: ranks.ByHost}), "node0002"); host.Missing != 2 || host.Ranks != 2 {
		t.Errorf("%+v", host)
	}
}

func TestCostliestRowsComeFirst(t *testing.T) {
	d := run(16)
	d.Known[trace.RankKey{Rank: 17}] = "node0004" // and 16 is a gap
	list := ranks.Costliest(d, ranks.Params{By: ranks.ByRank}, 7)
	if list.All != 18 || list.Empty != 2 || len(list.Rows) != 7 {
		t.Fatalf("%d of %d rows, %d without data", len(list.Rows), list.All, list.Empty)
	}
	for i, r := range list.Rows[:4] {
		if r.Ranks[0] != trace.Rank(4+i) || r.Slow != 1 || r.Pattern != provenance.Since || *r.Saved != 9e6 || *r.Peers != 15 || *r.Lost != 0 {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	if r := list.Rows[6]; r.Ranks[0] != 2 || r.Slow != 0 || *r.Lost != 77 || *r.Saved != 0 {
		t.Errorf("%+v", r)
	}
	d.Peers.Slow[0].Host, d.Peers.Slow[0].Ranks = "", []trace.Rank{5}
	hosts := ranks.Costliest(d, ranks.Params{By: ranks.ByHost}, 20)
	r := hosts.Rows[0]
	if len(hosts.Rows) != 6 || r.Host != "node0001" || r.Units != 4 || r.Slow != 1 || *r.Useful != 160e6 || math.Abs(*r.Ratio-1.45) > 1e-9 {
		t.Errorf("%+v", hosts)
	}
	if last := hosts.Rows[5]; last.HaveData != 0 || last.Useful != nil || last.Peers != nil || last.Ratio != nil || last.Saved != nil {
		t.Errorf("%+v", last)
	}
}

func TestThreadsAndDevices(t *testing.T) {
	d := run(4)
	for tid := range int64(2) {
		d.Peers.Loads = append(d.Peers.Loads, provenance.RankLoad{RID: 3, TID: tid, Host: "node0000", Ratio: new(1.0), Role: 1, Peers: 1})
	}
	d.Peers.Loads = append(d.Peers.Loads, provenance.RankLoad{RID: 3, TID: 9, Device: true, Host: "node0000", Ratio: new(1.2), Peers: 1})
	d.Peers.Slow = append(d.Peers.Slow, provenance.SlowPeer{
		Pattern: provenance.Always, Ranks: []trace.Rank{3}, TID: 9, Device: true, Ratio: 1.2,
	})
	if threads := ranks.New(d, ranks.Params{By: ranks.ByThread}); len(threads.Rows) != 2 || *place(t, threads, "rank 3, thread 1").Thread != 1 {
		t.Errorf("%+v", threads.Rows)
	}
	devices := ranks.New(d, ranks.Params{By: ranks.ByDevice})
	if row := place(t, devices, "rank 3, GPU thread 9"); len(devices.Rows) != 1 || row.Lost != nil || row.Pattern != "always" || row.Finding != 3 {
		t.Errorf("%+v", devices.Rows)
	}
}

// An answer about many ranks is small, and shows the worst.
func TestManyRanksShareRows(t *testing.T) {
	d := run(10_000)
	d.Peers.Loads[7777].Windows[5].Ratio = new(3.0)
	for _, by := range []string{ranks.ByRank, ranks.ByHost} {
		table := ranks.New(d, ranks.Params{By: by})
		b, err := json.Marshal(table)
		if err != nil || len(b) > 300_000 {
			t.Errorf("by %s: %d bytes, %v", by, len(b), err)
		}
		count, worst := int64(0), 0.0
		for i := range table.Rows {
			count += table.Rows[i].Ranks
			if r := table.Rows[i].Ratios[5]; r != nil {
				worst = max(worst, *r)
			}
		}
		if count != 10_000 || worst != 3 || len(table.Rows) > 400 {
			t.Errorf("by %s: %d ranks in %d of %d rows, the worst has %v", by, count, len(table.Rows), table.Total, worst)
		}
	}
}

// Of many hosts, those without data are not hidden among others.
func TestManyRanksShowMissingHosts(t *testing.T) {
	d := run(10_000)
	d.Peers.Loads = slices.DeleteFunc(d.Peers.Loads, func(l provenance.RankLoad) bool { return l.Host == "node0200" })
	hosts := ranks.New(d, ranks.Params{By: ranks.ByHost})
	if r := place(t, hosts, "node0200"); r.Missing != 4 || r.Ranks != 4 || r.Ratios[5] != nil {
		t.Errorf("%+v", r)
	}
	if r := place(t, hosts, "node0000 to node0006"); r.Ranks != 28 || r.Missing != 0 || r.Pattern != "since" {
		t.Errorf("%+v", r)
	}
	if r := place(t, ranks.New(d, ranks.Params{By: ranks.ByRank}), "ranks 800-803"); r.Missing != 4 || r.Ratio != nil {
		t.Errorf("%+v", r)
	}
}

func TestNoComparison(t *testing.T) {
	table := ranks.New(ranks.Data{Known: map[trace.RankKey]string{{Rank: 0}: "a"}}, ranks.Params{By: ranks.ByRank})
	if len(table.Rows) != 1 || table.Rows[0].Missing != 1 || table.Slow == nil || table.Windows == nil || table.Efficiency == nil {
		t.Errorf("%+v", table)
	}
	if l := ranks.Divide(nil, ranks.Listed(nil)); l != nil {
		t.Errorf("a loss without data: %v", l)
	}
}

func TestLossIsDividedAmongCauses(t *testing.T) {
	slow := func(shares ...float64) (list []provenance.SlowPeer) {
		for i, s := range shares {
			list = append(list, provenance.SlowPeer{Host: fmt.Sprintf("node%02d", i+1), TID: provenance.AllThreads, Share: s})
		}
		return list
	}
	f := func(efficiency float64, places []provenance.SlowPeer, findings int, cost float64, want string) {
		t.Helper()
		p := &provenance.Peers{Slow: places, Efficiency: []provenance.Efficiency{
			{Entire: true, Ranks: 4, To: 10, Parallel: efficiency}, {Ranks: 4, To: 1, Parallel: 0.1},
		}}
		all := []provenance.Finding{{Kind: provenance.SlowPlace, Share: 0.5}, {Kind: provenance.Waiting, Share: 0.5, Cause: 1}}
		for range findings {
			all = append(all, provenance.Finding{Kind: provenance.Outlier, Share: cost / float64(findings)})
		}
		l := ranks.Divide(p, ranks.Listed(all))
		sum := l.Efficiency
		for _, part := range l.Parts {
			if sum += part.Share; part.Share < 0 {
				t.Errorf("%v is negative", part)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("the parts add up to %v", sum)
		}
		if got := l.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := l.HasFindings(min(cost, 1-efficiency)); got != strings.Contains(want, "finding") {
			t.Errorf("%s: HasFindings is %v", want, got)
		}
	}
	f(0.73, slow(0.14), 12, 0.04, "73 % efficient: 14 % lost to node01, 9 % to waiting for messages, 4 % to waits in 12 findings")
	f(0.64, slow(0.47), 1, 0.3, "64 % efficient: 36 % lost to node01")
	f(0.5, nil, 1, 0.6, "50 % efficient: 50 % lost to waits in 1 finding")
	f(0.5, nil, 3, 0.001, "50 % efficient: 50 % lost to waiting for messages")
	f(1, nil, 0, 0, "100 % efficient")
	f(0.973, nil, 3, 0.008, "97.3 % efficient: 1.9 % lost to waiting for messages, 0.8 % to waits in 3 findings")
	f(0.2, slow(0.3, 0.1, 0.1, 0.05, 0.05), 0, 0,
		"20 % efficient: 30 % lost to node01, 20 % to waiting for messages, 10 % to node02, 10 % to node03, 10 % to 2 other slow places")
	f(0.3333, slow(0.2222), 2, 0.2222, "33 % efficient: 23 % lost to waiting for messages, 22 % to node01, 22 % to waits in 2 findings")
}

// Slow calls work, however long they take: only the waits for them lower the efficiency.
func TestOwnTimeOfFindingsIsNotWaiting(t *testing.T) {
	p := &provenance.Peers{Efficiency: []provenance.Efficiency{{Entire: true, Ranks: 4, To: 10, Parallel: 0.9}}}
	all := []provenance.Finding{{Kind: provenance.Outlier, Share: 0.2, Lost: 100, LostOwn: 70, LostCaused: 30}}
	l := ranks.Divide(p, ranks.Listed(all))
	if got, want := l.String(), "90 % efficient: 6 % lost to waits in 1 finding, 4 % to waiting for messages"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if l.HasFindings(0.2) || !l.HasFindings(0.06) {
		t.Error("the share of findings is not all of their cost")
	}
}

// Programs count by their ranks and time.
func TestEfficiencyOfSeveralPrograms(t *testing.T) {
	got, ok := ranks.Parallel([]provenance.Efficiency{
		{Entire: true, Ranks: 3, To: 10, Parallel: 0.9}, {Entire: true, PID: 1, Ranks: 1, From: 0, To: 10, Parallel: 0.5}, {Ranks: 9, To: 1},
	})
	if !ok || math.Abs(got-0.8) > 1e-9 {
		t.Errorf("%v, %v", got, ok)
	}
}
