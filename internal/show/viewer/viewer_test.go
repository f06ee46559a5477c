package viewer

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/show/legacy"

	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestTunnel(t *testing.T) {
	const local, open = "http://127.0.0.1:8080", "http://nid001:8080"
	f := func(address, environ, want string) {
		t.Helper()
		if got := Tunnel(append(strings.Fields(environ), "USER=ada"), "nid001", address); got != want {
			t.Errorf("%s with %s:\n got %q\nwant %q", address, environ, got, want)
		}
	}
	f(local, "", "")
	f(local, "SSH_CONNECTION=a", "ssh -L 8080:localhost:8080 ada@nid001")
	f(open, "SSH_CONNECTION=a", "ssh -L 8080:localhost:8080 ada@nid001")
	f(open, "SLURM_JOB_ID=7 SLURM_SUBMIT_HOST=login3", "ssh -L 8080:nid001:8080 ada@login3")
	f(open, "LSB_JOBID=7", "ssh -L 8080:nid001:8080 ada@login")
	f(local, "PBS_JOBID=7 PBS_O_HOST=login3 SSH_CONNECTION=a", "ssh -J ada@login3 -L 8080:localhost:8080 ada@nid001")
	f("nonsense", "SSH_CONNECTION=a", "")
}

// showInfo is the status of a run directory with this run.json.
func showInfo(t *testing.T, info *provdb.Info) *api.Status {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	d, err := rundir.Create(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.WriteInfo(info); err != nil {
		t.Fatal(err)
	}
	v := &Run{dir: dir, Name: "run", version: "v1", Place: rundir.Place{Owner: rundir.Owner(dir)}}
	if v.Stopped, err = IsStopped(t.Context(), dir, v.Place); err != nil {
		t.Fatal(err)
	}
	st, err := v.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestStatusOfStoredRun(t *testing.T) {
	finished := &provdb.Info{
		State: provdb.Finished, TraceBytes: 5000,
		Notes: []tally.Note{{Name: "exit-lost", Severity: "repaired", Count: 3, Sentence: "calls"}},
	}
	finished.Totals = provdb.Totals{
		Totals: summary.Totals{Steps: 9, Events: 700, Calls: 300, Flagged: 7, Ranks: 2}, Functions: 4,
		Anomalies: 5,
	}
	finished.Review = &summary.Review{Anomalies: 5, Withdrawn: 2, Typical: 10}
	st := showInfo(t, finished)
	want := api.Totals{
		Ranks: 2, RanksEnded: 2, Steps: 9, Events: 700, Calls: 300, Anomalies: 5, Functions: 4, BytesRead: 5000,
		RecordsSent: 17, RecordsStored: 17,
	}
	if st.Run.State != api.Finished || st.Totals != want || st.Run.Name != "run" || len(st.Nodes) != 1 ||
		st.Nodes[0].Tallies[0].Count != 3 || len(st.Wrong()) > 0 {
		t.Errorf("a run that finished: %+v", st)
	}
	if st := showInfo(t, &provdb.Info{State: provdb.Failed, Error: "the disk is full"}); st.Run.State != api.Failed {
		t.Errorf("a run that failed: %+v", st)
	}

	f := func(info *provdb.Info, parts ...string) {
		t.Helper()
		st := showInfo(t, info)
		if st.Run.State != api.Incomplete || len(st.Wrong()) != 1 || len(st.Nodes) > 0 || st.Totals.RanksEnded > 0 {
			t.Errorf("%+v", st)
			return
		}
		for _, part := range parts {
			if !strings.Contains(st.Health[0].Sentence, part) {
				t.Errorf("%q is missing in %q", part, st.Health[0].Sentence)
			}
		}
	}
	f(&provdb.Info{State: provdb.Running}, "incomplete", "chimbuko analyze --out ", "--force")
	f(&provdb.Info{State: provdb.Running, Online: true, Name: "run"}, "incomplete", "chimbuko finish ")
}

func TestOpenBrowser(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	seen := filepath.Join(dir, "seen")
	browser := filepath.Join(dir, "browser")
	if err := os.WriteFile(browser, []byte("#!/bin/sh\necho \"$@\" > "+seen+".new; stat -c %a \"$1\" >> "+seen+".new; cat \"$1\" >> "+seen+".new; mv "+seen+".new "+seen+"\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	remove, err := OpenBrowser(t.Context(), append(os.Environ(), "BROWSER="+browser), `http://127.0.0.1:1/?token=SECRET`)
	text := waitForFile(t, seen)
	command, rest, _ := strings.Cut(text, "\n")
	mode, page, _ := strings.Cut(rest, "\n")
	if strings.Contains(command, "SECRET") || mode != "600" || !strings.Contains(page, "url=http://127.0.0.1:1/?token=SECRET") || err != nil {
		t.Errorf("%s with mode %s and %s; %v", command, mode, page, err)
	}
	remove()
	if left, err := filepath.Glob(filepath.Join(dir, "chimbuko-view-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	remove, err = OpenBrowser(t.Context(), []string{"BROWSER=/nothing/there"}, "http://127.0.0.1:1/")
	if err == nil {
		t.Error("a browser that does not exist was started")
	}
	remove()
}

// waitForFile returns what a file holds as soon as it is there.
func waitForFile(t *testing.T, path string) string {
	t.Helper()
	for t.Context().Err() == nil {
		if text, err := os.ReadFile(path); err == nil {
			return string(text)
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Fatal("it does not come")
	return ""
}

func TestPageOfRunKeepsItsPort(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	open := func(address, before, run string) (port string) {
		t.Helper()
		l, err := listen(t.Context(), address, before, run, log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		_, port, err = net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	// A loopback address of its own, so that no other test uses the port.
	const host, run = "127.18.7.3:0", "/runs/monday"
	if got := open(host, "", run); got != portOf(run) {
		t.Errorf("got port %s, want %s", got, portOf(run))
	}
	if got := open(host, "", run); got == portOf(run) {
		t.Errorf("two pages have port %s", got)
	}
	if got := open(host, "http://127.0.0.1:19999", "/runs/tuesday"); got != "19999" {
		t.Errorf("got port %s, want that of the earlier page", got)
	}
	if portOf("/runs/monday") == portOf("/runs/tuesday") {
		t.Error("two runs have the same port")
	}
}

// TestTwoPagesOfPackets have the same name, so that the second finds its usual port in use. They have no log.
func TestTwoPagesOfPackets(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var pages []*Page
	for range 2 {
		packets := legacy.NewPackets("packets", "test", true)
		o := Options{Listen: "127.18.7.4:0"}
		page, err := o.ServeConfig(ctx, dashboard.Config{
			Config: insight.Config{Source: packets, Run: "packets"}, Packets: packets, Version: "test", Token: rand.Text(),
		}, "", "")
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page)
	}
	if pages[0].Address == pages[1].Address {
		t.Errorf("both pages are at %s", pages[0].Address)
	}
	cancel()
	for _, p := range pages {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
}

func TestFragmentOpensPartOfPage(t *testing.T) {
	for _, c := range [][3]string{
		{"", "", ""},
		{"", "3:17:1204", "#/e/0:3:17:1204"},
		{"", "1:3:17:1204", "#/e/1:3:17:1204"},
		{"findings?sel=7446d81c", "", "#/findings?sel=7446d81c"},
		{"#/findings?sel=7446d81c", "3:17:1204", "#/findings?sel=7446d81c"},
	} {
		if got := Fragment(c[0], c[1]); got != c[2] {
			t.Errorf("Fragment(%q, %q) is %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
