package paramserver

import (
	"path/filepath"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// streamed has a session send what it has read so far from the live stream of rank 0: steps up to
// to, of which it read the given number, from begin on.
func streamed(t *testing.T, s *State, session, number uint64, from, to uint32, read int, begin trace.Ticks) {
	t.Helper()
	h := summary.Handover{Totals: summary.Totals{Steps: read, Calls: 100 * int64(read), Begin: begin, End: begin + 9}}
	h.Tally.Add(tally.OutOfOrder, int64(read))
	reply := exchangeAt(t, s, &protocol.ExchangeRequest{
		Sender: sender("a", session), Number: number,
		Steps: []*protocol.Steps{{
			From: from, To: to, Stream: &protocol.StreamProgress{Handover: h.AppendBinary(nil), Bytes: 1000 * int64(read)},
		}},
	}, start)
	if reply.GetRefused() != "" {
		t.Fatal(reply.GetRefused())
	}
}

func TestOutcomeIncludesStreamsThatEarlierSessionsRead(t *testing.T) {
	s := newState(t, Config{})
	mustRegister(t, s, "a", 1, 0)
	streamed(t, s, 1, 1, 0, 2, 2, 50)
	streamed(t, s, 1, 2, 2, 3, 3, 50) // so far, not since the last
	mustRegister(t, s, "a", 2, 0)
	streamed(t, s, 2, 1, 3, 10, 4, 90)
	path := filepath.Join(t.TempDir(), "state")
	if _, err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	s = newState(t, Config{})
	if err := s.Restore(path); err != nil {
		t.Fatal(err)
	}
	mustRegister(t, s, "a", 3, 0)
	streamed(t, s, 3, 1, 10, 20, 5, 120)
	h := summary.Handover{
		Totals: summary.Totals{Steps: 6, Calls: 600, Ranks: 1, Begin: 120, End: 140},
		Ranks:  []*summary.RankOutcome{{RankKey: trace.RankKey{Rank: 0}}},
	}
	req := &protocol.OutcomeRequest{Sender: sender("a", 3), Handover: h.AppendBinary(nil), TraceBytes: 6000}
	if reply, err := s.SetOutcome(req, start); err != nil || reply.GetRefused() != "" {
		t.Fatal(err, reply.GetRefused())
	}
	o, err := s.Outcome(s.Models())
	if err != nil {
		t.Fatal(err)
	}
	want := summary.Totals{Steps: 3 + 4 + 6, Calls: 1300, Ranks: 1, Begin: 50, End: 140}
	if o.Totals != want || o.Tally.Count(tally.OutOfOrder) != 3+4 {
		t.Errorf("got %+v and %d repairs, want %+v and 7", o.Totals, o.Tally.Count(tally.OutOfOrder), want)
	}
	if _, size := s.Traces(); size != 13000 {
		t.Errorf("got %d bytes, want 13000", size)
	}
}

func TestMalformedProgressOfStreamIsRefused(t *testing.T) {
	s := newState(t, Config{})
	mustRegister(t, s, "a", 1, 0)
	reply := exchangeAt(t, s, &protocol.ExchangeRequest{
		Sender: sender("a", 1), Number: 1,
		Steps: []*protocol.Steps{{To: 1, Stream: &protocol.StreamProgress{Handover: []byte{1, 2, 3}}}},
	}, start)
	wantText(t, reply.GetRefused(), "rank 0 of program 0")
}
