package catalog

import (
	"encoding/base64"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// peerTables returns the rows of a comparison of peers, which replace all such rows of the run.
func peerTables(run provdb.RunID, p *provenance.Peers) []Table {
	return []Table{
		loadTable(run, p.Loads), windowTable(run, p.Loads), efficiencyTable(run, p.Efficiency), slowTable(run, p.Slow),
		activityTable(run, p.Activity),
	}
}

// activityTable has one row, or none if the activities are unknown.
func activityTable(run provdb.RunID, packed []byte) Table {
	return Table{
		Name: "activity", Len: min(len(packed), 1), Columns: []string{"run", "packed"},
		Row: func(int) []any { return []any{int32(run), base64.StdEncoding.EncodeToString(packed)} },
	}
}

func loadTable(run provdb.RunID, loads []provenance.RankLoad) Table {
	return Table{
		Name: "rank_loads", Len: len(loads),
		Columns: []string{
			"run", "pid", "rid", "tid", "device", "host", "role", "peers", "elapsed_us", "useful_us", "wait_us", "sync_us", "ratio", "pattern",
			"from_s", "to_s", "saved_us", "saved_share", "functions",
		},
		Row: func(i int) []any {
			l := &loads[i]
			return []any{
				int32(run), int32(l.PID), int32(l.RID), l.TID, l.Device, l.Host, int32(l.Role), int32(l.Peers), int64(l.Elapsed), int64(l.Useful),
				int64(l.Wait), int64(l.Sync), valueOf(l.Ratio), provdb.OrNull(string(l.Pattern)), valueOf(l.From), valueOf(l.To), int64(l.Saved),
				l.Share, list(l.Functions),
			}
		},
	}
}

func windowTable(run provdb.RunID, loads []provenance.RankLoad) Table {
	type place struct{ load, window int }
	var places []place
	for i := range loads {
		for k := range loads[i].Windows {
			places = append(places, place{i, k})
		}
	}
	return Table{
		Name: "load_windows", Len: len(places),
		Columns: []string{"run", "pid", "rid", "tid", "device", "from_s", "to_s", "useful_us", "wait_us", "ratio"},
		Row: func(i int) []any {
			l := &loads[places[i].load]
			w := &l.Windows[places[i].window]
			return []any{
				int32(run), int32(l.PID), int32(l.RID), l.TID, l.Device, w.From, w.To, int64(w.Useful), int64(w.Wait), valueOf(w.Ratio),
			}
		},
	}
}

func efficiencyTable(run provdb.RunID, all []provenance.Efficiency) Table {
	return Table{
		Name: "efficiency", Len: len(all),
		Columns: []string{
			"run", "pid", "entire", "begin_us", "from_s", "to_s", "ranks", "parallel", "load_balance", "communication", "slowest_rank",
			"device_parallel", "device_load_balance",
		},
		Row: func(i int) []any {
			e := &all[i]
			return []any{
				int32(run), int32(e.PID), e.Entire, int64(e.Begin), e.From, e.To, int32(e.Ranks), e.Parallel, e.LoadBalance, e.Communication, e.Slowest,
				valueOf(e.DeviceParallel), valueOf(e.DeviceLoadBalance),
			}
		},
	}
}

func slowTable(run provdb.RunID, all []provenance.SlowPeer) Table {
	return Table{
		Name: "slow_peers", Len: len(all),
		Columns: []string{
			"run", "slow_peer", "pid", "pattern", "host", "ranks", "hosts", "tid", "device", "role", "peers", "weak", "ratio", "from_s", "to_s",
			"lost_own_us", "lost_caused_us", "saved_us", "saved_share", "confidence", "windows", "functions", "counters", "twin",
			"sync_share", "peer_sync_share",
		},
		Row: func(i int) []any {
			s := &all[i]
			var twin any
			if s.Twin != nil {
				twin = int32(*s.Twin)
			}
			return []any{
				int32(run), int32(i + 1), int32(s.PID), string(s.Pattern), provdb.OrNull(s.Host), list(s.Ranks), list(s.Hosts), s.TID, s.Device,
				int32(s.Role), int32(s.Peers), s.Weak, s.Ratio, s.From, valueOf(s.To), int64(s.LostOwn), int64(s.LostCaused), int64(s.Saved),
				s.Share, s.Confidence, list(s.Windows), list(s.Functions), list(s.Counters), twin, s.SyncShare, s.PeerSync,
			}
		},
	}
}
