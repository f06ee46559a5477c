package rundir

import (
	"context"
	"errors"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// StoreSink is an analyzer.RecordSink that writes to a store. All is durable when Finish
// has returned nil.
type StoreSink struct{ buffer *provdb.Buffer }

// NewStoreSink returns a sink that fills the buffer.
func NewStoreSink(b *provdb.Buffer) *StoreSink { return &StoreSink{b} }

// Metadata stores the metadata of a step.
func (s *StoreSink) Metadata(ctx context.Context, key trace.StepKey, facts []provenance.Metadata) error {
	m := provdb.StepMetadata{Program: key.Program, Rank: key.Rank, Step: key.Step, Facts: facts}
	return s.buffer.Add(ctx, &provdb.Batch{Metadata: []provdb.StepMetadata{m}})
}

// Records stores the anomalies and typical executions of a step.
func (s *StoreSink) Records(ctx context.Context, _ trace.StepKey, anomalies, typical []*provenance.Record) error {
	return s.buffer.Add(ctx, &provdb.Batch{Anomalies: anomalies, Typical: typical})
}

// Finish stores the collections over all ranks and waits until all is durable.
func (s *StoreSink) Finish(ctx context.Context, c *provenance.Collections) error {
	batch := &provdb.Batch{
		Functions: c.FuncStats, Counters: c.CounterStats, Models: c.ADModels, Paths: c.PathStats, Findings: c.Findings, Links: c.Links,
		Peers: c.Peers, Breakdown: c.Breakdown,
	}
	if err := s.buffer.Add(ctx, batch); err != nil {
		return err
	}
	return s.buffer.Flush(ctx)
}

// Sinks writes to several sinks.
type Sinks []analyzer.RecordSink

// Metadata stores the metadata of a step.
func (s Sinks) Metadata(ctx context.Context, key trace.StepKey, facts []provenance.Metadata) error {
	var errs []error
	for _, sink := range s {
		errs = append(errs, sink.Metadata(ctx, key, facts))
	}
	return errors.Join(errs...)
}

// Records stores the anomalies and typical executions of a step.
func (s Sinks) Records(ctx context.Context, key trace.StepKey, anomalies, typical []*provenance.Record) error {
	var errs []error
	for _, sink := range s {
		errs = append(errs, sink.Records(ctx, key, anomalies, typical))
	}
	return errors.Join(errs...)
}
