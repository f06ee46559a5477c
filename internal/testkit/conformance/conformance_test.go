package conformance

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/cli"
	"github.com/chimbuko/chimbuko/internal/testkit/sqlitetest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// format is a format of traces.
type format struct {
	name            string
	write           func(t *testing.T, dir string, p *program)
	messages, hosts bool // it has them
	threads         bool // it has their numbers; otherwise they are numbered as they appear
	boot            bool // times count from the start of the host; otherwise from a date
	notes           []tally.Kind
	only            string // the scenario; "" for all. SQLite takes minutes to write many calls with the race detector
}

var formats = []format{
	{name: "OTF2", write: (&archive{order: binary.LittleEndian}).write, messages: true, hosts: true, threads: true},
	{
		name: "OTF2, most significant byte first", write: (&archive{order: binary.BigEndian}).write,
		messages: true, hosts: true, threads: true,
	},
	{name: "OTF2 1.0", write: (&archive{order: binary.LittleEndian, old: true}).write, messages: true, hosts: true, threads: true},
	{name: "Kineto", write: writeChrome},
	{name: "Nsight", write: writeNsight, hosts: true},
	{
		name: "rocpd", write: rocpdWriter(sqlitetest.RocpdInline), only: "threads",
		hosts: true, boot: true, notes: []tally.Kind{tally.ClockAssumed},
	},
	{
		name: "rocpd with tracks", write: rocpdWriter(sqlitetest.RocpdTracks), only: "slow-rank",
		hosts: true, boot: true, notes: []tally.Kind{tally.ClockAssumed},
	},
}

// scenarios are programs with troubles that all formats show, and how long they run.
var scenarios = map[string]string{"slow-rank": "5s", "threads": "1500ms"}

func TestFormatsAgree(t *testing.T) {
	tracetest.SkipShort(t, "it analyzes many traces")
	for scenario, duration := range scenarios {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "TAU")
			command(t, "simulate", "--scenario", scenario, "--duration", duration, "--out", dir)
			want := read(t, dir, nil)
			found := findings(t, dir)
			if len(found) == 0 {
				t.Fatal("no findings")
			}
			for _, f := range formats {
				if f.only != "" && f.only != scenario {
					continue
				}
				t.Run(f.name, func(t *testing.T) {
					dir := t.TempDir()
					f.write(t, dir, want)
					compare(t, &f, read(t, dir, &f), want)
					compareFindings(t, &f, findings(t, dir), found)
				})
			}
		})
	}
}

// compare compares calls and messages.
func compare(t *testing.T, f *format, got, want *program) {
	t.Helper()
	if f.hosts && fmt.Sprint(got.hosts) != fmt.Sprint(want.hosts) {
		t.Errorf("hosts are %v, want %v", got.hosts, want.hosts)
	}
	if !f.messages {
		want = want.only(trace.Enter, trace.Exit, trace.Count)
	}
	if !slices.Equal(got.sorted(), want.sorted()) {
		t.Fatalf("threads are %v, want %v", got.sorted(), want.sorted())
	}
	if f.boot {
		got, want = got.sinceBoot(), want.sinceBoot()
	}
	if !f.threads {
		got = got.numberedAs(want)
	}
	for _, l := range want.sorted() {
		got, want := got.lanes[l], want.lanes[l]
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("%v: event %d is %+v, want %+v", l, i, got[i], want[i])
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%v: %d events, want %d", l, len(got), len(want))
		}
	}
}

// finding is a finding of `chimbuko findings --format json`.
type finding struct {
	Kind     string   `json:"kind"`
	Function string   `json:"function"`
	Ranks    []int    `json:"ranks"`
	Hosts    []string `json:"hosts"`
	From     float64  `json:"from_s"`
	To       *float64 `json:"to_s"`
	Lost     float64  `json:"lost_us"`
}

// findings returns the findings of the traces in a directory.
func findings(t *testing.T, dir string) []finding {
	t.Helper()
	run := filepath.Join(t.TempDir(), "run")
	command(t, "analyze", dir, "--out", run)
	return findingsOf(t, run)
}

// findingsOf returns the findings of a run.
func findingsOf(t *testing.T, run string) (all []finding) {
	t.Helper()
	if err := json.Unmarshal([]byte(command(t, "findings", run, "--format", "json")), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// compareFindings compares findings, but for small differences of times.
func compareFindings(t *testing.T, f *format, got, want []finding) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i, g := range got {
		w := want[i]
		same := g.Kind == w.Kind && g.Function == w.Function && slices.Equal(g.Ranks, w.Ranks) &&
			(!f.hosts || slices.Equal(g.Hosts, w.Hosts)) && (g.To == nil) == (w.To == nil)
		// Intervals of time are shorter if a trace has nanoseconds.
		near := math.Abs(g.From-w.From) < 0.1 && (g.To == nil || w.To == nil || math.Abs(*g.To-*w.To) < 0.1) && math.Abs(g.Lost-w.Lost) < 0.02*w.Lost
		if !same || !near {
			t.Errorf("finding %d is %+v, want %+v", i, g, w)
		}
	}
}

// command runs a command and returns its standard output.
func command(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Version: "test", Commit: "none"}
	if code := cli.Run(t.Context(), env, args); code != 0 {
		t.Fatalf("%s: exit code %d, %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}
