package ranks

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// maxFunctions bounds the functions of several ranks.
const maxFunctions = 100

// Functions returns the functions with the most time of the ranks, or GPUs, that p selects: the sums of the functions
// stored for each of them. Threads have the functions of their ranks.
func Functions(d Data, p Params) *api.RankFunctions {
	if p.By != ByDevice {
		p.By, p.Thread = ByRank, nil
	}
	all := &api.RankFunctions{Functions: []api.RankFunction{}}
	at := make(map[trace.FuncKey]int)
	alone := make(map[int]bool) // functions of ranks without peers
	var total float64
	unit := newTable(d, p).Peers.Unit
	for _, u := range newTable(d, p).units() {
		if u.load == nil {
			continue
		}
		all.Ranks++
		for _, f := range u.load.Functions {
			key := trace.FuncKey{Program: u.Program, Name: f.Func}
			i, ok := at[key]
			if !ok {
				i = len(all.Functions)
				at[key] = i
				all.Functions = append(all.Functions, api.RankFunction{Function: f.Func, FunctionID: d.FunctionID(key), Peers: new(float64)})
			}
			to := &all.Functions[i]
			time := unit.Micros(f.Time)
			to.Calls, to.Time, total = to.Calls+f.Calls, to.Time+time, total+time
			if f.Peers == nil {
				alone[i] = true
			} else {
				*to.Peers += unit.Micros(*f.Peers)
			}
		}
	}
	for i := range all.Functions {
		f := &all.Functions[i]
		if f.Share = f.Time / max(unit.Micros(1), total); alone[i] {
			f.Peers = nil
		}
	}
	slices.SortFunc(all.Functions, func(a, b api.RankFunction) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Function, b.Function))
	})
	all.Functions = all.Functions[:min(maxFunctions, len(all.Functions))]
	return all
}
