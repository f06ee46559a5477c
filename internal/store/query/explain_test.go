package query_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/pgstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// plantedCause is the cause of a trouble in a scenario and the selection of a user who looks for
// it: the worst finding of a function, or of all, restricted to a time if several troubles affect the
// function.
type plantedCause struct {
	scenario, trouble string
	function          string
	program           trace.Program
	from, to          float64 // seconds
	field             string  // kind or name of the field; "nothing" if none may be notable
	value             string  // prefix of its values; not checked if empty
	steps, ranks      int     // override the scenario
	quick             bool    // also tested without -explain-seeds
}

// quickCauses returns the causes to test without -explain-seeds.
func quickCauses() (causes []*plantedCause) {
	for i := range plantedCauses {
		if plantedCauses[i].quick {
			causes = append(causes, &plantedCauses[i])
		}
	}
	return tracetest.Sample(causes, 5)
}

var plantedCauses = []plantedCause{
	{quick: true, scenario: "slow-host", trouble: "node02 is hot", field: "host", value: "node02"},
	{quick: true, scenario: "slow-rank", trouble: "rank 3", field: "rank", value: "3"},
	{quick: true, scenario: "slow-link", trouble: "cable between node00 and node01", function: "MPI_Waitall()", field: "link", value: "5 – 6"},
	// With 50 steps the trouble lasts for a third of the run and causes no anomaly.
	{scenario: "memory-pressure", trouble: "memory of node01", field: "Memory Footprint (VmRSS) (KB)", steps: 150},
	{scenario: "os-noise", trouble: "a service on node01", field: "host", value: "node01"},
	{quick: true, scenario: "burst", trouble: "collide on rank 1", function: "collide", field: "rank", value: "1"},
	{quick: true, scenario: "burst", trouble: "stream on node01", function: "stream", field: "host", value: "node01"},
	{quick: true, scenario: "gpu-clock-drop", trouble: "GPU of rank 2", field: "GPU Clock (MHz)"},
	{scenario: "io-stall", trouble: "a write of rank 7", function: "write()", from: 3, to: 7, field: "rank", value: "7"},
	{scenario: "io-stall", trouble: "writes of node02", function: "write()", from: 7, to: 20, field: "host", value: "node02"},
	{scenario: "threads", trouble: "relaxation on rank 3", function: "relax_rows", field: "rank", value: "3"},
	{scenario: "workflow", trouble: "rank 6 of the simulation", function: "update_block", field: "rank", value: "6"},
	{scenario: "workflow", trouble: "vortices", function: "find_vortices", program: 1, field: "time"},
	{scenario: "demo", trouble: "memory of node02", function: "deposit_current", field: "Memory Footprint (VmRSS) (KB)"},
	{scenario: "demo", trouble: "checkpoint of rank 5", function: "write()", field: "rank", value: "5"},
	{scenario: "demo", trouble: "GPU of rank 13", function: "push_boris(float4*, float3*, float, int)", field: "GPU Clock (MHz)"},
	{scenario: "level-shift", trouble: "preconditioner", function: "apply_preconditioner", field: "time", value: "5."},
	{scenario: "drift", trouble: "deposit", function: "deposit_charge", field: "time"},
	{quick: true, scenario: "huge-value", trouble: "after it", function: "smooth_cell", field: "time"},
	{scenario: "scale", trouble: "rank 4217", ranks: 200, field: "rank"},
	{quick: true, scenario: "large-messages", trouble: "", function: "pack_faces", field: "bytes"},
	{quick: true, scenario: "call-path", trouble: "coarse smoothing", function: "smooth", field: "call-path"},
	{quick: true, scenario: "gpu-stream", trouble: "second stream", function: "advance(float4*, int)", field: "gpu-stream", value: "1"},
	// Calls that are slow by chance, at any place and time.
	{scenario: "threads", trouble: "stiff elements", function: "element_stiffness", field: "nothing"},
	{quick: true, scenario: "heavy-tail", trouble: "lost particles", function: "track_particle", field: "nothing"},
	{scenario: "message-size", trouble: "unpacking hangs", function: "unpack_block", field: "nothing"},
	{quick: true, scenario: "normal", trouble: "odd cells", field: "nothing"},
	{scenario: "bimodal", trouble: "odd cells", field: "nothing"},
	{scenario: "lognormal", trouble: "odd cells", field: "nothing"},
	{scenario: "quantized", trouble: "odd cells", field: "nothing"},
	{quick: true, scenario: "repeated", trouble: "odd cells", field: "nothing"},
}

