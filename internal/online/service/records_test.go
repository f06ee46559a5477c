package service

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// numbers gives functions numbers from 100 on.
type numbers map[string]int

func (n numbers) Number(_ trace.Program, name string) (int, bool) {
	id, ok := n[name]
	if !ok {
		id = 100 + len(n)
		n[name] = id
	}
	return id, true
}

func (n numbers) NewIDs() <-chan struct{} { return nil }

const subject, known = "chimbuko.test.records", "chimbuko.test.known"

// startStream starts a message bus with a stream of records.
func startStream(t *testing.T) (*bus.Stream, *bus.Server) {
	t.Helper()
	server, err := bus.StartServer(t.Context(), bus.ServerOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	conn, err := bus.Connect(bus.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	stream, err := conn.Stream(t.Context(), bus.StreamOptions{Name: "records", Subjects: []string{subject, known}})
	if err != nil {
		t.Fatal(err)
	}
	return stream, server
}

// createRun creates a store with a run.
func createRun(t *testing.T) (provdb.Store, provdb.RunID) {
	t.Helper()
	store, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), duckstore.FileName), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	run, err := store.CreateRun(t.Context(), provdb.Run{Name: "test", State: provdb.Running, Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return store, run
}

func TestRecordsReachStoreThroughBus(t *testing.T) {
	t.Parallel()
	tracetest.SkipShort(t, "starts a server")
	stream, _ := startStream(t)
	store, run := createRun(t)
	p := recordstream.NewPublisher(recordstream.PublisherConfig{
		Run: "test", Subject: subject, Sender: "a-1", Numbers: make(numbers), Reviewing: func() bool { return true },
		MaxBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
	}, stream)
	var publishing sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	publishing.Go(func() { p.Run(ctx) })
	t.Cleanup(func() { stop(); publishing.Wait() })
	all := storetest.Records(40, 1)
	for i, r := range all {
		key := trace.StepKey{RankKey: trace.RankKey{Program: r.PID, Rank: r.RID}, Step: i}
		if err := p.Records(t.Context(), key, []*provenance.Record{r}, nil); err != nil {
			t.Fatal(err)
		}
		if err := p.Metadata(t.Context(), key, []provenance.Metadata{{
			Descr: "Hostname", PID: key.Program, RID: key.Rank,
			Value: fmt.Sprint("node", i),
		}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	summary := &provenance.Collections{
		FuncStats: []provenance.FuncStats{{FID: 100, Name: "f"}}, PathStats: []provenance.PathStats{{
			Node: 1, FID: 100, Func: "f", Calls: 3,
			Exclusive: 4,
		}},
		Peers: &provenance.Peers{Slow: []provenance.SlowPeer{{Pattern: provenance.Always, Ranks: []trace.Rank{3}, Ratio: 1.5}}},
	}
	if err := recordstream.Finish(t.Context(), stream, "test", known, "finish", summary, map[string]int{"answer": 42}); err != nil {
		t.Fatal(err)
	}

	consumer, err := stream.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(consumer.Close)
	var info string
	s := recordstream.NewStorer(consumer, store, run, 10*time.Millisecond, known, func(_ context.Context, text json.RawMessage) error {
		info = string(text)
		return nil
	}, slog.New(slog.DiscardHandler))
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); info != `{"answer":42}` || st.Documents != 2*40+3 || st.Refused != 0 || st.Err != nil {
		t.Errorf("the run ended with %q, %+v", info, st)
	}
	if left, _, err := stream.Pending(t.Context()); left != 0 || err != nil {
		t.Errorf("%d messages are left: %v", left, err)
	}
	f := func(sql, want string) {
		t.Helper()
		rows, err := store.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := rows.Collect(); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, %v; want %s", sql, got, err, want)
		}
	}
	f("SELECT count(*), count(DISTINCT event_id), min(fid) FROM anomalies", "[[40 40 100]]") // with the numbers of the server
	f("SELECT call_path, calls, exclusive_us FROM path_stats", "[[f 3 4]]")
	f("SELECT \"pattern\", (ranks ->> 0)::BIGINT, ratio FROM slow_peers", "[[always 3 1.5]]")
}

func TestStoreEndsAfterMessageBus(t *testing.T) {
	t.Parallel()
	tracetest.SkipShort(t, "starts a server")
	stream, messageBus := startStream(t)
	store, run := createRun(t)
	if err := recordstream.Finish(t.Context(), stream, "test", known, "finish", new(provenance.Collections), nil); err != nil {
		t.Fatal(err)
	}
	consumer, err := stream.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(consumer.Close)
	s := &server{cfg: new(Config), log: slog.New(slog.DiscardHandler), consumer: consumer}
	storer := recordstream.NewStorer(records{consumer, s}, store, run, 0, known, func(context.Context, json.RawMessage) error {
		s.final = new(provdb.Info)
		return messageBus.Close() // its process has read run.json
	}, s.log)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := storer.Run(ctx); err != nil {
		t.Error(err)
	}
}
