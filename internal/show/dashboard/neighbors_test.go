package dashboard_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
)

// beside has one run, and counts how often it is read.
type beside struct{ reads atomic.Int32 }

func (*beside) Dir() string { return "/runs" }

func (*beside) List() ([]api.Neighbor, error) {
	return []api.Neighbor{{Comparable: api.Comparable{Name: "friday", Where: "/runs/friday", State: "finished"}, Program: "solver", Bytes: 7}}, nil
}

func (b *beside) Read(context.Context, *api.Neighbor) (*comparison.Run, error) {
	b.reads.Add(1)
	return &comparison.Run{Name: "friday", State: "finished", Functions: []comparison.Function{{Name: "other", Calls: 5}, {Name: "else", Calls: 5}}}, nil
}

func TestNeighborsAreReadWhenTheyAreCompared(t *testing.T) {
	b := new(beside)
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Neighbors = b })
	list := want[api.Comparables](t, do(t, at+"/api/v1/comparable", ""), 200)
	if list.NeighborsDir != "/runs" || len(list.Neighbors) != 1 || list.Neighbors[0].ID != "beside:friday" || list.Neighbors[0].Bytes != 7 {
		t.Errorf("%+v", list)
	}
	if n := b.reads.Load(); n != 0 {
		t.Errorf("listing reads %d runs", n)
	}
	for range 2 {
		c := want[api.Comparison](t, do(t, at+pairPath("", "beside:friday", "0:monday", ""), ""), 200)
		if c.A.Where != "/runs/friday" || len(c.Functions) == 0 {
			t.Errorf("%+v", c)
		}
		if len(c.Notices) == 0 || c.Notices[0].Topic != "another-program" || !strings.HasPrefix(c.Notices[0].Sentence, "A seems to be") {
			t.Errorf("no warning about another program: %+v", c.Notices)
		}
	}
	if n := b.reads.Load(); n != 1 {
		t.Errorf("the run was read %d times, want once", n)
	}
	for _, id := range []string{"beside:", "beside:../friday", "beside:/etc", "beside:friday/..", "beside:Friday"} {
		if r := do(t, at+pairPath("", id, "0:monday", ""), ""); r.code != 404 {
			t.Errorf("%s: %d %s", id, r.code, r.body)
		}
	}
	at, _ = serve(t, nil)
	if r := do(t, at+pairPath("", "beside:friday", "0:monday", ""), ""); r.code != 404 {
		t.Errorf("without neighbors: %d %s", r.code, r.body)
	}
}
