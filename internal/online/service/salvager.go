package service

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/online/paramserver"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// salvageAtOnce is how many records of lost analyzers are sent in a message.
const salvageAtOnce = 100

// salvager reviews anomalies in a store that no analyzer has, each once, and sends them
// on in batches.
type salvager struct {
	review *analyzer.Salvage
	lost   map[programRank]bool // all of whose anomalies are reviewed
	send   func(n int, batch []*provenance.Record) error

	seen  map[programEvent]bool // that were reviewed
	batch []*provenance.Record
	sent  int
}

// programRank and programEvent are those of one of several programs.
type (
	programRank struct {
		trace.Program
		trace.Rank
	}
	programEvent struct {
		trace.Program
		id string
	}
)

// newSalvager returns one for what is provisional, and for all of lost ranks. Batches
// are numbered from 1 on.
func newSalvager(review *analyzer.Salvage, lost []paramserver.RankReport, send func(n int, batch []*provenance.Record) error) *salvager {
	v := &salvager{review: review, lost: make(map[programRank]bool), send: send, seen: make(map[programEvent]bool)}
	for _, r := range lost {
		v.lost[programRank{r.Program, r.Rank}] = true
	}
	return v
}

// run reviews what a store has, which ask asks, from the begin when its answer was cut.
func (v *salvager) run(ctx context.Context, ask func(context.Context, func(*query.Asker) error) error) error {
	var failed error // by which the store is not asked again
	err := ask(ctx, func(a *query.Asker) error {
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

// take reviews a record, if that is to be done.
func (v *salvager) take(doc json.RawMessage) error {
	r := new(provenance.Record)
	if err := json.Unmarshal(doc, r); err != nil {
		return fmt.Errorf("a record in the store: %w", err)
	}
	event := programEvent{r.PID, r.EventID}
	if v.seen[event] || r.Status != provenance.Provisional && !v.lost[programRank{r.PID, r.RID}] {
		return nil
	}
	v.seen[event] = true
	v.review.Add(r)
	if v.batch = append(v.batch, r); len(v.batch) == salvageAtOnce {
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
