package callstack_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
)

// BenchmarkActivities builds calls with and without the activities of threads.
func BenchmarkActivities(b *testing.B) {
	const calls = 10_000
	events := make([]trace.Event, 0, 2*calls+2)
	at := trace.Ticks(1 << 40)
	add := func(kind trace.Kind, fn uint32) {
		at += 7
		events = append(events, trace.Event{Kind: kind, ID: fn, Time: at})
	}
	for i := range uint32(calls) / 4 {
		add(trace.Enter, 1)
		for k := range uint32(3) {
			add(trace.Enter, 2+(i+k)%8)
			add(trace.Exit, 2+(i+k)%8)
		}
		add(trace.Exit, 1)
	}
	run := func(name string, r *activity.Recorder) {
		b.Run(name, func(b *testing.B) {
			cfg := callstack.Default(trace.Microsecond)
			cfg.Activities = r
			builder, shifted := callstack.NewBuilder(cfg, nil), make([]trace.Event, len(events))
			s := activity.New(trace.Microsecond)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				copy(shifted, events)
				for i := range shifted {
					shifted[i].Time += trace.Ticks(n) * (at - 1<<40 + 9)
				}
				builder.Begin(n)
				builder.Add(0, shifted)
				builder.Trim()
				if r != nil {
					r.MoveTo(s, trace.RankKey{})
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
		})
	}
	run("without", nil)
	run("with", activity.NewRecorder(trace.Microsecond, func(trace.FuncID) (string, bool) { return "f", true }))
}
