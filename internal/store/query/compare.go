package query

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
)

// maxRanksCompared is of how many ranks it is known where they ran.
const maxRanksCompared = 1_000_000

// Comparable returns what is compared of the run with others. It does not depend on the
// store.
func (a *Asker) Comparable(ctx context.Context) (*comparison.Run, error) {
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
		func() error { return a.comparedTimes(ctx, r) },
		func() error { return a.comparedLosses(ctx, r, hosts) },
		func() error { return a.comparedFacts(ctx, r) },
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// comparedRanks adds where ranks ran, and returns it.
func (a *Asker) comparedRanks(ctx context.Context, r *comparison.Run) (map[Process]string, error) {
	placed, err := a.Ranks(ctx, maxRanksCompared)
	if err != nil {
		return nil, err
	}
	r.Ranks = int64(len(placed))
	hosts, counts := make(map[Process]string, len(placed)), make(map[string]int64)
	for _, p := range placed {
		if p.Host != "" {
			hosts[p.Process] = p.Host
			counts[p.Host]++
		}
	}
	for host, n := range counts {
		r.Hosts = append(r.Hosts, comparison.Host{Host: host, Ranks: n})
	}
	slices.SortFunc(r.Hosts, func(x, y comparison.Host) int { return cmp.Compare(x.Host, y.Host) })
	return hosts, nil
}

// comparedFunctions adds what is known of all calls. Functions of one name may have
// several numbers: the model is that of most calls.
func (a *Asker) comparedFunctions(ctx context.Context, r *comparison.Run) error {
	type key struct {
		program trace.Program
		name    string
	}
	device := make(map[key]bool)
	if err := a.OnDevice(ctx, func(p trace.Program, name string) { device[key{p, name}] = true }); err != nil {
		return err
	}
	places, most := make(map[key]int), make(map[key]int64)
	return a.each(ctx, text("compare_functions"), func(row []any) {
		k := key{whole[trace.Program](row[0]), word[string](row[1])}
		at, ok := places[k]
		if !ok {
			at = len(r.Functions)
			places[k] = at
			r.Functions = append(r.Functions, comparison.Function{Program: k.program, Name: k.name, OnGPU: device[k]})
		}
		f, calls := &r.Functions[at], whole[int64](row[2])
		exclusive, _ := row[3].(float64)
		f.Calls += calls
		f.Exclusive += exclusive
		if model := word[string](row[4]); model != "" && (f.Model == nil || calls > most[k]) {
			f.Model, most[k] = json.RawMessage(model), calls
		}
	})
}

// comparedTimes adds the time of all calls by call path.
func (a *Asker) comparedTimes(ctx context.Context, r *comparison.Run) error {
	times, err := a.PathTimes(ctx, nil)
	for i := range times {
		t := &times[i]
		p := &r.Paths[r.Path(t.Program, t.Funcs)]
		p.Calls += t.Calls
		p.Exclusive += int64(t.Exclusive)
	}
	return err
}

// comparedLosses adds the anomalies, with the hosts that lost most by them.
func (a *Asker) comparedLosses(ctx context.Context, r *comparison.Run, hosts map[Process]string) error {
	names, err := a.names(ctx)
	if err != nil {
		return err
	}
	sql, err := a.summing(ctx, "compare_paths")
	if err != nil {
		return err
	}
	byHost := make(map[int]map[string]int64) // by place of the path
	err = a.each(ctx, sql, func(row []any) {
		program := whole[trace.Program](row[0])
		path, err := names.path(program, row[3])
		if err != nil || len(path) == 0 { // it is not known: the function itself
			path = []string{word[string](row[2])}
		}
		at := r.Path(program, path)
		p, lost := &r.Paths[at], whole[int64](row[5])
		p.Anomalies += whole[int64](row[4])
		p.Lost += lost
		if host := hosts[Process{program, whole[trace.Rank](row[1])}]; host != "" {
			if byHost[at] == nil {
				byHost[at] = make(map[string]int64)
			}
			byHost[at][host] += lost
		}
	})
	for at, lost := range byHost {
		r.Paths[at].Hosts = worstHosts(lost)
	}
	return err
}

// worstHosts are the hosts that lost most.
func worstHosts(lost map[string]int64) []comparison.HostLost {
	var list []comparison.HostLost
	for host, us := range lost {
		list = append(list, comparison.HostLost{Host: host, Lost: us})
	}
	slices.SortFunc(list, func(x, y comparison.HostLost) int {
		return cmp.Or(cmp.Compare(y.Lost, x.Lost), cmp.Compare(x.Host, y.Host))
	})
	return list[:min(len(list), comparison.MaxHosts)]
}

// comparedFacts adds what ranks told of themselves. Hosts are there already.
func (a *Asker) comparedFacts(ctx context.Context, r *comparison.Run) error {
	return a.each(ctx, text("compare_facts"), func(row []any) {
		r.Fact(whole[trace.Program](row[0]), word[string](row[1]), word[string](row[2]), whole[int64](row[3]), whole[int64](row[4]), whole[int64](row[5]))
	}, int64(comparison.MaxValues))
}
