package paramserver

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// FuzzExchange checks that a refused request changes nothing, and that a merged one can
// be stored and restored and counts once.
func FuzzExchange(f *testing.F) {
	add := func(req *protocol.ExchangeRequest) {
		b, err := proto.Marshal(req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	add(&protocol.ExchangeRequest{
		Sender: sender("a", 3), Number: 2, Steps: steps(0, 4, 5), Delta: modelOf(1, 5, 70), Known: 1, Epoch: 1,
		Flush: true,
	})
	add(&protocol.ExchangeRequest{Sender: sender("a", 3), Number: 1, Steps: steps(0, 0, 1)})
	add(&protocol.ExchangeRequest{Sender: sender("a", 2), Number: 2})
	add(&protocol.ExchangeRequest{Sender: sender("", 0), Flush: true})
	add(&protocol.ExchangeRequest{Sender: sender("a", 3), Number: 2, Delta: encoded(summary.Delta{
		Functions: []summary.FunctionStats{{ID: 1, Exclusive: *sumsOf(3)}},
		Ranks:     []summary.RankDelta{{RankKey: trace.RankKey{Rank: math.MinInt32}, Anomalies: *sumsOf(1)}},
		Counters:  []summary.Counter{{FuncKey: trace.FuncKey{Name: "\xff"}, Values: *sumsOf(1 << 63)}},
		Steps:     []summary.StepReport{{RankKey: trace.RankKey{Rank: 1}, Step: math.MinInt32, Scores: stats.RunStats{N: 1e300, M4: 1e300}}},
	})})
	add(&protocol.ExchangeRequest{Sender: sender("a", 3), Number: 2, Delta: encoded(summary.Delta{Paths: pathsOf(1,
		callpath.Entry{Parent: -1, Func: 1, Sums: callpath.Sums{Calls: 1}},
		callpath.Entry{Func: 0, Sums: callpath.Sums{Calls: 1 << 63, Exclusive: 1 << 63}},
		callpath.Entry{Func: callpath.Other, Sums: callpath.Sums{Calls: 5}},
		callpath.Entry{Parent: 2, Func: 1, Sums: callpath.Sums{Calls: 2}})})})
	busy := busyState(f)
	var base []byte
	if _, err := busy.saveWith(func(b []byte) error { base = b; return nil }); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := successor(busy, base)
		if err != nil {
			t.Fatal(err)
		}
		before := contentOf(t, s)
		a, err := s.Exchange(data, start)
		after := contentOf(t, s)
		generated := new(protocol.ExchangeRequest)
		if parsed := proto.Unmarshal(data, generated); err == nil && a.GetLast() == 2 && parsed != nil {
			t.Errorf("accepted, but the generated reader returns %v", parsed)
		}
		if err != nil || a.GetRefused() != "" || a.GetUnknown() {
			if before != after {
				t.Fatalf("error %v, answer %v, but the state has changed", err, a)
			}
			return
		}
		if (a.GetLast() == 2) != (generated.GetNumber() == 2 && generated.GetSender().GetNode() == "a") {
			t.Errorf("exchange %d of %v, but the server has %d", generated.GetNumber(), generated.GetSender(), a.GetLast())
		}
		if _, err := a.Encode(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Exchange(data, start); err != nil {
			t.Fatal(err)
		}
		if contentOf(t, s) != after {
			t.Fatal("sent again it counts again")
		}
		var stored []byte
		if _, err := s.saveWith(func(b []byte) error { stored = b; return nil }); err != nil {
			t.Fatal(err)
		}
		next, err := successor(s, stored)
		if err != nil || contentOf(t, next) != after {
			t.Fatalf("what was taken cannot be restored: %v", err)
		}
	})
}

// FuzzSnapshot checks that a snapshot is refused, or restored and stored again
// unchanged.
func FuzzSnapshot(f *testing.F) {
	f.Add([]byte(contentOf(f, busyState(f))))
	empty := newState(f, Config{})
	f.Add([]byte(contentOf(f, empty)))
	numbersOf(empty, "solve", "send")
	f.Fuzz(func(t *testing.T, data []byte) {
		m := new(protocol.Snapshot)
		if proto.Unmarshal(data, m) != nil {
			return
		}
		s, err := NewState(empty.cfg, 1)
		if err != nil {
			t.Fatal(err)
		}
		if s.restore(m) != nil {
			return
		}
		content := contentOf(t, s)
		next := new(protocol.Snapshot)
		if err := proto.Unmarshal([]byte(content), next); err != nil {
			t.Fatal(err)
		}
		again, err := NewState(s.cfg, 2)
		if err == nil {
			err = again.restore(next)
		}
		if err != nil || contentOf(t, again) != content {
			t.Fatalf("stored again it is another: %v", err)
		}
		s.Tick(start)
		register(s, "a", 9, 0)  //nolint:errcheck // it may be too late
		s.Exchange(data, start) //nolint:errcheck // it is hardly a request
	})
}
