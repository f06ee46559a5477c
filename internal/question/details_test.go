package question_test

import (
	"path/filepath"
	"testing"

	"github.com/chimbuko/chimbuko/internal/provdb/duckstore"
	"github.com/chimbuko/chimbuko/internal/question"
)

// What is looked at closely in a run of many executions is a part of them. Here it is the
// twentieth part of runs that have few, which is worse.
func TestPlantedCausesComeFirstWhenFewAreLookedAtClosely(t *testing.T) {
	store, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), "provenance.duckdb"), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	seen, askers := make(map[string]bool), make(map[string]*question.Asker)
	right, total := 0, 0
	for i := range plantedCauses {
		c := &plantedCauses[i]
		if !c.quick {
			continue
		}
		if !seen[c.scenario] {
			seen[c.scenario] = true
			askers[c.scenario] = withDetails(t, explainable(t, store, c, 0), 20)
		}
		a := askers[c.scenario]
		issues, err := a.Issues(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		total++
		if e := explained(t, a, issues, c); c.right(e) {
			right++
		} else if e != nil {
			t.Logf("%s, %s: %s", c.scenario, c.trouble, e.Sentence)
		}
	}
	if t.Logf("%d of %d", right, total); 10*right < 9*total {
		t.Error("fewer than nine of ten are right")
	}
}

// withDetails has an Asker answer from memory, with details of one in so many executions.
func withDetails(t *testing.T, a *question.Asker, share int) *question.Asker {
	t.Helper()
	var err error
	if a.InMemory, err = a.Index(t.Context(), 1_000_000); err != nil || a.InMemory == nil {
		t.Fatal(a.InMemory, err)
	}
	if a.Details, err = a.ReadDetails(t.Context(), 0, a.InMemory.Len()/share); err != nil || a.Details == nil {
		t.Fatal(a.Details, err)
	}
	return a
}
