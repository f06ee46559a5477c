package recordstream_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
)

// Fetch and Ack make memory the other end of the stream, too.
func (m *memory) Fetch(ctx context.Context, most int, _ time.Duration) ([]bus.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	fresh := m.messages
	for len(fresh) > 0 && fresh[0].Seq <= m.delivered {
		fresh = fresh[1:]
	}
	if fresh = fresh[:min(most, len(fresh))]; len(fresh) > 0 {
		m.delivered = fresh[len(fresh)-1].Seq
	}
	return slices.Clone(fresh), nil
}

func (m *memory) Ack(_ context.Context, last bus.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.messages) > 0 && m.messages[0].Seq <= last.Seq {
		m.messages = m.messages[1:]
	}
	return nil
}

// flaky is a writer that fails at first.
type flaky struct {
	provdb.Writer
	mu       sync.Mutex
	failures int
	failed   func() // nil for nothing
	err      error  // nil for errFull
	stored   int
	peers    *provenance.Peers // the last
}

var errFull = errors.New("the disk is full")

func (f *flaky) Write(_ context.Context, _ provdb.RunID, b *provdb.Batch) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures > 0 {
		f.failures--
		if f.failed != nil {
			f.failed()
		}
		return cmp.Or(f.err, errFull)
	}
	f.stored += b.Len()
	f.peers = cmp.Or(b.Peers, f.peers)
	return nil
}

