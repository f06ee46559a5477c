package comparison

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// MaxSlow limits the slow peers of a Run; it has the costliest ones.
const MaxSlow = 100

// Efficiency is the efficiency of a program over the entire run.
type Efficiency struct {
	Program       trace.Program `json:"program"`
	Parallel      float64       `json:"parallel"`
	LoadBalance   float64       `json:"load_balance"`
	Communication float64       `json:"communication"`
}

// Slow is a place that is slower than its peers.
type Slow struct {
	Program trace.Program `json:"program"`
	Place   string        `json:"place"`
	Pattern string        `json:"pattern"`
	Ratio   float64       `json:"ratio"` // while it was slow
	Share   float64       `json:"share"` // of the run that could be saved
}

// comparePeers adds the changes of efficiency and of slow peers. A run without an efficiency was not compared with peers, so
// the slow peers of the other run are not new.
func comparePeers(d *api.Difference, runs [2]*Run, only *trace.Program) {
	d.Efficiency, d.Slow = []api.EfficiencyChange{}, []api.SlowChange{}
	programs := make(map[trace.Program]*[2]*Efficiency)
	for i, r := range runs {
		for k := range r.Efficiency {
			e := &r.Efficiency[k]
			if only != nil && e.Program != *only {
				continue
			}
			if programs[e.Program] == nil {
				programs[e.Program] = new([2]*Efficiency)
			}
			programs[e.Program][i] = e
		}
	}
	type place struct {
		program trace.Program
		name    string
	}
	places := make(map[place]*[2]*Slow)
	for program, pair := range programs {
		c := api.EfficiencyChange{Program: int64(program)}
		for i, e := range pair {
			if e != nil {
				c.Parallel[i], c.LoadBalance[i], c.Communication[i] = &e.Parallel, &e.LoadBalance, &e.Communication
			}
		}
		d.Efficiency = append(d.Efficiency, c)
		if pair[0] == nil || pair[1] == nil {
			continue
		}
		for i, r := range runs {
			for k := range r.Slow {
				if s := &r.Slow[k]; s.Program == program {
					key := place{program, s.Place}
					if places[key] == nil {
						places[key] = new([2]*Slow)
					}
					if places[key][i] == nil {
						places[key][i] = s
					}
				}
			}
		}
	}
	for key, pair := range places {
		c := api.SlowChange{Program: int64(key.program), Place: key.name}
		var in [2]bool
		for i, s := range pair {
			if in[i] = s != nil; in[i] {
				c.Pattern[i], c.Ratio[i], c.Share[i] = s.Pattern, &s.Ratio, s.Share
			}
		}
		c.Kind = kind(in, c.Share)
		d.Slow = append(d.Slow, c)
	}
	slices.SortFunc(d.Efficiency, func(x, y api.EfficiencyChange) int { return cmp.Compare(x.Program, y.Program) })
	slices.SortFunc(d.Slow, func(x, y api.SlowChange) int {
		return cmp.Or(cmp.Compare(distance(y.Share), distance(x.Share)), cmp.Compare(x.Program, y.Program), cmp.Compare(x.Place, y.Place))
	})
}

// EfficiencyText returns the change of the efficiency of a program, such as "parallel efficiency 91 % → 73 %". It is empty if
// the ranks of one of the runs were not compared.
func EfficiencyText(c *api.EfficiencyChange, programs bool) string {
	if c.Parallel[0] == nil || c.Parallel[1] == nil {
		return ""
	}
	words := fmt.Sprintf("parallel efficiency %s → %s", text.Whole(*c.Parallel[0]), text.Whole(*c.Parallel[1]))
	if programs {
		words = fmt.Sprintf("program %d: %s", c.Program, words)
	}
	return words
}

// SlowText returns the change of a slow peer in words.
func SlowText(c *api.SlowChange) string {
	side := 1
	if c.Kind == Gone {
		side = 0
	}
	words := text.OneLine(c.Place)
	if c.Ratio[side] != nil {
		words += fmt.Sprintf(" (%.1f× as slow as its peers, %s of the run)", *c.Ratio[side], text.Percent(100*c.Share[side]))
	}
	return words
}

// efficiencySentence names the program whose efficiency changed most, and the slow peers that are new or gone.
func efficiencySentence(d *api.Difference) string {
	var most *api.EfficiencyChange
	change := float64(watchEfficiency)
	for i := range d.Efficiency {
		if points := math.Abs(efficiencyPoints(&d.Efficiency[i])); points >= change {
			most, change = &d.Efficiency[i], points
		}
	}
	var parts []string
	if most != nil {
		words := EfficiencyText(most, len(d.Efficiency) > 1)
		parts = append(parts, strings.ToUpper(words[:1])+words[1:]+".")
	}
	for _, k := range []struct{ kind, words string }{{New, "Slow in B only: "}, {Gone, "Slow in A only: "}} {
		var list []string
		for i := range d.Slow {
			if d.Slow[i].Kind == k.kind {
				list = append(list, SlowText(&d.Slow[i]))
			}
		}
		if more := len(list) - maxNamed; more > 0 {
			list = append(list[:maxNamed], fmt.Sprintf("%d more", more))
		}
		if len(list) > 0 {
			parts = append(parts, k.words+strings.Join(list, ", ")+".")
		}
	}
	return strings.Join(parts, " ")
}

// maxNamed limits the slow peers in a sentence.
const maxNamed = 2

// Falls of the parallel efficiency, in percentage points, at which the level of a verdict becomes watch or bad. The first is
// also the least change that the verdict names.
const watchEfficiency, badEfficiency = 1, 5

// efficiencyPoints returns the number of percentage points by which the parallel efficiency falls; 0 if unknown.
func efficiencyPoints(c *api.EfficiencyChange) float64 {
	if c.Parallel[0] == nil || c.Parallel[1] == nil {
		return 0
	}
	return 100 * (*c.Parallel[0] - *c.Parallel[1])
}
