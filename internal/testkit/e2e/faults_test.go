package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/runfiles"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

var (
	faultRuns = flag.Int("faults", usualRuns, "how many runs are disturbed by deaths")
	faultSeed = flag.Uint64("seed", usualSeed, "seed of the deaths of the first of these runs; the others have those after it")
)

// eightRanks are eight ranks of the program with a GPU, as BP4.
func eightRanks(t testing.TB) recording {
	t.Helper()
	one := tracetest.Recorded(t, "gpu-BP5")[0]
	dir := filepath.Join(filepath.Dir(program), "eight")
	makeEight.Do(func() { must(t, "trace", "replay", one, dir, "--speed", "max", "--ranks", "8") })
	traces, err := filepath.Glob(filepath.Join(dir, "*.bp"))
	if err != nil || len(traces) != 8 {
		t.Fatalf("%d traces in %s: %v", len(traces), dir, err)
	}
	return recording{"gpu-BP4 eight times", traces}
}

var makeEight sync.Once

// troupe is the processes of a run of eight ranks, two for each analyzer.
type troupe struct {
	*scene
	plan    *schedule
	parts   map[string]*process
	started map[string]func() *process
	begun   time.Time
}

var troupeNodes = []string{"n0", "n1", "n2", "n3"}

// newTroupe starts all processes but the replay.
func newTroupe(t testing.TB, r recording, plan *schedule) *troupe {
	t.Helper()
	p := &troupe{scene: newScene(t), plan: plan, parts: map[string]*process{}, started: map[string]func() *process{}}
	for _, part := range plan.services {
		args := []string{"--snapshot", plan.snapshot.String()}
		switch part {
		case partBus:
			args = append(args, "--roles", "nats")
		case partParams:
			args = append(args, "--roles", "params", "--ranks", "8", "--save-model", p.path("model"))
		case partStore:
			args = append(args, "--roles", "store,web")
		default:
			args = append(args, "--ranks", "8", "--save-model", p.path("model"), "--shards", strconv.Itoa(plan.shards))
		}
		p.started[part] = func() *process { return p.serve(args...) }
	}
	for i, node := range plan.nodes {
		p.started[node] = func() *process {
			return p.ad(node, p.live(r.traces[2*i]), p.live(r.traces[2*i+1]), "--json")
		}
	}
	for _, part := range slices.Concat(plan.services, plan.nodes) {
		p.parts[part] = p.started[part]()
	}
	return p
}

// play replays the traces and has parts die and live again as planned, until all
// have ended.
func (p *troupe) play(r recording) {
	p.t.Helper()
	p.services()
	replay := p.replay(r, faultSpeed)
	p.begun = time.Now()
	type turn struct {
		at   time.Time
		part string
		born bool
	}
	var turns []turn
	add := func(at time.Time, ended bool) {
		for _, d := range p.plan.deaths {
			if d.ended == ended {
				turns = append(turns, turn{at: at.Add(d.after), part: d.part})
			}
		}
	}
	add(p.begun, false)
	replayed := replay.ended
	for len(turns) > 0 || replayed != nil {
		slices.SortStableFunc(turns, func(a, b turn) int { return a.at.Compare(b.at) })
		next := time.NewTimer(lifetime)
		if len(turns) > 0 {
			next.Reset(time.Until(turns[0].at))
		}
		select {
		case <-replayed:
			replay.succeed()
			p.note("the replay has ended")
			add(time.Now(), true)
			replayed = nil
		case <-next.C:
			now := turns[0]
			turns = turns[1:]
			switch was := p.parts[now.part]; {
			case now.born:
				p.parts[now.part] = p.started[now.part]()
				p.note(now.part + " lives again")
			case was == nil:
				p.note(now.part + " is dead already")
			case !was.tryKill():
				p.note(now.part + " has ended already")
			default:
				p.parts[now.part] = nil
				p.note(now.part + " dies")
				turns = append(turns, turn{time.Now().Add(restart), now.part, true})
			}
		}
		next.Stop()
	}
	for _, node := range p.plan.nodes {
		p.parts[node].succeed()
	}
	for _, part := range p.plan.services {
		if part == partBus { // it does not end by itself
			continue
		}
		if again := p.parts[part]; again.wait() == 1 && strings.Contains(again.stderr.String(), "already has a run") && p.closed() {
			continue // it was killed when nothing was left to do
		}
		p.parts[part].succeed()
	}
	if bus := p.parts[partBus]; bus != nil {
		bus.signal(syscall.SIGTERM)
		bus.wait()
	}
	p.note("all have ended")
}

