package service

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// salvageBatch is the number of records per batch.
const salvageBatch = 100

// salvager reviews the anomalies in a store that no analyzer has reviewed, each once, and
// sends them in batches.
type salvager struct {
	review *analyzer.Salvage
	lost   map[trace.RankKey]bool // ranks whose anomalies are all reviewed
	send   func(n int, batch []*provenance.Record) error

	seen  map[trace.EventKey]bool // reviewed events
	batch []*provenance.Record
	sent  int
}

// newSalvager returns a salvager for provisional anomalies and for all anomalies of lost ranks. It
// calls send with the number of each batch, starting at 1.
func newSalvager(review *analyzer.Salvage, lost []trace.RankKey, send func(n int, batch []*provenance.Record) error) *salvager {
	v := &salvager{review: review, lost: make(map[trace.RankKey]bool), send: send, seen: make(map[trace.EventKey]bool)}
	for _, r := range lost {
		v.lost[r] = true
	}
	return v
}

// run reviews the anomalies of the store. withStore may call its function again after a failure.
func (v *salvager) run(ctx context.Context, ask func(context.Context, func(*query.Queries) error) error) error {
	var failed error // of take: do not query again
	err := ask(ctx, func(a *query.Queries) error {
		for doc, err := range a.Documents(ctx, "anomalies") {
			if err != nil {
				return err
			}
			if failed = v.take(doc); failed != nil {
				return nil
			}
		}
		return nil
	})
	if err == nil {
		err = failed
	}
	if err == nil && len(v.batch) > 0 {
		err = v.flush()
	}
	return err
}

// take reviews a record, if needed.
func (v *salvager) take(doc json.RawMessage) error {
	r := new(provenance.Record)
	if err := json.Unmarshal(doc, r); err != nil {
		return fmt.Errorf("a record in the store: %w", err)
	}
	event := trace.EventKey{Program: r.PID, ID: r.EventID}
	if v.seen[event] || r.Status != provenance.Provisional && !v.lost[trace.RankKey{Program: r.PID, Rank: r.RID}] {
		return nil
	}
	v.seen[event] = true
	v.review.Add(r)
	if v.batch = append(v.batch, r); len(v.batch) == salvageBatch {
		return v.flush()
	}
	return nil
}

func (v *salvager) flush() error {
	v.sent++
	err := v.send(v.sent, v.batch)
	v.batch = nil
	return err
}
