package paramserver

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
)

func fn(program trace.Program, name string) trace.FuncKey {
	return trace.FuncKey{Program: program, Name: name}
}

// ids assigns ids to functions.
func ids(s *State, names ...trace.FuncKey) (all []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range names {
		all = append(all, s.id(n))
	}
	return all
}

func TestFunctionIDsAreOneSequenceAndDurable(t *testing.T) {
	s := newState(t, Config{})
	f, g, other := fn(0, "f"), fn(0, "g\n\xff\t\"x\""), fn(7, "f")
	if got := ids(s, f, other, f); !slices.Equal(got, []uint32{0, 1, 0}) {
		t.Errorf("got %d, want 0 1 0", got)
	}
	var disk []byte
	if _, err := s.saveWith(func(b []byte) error { disk = b; return nil }); err != nil {
		t.Fatal(err)
	}
	s, err := successor(s, disk)
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(s, g, other, f); !slices.Equal(got, []uint32{2, 1, 0}) {
		t.Errorf("after a restart: got %d, want 2 1 0", got)
	}
	if want := []trace.FuncKey{f, other, g}; !slices.Equal(s.names, want) {
		t.Errorf("got the names %v, want %v", s.names, want)
	}
}

func TestSnapshotWithDuplicateFunctionIsRefused(t *testing.T) {
	s := newState(t, Config{})
	ids(s, fn(0, "f"))
	m := s.snapshot().message
	m.Names = append(m.Names, m.GetNames()[0])
	next, err := NewState(s.cfg, 2)
	if err == nil {
		err = next.restore(m)
	}
	wantError(t, err, `function "f" has the ids 0 and 1`)
}

func TestIDsThatCannotBeStoredAreNotSent(t *testing.T) {
	w := newWorld(t, Config{})
	server := w.shards[0].server
	store := server.save
	full := fmt.Errorf("no space left")
	server.save = func() (int, error) { return 0, full }
	for i := range 2 { // the second client requests an id that exists only in memory
		c := paramclient.New(paramclient.Config{Run: "run", Node: fmt.Sprint(i), Session: 1, Shards: 1, Timeout: patience}, w)
		c.Number(0, "f")
		wantError(t, c.Sync(t.Context()), full.Error())
		if _, ok := c.Number(0, "f"); ok {
			t.Error("the function has an id that a crash would lose")
		}
	}
	server.save = store
	c := paramclient.New(paramclient.Config{Run: "run", Node: "later", Session: 1, Shards: 1, Timeout: patience}, w)
	c.Number(0, "f")
	if err := c.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.kill(0)
	w.start(0)
	if got, ok := c.Number(0, "f"); !ok || got != 0 || len(w.state(0).names) != 1 {
		t.Errorf("the id is %d (%v) of %d, want 0 of 1", got, ok, len(w.state(0).names))
	}
}

func TestKilledServerKeepsIDsThatItSent(t *testing.T) {
	w := newWorld(t, Config{})
	ask := func(names ...string) {
		for i, name := range names {
			c := paramclient.New(paramclient.Config{Run: "run", Node: "a", Session: w.epoch, Shards: 1, Timeout: patience}, w)
			wait := c.NewIDs()
			if _, ok := c.Number(0, name); ok {
				t.Fatalf("%q has a number before it was requested", name)
			}
			if err := c.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-wait
			if id, ok := c.Number(0, name); !ok || id != i {
				t.Errorf("%q has the number %d (%v), want %d", name, id, ok, i)
			}
		}
		w.kill(0)
		w.start(0)
	}
	ask("f", "g")
	ask("f", "g", "h")
}

func TestFunctionsAreSpreadOverShards(t *testing.T) {
	const n = 5
	var each [n]int
	for i := range 1000 {
		each[paramwire.ShardOf(fn(0, fmt.Sprint("function ", i)), n)]++
	}
	for shard, count := range each {
		if count < 100 || count > 300 {
			t.Errorf("shard %d owns %d of 1000 functions", shard, count)
		}
	}
	if paramwire.ShardOf(fn(3, "f"), 1) != 0 {
		t.Error("the only shard owns all")
	}
}