// closed reports whether the run has ended, and its database was closed and measured.
func (p *troupe) closed() bool {
	info, err := runfiles.ReadInfo(p.run)
	return err == nil && info.State == "finished" && info.RecordBytes > 0
}

// note logs an event with its time.
func (p *troupe) note(text string) {
	p.t.Helper()
	p.t.Logf("%v: %s", time.Since(p.begun).Round(time.Millisecond), text)
}

// sumUp reads run.json, without values that depend on time, places and
// how labels came to be.
func sumUp(t testing.TB, run string) (final string, review map[string]int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(run, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		State    string           `json:"state"`
		Totals   map[string]int64 `json:"totals"`
		Review   map[string]int   `json:"review"`
		Traces   []string         `json:"traces"`
		Bytes    int64            `json:"trace_bytes"`
		Top      json.RawMessage  `json:"top_functions"`
		Findings json.RawMessage  `json:"findings"`
		Changes  json.RawMessage  `json:"changes"`
		Notes    json.RawMessage  `json:"notes"`
	}
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	delete(all.Totals, "flagged") // at the time
	return fmt.Sprintf("%s %v %d traces of %d bytes, %d anomalies\n%s\n%s\n%s\n%s", all.State, all.Totals, len(all.Traces), all.Bytes,
		all.Review["anomalies"], all.Top, all.Findings, all.Changes, all.Notes), all.Review
}

// reference is what came of a run that nothing disturbed.
type reference struct {
	*outcome
	final string
}

// calm is what came of a run of eight ranks that nothing disturbed.
func calm(t testing.TB, r recording) *reference {
	t.Helper()
	calmOnce.Lock()
	defer calmOnce.Unlock()
	if calmOnce.reference != nil {
		return calmOnce.reference
	}
	p := newTroupe(t, r, &schedule{nodes: troupeNodes, services: []string{partAll}, shards: 1, snapshot: time.Second})
	seen := watch(t, p.services())
	p.play(r)
	ref := &reference{outcome: outcomeOf(t, p.path("model"), p.run)}
	ref.final, _ = sumUp(t, p.run)
	complete(t, p.scene, seen, true)
	if t.Failed() {
		t.FailNow()
	}
	calmOnce.reference = ref
	return ref
}

var calmOnce struct {
	sync.Mutex
	reference *reference
}

// complete fails unless all records that analyzers sent are stored, each once, and
// all that the review counted. If all was watched, nothing else is stored.
func complete(t testing.TB, p *scene, seen *witness, all bool) {
	t.Helper()
	sent, stored := seen.records(), storedRecords(t, p.run)
	for _, id := range slices.Sorted(maps.Keys(stored)) {
		if stored[id] != 1 {
			t.Errorf("record %s is stored %d times", id, stored[id])
		}
		if all && sent[id] == 0 {
			t.Errorf("record %s is stored, but was not sent", id)
		}
	}
	missing := slices.DeleteFunc(slices.Sorted(maps.Keys(sent)), func(id string) bool { return stored[id] > 0 })
	if len(missing) > 0 {
		t.Errorf("%d of %d records that were sent are not stored: %.10v", len(missing), len(sent), missing)
	}
	t.Logf("%d records were seen to be sent, %d are stored", len(sent), len(stored))
	_, review := sumUp(t, p.run)
	statuses := outcomeOf(t, "", p.run).statuses
	if statuses["confirmed"] != review["confirmed"] || statuses["promoted"] != review["promoted"] ||
		statuses["withdrawn"] < review["withdrawn"] || statuses["provisional"] > 0 {
		t.Errorf("stored are %v, but the review counted %v", statuses, review)
	}
}

func TestKillScheduleLosesAndDuplicatesNothing(t *testing.T) {
	t.Parallel()
	r := eightRanks(t)
	for i := range *faultRuns {
		plan := newSchedule(*faultSeed+uint64(i), troupeNodes)
		t.Run(fmt.Sprint("seed ", plan.seed), func(t *testing.T) {
			t.Parallel()
			want := calm(t, r)
			t.Log(plan)
			p := newTroupe(t, r, plan)
			seen := watch(t, p.services())
			p.play(r)
			got := outcomeOf(t, p.path("model"), p.run)
			agree(t, got, want.outcome)
			agree(t, got, offlineOf(t, r))
			if final, _ := sumUp(t, p.run); final != want.final {
				t.Errorf("run.json has:\n%s\nwant:\n%s", final, want.final)
			}
			complete(t, p.scene, seen, false)
		})
	}
}
