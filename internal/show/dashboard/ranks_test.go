package dashboard_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// comparePeers stores that rank 5 of eight, two on each host, is slow since 1 s.
func comparePeers(ctx context.Context, t *testing.T, store provdb.Store, run string) {
	t.Helper()
	p := &provenance.Peers{
		Slow: []provenance.SlowPeer{{
			Pattern: provenance.Since, Ranks: []trace.Rank{5}, Hosts: []string{"node2"}, TID: provenance.AllThreads, Role: 1, Peers: 7, Ratio: 1.9,
			From: 1, LostOwn: 140_000, Saved: 140_000, Share: 0.14, Confidence: 0.99,
		}},
		Efficiency: []provenance.Efficiency{
			{Entire: true, To: 2, Ranks: 8, Parallel: 0.73, LoadBalance: 0.8, Communication: 0.9125, Slowest: 5},
			{To: 1, Ranks: 8, Parallel: 0.9, LoadBalance: 0.95, Communication: 0.95, Slowest: 5},
			{From: 1, To: 2, Ranks: 8, Parallel: 0.56, LoadBalance: 0.6, Communication: 0.93, Slowest: 5},
		},
	}
	for r := range trace.Rank(8) {
		ratio := 1.0
		if r == 5 {
			ratio = 1.45
		}
		p.Loads = append(p.Loads, provenance.RankLoad{
			RID: r, TID: provenance.AllThreads, Host: fmt.Sprintf("node%d", r/2), Role: 1, Peers: 7, Elapsed: 2e6, Useful: 1.5e6, Wait: 5e5,
			Functions: []provenance.RankFunction{{Func: "f", Calls: 9, Time: 1e6}},
			Ratio:     &ratio, Windows: []provenance.LoadWindow{{To: 1, Useful: 7e5, Ratio: &ratio}, {From: 1, To: 2, Useful: 8e5, Ratio: &ratio}},
		})
	}
	found, err := query.Find(ctx, store, run)
	if err == nil {
		err = store.Write(ctx, found.ID, &provdb.Batch{Peers: p})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRanksAreComparedWithPeers(t *testing.T) {
	store := emptyStore(t)
	someRun(t, store, "monday", []*provenance.Record{anomaly(1, 5, 10, 100, 50), anomaly(2, 3, 10, 100, 30)})
	comparePeers(t.Context(), t, store, "monday")
	at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) {
		p.reader = store
		p.status.Ranks = []api.Rank{{Rank: 8, Host: "node4"}}
		p.status.Totals.RanksExpected = 0
	})
	byRank := want[api.RankTable](t, do(t, at+monday+"/ranks", ""), 200)
	if len(byRank.Rows) != 9 || len(byRank.Windows) != 2 || len(byRank.Efficiency) != 3 || len(byRank.Slow) != 1 {
		t.Fatalf("%+v", byRank)
	}
	if r := byRank.Rows[5]; r.Place != "rank 5" || *r.Lost != 50 || *r.Ratio != 1.45 || r.Pattern != "since" || r.Share != 0.14 {
		t.Errorf("%+v", r)
	}
	if m := byRank.Missing; len(m) != 1 || m[0].Ranks != "8" || m[0].Host != "node4" || byRank.Rows[8].Missing != 1 {
		t.Errorf("missing %+v", m)
	}
	if byHost := want[api.RankTable](t, do(t, at+monday+"/ranks?by=host&host=node2", ""), 200); len(byHost.Rows) != 1 || byHost.Rows[0].Ranks != 2 {
		t.Errorf("%+v", byHost.Rows)
	}
	if few := want[api.RankTable](t, do(t, at+monday+"/ranks?rank=2-3,5", ""), 200); len(few.Rows) != 3 {
		t.Errorf("%+v", few.Rows)
	}
	fails(t, do(t, at+monday+"/ranks?by=color", ""), 400, "want rank, host, thread, device, role")

	if f := want[api.RankFunctions](t, do(t, at+monday+"/ranks/functions?rank=2-3&host=node1", ""), 200); f.Ranks != 2 || f.Functions[0].Calls != 18 {
		t.Errorf("%+v", f)
	}
	fails(t, do(t, at+monday+"/ranks/functions?thread=x", ""), 400, "thread")

	found := want[api.FindingList](t, do(t, at+monday+"/findings", ""), 200).Rows
	for _, x := range found {
		path := at + monday + "/findings/" + x.Key + "/slow-peer"
		if x.Kind != "slow-peer" {
			fails(t, do(t, path, ""), 404, "has no slow peer")
		} else if e := want[api.SlowEvidence](t, do(t, path, ""), 200); e.Slow.Place != "rank 5" || e.Slow.FindingKey != x.Key || e.Here.Useful == 0 {
			t.Errorf("%+v", e)
		}
	}
	if len(found) < 2 {
		t.Errorf("%+v", found)
	}
	fails(t, do(t, at+monday+"/findings/nosuch/slow-peer", ""), 404, "no finding has the key")

	o := want[api.Overview](t, do(t, at+monday+"/overview", ""), 200)
	if !strings.HasPrefix(o.Verdict.Sentence, "73 % efficient: 14 % lost to rank 5, ") || len(o.Efficiency) != 1 || len(o.Slow) != 1 ||
		o.Verdict.Level == api.LevelGood {
		t.Errorf("%+v, %+v, %+v", o.Verdict, o.Efficiency, o.Slow)
	}
	metrics := scrape(t, at)
	for series, value := range map[string]string{
		`chimbuko_parallel_efficiency{program="0"}`:                      "0.73",
		`chimbuko_load_balance{program="0"}`:                             "0.8",
		`chimbuko_communication_efficiency{program="0"}`:                 "0.9125",
		`chimbuko_slow_peer{pattern="since",place="rank 5",program="0"}`: "1.9",
	} {
		if metrics[series] != value {
			t.Errorf("%s is %q, want %s", series, metrics[series], value)
		}
	}
}

// Runs that are not compared have no efficiency, and keep their verdict.
func TestRanksWithoutComparison(t *testing.T) {
	at, _ := serve(t, nil)
	table := want[api.RankTable](t, do(t, at+monday+"/ranks?by=host", ""), 200)
	if len(table.Windows) != 0 || len(table.Slow) != 0 || len(table.Rows) == 0 || table.Rows[0].Missing != table.Rows[0].Ranks {
		t.Errorf("%+v", table.Rows[0])
	}
	if o := want[api.Overview](t, do(t, at+monday+"/overview", ""), 200); strings.Contains(o.Verdict.Sentence, "efficient") {
		t.Errorf("%+v", o.Verdict)
	}
}
