package paramserver

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// start is when the runs of tests begin.
var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func newState(tb testing.TB, cfg Config) *State {
	tb.Helper()
	cfg.Run = "run"
	cfg.Shards = max(cfg.Shards, 1)
	s, err := NewState(cfg, 1)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func sender(node string, session uint64) *protocol.Sender {
	return &protocol.Sender{Version: protocol.Version, Run: "run", Node: node, Session: session}
}

// register claims ranks of program 0.
func register(s *State, node string, session uint64, ranks ...uint32) (*protocol.RegisterReply, error) {
	req := &protocol.RegisterRequest{Sender: sender(node, session), Shards: uint32(s.cfg.Shards)}
	for _, r := range ranks {
		req.Ranks = append(req.Ranks, &protocol.Rank{Rank: r})
	}
	return s.Register(req, start)
}

func mustRegister(tb testing.TB, s *State, node string, session uint64, ranks ...uint32) *protocol.RegisterReply {
	tb.Helper()
	reply, err := register(s, node, session, ranks...)
	if err != nil {
		tb.Fatal(err)
	}
	return reply
}

// numbersOf returns the ids of functions of program 0.
func numbersOf(s *State, names ...string) []uint32 {
	var all []trace.FuncKey
	for _, n := range names {
		all = append(all, trace.FuncKey{Name: n})
	}
	return ids(s, all...)
}

// exchangeAt has a request answered, as both ends see it.
func exchangeAt(tb testing.TB, s *State, req *protocol.ExchangeRequest, now time.Time) *protocol.ExchangeReply {
	tb.Helper()
	b, err := proto.Marshal(req)
	if err != nil {
		tb.Fatal(err)
	}
	a, err := s.Exchange(b, now)
	if err != nil {
		tb.Fatal(err)
	}
	if b, err = a.Encode(); err != nil {
		tb.Fatal(err)
	}
	reply := new(protocol.ExchangeReply)
	if err := proto.Unmarshal(b, reply); err != nil {
		tb.Fatal(err)
	}
	return reply
}

func exchangeOne(tb testing.TB, s *State, req *protocol.ExchangeRequest) *protocol.ExchangeReply {
	tb.Helper()
	return exchangeAt(tb, s, req, start)
}

// steps are those of a rank of program 0.
func steps(rank, from, to uint32) []*protocol.Steps {
	return []*protocol.Steps{{Rank: rank, From: from, To: to}}
}

// modelsOf holds the model of calls that took so long.
func modelsOf(id uint32, times ...int64) []summary.ModelDelta {
	m := summary.ModelDelta{ID: int(id)}
	for _, v := range times {
		m.Model.Learn(v, 0)
	}
	return []summary.ModelDelta{m}
}

func encoded(d summary.Delta) []byte {
	b, _ := d.AppendBinary(nil)
	return b
}

// modelOf is modelsOf in the form of an exchange.
func modelOf(id uint32, times ...int64) []byte {
	return encoded(summary.Delta{Models: modelsOf(id, times...)})
}

// idsOf are the functions of the models in a reply.
func idsOf(reply *protocol.ExchangeReply) map[uint32]bool {
	ids := make(map[uint32]bool)
	for _, m := range reply.GetModels() {
		ids[m.GetId()] = true
	}
	return ids
}

func wantCount(tb testing.TB, s *State, id uint32, want uint64) {
	tb.Helper()
	m := s.Models()[id].Model
	if m.Count() != want {
		tb.Errorf("the model of function %d has %d values, want %d", id, m.Count(), want)
	}
}

func wantText(tb testing.TB, got string, parts ...string) {
	tb.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) || got == "" {
			tb.Errorf("got the text %q, want %q in it", got, p)
		}
	}
}

func wantError(tb testing.TB, err error, parts ...string) {
	tb.Helper()
	if err == nil {
		tb.Errorf("no error, want one with %q", parts)
		return
	}
	wantText(tb, err.Error(), parts...)
}

// contentOf returns the encoded snapshot of a state.
func contentOf(tb testing.TB, s *State) string {
	tb.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.snapshot().message)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}
