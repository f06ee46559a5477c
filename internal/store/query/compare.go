package query

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// maxRanksCompared bounds the ranks whose hosts are compared.
const maxRanksCompared = 1_000_000

// Comparable returns the data of the run that comparisons with other runs need.
func (a *Queries) Comparable(ctx context.Context) (*comparison.Run, error) {
	r := &comparison.Run{
		Name: a.Run.Name, State: string(a.Run.State), Started: a.Run.Started,
		Hosts: []comparison.Host{}, Facts: []comparison.Fact{}, Functions: []comparison.Function{}, Paths: []comparison.Path{},
	}
	info := a.Run.Decoded()
	r.Version, r.Settings = info.Version, info.Settings
	hosts, err := a.comparedRanks(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, add := range []func() error{
		func() error { return a.comparedFunctions(ctx, r) },
		func() error { return a.addPathTimes(ctx, r, nil) },
		func() error { return a.comparedLosses(ctx, r, hosts) },
		func() error { return a.comparedFacts(ctx, r) },
		func() error { return a.comparedPeers(ctx, r) },
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// comparedRanks adds the hosts of the run to r and returns the host of each rank.
func (a *Queries) comparedRanks(ctx context.Context, r *comparison.Run) (map[trace.RankKey]string, error) {
	placed, err := a.Ranks(ctx, maxRanksCompared)
	if err != nil {
		return nil, err
	}
	r.Ranks = int64(len(placed))
	hosts, counts := make(map[trace.RankKey]string, len(placed)), make(map[string]int64)
	for _, p := range placed {
		if p.Host != "" {
			hosts[p.RankKey] = p.Host
			counts[p.Host]++
		}
	}
	for host, n := range counts {
		r.Hosts = append(r.Hosts, comparison.Host{Host: host, Ranks: n})
	}
	slices.SortFunc(r.Hosts, func(x, y comparison.Host) int { return cmp.Compare(x.Host, y.Host) })
	return hosts, nil
}

// comparedFunctions adds the functions with the statistics of all their calls. Functions with the
// same name are merged; the model of the one with the most calls is kept.
func (a *Queries) comparedFunctions(ctx context.Context, r *comparison.Run) error {
	sums := comparison.Sums{Functions: r.Functions}
	err := executions.ReadEach(ctx, a, text("compare_functions"), func(f *comparison.Function) {
		f.Exclusive = a.Unit.MicrosOf(f.Exclusive)
		sums.Add(f)
	})
	r.Functions = sums.Functions
	return err
}

// comparedLosses adds the anomalies by call path, with the hosts that lost most time.
func (a *Queries) comparedLosses(ctx context.Context, r *comparison.Run, hosts map[trace.RankKey]string) error {
	names, err := a.FunctionNames(ctx)
	if err != nil {
		return err
	}
	sql, err := a.rollupStatement(ctx, "compare_paths")
	if err != nil {
		return err
	}
	byHost := make(map[int]map[string]float64) // by index in r.Paths
	type row struct {
		Program   trace.Program   `sql:"program"`
		Rank      trace.Rank      `sql:"rank"`
		Function  string          `sql:"function"`
		Funcs     json.RawMessage `sql:"fns"`
		Anomalies int64           `sql:"anomalies"`
		Lost      int64           `sql:"lost_us"`
	}
	err = executions.ReadEach(ctx, a, sql, func(row *row) {
		path, err := names.Path(row.Program, row.Funcs)
		if err != nil || len(path) == 0 { // the path is unknown
			path = []string{row.Function}
		}
		at := r.Path(row.Program, path)
		p := &r.Paths[at]
		p.Anomalies += row.Anomalies
		lost := a.Unit.MicrosOf(float64(row.Lost))
		p.Lost += lost
		if host := hosts[trace.RankKey{Program: row.Program, Rank: row.Rank}]; host != "" {
			if byHost[at] == nil {
				byHost[at] = make(map[string]float64)
			}
			byHost[at][host] += lost
		}
	})
	for at, lost := range byHost {
		r.Paths[at].Hosts = worstHosts(lost)
	}
	return err
}

// worstHosts returns the hosts that lost most time, at most comparison.MaxHosts.
func worstHosts(lost map[string]float64) []comparison.HostLost {
	var list []comparison.HostLost
	for host, us := range lost {
		list = append(list, comparison.HostLost{Host: host, Lost: us})
	}
	slices.SortFunc(list, func(x, y comparison.HostLost) int {
		return cmp.Or(cmp.Compare(y.Lost, x.Lost), cmp.Compare(x.Host, y.Host))
	})
	return list[:min(len(list), comparison.MaxHosts)]
}

// comparedPeers adds the efficiency of programs and the slow peers.
func (a *Queries) comparedPeers(ctx context.Context, r *comparison.Run) error {
	p, err := a.Peers(ctx)
	if err != nil || p == nil {
		return err
	}
	for i := range p.Efficiency {
		if e := &p.Efficiency[i]; e.Entire {
			r.Efficiency = append(r.Efficiency, comparison.Efficiency{
				Program: e.PID, Parallel: e.Parallel, LoadBalance: e.LoadBalance, Communication: e.Communication,
			})
		}
	}
	for i := range p.Slow[:min(len(p.Slow), comparison.MaxSlow)] {
		s := &p.Slow[i]
		r.Slow = append(r.Slow, comparison.Slow{
			Program: s.PID, Place: s.Place(), Pattern: string(s.Pattern), Ratio: s.Ratio, Share: s.Share,
		})
	}
	return nil
}

// comparedFacts adds the metadata of ranks, except their hosts.
func (a *Queries) comparedFacts(ctx context.Context, r *comparison.Run) error {
	type row struct {
		Program  trace.Program `sql:"program"`
		Name     string        `sql:"name"`
		Value    string        `sql:"value"`
		Ranks    int64         `sql:"ranks"`
		Values   int64         `sql:"distinct_values"`
		AllRanks int64         `sql:"all_ranks"`
	}
	return executions.ReadEach(ctx, a, text("compare_facts"), func(f *row) {
		r.Fact(f.Program, f.Name, f.Value, f.Ranks, f.Values, f.AllRanks)
	}, int64(comparison.MaxValues))
}