// send fills a stream with one message for each of the records.
func send(t *testing.T, m *memory, records []*provenance.Record) {
	t.Helper()
	p := recordstream.NewPublisher(config(newNumbers(true), true), m)
	start(t, p)
	for _, r := range records {
		if err := p.Records(t.Context(), trace.StepKey{}, []*provenance.Record{r}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := recordstream.Finish(t.Context(), m, "test", known, "finish", new(provenance.Collections), 1); err != nil {
		t.Fatal(err)
	}
}

func store(t *testing.T, m *memory, w provdb.Writer) *recordstream.Storer {
	t.Helper()
	s := recordstream.NewStorer(m, w, 1, time.Millisecond, known, func(context.Context, json.RawMessage) error { return nil },
		slog.New(slog.DiscardHandler))
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMessageStaysInStreamUntilStored(t *testing.T) {
	t.Parallel()
	m, w := new(memory), &flaky{failures: 2}
	send(t, m, storetest.Records(5, 1))
	s := store(t, m, w)
	if st := s.Stats(); w.stored != 5 || st.Documents != 5 || len(m.messages) != 0 {
		t.Errorf("%d documents stored, %+v, %d messages left", w.stored, st, len(m.messages))
	}
}

func TestHurryingStorerDoesNotGather(t *testing.T) {
	t.Parallel()
	m, w := new(memory), new(flaky)
	send(t, m, storetest.Records(5, 1))
	s := recordstream.NewStorer(m, w, 1, time.Hour, known, func(context.Context, json.RawMessage) error { return nil },
		slog.New(slog.DiscardHandler))
	s.Hurry()
	s.Hurry()
	if err := s.Run(t.Context()); err != nil || w.stored != 5 {
		t.Errorf("%d documents stored, %v; want 5", w.stored, err)
	}
}

func TestFailingStoreIsReported(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	m := new(memory)
	send(t, m, storetest.Records(1, 1))
	ctx, cancel := context.WithCancel(t.Context())
	s := recordstream.NewStorer(m, &flaky{failures: 1, failed: cancel}, 1, time.Millisecond, known, nil, slog.New(slog.DiscardHandler))
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was canceled", err)
	}
	if st := s.Stats(); !errors.Is(st.Err, errFull) || st.ErrAt.Before(begin) || st.ErrAt.After(time.Now()) {
		t.Errorf("%+v, want %v", st, errFull)
	}
}

func TestStorerReturnsErrBroken(t *testing.T) {
	t.Parallel()
	m := new(memory)
	send(t, m, storetest.Records(1, 1))
	before := len(m.messages)
	s := recordstream.NewStorer(m, &flaky{failures: 1, err: provdb.ErrBroken}, 1, time.Millisecond, known, nil, slog.New(slog.DiscardHandler))
	if err := s.Run(t.Context()); !errors.Is(err, provdb.ErrBroken) {
		t.Errorf("%v, want %v", err, provdb.ErrBroken)
	}
	if len(m.messages) != before {
		t.Errorf("%d messages wait, want %d", len(m.messages), before)
	}
}

func TestInvalidMessageDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	m, w := new(memory), new(flaky)
	m.messages = []bus.Message{{ID: "rubbish", Data: []byte("rubbish"), Seq: 1}}
	records := storetest.Records(5, 1)
	records[3].PID = 1 << 31
	send(t, m, records)
	s := store(t, m, w)
	if st := s.Stats(); st.Refused != 2 || w.stored != 4 {
		t.Errorf("%d stored, %+v; want 4 and 2 refused", w.stored, st)
	}
}

func TestAnalyzerCannotPublishRunLevelData(t *testing.T) {
	t.Parallel()
	m, w := new(memory), new(flaky)
	summary := &provenance.Collections{FuncStats: []provenance.FuncStats{{FID: 1, Name: "f"}}}
	forged := errors.Join(
		recordstream.Finish(t.Context(), m, "test", subject, "end", new(provenance.Collections), 1),
		recordstream.Finish(t.Context(), m, "test", subject, "functions", summary, nil),
		recordstream.SendPaths(t.Context(), m, "test", subject, "paths", []provenance.PathStats{{Node: 1, Func: "f"}}),
		recordstream.SendPeers(t.Context(), m, "test", subject, "peers", &provenance.Peers{Loads: make([]provenance.RankLoad, 1)}),
		recordstream.SendBreakdown(t.Context(), m, "test", subject, "breakdown", &provenance.Breakdown{Clocks: make([]provenance.RankClock, 1)}))
	if forged != nil {
		t.Fatal(forged)
	}
	send(t, m, storetest.Records(5, 1))
	s := store(t, m, w)
	if st := s.Stats(); st.Refused != 5 || w.stored != 5 {
		t.Errorf("%d stored, %+v; want 5 and 5 refused", w.stored, st)
	}
}

// narrow is a stream of messages of a limited size.
type narrow struct {
	*memory
	limit int
}

func (n *narrow) Publish(ctx context.Context, subject, id string, data []byte) error {
	if len(data) > n.limit {
		return bus.ErrTooLarge
	}
	return n.memory.Publish(ctx, subject, id, data)
}

func TestPeersThatAreTooLargeLoseWindows(t *testing.T) {
	t.Parallel()
	load := func(tid int64) provenance.RankLoad {
		l := provenance.RankLoad{TID: tid}
		for i := range 100 {
			l.Windows = append(l.Windows, provenance.LoadWindow{From: float64(i)})
		}
		return l
	}
	peers := &provenance.Peers{Loads: []provenance.RankLoad{load(provenance.AllThreads), load(0), load(1)}}
	peers.Activity = make([]byte, 2000)
	for limit, want := range map[int]string{100_000: "100 100 100 2000", 15_000: "100 0 0 2000", 5000: "0 0 0 2000", 2500: "0 0 0 0"} {
		m, w := new(memory), new(flaky)
		if err := recordstream.SendPeers(t.Context(), &narrow{m, limit}, "test", known, "peers", peers); err != nil {
			t.Fatal(err)
		}
		send(t, m, nil)
		store(t, m, w)
		got := ""
		for _, l := range w.peers.Loads {
			got += fmt.Sprintf("%d ", len(l.Windows))
		}
		if got += strconv.Itoa(len(w.peers.Activity)); got != want {
			t.Errorf("limit %d: got %s windows, want %s", limit, got, want)
		}
	}
	if err := recordstream.SendPeers(t.Context(), &narrow{new(memory), 100}, "test", known, "peers", peers); !errors.Is(err, bus.ErrTooLarge) {
		t.Errorf("got %v, want %v", err, bus.ErrTooLarge)
	}
	if len(peers.Loads[0].Windows) != 100 {
		t.Error("the peers were changed")
	}
}

func FuzzStorer(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{8, 1, 50, 2, '{', '}'})
	f.Add([]byte{8, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, w := new(memory), new(flaky)
		m.messages = []bus.Message{{ID: "fuzzed", Data: data, Seq: 1}}
		if err := recordstream.Finish(t.Context(), m, "test", known, "finish", new(provenance.Collections), 1); err != nil {
			t.Fatal(err)
		}
		store(t, m, w)
		if len(m.messages) != 0 {
			t.Error("the message is stuck")
		}
	})
}
