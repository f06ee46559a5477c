package storetest

import (
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// peers returns a comparison of two ranks, a thread and a GPU.
func peers() *provenance.Peers {
	ratio, from, to, share, twin := 1.5, 9.125, 12.5, 0.75, trace.Rank(0)
	window := provenance.LoadWindow{From: 8, To: 9, Useful: 900_000, Wait: 100_000}
	slow := provenance.LoadWindow{From: 9, To: 10, Useful: 1 << 50, Wait: 1, Ratio: &ratio}
	noFunctions := []provenance.RankFunction{}
	return &provenance.Peers{
		Activity: []byte{8, 0, 0, 0xff, 0},
		Loads: []provenance.RankLoad{
			{
				PID: 0, RID: -1, TID: provenance.AllThreads, Host: "node01", Role: 1, Peers: 1, Elapsed: 5, Useful: 3, Wait: 2, Sync: 1,
				Functions: noFunctions,
			},
			{
				PID: 0, RID: 3, TID: provenance.AllThreads, Host: "it's \"2\"", Role: 1, Peers: 1, Elapsed: 1 << 60, Useful: 7, Wait: 8, Sync: 9,
				Ratio: &ratio, Pattern: provenance.Phase, From: &from, To: &to, Saved: 99, Share: 0.125,
				Windows: []provenance.LoadWindow{window, slow}, Functions: []provenance.RankFunction{
					{Func: "f <\"x\">", Calls: 5, Time: 1 << 60, Peers: new(trace.Ticks(3))}, {Func: "g", Calls: 1, Time: 2},
				},
			},
			{PID: 0, RID: 3, TID: 1, Host: "it's \"2\"", Role: 2, Windows: []provenance.LoadWindow{slow}, Functions: noFunctions},
			{PID: 0, RID: 3, TID: 1, Device: true, Host: "it's \"2\"", Role: 3, Windows: []provenance.LoadWindow{window}, Functions: noFunctions},
			{PID: math.MaxInt32, RID: 0, TID: math.MaxInt64, Role: 1, Functions: noFunctions},
		},
		Efficiency: []provenance.Efficiency{
			{PID: 0, Entire: true, From: 0, To: 12.5, Ranks: 2, Parallel: 0.5, LoadBalance: 0.75, Communication: 2.0 / 3, Slowest: 3},
			{PID: 0, From: 0, To: 8, Ranks: 2, Parallel: 1, LoadBalance: 1, Communication: 1, DeviceParallel: &share, DeviceLoadBalance: &share},
			{PID: math.MaxInt32, Entire: true, Ranks: 1, Slowest: -1},
		},
		Slow: []provenance.SlowPeer{
			{
				PID: 0, Pattern: provenance.Since, Host: "it's \"2\"", Ranks: []trace.Rank{3, 4}, Hosts: []string{"it's \"2\""},
				TID: provenance.AllThreads, Role: 1, Peers: 1, Weak: true, Ratio: 1.5, From: 9.125, LostOwn: 1, LostCaused: 2, Saved: 1 << 60,
				Share: 0.125, Confidence: 0.875, Windows: []provenance.LoadWindow{window, slow},
				Functions: []provenance.SlowFunction{{Func: "f <\"x\">", Calls: 5, Mean: 1.5, Peers: 1, Beyond: 3}}, Twin: &twin,
				Counters:  []provenance.SlowCounter{{Counter: "c <\"x\">", Rate: true, Value: 2, Peers: 1, Past: new(0.5), Spreads: 7}, {Counter: "d"}},
				SyncShare: 0.01, PeerSync: 0.25,
			},
			{
				PID: 1, Pattern: provenance.Roaming, Ranks: []trace.Rank{}, Hosts: []string{}, TID: 7, Device: true, Ratio: 1.25, From: 1, To: &to,
				Windows: []provenance.LoadWindow{}, Functions: []provenance.SlowFunction{}, Counters: []provenance.SlowCounter{},
			},
		},
	}
}

// wantPeers compares the stored comparison of peers with p.
func (f *fixture) wantPeers(run string, p *provenance.Peers) {
	f.Helper()
	a, err := query.New(f.Context(), f.store, run)
	if err != nil {
		f.Fatal(err)
	}
	got, err := a.Peers(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	if g, w := string(encode(f, got)), string(encode(f, p)); g != w {
		f.Errorf("got peers\n%s\nwant\n%s", g, w)
	}
}

var peerTests = []test{
	{"stores the comparison of peers", func(f *fixture) {
		f.write(&provdb.Batch{Peers: peers()})
		f.wantPeers("run", peers())
	}},
	{"stores times and shares of peers as numbers, and lists as JSON", func(f *fixture) {
		f.write(&provdb.Batch{Peers: peers()})
		f.want([][]any{{int64(3), "phase", 9.125, 12.5, 1.5, int64(99), 0.125}}, `SELECT rid, "pattern", from_s, to_s, ratio, saved_us, saved_share
			FROM rank_loads WHERE run = $1 AND "pattern" IS NOT NULL`, int64(f.run))
		f.want([][]any{{int64(2), int64(1), int64(1)}}, `SELECT count(*) FILTER (WHERE tid = -1), count(*) FILTER (WHERE tid = 1 AND device),
			count(*) FILTER (WHERE tid = 1 AND NOT device) FROM load_windows`)
		f.want([][]any{{int64(1), "f <\"x\">", int64(4)}, {int64(2), nil, nil}}, `SELECT slow_peer, functions -> 0 ->> 'function' AS func,
			(ranks ->> 1)::BIGINT AS second FROM slow_peers ORDER BY slow_peer`)
	}},
	{"a comparison of peers replaces that of the run only, and other writes keep it", func(f *fixture) {
		other := f.createRun("other")
		f.writeTo(other, &provdb.Batch{Peers: peers()})
		f.write(&provdb.Batch{Peers: peers()})
		less := peers()
		less.Loads, less.Efficiency, less.Slow = less.Loads[:1], less.Efficiency[:1], less.Slow[1:]
		f.write(&provdb.Batch{Peers: less})
		f.write(&provdb.Batch{Anomalies: Records(2, 1), Functions: funcStats(), Findings: findings(), Peers: &provenance.Peers{}})
		f.update(provdb.Run{ID: f.run, State: provdb.Finished, Started: started})
		f.wantPeers("run", less)
		f.wantPeers("other", peers())
	}},
	{"keeps the last of peers with the same place", func(f *fixture) {
		twice := peers()
		first := twice.Loads[0]
		first.Host = "elsewhere"
		twice.Loads = append([]provenance.RankLoad{first}, twice.Loads...)
		twice.Efficiency = append([]provenance.Efficiency{{PID: 0, Entire: true}}, twice.Efficiency...)
		f.write(&provdb.Batch{Peers: twice})
		f.wantPeers("run", peers())
	}},
	{"unusual text of peers is stored, invalid values are rejected", func(f *fixture) {
		unusual := peers()
		unusual.Loads[0].Host, unusual.Slow[0].Hosts[0], unusual.Slow[0].Functions[0].Func = "a\x00b\xff", "\x00", "x\ty"
		f.write(&provdb.Batch{Peers: unusual})
		f.want([][]any{{provenance.Text("a\x00b\xff")}}, "SELECT host FROM rank_loads WHERE rid = -1")
		if unusual.Slow[0].Hosts[0] != "\x00" {
			f.Error("the batch was changed")
		}
		nan, infinite := math.NaN(), math.Inf(1)
		for _, bad := range []provenance.Peers{
			{Loads: []provenance.RankLoad{{PID: math.MaxUint32}}},
			{Loads: []provenance.RankLoad{{Ratio: &nan}}},
			{Loads: []provenance.RankLoad{{Windows: []provenance.LoadWindow{{Ratio: &infinite}}}}},
			{Loads: []provenance.RankLoad{{Windows: []provenance.LoadWindow{{From: 2}, {From: 1}}}}},
			{Efficiency: []provenance.Efficiency{{Parallel: nan}}},
			{Efficiency: []provenance.Efficiency{{DeviceParallel: &nan}}},
			{Slow: []provenance.SlowPeer{{Ratio: infinite}}},
			{Slow: []provenance.SlowPeer{{Functions: []provenance.SlowFunction{{Mean: nan}}}}},
			{Slow: []provenance.SlowPeer{{Counters: []provenance.SlowCounter{{Spreads: nan}}}}},
		} {
			if err := f.store.Write(f.Context(), f.run, &provdb.Batch{Peers: &bad}); err == nil {
				f.Errorf("%+v was stored", bad)
			}
		}
		f.want([][]any{{int64(5)}}, "SELECT count(*) FROM rank_loads")
	}},
	{"a run without peers has none", func(f *fixture) {
		f.write(&provdb.Batch{Paths: pathStats()})
		f.wantPeers("run", nil)
	}},
}
