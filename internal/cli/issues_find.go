package cli

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// anomalySink gathers what is needed of anomalies to tell culprits from victims.
type anomalySink struct {
	mu  sync.Mutex
	run blame.Run
}

// Metadata keeps nothing.
func (s *anomalySink) Metadata(context.Context, analyzer.StepKey, []provenance.Metadata) error {
	return nil
}

// Records gathers the anomalies of a step.
func (s *anomalySink) Records(_ context.Context, _ analyzer.StepKey, anomalies, _ []*provenance.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range anomalies {
		s.run.Add(r)
	}
	return nil
}

// conclude finds out what is wrong with the run, which has ended.
func (s *anomalySink) conclude(o *summary.Outcome) ([]provenance.Issue, []provenance.Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run.Begin = o.Totals.Begin
	found := blame.Conclude(&s.run, blame.Find(&s.run), o.Changes)
	s.run = blame.Run{}
	return found.Issues, found.Links
}

// findOut finds out what is wrong with a run whose records are all in the store,
// and stores it. info is what is known of the run, which the store need not know yet.
func (k *keeper) findOut(ctx context.Context, sum *provdb.Info, info json.RawMessage) ([]provenance.Issue, error) {
	a, err := query.New(ctx, k.store, k.run.Name)
	if err != nil {
		return nil, err
	}
	a.Run.Info = info
	if sum.Totals.Begin != 0 {
		a.Begin = sum.Totals.Begin
	}
	found, err := a.Findings(ctx, false)
	if err != nil || len(found.Issues) == 0 {
		return nil, err
	}
	return found.Issues, k.store.Write(ctx, k.run.ID, &provdb.Batch{Issues: found.Issues, Links: found.Links})
}
