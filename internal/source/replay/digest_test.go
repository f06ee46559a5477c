package replay_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// digest returns a line with the content of a step, with hashes of arrays.
func digest(t testing.TB, s *bp.Step) string {
	t.Helper()
	var b strings.Builder
	for i := range s.Variables {
		v := &s.Variables[i]
		fmt.Fprintf(&b, " %s %v %v", v.Name, v.Type, v.Shape)
		for j := range v.Blocks {
			blk := &v.Blocks[j]
			p := make([]byte, blk.Size())
			if err := s.ReadAt(v, blk, p, 0); err != nil {
				t.Fatal(err)
			}
			h := fnv.New64a()
			_, _ = h.Write(p) // never fails
			fmt.Fprintf(&b, " %v%v%v %x %x;", blk.Shape, blk.Start, blk.Count, blk.Value, h.Sum64())
		}
	}
	for _, a := range s.Attributes {
		fmt.Fprintf(&b, " %s=%q", a.Name, a.Values)
	}
	return b.String()
}

// taken is what package tau takes from a trace.
type taken struct {
	events []event
	meta   map[string]string // by rank, thread and key
	names  map[string]bool   // of functions that have events
	ends   []trace.Ticks     // the last event of each step
	world  []uint64          // the number of ranks in each step
	counts tally.Tally
}

type event struct {
	trace.Event
	step   int
	rank   trace.Rank
	thread trace.Thread
}

func take(t testing.TB, dataset string) *taken {
	t.Helper()
	r, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := &taken{meta: make(map[string]string), names: make(map[string]bool)}
	d := tau.NewDecoder(tau.Config{}, &got.counts)
	for {
		s, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		step, err := d.Decode(s)
		if err != nil {
			t.Fatal(err)
		}
		if v := s.Variable("comm_rank_count"); v != nil {
			n, _ := v.Uint64(0)
			got.world = append(got.world, n)
		}
		got.add(step, &d.Names)
	}
}

func (g *taken) add(s *trace.Step, names *trace.Names) {
	end := trace.Ticks(0)
	for _, b := range s.Batches {
		for _, e := range b.Events {
			g.events = append(g.events, event{e, s.Index, b.Rank, b.Thread})
			end = max(end, e.Time)
			if e.Kind == trace.Enter {
				name, _ := names.Func(b.Rank, e.Func())
				g.names[name] = true
			}
		}
	}
	g.ends = append(g.ends, end)
	for _, m := range s.Metadata {
		g.meta[fmt.Sprintf("%d:%d:%s", m.Rank, m.Thread, m.Key)] = m.Value
	}
}

// first is the time of the first event of all.
func first(all ...*taken) (t trace.Ticks) {
	for _, g := range all {
		for _, e := range g.events {
			if t == 0 || e.Time < t {
				t = e.Time
			}
		}
	}
	return t
}
