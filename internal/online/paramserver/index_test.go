package paramserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
)

func fn(program trace.Program, name string) trace.FuncKey {
	return trace.FuncKey{Program: program, Name: name}
}

func numbers(tb testing.TB, x *Index, names ...trace.FuncKey) []uint32 {
	tb.Helper()
	ids, err := x.Numbers(names)
	if err != nil {
		tb.Fatal(err)
	}
	return ids
}

func TestFunctionsAreNumberedInOneSequenceThatSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	x := openIndex(t, path)
	f, g, other := fn(0, "f"), fn(0, "g\n\xff\t\"x\""), fn(7, "f")
	if got := numbers(t, x, f, other, f); !slices.Equal(got, []uint32{0, 1, 0}) {
		t.Errorf("got %d, want 0 1 0", got)
	}
	x = openIndex(t, path) // killed: what was given is durable
	if got := numbers(t, x, g, other, f); !slices.Equal(got, []uint32{2, 1, 0}) {
		t.Errorf("after a restart: got %d, want 2 1 0", got)
	}
	x = openIndex(t, path)
	if name, ok := x.Name(2); !ok || name != g || x.Len() != 3 {
		t.Errorf("function 2 of %d is %q, want %q", x.Len(), name.Name, g.Name)
	}
	if _, ok := x.Name(3); ok {
		t.Error("function 3 has a name")
	}
}

func TestALineThatACrashLeftUnfinishedIsCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	whole := string(appendName(appendName(nil, fn(0, "f")), fn(1, "g")))
	for size := range len(whole) {
		if err := os.WriteFile(path, []byte(whole[:size]), 0o600); err != nil {
			t.Fatal(err)
		}
		x := openIndex(t, path)
		if want := strings.Count(whole[:size], "\n"); x.Len() != want {
			t.Errorf("%d bytes: %d functions, want %d", size, x.Len(), want)
		}
		numbers(t, x, fn(0, "f"), fn(1, "g"))
		if b, err := os.ReadFile(path); err != nil || string(b) != whole {
			t.Errorf("%d bytes, then both names: got %q %v, want %q", size, b, err, whole)
		}
	}
}

func TestADamagedIndexIsNamedWithTheByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	f := func(line, why string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("0\t\"f\"\n"+line+"\n0\t\"last\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenIndex(path)
		wantError(t, err, path+": byte 6: "+why, "begin a new run, or restore the file")
	}
	f("", "no program")
	f("0", "no program")
	f("x\t\"g\"", "no program")
	f("4294967296\t\"g\"", "no program")
	f("0\tg", "no name")
	f("0\t`g`", "not as names are written")
	f("00\t\"g\"", "not as names are written")
	f("0\t\"f\"", "a function twice")
}

func TestNumbersThatCouldNotBeStoredAreNotGiven(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	x := openIndex(t, path)
	numbers(t, x, fn(0, "f"))
	if err := x.Close(); err != nil { // nothing can be written any more
		t.Fatal(err)
	}
	for range 2 {
		_, err := x.Numbers([]trace.FuncKey{fn(0, "f"), fn(0, "g")})
		wantError(t, err, "numbers of functions")
	}
	if got := numbers(t, x, fn(0, "f")); got[0] != 0 || x.Len() != 1 {
		t.Errorf("the number of f is %d of %d, want 0 of 1", got[0], x.Len())
	}
	if x = openIndex(t, path); x.Len() != 1 {
		t.Errorf("%d functions are stored, want 1", x.Len())
	}
}

func TestAServerKilledAfterItGaveANumberKeepsIt(t *testing.T) {
	w := newWorld(t, Config{})
	ask := func(names ...string) {
		for i, name := range names {
			c := paramclient.New(paramclient.Config{Run: "run", Node: "a", Session: w.epoch, Shards: 1, Timeout: patience}, w)
			wait := c.Numbered()
			if _, ok := c.Number(0, name); ok {
				t.Fatalf("%q has a number before it was asked for", name)
			}
			if err := c.Talk(t.Context()); err != nil {
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
