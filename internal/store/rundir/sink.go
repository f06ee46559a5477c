package rundir

import (
	"context"
	"errors"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// StoreSink hands what is kept to a store. It is an analyzer.RecordSink; what it
// was given is durable when Finish has returned nil.
type StoreSink struct{ buffer *provdb.Buffer }

// NewStoreSink returns a sink that fills the buffer.
func NewStoreSink(b *provdb.Buffer) *StoreSink { return &StoreSink{b} }

// Metadata stores the facts that appeared in a step.
func (s *StoreSink) Metadata(ctx context.Context, key analyzer.StepKey, found []provenance.Metadata) error {
	return s.buffer.Add(ctx, &provdb.Batch{Metadata: []provdb.StepMetadata{{
		Program: key.Program, Rank: key.Rank, Step: key.Step,
		Facts: found,
	}}})
}

// Records stores the anomalies and typical executions of a step.
func (s *StoreSink) Records(ctx context.Context, _ analyzer.StepKey, anomalies, typical []*provenance.Record) error {
	return s.buffer.Add(ctx, &provdb.Batch{Anomalies: anomalies, Typical: typical})
}

// Finish stores what is known over all ranks and waits until all is durable.
func (s *StoreSink) Finish(ctx context.Context, c *provenance.Collections) error {
	batch := &provdb.Batch{
		Functions: c.FuncStats, Counters: c.CounterStats, Models: c.ADModels, Paths: c.PathStats, Issues: c.Issues,
		Links: c.Links,
	}
	if err := s.buffer.Add(ctx, batch); err != nil {
		return err
	}
	return s.buffer.Flush(ctx)
}

// Sinks hands what is kept to several sinks.
type Sinks []analyzer.RecordSink

// Metadata stores the facts that appeared in a step.
func (s Sinks) Metadata(ctx context.Context, key analyzer.StepKey, found []provenance.Metadata) error {
	var errs []error
	for _, sink := range s {
		errs = append(errs, sink.Metadata(ctx, key, found))
	}
	return errors.Join(errs...)
}

// Records stores the anomalies and typical executions of a step.
func (s Sinks) Records(ctx context.Context, key analyzer.StepKey, anomalies, typical []*provenance.Record) error {
	var errs []error
	for _, sink := range s {
		errs = append(errs, sink.Records(ctx, key, anomalies, typical))
	}
	return errors.Join(errs...)
}
