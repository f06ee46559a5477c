package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

func TestTheWayToThePageFromElsewhereIsTold(t *testing.T) {
	const local, open = "http://127.0.0.1:8080", "http://nid001:8080"
	f := func(address, environ, want string) {
		t.Helper()
		env := &Env{Environ: append(strings.Fields(environ), "USER=ada")}
		if got := tunnelTo(env, "nid001", address); got != want {
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

func TestARunDirectoryIsKnownByWhatItHolds(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	if err := os.Mkdir(run, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(run, "provenance.duckdb")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(where, want string) {
		t.Helper()
		if got := rundir.Find(where); got != want {
			t.Errorf("%s: got %q, want %q", where, got, want)
		}
	}
	f(run, "")
	f(file, "")
	if err := os.WriteFile(filepath.Join(run, "run.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	f(run, run)
	f(file, run)
	f(filepath.Join(run, "other.duckdb"), "")
	f(filepath.Join(dir, "nothing"), "")
	f("postgres://server/chimbuko", "")
}

// showInfo is the status of a run directory with this run.json.
func showInfo(t *testing.T, info *provdb.Info) (api.Status, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	d, err := rundir.Create(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.WriteInfo(info); err != nil {
		t.Fatal(err)
	}
	v := &viewRun{dir: dir, name: "run", version: "v1", place: rundir.Place{Owner: rundir.Owner(dir)}}
	if v.cut, err = v.isCut(t.Context()); err != nil {
		t.Fatal(err)
	}
	st, err := v.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	v.tell(t.Context(), &Env{Stderr: &told})
	return *st, told.String()
}

func TestAViewTellsWhatCameOfARun(t *testing.T) {
	finished := &provdb.Info{State: provdb.Finished, TraceBytes: 5000, Notes: []tally.Note{{Name: "exit-lost", Severity: "repaired", Count: 3, Sentence: "calls"}}}
	finished.Totals = provdb.Totals{Totals: summary.Totals{Steps: 9, Events: 700, Calls: 300, Flagged: 7, Ranks: 2}, Functions: 4, Anomalies: 5}
	finished.Review = &summary.Review{Anomalies: 5, Withdrawn: 2, Typical: 10}
	st, told := showInfo(t, finished)
	want := api.Totals{Ranks: 2, RanksEnded: 2, Steps: 9, Events: 700, Calls: 300, Anomalies: 5, Functions: 4, BytesRead: 5000, RecordsSent: 17, RecordsStored: 17}
	if st.Run.State != api.Finished || st.Totals != want || st.Run.Name != "run" || len(st.Nodes) != 1 || st.Nodes[0].Tallies[0].Count != 3 || len(st.Wrong()) > 0 {
		t.Errorf("a run that finished: %+v", st)
	}
	if !strings.Contains(told, "finished, with 5 anomalies in 300 calls on two ranks") {
		t.Errorf("of a run that finished it says %s", told)
	}
	st, told = showInfo(t, &provdb.Info{State: provdb.Failed, Error: "the disk is full"})
	if st.Run.State != api.Failed || !strings.Contains(told, "failed: the disk is full") {
		t.Errorf("a run that failed: %+v, %s", st, told)
	}

	f := func(info *provdb.Info, parts ...string) {
		t.Helper()
		st, told := showInfo(t, info)
		if st.Run.State != api.Incomplete || len(st.Wrong()) != 1 || len(st.Nodes) > 0 || st.Totals.RanksEnded > 0 {
			t.Errorf("%+v", st)
			return
		}
		for _, part := range parts {
			if !strings.Contains(told, part) || !strings.Contains(st.Health[0].Sentence, part) {
				t.Errorf("%q is not said in %q and %q", part, told, st.Health[0].Sentence)
			}
		}
	}
	f(&provdb.Info{State: provdb.Running}, "incomplete", "chimbuko analyze --out ", "--force")
	f(&provdb.Info{State: provdb.Running, Online: true, Name: "run"}, "incomplete", "chimbuko finish ")
}

func TestNobodySitsAtAFileOrANullDevice(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close() //nolint:errcheck // nothing is in it
	for _, env := range []*Env{{Stdin: strings.NewReader(""), Stdout: null}, {Stdin: null, Stdout: null}, {Stdin: null, Stdout: new(bytes.Buffer)}} {
		if env.isInteractive() {
			t.Errorf("%+v is a terminal", env)
		}
	}
}

func TestABrowserGetsTheAddressThroughAFileOfItsOwner(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	seen := filepath.Join(dir, "seen")
	browser := filepath.Join(dir, "browser")
	if err := os.WriteFile(browser, []byte("#!/bin/sh\necho \"$@\" > "+seen+".new; stat -c %a \"$1\" >> "+seen+".new; cat \"$1\" >> "+seen+".new; mv "+seen+".new "+seen+"\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	env := &Env{Stderr: &stderr, Environ: append(os.Environ(), "BROWSER="+browser)}
	remove := openBrowser(t.Context(), env, `http://127.0.0.1:1/?token=SECRET`)
	text := waitForFile(t, seen)
	command, rest, _ := strings.Cut(text, "\n")
	mode, page, _ := strings.Cut(rest, "\n")
	if strings.Contains(command, "SECRET") || mode != "600" || !strings.Contains(page, "url=http://127.0.0.1:1/?token=SECRET") || stderr.Len() > 0 {
		t.Errorf("%s with mode %s and %s; %s", command, mode, page, &stderr)
	}
	remove()
	if left, err := filepath.Glob(filepath.Join(dir, "chimbuko-view-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	env.Environ = []string{"BROWSER=/nothing/there"}
	openBrowser(t.Context(), env, "http://127.0.0.1:1/")()
	if !strings.Contains(stderr.String(), "no browser could be opened") {
		t.Errorf("got %q", stderr.String())
	}
}

// waitForFile returns what a file holds as soon as it is there.
func waitForFile(t *testing.T, path string) string {
	t.Helper()
	for t.Context().Err() == nil {
		if text, err := os.ReadFile(path); err == nil {
			return string(text)
		}
		if err := sleep(t.Context(), meterInterval/50); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("it does not come")
	return ""
}
