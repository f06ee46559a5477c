// Package storetest generates records for tests and benchmarks of stores. Its own
// tests are the conformance suite that every provdb.Store passes.
package storetest

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Properties of generated records.
const (
	Ranks     = 1000 // records are of all ranks in turn
	Functions = 40   // from firstLeaf on, they have records
	firstLeaf = 8

	ranksOfHost  = 8
	windowSide   = 10
	stackDepth   = 5
	messages     = 4
	stepLength   = trace.Ticks(1_000_000)
	epoch        = trace.Ticks(1_700_000_000_000_000)
	modelBuckets = 110
)

// Records returns n anomalies of a run of 1000 ranks: one of each rank in each step, with
// stack, window, messages and a counter, some with the state of their node. Event ids are
// unique. The result depends on n and seed only; functions and models do not depend on seed.
func Records(n int, seed uint64) []*provenance.Record {
	return slices.AppendSeq(make([]*provenance.Record, 0, n), Stream(n, seed))
}

// Stream yields Records one by one.
func Stream(n int, seed uint64) iter.Seq[*provenance.Record] { return StreamOf(n, Ranks, seed) }

// StreamOf yields such records of a run with any number of ranks.
func StreamOf(n, ranks int, seed uint64) iter.Seq[*provenance.Record] {
	return func(yield func(*provenance.Record) bool) {
		g := &generator{rng: rand.New(rand.NewPCG(seed, 0xc41b0)), functions: functions(), ranks: trace.Rank(ranks)}
		for i := range n {
			if !yield(g.record(trace.Rank(i%ranks), int32(i/ranks))) {
				return
			}
		}
	}
}

type function struct {
	fid     int
	name    string
	typical float64 // duration, in microseconds
	model   json.RawMessage
	callers [2][]int // two paths, from the caller to the outermost function
}

type generator struct {
	rng       *rand.Rand
	functions []function
	ranks     trace.Rank
}

func functions() []function {
	kinds := []string{
		"void LAMMPS_NS::PairLJCut::compute_%d(int, int) [{pair_lj_cut.cpp} {%d,1}-{%d,1}]",
		"MPI_Collective_%d()",
		"double solver::Grid<double, 3>::relax_%d(const Field&, Field&) [{relax.hpp} {%d,3}-{%d,3}]",
		"pthread_region_%d [{driver.c} {%d,0}-{%d,0}]",
	}
	all := make([]function, Functions)
	for i := range all {
		f := &all[i]
		f.fid, f.name = i, fmt.Sprintf(kinds[i%len(kinds)], i, 10*i+7, 10*i+51)
		if i%len(kinds) == 1 {
			f.name = fmt.Sprintf(kinds[1], i)
		}
		f.typical = 40 * math.Pow(1.15, float64(i))
		f.model = model(f)
		for way := range f.callers {
			f.callers[way] = []int{4 + (i+way)%4, 2 + (i+way)%2, 1, 0}
		}
	}
	all[0].name = ".TAU application"
	return all
}

// model returns a model of HBOS of about 2 kB.
func model(f *function) json.RawMessage {
	counts, edges := make([]int, modelBuckets), make([]float64, modelBuckets+1)
	for i := range counts {
		x := float64(i-modelBuckets/3) / 12
		counts[i] = int(math.Round(9000 * math.Exp(-x*x) * (1 + f.typical/1e4)))
		edges[i+1] = math.Round(f.typical*float64(i+1)/20*100) / 100
	}
	text, err := json.Marshal(map[string]any{
		"histogram":                 map[string]any{"Histogram Bin Counts": counts, "Histogram Bin Edges": edges},
		"internal_global_threshold": 8.25 + float64(f.fid)/16,
	})
	if err != nil {
		panic(err) // cannot fail
	}
	return text
}

func (g *generator) record(rank trace.Rank, step int32) *provenance.Record {
	f := &g.functions[firstLeaf+g.rng.IntN(Functions-firstLeaf)]
	start := epoch + trace.Ticks(step)*stepLength
	lost := trace.Ticks(math.Pow(10, 1+5*g.rng.Float64())) // severities of five decades
	exclusive := trace.Ticks(f.typical) + lost
	entry := start + trace.Ticks(g.rng.Int64N(int64(stepLength)/2)) + 20_000
	row := 100 + uint32(g.rng.IntN(100_000))
	r := &provenance.Record{
		Version: provenance.SchemaVersion, AlgoParams: f.model, FID: f.fid, Func: f.name,
		RID: rank, TID: trace.Thread(g.rng.IntN(4) / 3), Hostname: fmt.Sprintf("node%04d", rank/ranksOfHost),
		EventID: id(rank, step, row), Entry: entry, Exit: entry + exclusive, RuntimeExclusive: exclusive, RuntimeTotal: exclusive,
		IOStep: step, IOStepStart: start, IOStepEnd: start + stepLength,
		OutlierScore: 8 + 12*g.rng.Float64(), OutlierSeverity: float64(exclusive), LostTime: lost, Status: g.status(),
		CounterEvents: []provenance.CounterEntry{{
			Index: 17, Name: "PAPI_TOT_INS", Value: g.rng.Uint64N(1 << 40), RID: rank, Timestamp: entry + exclusive,
		}},
	}
	r.CounterEvents[0].TID = r.TID
	r.Kind = provenance.AnomalyKinds()[f.fid%4]
	r.Children, r.UsualChildren = uint32(10*f.fid), uint32(f.fid)
	r.Why = fmt.Sprintf("took %s, usually %s; %s", text.Duration(float64(exclusive)), text.Duration(f.typical), r.Status.Words())
	g.stack(r, f, step, row)
	g.window(r, step, row)
	g.comms(r)
	if rank%4 == 0 {
		r.NodeState = nodeState(rank, step, start)
	}
	return r
}

