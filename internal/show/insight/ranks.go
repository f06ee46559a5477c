package insight

import (
	"context"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
)

// Ranks compares the ranks of a run with their peers.
func (in *Insight) Ranks(ctx context.Context, run string, of ranks.Params) (*api.RankTable, error) {
	if !slices.Contains(ranks.By, of.By) {
		return nil, api.Problemf(api.Invalid, api.ParamsHint, "parameter by: unknown row %.40q (want %s)", of.By, strings.Join(ranks.By, ", "))
	}
	return withData(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.RankTable, error) {
		v, err := in.view(ctx, q)
		if err != nil {
			return nil, err
		}
		d := ranks.Data{Peers: q.data.peers, Links: q.data.slowLinks(), Known: v.knownRanks()}
		if of.By == ranks.ByThread || of.By == ranks.ByDevice {
			return ranks.New(d, of), nil
		}
		d.Lost, err = in.lostTime(ctx, q)
		return ranks.New(d, of), err
	})
}

// lostTime returns the time that ranks lost to anomalies. It caches the sums of a live run, which are slow to
// compute.
func (in *Insight) lostTime(ctx context.Context, q *runQuery) (map[ranks.LostKey]trace.Ticks, error) {
	a := *q.Queries
	return in.lost.Get(ctx, runKey(&a.Run), func(ctx context.Context) (map[ranks.LostKey]trace.Ticks, bool, error) {
		ctx, cancel := context.WithTimeout(ctx, in.Timeout)
		defer cancel()
		all := make(map[ranks.LostKey]trace.Ticks)
		err := a.LostTime(ctx, false, func(of trace.RankKey, tid int64, lost trace.Ticks) {
			all[ranks.LostKey{RankKey: of, TID: tid}] = lost
		})
		return all, !a.Run.State.Open(), err
	})
}

// RankFunctions returns the functions of the selected ranks with the most time.
func (in *Insight) RankFunctions(ctx context.Context, run string, of ranks.Params) (*api.RankFunctions, error) {
	return withData(ctx, in, run, func(_ context.Context, q *runQuery) (*api.RankFunctions, error) {
		return ranks.Functions(ranks.Data{Peers: q.data.peers, Links: q.data.slowLinks()}, of), nil
	})
}

// FindingParams name a finding.
type FindingParams struct{ Key string }

// SlowPeer returns the evidence of a finding about a slow peer.
func (in *Insight) SlowPeer(ctx context.Context, run string, of FindingParams) (*api.SlowEvidence, error) {
	return withData(ctx, in, run, func(_ context.Context, q *runQuery) (*api.SlowEvidence, error) {
		x, err := q.data.finding(of.Key)
		if err != nil {
			return nil, err
		}
		if p := q.data.peers; p != nil {
			if s := provenance.SlowPeerOf(x, p.Slow); s != nil {
				return ranks.Evidence(p, s, q.data.slowLinks()), nil
			}
		}
		return nil, api.Problemf(api.NotFound, "only findings of kind slow-peer, and lasting ones of kind excess-work, have one",
			"finding %d has no slow peer", x.Number)
	})
}

// knownRanks returns the hosts of the ranks of the run: those of the store and of the pipeline, and expected ones.
func (v *view) knownRanks() map[trace.RankKey]string {
	hosts := make(map[trace.RankKey]string)
	_, never := v.silentRanks()
	for _, key := range never {
		hosts[key] = ""
	}
	for _, r := range v.ranks() {
		hosts[r.RankKey] = r.Host
	}
	return hosts
}

func (d *runData) slowLinks() ranks.Links {
	return ranks.Links{Finding: d.slowFinding, FunctionID: func(f trace.FuncKey) string { return d.functions[f] }}
}

// slowFinding returns the number and the key of the finding about a slow peer, or 0.
func (c *conclusion) slowFinding(s *provenance.SlowPeer) (number int, key string) {
	for i := range c.findings {
		if provenance.SlowPeerOf(&c.findings[i], c.peers.Slow) == s {
			return c.findings[i].Number, c.keys[i]
		}
	}
	return 0, ""
}

// loss divides the time that the run lost. It returns nil if the efficiency is unknown.
func (v *view) loss(open []int) *ranks.Loss {
	if v.data == nil {
		return nil
	}
	return ranks.Divide(v.data.peers, func(yield func(*provenance.Finding) bool) {
		for _, i := range open {
			if !yield(&v.data.findings[i]) {
				return
			}
		}
	})
}

// addPeers adds the efficiency and the slow peers of the run.
func (v *view) addPeers(o *api.Overview) {
	o.Efficiency, o.Slow = []api.Efficiency{}, []api.SlowPlace{}
	if v.data == nil || v.data.peers == nil {
		return
	}
	for i := range v.data.peers.Efficiency {
		if e := &v.data.peers.Efficiency[i]; e.Entire {
			o.Efficiency = append(o.Efficiency, ranks.Efficiency(e))
		}
	}
	o.Slow = ranks.Slow(v.data.peers, v.data.slowLinks())
	o.Slow = o.Slow[:min(len(o.Slow), maxSlow)]
}

// maxSlow bounds the slow peers of an overview.
const maxSlow = 100
