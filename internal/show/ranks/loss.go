package ranks

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// FairEfficiency is the parallel efficiency below which a program needs attention, by the POP
// methodology.
const FairEfficiency = 0.8

// Loss divides the time that a run lost among its reasons, as shares of the time of all ranks.
// Efficiency and these shares add up to 1.
type Loss struct {
	Efficiency float64 // parallel efficiency of all programs
	Parts      []Part  // the greatest first
}

// Part is a share of the lost time.
type Part struct {
	Share    float64
	To       string // the reason
	Findings bool   // other than slow peers
}

// maxPlaces bounds the slow peers of a Loss that have their own parts.
const maxPlaces = 3

// Parallel returns the parallel efficiency of all programs together, weighted by ranks and time.
// It returns false if it is unknown.
func Parallel(list []provenance.Efficiency) (efficiency float64, ok bool) {
	var useful, all float64
	for i := range list {
		if e := &list[i]; e.Entire {
			time := float64(e.Ranks) * (e.To - e.From)
			useful, all = useful+e.Parallel*time, all+time
		}
	}
	if all <= 0 {
		return 0, false
	}
	return max(0, min(1, useful/all)), true
}

// Divide divides the lost time into the time that the run would save without slow peers, the cost of waits
// for other findings, and waiting for the rest. No part exceeds the lost time that the previous parts
// leave. It returns nil if the efficiency is unknown.
func Divide(p *provenance.Peers, open iter.Seq[*provenance.Finding]) *Loss {
	if p == nil {
		return nil
	}
	efficiency, ok := Parallel(p.Efficiency)
	if !ok {
		return nil
	}
	findings, cost := 0, 0.0
	for x := range open {
		if share := waitShare(x); share > 0 && !x.OfPeers() {
			findings, cost = findings+1, cost+share
		}
	}
	l := &Loss{Efficiency: efficiency}
	left := 1 - efficiency
	add := func(p Part) {
		if p.Share = min(max(0, p.Share), left); p.Share > 0 {
			l.Parts = append(l.Parts, p)
			left -= p.Share
		}
	}
	others, more := 0.0, 0
	for i := range p.Slow {
		if i < maxPlaces || len(p.Slow) == maxPlaces+1 {
			add(Part{Share: p.Slow[i].Share, To: p.Slow[i].Place()})
			continue
		}
		others, more = others+p.Slow[i].Share, more+1
	}
	add(Part{Share: others, To: text.Count(more, "other slow place")})
	add(Part{Share: cost, To: "waits in " + text.Count(findings, "finding"), Findings: true})
	add(Part{Share: left, To: "waiting for messages"})
	slices.SortStableFunc(l.Parts, func(a, b Part) int { return cmp.Compare(b.Share, a.Share) })
	return l
}

// waitShare returns the share of the time of all ranks lost by waits because of a finding. The time lost in the slow
// calls themselves is work, which counts as useful.
func waitShare(x *provenance.Finding) float64 {
	if x.Lost <= 0 || x.Kind == provenance.Waiting || x.Late == provenance.LateCommunication {
		return x.Share
	}
	return x.Share * float64(x.LostCaused) / float64(x.Lost)
}

// Listed returns the findings that people read first.
func Listed(all []provenance.Finding) iter.Seq[*provenance.Finding] {
	return func(yield func(*provenance.Finding) bool) {
		for i := range all {
			if all[i].Listed() && !yield(&all[i]) {
				return
			}
		}
	}
}

// percents formats the efficiency and the parts so that they add up.
func (l *Loss) percents() []string {
	shares := make([]float64, len(l.Parts))
	for i := range l.Parts {
		shares[i] = l.Parts[i].Share
	}
	return text.Shares(l.Efficiency, shares)
}

// String describes the loss: 73 % efficient: 14 % lost to node02, 9 % to waiting for messages. It
// leaves out parts that are rounded to 0 %.
func (l *Loss) String() string {
	percents := l.percents()
	var b strings.Builder
	b.WriteString(percents[0] + " efficient")
	verb := ": %s lost to %s"
	for i, p := range l.Parts {
		if percents[i+1] != text.NoShare {
			fmt.Fprintf(&b, verb, percents[i+1], p.To)
			verb = ", %s to %s"
		}
	}
	return b.String()
}

// HasFindings reports whether String states the share of findings and it covers their entire cost, a share of the
// time of all ranks.
func (l *Loss) HasFindings(cost float64) bool {
	i := slices.IndexFunc(l.Parts, func(p Part) bool { return p.Findings })
	return i >= 0 && l.percents()[i+1] != text.NoShare && cost < l.Parts[i].Share+minCost
}

// minCost is the least share that is worth mentioning in addition to others.
const minCost = 0.005
