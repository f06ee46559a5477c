package question

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/provenance"
	"github.com/chimbuko/chimbuko/internal/trace"
)

// Change is what became of a call path between two runs, which are A and B.
type Change struct {
	Kind      string   `json:"change"` // new, gone, worse, better or same
	Program   int64    `json:"program"`
	Function  string   `json:"function"`
	CallPath  string   `json:"call_path"`
	Anomalies [2]int64 `json:"anomalies"`
	Lost      [2]int64 `json:"lost_us"`
	Calls     [2]int64 `json:"calls"` // of the function, on all paths
	// Mean is the mean exclusive time of the function in microseconds.
	Mean [2]float64 `json:"mean_us"`
	// Distance is how far apart the distributions of the function's times are:
	// the largest difference of their cumulative shares, from 0 to 1. It is nil
	// where one of the runs has no histogram.
	Distance *float64 `json:"distance"`
}

// Difference is what changed from run A to run B.
type Difference struct {
	Changes   []Change   `json:"changes"` // largest change of lost time first
	Exclusive [2]float64 `json:"exclusive_us"`
	Lost      [2]int64   `json:"lost_us"`
	Anomalies [2]int64   `json:"anomalies"`
	// LostPercent is the share of all time that was lost to anomalies.
	LostPercent [2]float64 `json:"lost_percent"`
}

type pathKey struct {
	program            int64
	function, callPath string
}

type funcKey struct {
	program  int64
	function string
}

// side is what a run says.
type side struct {
	paths map[pathKey][2]int64 // anomalies, lost
	funcs map[funcKey]profile
}

type profile struct {
	calls     int64
	exclusive float64
	model     json.RawMessage
}

// Diff joins two runs by program, function and call path. Paths that only one of
// them has are there too.
func Diff(ctx context.Context, a, b *Asker, p *trace.Program) (*Difference, error) {
	var sides [2]*side
	for i, asker := range []*Asker{a, b} {
		s, err := asker.side(ctx, p)
		if err != nil {
			return nil, err
		}
		sides[i] = s
	}
	d := &Difference{Changes: []Change{}}
	for i, s := range sides {
		for _, f := range s.funcs {
			d.Exclusive[i] += f.exclusive
		}
		for _, v := range s.paths {
			d.Anomalies[i] += v[0]
			d.Lost[i] += v[1]
		}
		if d.Exclusive[i] > 0 {
			d.LostPercent[i] = 100 * float64(d.Lost[i]) / d.Exclusive[i]
		}
	}
	for key := range sides[0].paths {
		d.Changes = append(d.Changes, change(key, sides))
	}
	for key := range sides[1].paths {
		if _, both := sides[0].paths[key]; !both {
			d.Changes = append(d.Changes, change(key, sides))
		}
	}
	slices.SortFunc(d.Changes, func(x, y Change) int {
		by := func(c *Change) int64 { return max(c.Lost[1]-c.Lost[0], c.Lost[0]-c.Lost[1]) }
		return cmp.Or(cmp.Compare(by(&y), by(&x)), cmp.Compare(x.Program, y.Program), cmp.Compare(x.Function, y.Function), cmp.Compare(x.CallPath, y.CallPath))
	})
	return d, nil
}

func (a *Asker) side(ctx context.Context, p *trace.Program) (*side, error) {
	s := &side{paths: make(map[pathKey][2]int64), funcs: make(map[funcKey]profile)}
	sql, err := a.summing(ctx, "diff_paths")
	if err != nil {
		return nil, err
	}
	rows, err := a.collect(ctx, sql, int32(a.Run.ID), program(p))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		key := pathKey{r[0].(int64), r[1].(string), r[2].(string)}
		v := s.paths[key] // functions of one name may have several numbers
		s.paths[key] = [2]int64{v[0] + r[3].(int64), v[1] + r[4].(int64)}
	}
	rows, err = a.collect(ctx, text("diff_functions"), int32(a.Run.ID), program(p))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		f := profile{calls: r[2].(int64), exclusive: r[3].(float64)}
		if model, ok := r[4].(string); ok {
			f.model = json.RawMessage(model)
		}
		s.funcs[funcKey{r[0].(int64), r[1].(string)}] = f
	}
	return s, nil
}

// A change of lost time below this share of the larger one is none.
const sameShare = 0.1

func change(key pathKey, sides [2]*side) Change {
	c := Change{Program: key.program, Function: key.function, CallPath: key.callPath}
	var in [2]bool
	var models [2]json.RawMessage
	for i, s := range sides {
		var v [2]int64
		v, in[i] = s.paths[key]
		c.Anomalies[i], c.Lost[i] = v[0], v[1]
		f := s.funcs[funcKey{key.program, key.function}]
		c.Calls[i], models[i] = f.calls, f.model
		if f.calls > 0 {
			c.Mean[i] = f.exclusive / float64(f.calls)
		}
	}
	if d, ok := distance(models[0], models[1]); ok {
		c.Distance = &d
	}
	apart := math.Abs(float64(c.Lost[1]-c.Lost[0])) > sameShare*float64(max(c.Lost[0], c.Lost[1]))
	switch {
	case !in[0]:
		c.Kind = "new"
	case !in[1]:
		c.Kind = "gone"
	case apart && c.Lost[1] > c.Lost[0]:
		c.Kind = "worse"
	case apart:
		c.Kind = "better"
	default:
		c.Kind = "same"
	}
	return c
}

// distance is the largest difference of the cumulative shares of two histograms.
// Within a bin the share grows evenly.
func distance(a, b json.RawMessage) (float64, bool) {
	ma, mb := provenance.ReadModel(a), provenance.ReadModel(b)
	if len(ma.Counts) == 0 || len(mb.Counts) == 0 {
		return 0, false
	}
	most := 0.0
	for _, x := range append(slices.Clone(ma.Edges), mb.Edges...) {
		most = max(most, math.Abs(below(x, ma.Edges, ma.Counts)-below(x, mb.Edges, mb.Counts)))
	}
	return most, true
}

// below is the share of a histogram below x.
func below(x float64, edges, counts []float64) float64 {
	var sum, all float64
	for i, n := range counts {
		all += n
		switch lo, hi := edges[i], edges[i+1]; {
		case hi <= x:
			sum += n
		case lo < x:
			sum += n * (x - lo) / (hi - lo)
		}
	}
	if all == 0 {
		return 0
	}
	return sum / all
}
