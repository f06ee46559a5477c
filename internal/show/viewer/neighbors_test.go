package viewer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// writeRun writes a run directory, as far as lists of runs read it.
func writeRun(t *testing.T, dir string, info *provdb.Info) {
	t.Helper()
	d, err := rundir.Create(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.WriteInfo(info); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, duckstore.FileName), make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
}

// listed describes the runs of a list.
func listed(t *testing.T, n *neighbors) string {
	t.Helper()
	all, err := n.List()
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, r := range all {
		if r.Bytes < 1000 || r.Where != filepath.Join(n.dir, r.Name) {
			t.Errorf("%+v", r)
		}
		text = append(text, fmt.Sprintf("%s %s %s %t", r.Name, r.Program, r.State, r.SameProgram))
	}
	return strings.Join(text, "; ")
}

func TestNeighborsAreTheRunsOfADirectory(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	write := func(name string, hour int, info provdb.Info) {
		info.Started = at.Add(time.Duration(hour) * time.Hour)
		writeRun(t, filepath.Join(dir, name), &info)
	}
	own := filepath.Join(dir, "own")
	lulesh := []string{"t/tau-metrics-lulesh-0.bp", "t/tau-metrics-lulesh-1.bp"}
	write("own", 9, provdb.Info{State: provdb.Finished, Traces: lulesh})
	write("old", 1, provdb.Info{State: provdb.Finished, Traces: lulesh[:1]})
	write("new", 5, provdb.Info{State: provdb.Incomplete, Traces: lulesh})
	write("hpcg", 7, provdb.Info{State: provdb.Finished, Traces: []string{"t/tau-metrics-hpcg-0.bp"}})
	write("elsewhere", 8, provdb.Info{State: provdb.Finished, Store: "postgres://server/chimbuko", Traces: lulesh})
	writeRun(t, filepath.Join(t.TempDir(), "linked"), &provdb.Info{State: provdb.Finished})
	if err := os.Symlink(own, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "traces"), 0o700); err != nil {
		t.Fatal(err)
	}
	o := Options{Beside: true, Listen: "127.0.0.1:0"}
	n, err := o.neighborsOf(own)
	if err != nil {
		t.Fatal(err)
	}
	const want = "new lulesh incomplete true; old lulesh finished true; hpcg hpcg finished false"
	if got := listed(t, n); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	write("newest", 10, provdb.Info{State: provdb.Running, Traces: lulesh})
	if got := listed(t, n); got != "newest lulesh running true; "+want {
		t.Errorf("with a new run: %s", got)
	}
	if _, err := n.Read(t.Context(), &api.Neighbor{Comparable: api.Comparable{Where: filepath.Join(dir, "traces")}}); err == nil {
		t.Error("a directory without a store can be read")
	}
}

func TestNeighborsOfPagesForOthersMustBeGiven(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	writeRun(t, own, &provdb.Info{State: provdb.Finished})
	f := func(o Options, own, want string) {
		t.Helper()
		n, err := o.neighborsOf(own)
		if got := fmt.Sprint(n != nil, err != nil); got != want {
			t.Errorf("%+v: got %s (%v), want %s", o, got, err, want)
		}
	}
	f(Options{Beside: true, Listen: "localhost:8080"}, own, "true false")
	f(Options{Beside: true, Listen: "0.0.0.0:8080"}, own, "false false")
	f(Options{Listen: "127.0.0.1:0"}, own, "false false")
	f(Options{Listen: "0.0.0.0:8080", Runs: dir}, own, "true false")
	f(Options{Beside: true, Listen: "127.0.0.1:0", Runs: NoRuns}, own, "false false")
	f(Options{Beside: true, Listen: "127.0.0.1:0"}, "", "false false")
	f(Options{Runs: filepath.Join(dir, "missing")}, own, "false true")
	f(Options{Runs: filepath.Join(own, "run.json")}, own, "false true")
}
