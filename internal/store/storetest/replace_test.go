package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

var replaceTests = []test{
	{"storing a batch twice changes nothing", func(f *fixture) {
		f.write(full(16, 1))
		before := f.counts(f.run)
		f.write(full(16, 1))
		if after := f.counts(f.run); fmt.Sprint(after) != fmt.Sprint(before) {
			f.Errorf("got %v rows, want %v", after, before)
		}
		f.wantBatch(f.run, full(16, 1))
	}},
	{"a changed record replaces the earlier one", func(f *fixture) {
		f.write(full(12, 1))
		b := full(12, 1)
		change := b.Anomalies[7]
		change.Status, change.OutlierScore, change.NodeState, change.AlgoParams = provenance.Withdrawn, 99, nil, json.RawMessage(`{"new": true}`)
		change.CallStack, change.EventWindow.Execs = change.CallStack[:2], change.EventWindow.Execs[3:]
		f.write(records(change))
		f.wantBatch(f.run, b)
	}},
	{"a record moves between collections", func(f *fixture) {
		b := full(12, 1)
		f.write(b)
		moved := b.Anomalies[3]
		f.write(&provdb.Batch{Typical: []*provenance.Record{moved}})
		b.Anomalies, b.Typical = append(b.Anomalies[:3:3], b.Anomalies[4:]...), append(b.Typical, moved)
		f.wantBatch(f.run, b)
		f.write(records(moved))
		f.wantBatch(f.run, full(12, 1))
	}},
	{"provisional anomalies are withdrawn when the run has finished", func(f *fixture) {
		b := full(12, 1)
		b.Anomalies[5].Status = provenance.Provisional
		f.write(b)
		f.update(provdb.Run{ID: f.run, State: provdb.Running, Started: started})
		f.wantBatch(f.run, b)
		f.update(provdb.Run{ID: f.run, State: provdb.Finished, Started: started, Finished: started})
		b.Anomalies[5].Status = provenance.Withdrawn
		f.wantBatch(f.run, b)
	}},
	{"a dropped anomaly is removed", func(f *fixture) {
		b := full(12, 1)
		f.write(b)
		gone := b.Anomalies[5]
		drop := &provenance.Record{PID: gone.PID, RID: gone.RID, EventID: gone.EventID, IOStep: gone.IOStep, Status: provenance.Dropped}
		f.write(records(drop))
		b.Anomalies = append(b.Anomalies[:5:5], b.Anomalies[6:]...)
		f.wantBatch(f.run, b)
		f.write(records(drop)) // again
		f.wantBatch(f.run, b)
	}},
	{"an anomaly that is dropped in its batch is not stored", func(f *fixture) {
		b := full(12, 1)
		last := b.Anomalies[len(b.Anomalies)-1]
		drop := &provenance.Record{PID: last.PID, RID: last.RID, EventID: last.EventID, Status: provenance.Dropped}
		with := full(12, 1)
		with.Anomalies = append(with.Anomalies, drop)
		f.write(with)
		b.Anomalies = b.Anomalies[:len(b.Anomalies)-1]
		f.wantBatch(f.run, b)
	}},
	{"the last duplicate in a batch wins", lastWins},
	{"rejects a batch with a number that is not finite", func(f *fixture) {
		b := full(4, 1)
		b.Anomalies[2].OutlierScore = math.NaN()
		if err := f.store.Write(f.Context(), f.run, b); err == nil || !strings.Contains(err.Error(), b.Anomalies[2].EventID) {
			f.Errorf("got %v, want an error that names %s", err, b.Anomalies[2].EventID)
		}
		b = full(4, 1)
		b.Functions[0].RuntimeProfile.Exclusive.Mean = math.Inf(1)
		if err := f.store.Write(f.Context(), f.run, b); err == nil {
			f.Error("an infinite mean was stored")
		}
		f.wantBatch(f.run, &provdb.Batch{})
	}},
	{"functions and versions may have any number", func(f *fixture) {
		r := Records(1, 1)[0]
		r.FID, r.CallStack[0].FID, r.Version = math.MaxInt64, math.MaxInt64, 1<<40
		f.write(records(r))
		f.wantBatch(f.run, records(r))
	}},
	{"event ids are unique within a program", func(f *fixture) {
		a, b := Records(1, 5)[0], Records(1, 5)[0]
		b.PID = 1
		f.write(records(a))
		f.write(records(b))
		f.wantDocs(f.run, "anomalies", a, b)
	}},
	{"functions, counters and models are replaced", func(f *fixture) {
		f.write(full(10, 1))
		b := full(10, 1)
		for i := range b.Functions {
			b.Functions[i].RuntimeProfile.Inclusive = summary(1e6)
			b.Functions[i].AnomalyMetrics = nil
		}
		b.Counters[3].Stats = summary(-1)
		b.Models[4].Model = json.RawMessage(`{"another": 1}`)
		b.Models[5].Model = nil
		f.write(&provdb.Batch{Functions: b.Functions, Counters: b.Counters, Models: b.Models})
		f.wantBatch(f.run, b)
	}},
	{"metadata is replaced by step", func(f *fixture) {
		f.write(&provdb.Batch{Metadata: []provdb.StepMetadata{
			stepMetadata(0, 0, "a", "b", "c"), stepMetadata(0, 1, "d"),
			stepMetadata(1, 0, "e"),
		}})
		b := &provdb.Batch{Metadata: []provdb.StepMetadata{stepMetadata(0, 0, "f")}}
		f.write(b)
		b.Metadata = append(b.Metadata, stepMetadata(0, 1, "d"), stepMetadata(1, 0, "e"))
		f.wantBatch(f.run, b)
		f.write(&provdb.Batch{Metadata: []provdb.StepMetadata{{Step: 1}}, Counters: counterStats()})
		f.wantBatch(f.run, &provdb.Batch{
			Metadata: []provdb.StepMetadata{stepMetadata(0, 0, "f"), stepMetadata(1, 0, "e")},
			Counters: counterStats(),
		})
	}},
	{"duplicate metadata of a step is kept", func(f *fixture) {
		b := &provdb.Batch{Metadata: []provdb.StepMetadata{stepMetadata(0, 0, "a")}}
		b.Metadata[0].Facts = append(b.Metadata[0].Facts, b.Metadata[0].Facts...)
		f.write(b)
		f.wantBatch(f.run, b)
	}},
	{"a stored batch may be modified", func(f *fixture) {
		memory := json.RawMessage(`{"count": 1}`)
		all, want := Records(2, 1), Records(2, 1)
		for i := range all {
			copy(memory, fmt.Sprintf(`{"count": %d}`, i+1))
			all[i].FID, all[i].Func, all[i].AlgoParams = 1, "f", memory
			want[i].FID, want[i].Func, want[i].AlgoParams = 1, "f", bytes.Clone(memory)
			f.write(records(all[i]))
			all[i].CallStack[0].Func, all[i].EventWindow.Execs[0].EventID = "over", "over"
		}
		f.wantDocs(f.run, "anomalies", toAny(want)...)
	}},
	{"a canceled batch stores nothing", func(f *fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		if err := f.store.Write(ctx, f.run, full(12, 1)); !errors.Is(err, context.Canceled) {
			f.Errorf("got %v, want that the context is canceled", err)
		}
		f.wantBatch(f.run, &provdb.Batch{})
		f.write(full(12, 1))
		f.wantBatch(f.run, full(12, 1))
	}},
	{"a failed batch stores nothing", func(f *fixture) {
		f.write(full(10, 1))
		before := f.counts(f.run)
		bad := full(16, 2)
		bad.Anomalies[12].AlgoParams = json.RawMessage(`{"broken`)
		bad.Anomalies[12].Func = "broken"
		if err := f.store.Write(f.Context(), f.run, bad); err == nil {
			f.Error("a model that is not JSON was stored")
		}
		if after := f.counts(f.run); fmt.Sprint(after) != fmt.Sprint(before) {
			f.Errorf("got %v rows, want %v", after, before)
		}
		f.wantBatch(f.run, full(10, 1))
		good := full(16, 2)
		f.write(good) // refers to functions that were not stored
		good.Anomalies, good.Typical = append(good.Anomalies, full(10, 1).Anomalies...), append(good.Typical, full(10, 1).Typical...)
		f.wantBatch(f.run, good)
	}},
}

func lastWins(f *fixture) {
	first, last := full(4, 1), full(4, 1)
	for i := range first.Anomalies {
		last.Anomalies[i].Hostname = "last"
	}
	for i := range last.Functions {
		last.Functions[i].RuntimeProfile.Inclusive = summary(77)
	}
	for i := range last.Counters {
		last.Counters[i].Stats = summary(78)
	}
	for i := range last.Models {
		last.Models[i].Model = json.RawMessage(`"last"`)
	}
	for i := range last.Metadata {
		last.Metadata[i].Facts = last.Metadata[i].Facts[:1]
	}
	both := full(4, 1)
	both.Merge(last)
	f.write(both)
	f.wantBatch(f.run, last)
}