func (g *generator) status() provenance.Status {
	switch g.rng.IntN(10) {
	case 0:
		return provenance.Withdrawn
	case 1, 2:
		return provenance.Promoted
	}
	return provenance.Confirmed
}

func (g *generator) stack(r *provenance.Record, f *function, step int32, row uint32) {
	r.CallStack = []provenance.StackEntry{{
		Entry: r.Entry, EventID: r.EventID, Exit: r.Exit, FID: r.FID, Func: r.Func,
		IsAnomaly: r.Status != provenance.Withdrawn,
	}}
	way := f.callers[g.rng.IntN(len(f.callers))]
	before := trace.Ticks(0)
	for depth := 1; depth < stackDepth; depth++ {
		caller := &g.functions[way[depth-1]]
		before += 20 + trace.Ticks(g.rng.IntN(5000))
		e := provenance.StackEntry{
			Entry: r.Entry - 10_000 - before, EventID: id(r.RID, step, row-40-uint32(10*depth)-uint32(g.rng.IntN(8))),
			Exit: r.Exit + 10_000 + before, FID: caller.fid, Func: caller.name,
		}
		if depth == stackDepth-1 { // the outermost began long ago and has not ended
			e.Entry, e.EventID, e.Exit = epoch-trace.Ticks(r.RID), id(r.RID, 0, 0), 0
		}
		r.CallStack = append(r.CallStack, e)
	}
}

// window adds calls before and after the execution. Their parent is the caller of the
// execution or the previous call.
func (g *generator) window(r *provenance.Record, step int32, row uint32) {
	parent := r.CallStack[1].EventID
	at, number := r.Entry, row
	for i := range windowSide {
		f := &g.functions[firstLeaf+(r.FID+i)%(Functions-firstLeaf)]
		took := g.duration(f)
		at -= took + 1 + trace.Ticks(g.rng.IntN(20))
		number -= 2 + uint32(g.rng.IntN(2))
		r.EventWindow.Execs = append(r.EventWindow.Execs, call(f, r.RID, step, number, at, at+took, parent))
	}
	slices.Reverse(r.EventWindow.Execs)
	r.EventWindow.Execs = append(r.EventWindow.Execs, provenance.WindowEntry{
		ParentID: parent, StackEntry: provenance.StackEntry{
			Entry: r.Entry, EventID: r.EventID, Exit: r.Exit, FID: r.FID, Func: r.Func, IsAnomaly: r.CallStack[0].IsAnomaly,
		},
	})
	at, number = r.Exit, row
	for i := range windowSide {
		f := &g.functions[firstLeaf+(r.FID+2*i)%(Functions-firstLeaf)]
		took := g.duration(f)
		at += 1 + trace.Ticks(g.rng.IntN(20))
		number += 2 + uint32(g.rng.IntN(2))
		e := call(f, r.RID, step, number, at, at+took, parent)
		if i%3 == 2 { // called by the previous call
			e.ParentID = r.EventWindow.Execs[windowSide+i].EventID
		} else {
			at += took
		}
		r.EventWindow.Execs = append(r.EventWindow.Execs, e)
	}
}

func (g *generator) duration(f *function) trace.Ticks {
	return 1 + trace.Ticks(f.typical*math.Exp(0.3*g.rng.NormFloat64()))
}

func call(f *function, rank trace.Rank, step int32, row uint32, entry, exit trace.Ticks, parent string) provenance.WindowEntry {
	e := provenance.StackEntry{Entry: entry, EventID: id(rank, step, row), Exit: exit, FID: f.fid, Func: f.name}
	return provenance.WindowEntry{StackEntry: e, ParentID: parent}
}

// comms adds messages of the window's calls, to and from neighbors.
func (g *generator) comms(r *provenance.Record) {
	for i := range messages {
		c := &r.EventWindow.Execs[3+5*i]
		partner := (r.RID + trace.Rank(1+i/2)) % g.ranks
		m := provenance.CommEntry{
			Bytes: new(uint64(8) << g.rng.IntN(16)), Exec: c.EventID, RID: r.RID, TID: r.TID, Tag: int32(i), Timestamp: c.Entry + 1,
			Type: "SEND", Source: r.RID, Target: partner,
		}
		if i%2 == 1 {
			m.Type, m.Source, m.Target = "RECV", partner, r.RID
		}
		r.EventWindow.Comms = append(r.EventWindow.Comms, m)
	}
}

// nodeState returns the state of a node, the same for all ranks of a host in a step.
func nodeState(rank trace.Rank, step int32, start trace.Ticks) *provenance.NodeState {
	host := uint64(rank / ranksOfHost)
	return &provenance.NodeState{Timestamp: start - 250_000, Data: []provenance.StateEntry{
		{Field: "Memory Available (MB)", Value: 64_000 + 37*host + uint64(step)%100},
		{Field: "Memory Footprint (VmRSS) (KB)", Value: 1_800_000 + 4096*host},
		{Field: "cpu: User %", Value: 90 + (host+uint64(step))%10},
		{Field: "cpu: System %", Value: host % 7},
	}}
}

func id(rank trace.Rank, step int32, row uint32) string {
	return strconv.Itoa(int(rank)) + ":" + strconv.Itoa(int(step)) + ":" + strconv.Itoa(int(row))
}
