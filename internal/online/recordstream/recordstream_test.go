package recordstream_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

const (
	subject = "chimbuko.test.records"
	known   = "chimbuko.test.known"
)

// numbers gives functions numbers from 100 on when it is allowed to.
type numbers struct {
	mu      sync.Mutex
	ids     map[string]int
	allowed bool
	more    chan struct{}
}

func newNumbers(allowed bool) *numbers {
	return &numbers{ids: make(map[string]int), allowed: allowed, more: make(chan struct{})}
}

func (n *numbers) Number(_ trace.Program, name string) (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.allowed {
		return 0, false
	}
	id, ok := n.ids[name]
	if !ok {
		id = 100 + len(n.ids)
		n.ids[name] = id
	}
	return id, true
}

func (n *numbers) NewIDs() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.more
}

func (n *numbers) allow() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.allowed = true
	close(n.more)
}

// memory is a stream that keeps messages in memory, and fails for a while.
type memory struct {
	mu        sync.Mutex
	failures  int
	messages  []bus.Message
	ids       map[string]bool
	delivered uint64 // by Fetch
}

func (m *memory) Publish(_ context.Context, subject, id string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failures > 0 {
		m.failures--
		return bus.ErrNotConnected
	}
	if m.ids == nil {
		m.ids = make(map[string]bool)
	}
	if !m.ids[id] {
		m.ids[id] = true
		m.messages = append(m.messages, bus.Message{Subject: subject, ID: id, Data: data, Seq: uint64(len(m.messages) + 1)})
	}
	return nil
}

func config(n recordstream.IDs, reviewing bool) recordstream.PublisherConfig {
	return recordstream.PublisherConfig{
		Run: "test", Subject: subject, Sender: "a-1", Numbers: n, Reviewing: func() bool { return reviewing },
		MaxBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
	}
}

// start runs a publisher until the test ends.
func start(t *testing.T, p *recordstream.Publisher) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
}

func TestPublisherRetriesUntilStreamAccepts(t *testing.T) {
	t.Parallel()
	m := &memory{failures: 3}
	p := recordstream.NewPublisher(config(newNumbers(true), true), m)
	start(t, p)
	if err := p.Records(t.Context(), trace.StepKey{}, storetest.Records(2, 1), nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := p.Stats(); len(m.messages) != 1 || st.Sent != 2 || st.Messages != 0 || st.Bytes != 0 || st.Err != nil {
		t.Errorf("%d messages, %+v", len(m.messages), st)
	}
}

func TestRecordsWaitForFunctionNumbers(t *testing.T) {
	t.Parallel()
	m, names := new(memory), newNumbers(false)
	p := recordstream.NewPublisher(config(names, true), m)
	start(t, p)
	if err := p.Records(t.Context(), trace.StepKey{}, storetest.Records(1, 1), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without numbers: %v", err)
	}
	names.allow()
	if err := p.Flush(t.Context()); err != nil || len(m.messages) != 1 {
		t.Errorf("%d messages, %v", len(m.messages), err)
	}
}

func TestStepLargerThanStreamIsSplit(t *testing.T) {
	tracetest.SkipShort(t, "starts a server")
	server, err := bus.StartServer(t.Context(), bus.ServerOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // nothing is kept
	conn, err := bus.Connect(bus.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := conn.Stream(t.Context(), bus.StreamOptions{Name: "S", Subjects: []string{subject}, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	p := recordstream.NewPublisher(config(newNumbers(true), true), stream)
	start(t, p)
	var records []*provenance.Record
	for i := range 400 { // of about 10 kB each
		records = append(records, &provenance.Record{EventID: fmt.Sprintf("0:1:%d", i), Func: fmt.Sprintf("%010000d", i)})
	}
	huge := &provenance.Record{EventID: "0:1:1000", Func: strings.Repeat("h", 2<<20)}
	key := trace.StepKey{RankKey: trace.RankKey{Rank: 1}}
	if err := errors.Join(p.Records(t.Context(), key, records, nil),
		p.Records(t.Context(), key, nil, []*provenance.Record{huge})); err != nil {
		t.Fatal(err)
	}
	consumer, err := stream.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for p.Stats().Delayed == 0 { // without a consumer until the stream is full
		<-again.C
	}
	for p.Stats().Messages > 0 {
		messages, err := consumer.Fetch(t.Context(), 100, 10*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(messages); n > 0 {
			err = consumer.Ack(t.Context(), messages[n-1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if st := p.Stats(); st.Sent != 400 || st.TooLarge != 1 || st.Delayed == 0 || st.Delayed > 64 { // messages
		t.Errorf("after all: %+v", st)
	}
}

func TestReviewSupersedesRecordsThatWait(t *testing.T) {
	t.Parallel()
	m := new(memory)
	p := recordstream.NewPublisher(config(newNumbers(true), true), m) // without Run
	for step := range 10 {
		key := trace.StepKey{Step: step}
		if err := errors.Join(p.Records(t.Context(), key, storetest.Records(3, 1), nil),
			p.Metadata(t.Context(), key, []provenance.Metadata{{Descr: "Hostname"}})); err != nil {
			t.Fatal(err)
		}
	}
	p.Supersede()
	if err := p.Records(t.Context(), trace.StepKey{}, storetest.Records(2, 1), nil); err != nil {
		t.Fatal(err)
	}
	start(t, p)
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := p.Stats(); len(m.messages) != 10+1 || st.Sent != 2 || st.Messages != 0 || st.Bytes != 0 || st.Deferred != 0 {
		t.Errorf("%d messages, %+v", len(m.messages), st)
	}
}

func TestRecordsWithoutRoomWaitForReview(t *testing.T) {
	t.Parallel()
	cfg := config(newNumbers(true), false)
	cfg.MaxBytes = 10_000
	p := recordstream.NewPublisher(cfg, new(memory)) // without Run
	for range 100 {
		if err := p.Records(t.Context(), trace.StepKey{}, storetest.Records(1, 1), nil); err != nil {
			t.Fatal(err)
		}
	}
	if st := p.Stats(); st.Deferred+st.Messages != 100 || st.Deferred == 0 || st.Bytes > 20_000 {
		t.Errorf("%+v", st)
	}
	cfg.Reviewing = func() bool { return true }
	full := recordstream.NewPublisher(cfg, new(memory))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var err error
	for err == nil {
		err = full.Records(ctx, trace.StepKey{}, storetest.Records(1, 1), nil)
	}
	if !errors.Is(err, context.DeadlineExceeded) || full.Stats().Deferred != 0 {
		t.Errorf("in the review: %v, %+v", err, full.Stats())
	}
}