// explained returns the explanation for a planted cause, or nil if it caused no anomaly.
func explained(t *testing.T, a *query.Queries, findings []provenance.Finding, c *plantedCause) *contrast.Explanation {
	t.Helper()
	var q query.Selection
	for i := range findings {
		if x := &findings[i]; (c.function == "" || x.Func == c.function) && x.PID == c.program {
			q.Finding = x
			break
		}
	}
	if q.Finding == nil {
		return nil
	}
	if c.to > 0 {
		since, until := time.Duration(c.from*1e9), time.Duration(c.to*1e9)
		q.Filter.Since, q.Filter.Until = &since, &until
	}
	e, err := a.Explain(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// right reports whether the planted cause comes first in an explanation.
func (c *plantedCause) right(e *contrast.Explanation) bool {
	if e == nil {
		return false
	}
	if c.field == "nothing" {
		return len(e.Fields) == 0 || !e.Fields[0].Notable
	}
	if len(e.Fields) == 0 {
		return false
	}
	first := &e.Fields[0]
	if c.field == "time" && first.Kind == contrast.FieldStep {
		return true // a step is a time, too
	}
	return (string(first.Kind) == c.field || first.Name == c.field) && strings.HasPrefix(first.Values, c.value)
}

// explainSeeds is the number of seeds of each scenario; if 0, quick scenarios run once.
var explainSeeds = flag.Int("explain-seeds", 0, "seeds of each scenario that is explained; 0 is one, of some scenarios")

// TestExplainNamesPlantedCauses prints the table of docs/adr/0021-rank-explanations-by-information.md:
// go test -v -run Planted ./internal/store/query -explain-seeds 5.
func TestExplainNamesPlantedCauses(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	seeds, quick := max(1, *explainSeeds), quickCauses()
	store := sharedStore(t)
	type outcome struct {
		right int
		first string
		wrong []string
	}
	outcomes := make([]outcome, len(plantedCauses))
	byRun := make(map[string][]int)
	var order []string
	for i := range plantedCauses {
		c := &plantedCauses[i]
		if *explainSeeds == 0 && !slices.Contains(quick, c) {
			continue
		}
		key := fmt.Sprintf("%s %d %d", c.scenario, c.steps, c.ranks)
		if byRun[key] == nil {
			order = append(order, key)
		}
		byRun[key] = append(byRun[key], i)
	}
	for _, key := range order {
		for seed := range seeds {
			c := &plantedCauses[byRun[key][0]]
			a := explainable(t, store, c, uint64(100*seed))
			result, err := a.Findings(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range byRun[key] {
				e := explained(t, a, result.Findings, &plantedCauses[i])
				if plantedCauses[i].right(e) {
					outcomes[i].right++
				}
				if e != nil && seed == 0 {
					outcomes[i].first = e.Sentence
				}
				if !plantedCauses[i].right(e) {
					outcomes[i].wrong = append(outcomes[i].wrong, fmt.Sprintf("seed %d", 100*seed))
				}
			}
		}
	}
	var named, quiet, total, chance int
	for i := range plantedCauses {
		c, o := &plantedCauses[i], &outcomes[i]
		if *explainSeeds == 0 && !slices.Contains(quick, c) {
			continue
		}
		t.Logf("%-16s %-32s %-30s %d of %d %v\n        %s", c.scenario, c.trouble, c.field+" "+c.value, o.right, seeds, o.wrong, o.first)
		if c.field == "nothing" {
			quiet, chance = quiet+o.right, chance+seeds
		} else {
			named, total = named+o.right, total+seeds
		}
	}
	t.Logf("planted causes that come first: %d of %d; scenarios without a cause and without an explanation: %d of %d",
		named, total, quiet, chance)
	if 10*named < 9*total || 10*quiet < 9*chance {
		t.Errorf("fewer than nine of ten explanations name the planted cause first")
	}
}

// The partners of a rank follow from the rank, so they do not explain a selection of ranks.
func TestExplainIgnoresLinksThatSelectedRanks(t *testing.T) {
	store := sharedStore(t)
	a := explainable(t, store, &plantedCause{scenario: "slow-link"}, 0)
	since, until := 4900*time.Millisecond, 5300*time.Millisecond
	e, err := a.Explain(t.Context(), query.Selection{Filter: executions.Filter{
		Ranks: []trace.Range{{First: 3, Last: 8}}, Since: &since,
		Until: &until,
	}})
	if err != nil || e.Selected < 100 {
		t.Fatalf("%+v, %v", e, err)
	}
	const onRanks = 13 // typical executions of these ranks and their anomaly at another time; all ranks have more than 26
	for i := range e.Fields {
		if f := &e.Fields[i]; (f.Kind == contrast.FieldLink || f.Kind == contrast.FieldPartner) && (f.Notable || f.BaselineOf > onRanks) {
			t.Errorf("%s: %s", f.Name, f.Support())
		}
	}
}

// simulated is a DuckDB store shared by tests that only read it, and the runs of explainable.
var simulated struct {
	store    *duckstore.Store
	postgres *pgstore.Store
	runs     map[simulatedRun]*query.Queries
}

type simulatedRun struct {
	store provdb.Store
	name  string
}

// sharedStore returns the store that all tests share.
func sharedStore(t *testing.T) *duckstore.Store {
	t.Helper()
	if simulated.store != nil {
		return simulated.store
	}
	var err error
	path := filepath.Join(dir, "simulated.duckdb")
	if simulated.store, err = duckstore.Open(context.WithoutCancel(t.Context()), path, duckstore.Options{}); err != nil {
		t.Fatal(err)
	}
	return simulated.store
}

// sharedPostgres returns the store in PostgreSQL that all tests share.
func sharedPostgres(t *testing.T) *pgstore.Store {
	t.Helper()
	url := pgtest.Shared(t).URL("postgres")
	if simulated.postgres != nil {
		return simulated.postgres
	}
	var err error
	if simulated.postgres, err = pgstore.Open(context.WithoutCancel(t.Context()), url, pgstore.Options{}); err != nil {
		t.Fatal(err)
	}
	return simulated.postgres
}

// explainable returns the queries of the run of a planted cause's scenario. The first call analyzes
// the scenario into the store.
func explainable(t *testing.T, store provdb.Store, c *plantedCause, seed uint64) *query.Queries {
	t.Helper()
	key := simulatedRun{store, fmt.Sprintf("%s %d %d", c.scenario, seed, c.steps)}
	a := simulated.runs[key]
	if a == nil {
		if simulated.runs == nil {
			simulated.runs = make(map[simulatedRun]*query.Queries)
		}
		a = analyzed(t, store, c, seed, key.name)
		simulated.runs[key] = a
	}
	asker := *a
	return &asker
}

func analyzed(t *testing.T, store provdb.Store, c *plantedCause, seed uint64, name string) *query.Queries {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "explain", c.scenario+".toml"))
	if err != nil {
		text, err = scenario.Builtin(c.scenario)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(c.scenario, text)
	if err != nil {
		t.Fatal(err)
	}
	s.Seed += seed
	if c.steps > 0 {
		s.Steps = c.steps
	}
	if c.ranks > 0 {
		if err := s.Resize(c.ranks); err != nil {
			t.Fatal(err)
		}
	}
	var inputs []analyzer.Input
	for _, stream := range simulate.New(s).Streams() {
		inputs = append(inputs, analyzer.Input{
			Path: fmt.Sprintf("%s-%d.bp", stream.ProgramName(), stream.Rank()), Program: stream.Program(),
			Steps: func(*tally.Tally) (trace.Steps, error) { return stream, nil },
		})
	}
	run := provdb.Run{Name: name, State: provdb.Running, Started: time.Unix(1, 0)}
	if run.ID, err = store.CreateRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	cfg := analyzer.Default()
	cfg.SpoolDir = t.TempDir()
	buffer := provdb.NewBuffer(t.Context(), store, run.ID, time.Minute, 1000)
	var all gatherer
	res, err := analyzer.New(cfg, rundir.Sinks{&all, rundir.NewStoreSink(buffer)}, nil).Run(t.Context(), inputs)
	if err != nil {
		t.Fatal(err)
	}
	known, err := res.Collections()
	if err != nil {
		t.Fatal(err)
	}
	all.Begin = res.Totals.Begin
	found := findings.Conclude(&all.Run, blame.Find(&all.Run), res.Changes, nil, nil)
	known.Findings, known.Links = found.Findings, found.Links
	if err := rundir.NewStoreSink(buffer).Finish(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	run.State, run.Finished = provdb.Finished, time.Unix(2, 0)
	if run.Info, err = json.Marshal(map[string]any{"totals": res.Totals, "changes": res.Changes}); err != nil {
		t.Fatal(err)
	}
	if err := store.UpdateRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	a, err := query.New(t.Context(), store, run.Name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
