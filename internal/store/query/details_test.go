package query_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// Explanations of large runs examine the details of a sample. A twentieth of a small run, as here,
// is harder.
func TestPlantedCausesComeFirstInSmallSamples(t *testing.T) {
	tracetest.SkipShort(t, "stores many records")
	if tracetest.WithoutRace(t) {
		return
	}
	store := sharedStore(t)
	seen, askers := make(map[string]bool), make(map[string]*query.Queries)
	right, total := 0, 0
	for _, c := range quickCauses() {
		if !seen[c.scenario] {
			seen[c.scenario] = true
			askers[c.scenario] = withDetails(t, explainable(t, store, c, 0), 20)
		}
		a := askers[c.scenario]
		result, err := a.Findings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		total++
		if e := explained(t, a, result.Findings, c); c.right(e) {
			right++
		} else if e != nil {
			t.Logf("%s, %s: %s", c.scenario, c.trouble, e.Sentence)
		}
	}
	if t.Logf("%d of %d", right, total); 10*right < 9*total {
		t.Error("fewer than nine of ten explanations name the planted cause first")
	}
}

// withDetails makes queries read from memory, with the details of one in share executions.
func withDetails(t *testing.T, a *query.Queries, share int64) *query.Queries {
	t.Helper()
	inMemory(t, a)
	kept, err := a.Counts(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if a.Details, err = a.ReadDetails(t.Context(), 0, kept.Executions/share); err != nil || a.Details == nil {
		t.Fatal(a.Details, err)
	}
	return a
}

func TestDetailsOutsideSampleAreReadFromStore(t *testing.T) {
	s, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), duckstore.FileName), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	id, err := s.CreateRun(t.Context(), provdb.Run{Name: "run", State: provdb.Running, Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	records := storetest.Records(1000, 3)
	if err := s.Write(t.Context(), id, &provdb.Batch{Anomalies: records[:500], Typical: records[500:]}); err != nil {
		t.Fatal(err)
	}
	a, err := query.New(t.Context(), s, "run")
	if err != nil {
		t.Fatal(err)
	}
	withDetails(t, a, 50)
	queries, maxArgs := 0, 0
	a.OnQuery = func(sql string, args []any) {
		if strings.Contains(sql, "FROM messages") {
			queries, maxArgs = queries+1, max(maxArgs, len(args))
		}
	}
	e := explainedAs(t, a, query.Selection{})
	// The run, and three numbers for each of 25 selected and 25 typical executions.
	if queries != 1 || maxArgs > 1+3*2*25 {
		t.Errorf("%d selected and %d typical executions: got %d queries for messages with %d arguments", e.Examined, e.Typical, queries, maxArgs)
	}
}

// Estimates from a sample are within four standard deviations.
func TestEstimatesFromSampleAreClose(t *testing.T) {
	tracetest.SkipShort(t, "stores many records")
	a := explainedRun(t, "slow-link")
	whole := explainedAs(t, a, query.Selection{})
	groups := func(a *query.Queries) *api.ExplainGroups {
		t.Helper()
		g, err := a.Group(t.Context(), query.Selection{}, contrast.FieldKey{Kind: contrast.FieldPartner}, 100)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	exact := groups(a)
	sampled := *a
	withDetails(t, &sampled, 3)
	estimate := groups(&sampled)
	if estimate.Examined >= exact.Examined || exact.Examined != whole.Selected || len(exact.Rows) < 5 {
		t.Fatalf("got %+v from all, %+v from a sample", exact, estimate)
	}
	if estimate.Selected != whole.Selected || estimate.Lost != whole.Lost {
		t.Errorf("sample: got %d executions that lost %v, want %d and %v", estimate.Selected, estimate.Lost, whole.Selected, whole.Lost)
	}
	for i := range exact.Rows {
		r := &exact.Rows[i]
		got := explainedAs(t, &sampled, query.Selection{Only: terms(t, r.Term)})
		share := float64(r.Executions) / float64(whole.Selected)
		allowed := 1 + 4*float64(whole.Selected)*math.Sqrt(share*(1-share)/float64(estimate.Examined))
		if math.Abs(float64(got.Selected-r.Executions)) > allowed || !got.Estimated {
			t.Errorf("%s: got %d (estimated: %t), want %d ± %.0f", r.Term, got.Selected, got.Estimated, r.Executions, allowed)
		}
	}
}

// explainedRun returns the queries of a simulated run.
func explainedRun(t *testing.T, name string) *query.Queries {
	t.Helper()
	store := sharedStore(t)
	for i := range plantedCauses {
		if c := &plantedCauses[i]; c.scenario == name {
			return explainable(t, store, c, 0)
		}
	}
	t.Fatalf("scenario %s has no planted cause", name)
	return nil
}
