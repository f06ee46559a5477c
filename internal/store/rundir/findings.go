package rundir

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// anomalySink collects anomalies for findings.
type anomalySink struct {
	mu  sync.Mutex
	all findings.Collector
}

// Metadata notes the rank of the metadata.
func (s *anomalySink) Metadata(ctx context.Context, key trace.StepKey, _ []provenance.Metadata) error {
	return s.Records(ctx, key, nil, nil)
}

// Records collects the anomalies of a step.
func (s *anomalySink) Records(_ context.Context, key trace.StepKey, anomalies, typical []*provenance.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Add(key.RankKey, anomalies, typical)
	return nil
}

// Findings returns the findings of a run whose records were all written to Sink. It may be
// called once.
func (k *Keeper) Findings(
	o *summary.Outcome, paths []provenance.PathStats, peers *provenance.Peers,
) ([]provenance.Finding, []provenance.Link) {
	s := &k.anomalies
	s.mu.Lock()
	defer s.mu.Unlock()
	result := s.all.Conclude(o, paths, peers)
	slices.SortFunc(result.Links, func(a, b provenance.Link) int { // anomalies arrive in any order of ranks
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.RID, b.RID), cmp.Compare(a.EventID, b.EventID))
	})
	return result.Findings, result.Links
}

// FindFindings finds the findings of a run whose records are all in the store, and stores
// them. The store need not have info yet; FindFindings sets its efficiency.
func (k *Keeper) FindFindings(ctx context.Context, info *provdb.Info) ([]provenance.Finding, error) {
	a, err := query.New(ctx, k.Store, k.Run.Name)
	if err != nil {
		return nil, err
	}
	if a.Run.Info, err = json.Marshal(info); err != nil {
		return nil, err
	}
	if a.Unit = info.Unit; info.Totals.Begin != 0 {
		a.Begin = info.Totals.Begin
	}
	result, err := a.ConcludeWithData(ctx, false)
	if err != nil {
		return nil, err
	}
	if l := ranks.Divide(result.Peers, ranks.Listed(result.Findings)); l != nil {
		info.Efficiency = l.String()
	}
	if len(result.Findings) == 0 {
		return nil, nil
	}
	batch := &provdb.Batch{Findings: result.Findings, Links: result.Links}
	if len(result.Slow) > 0 {
		batch.Peers = result.Peers
	}
	return result.Findings, k.Store.Write(ctx, k.Run.ID, batch)
}
