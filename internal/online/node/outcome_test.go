package node

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestAnalyzerEndsAfterLastReplyIsLost has services that ended the run with the results of
// an analyzer, which got no reply and has no access to the run directory.
func TestAnalyzerEndsAfterLastReplyIsLost(t *testing.T) {
	t.Parallel()
	tracetest.SkipShort(t, "starts a server")
	server, err := bus.StartServer(t.Context(), bus.ServerOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	services, err := bus.Connect(bus.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(services.Close)
	_, err = services.Stream(t.Context(), bus.StreamOptions{Name: recordstream.Name("run"), Subjects: []string{recordstream.RecordSubject("run")}})
	if err != nil {
		t.Fatal(err)
	}

	log := slog.New(slog.DiscardHandler)
	cfg := &Config{Bus: Bus{Options: bus.Options{URL: server.URL()}}, Dir: t.TempDir(), Run: "run", Node: "n0", Log: log}
	r := &node{cfg: cfg, streams: streams{cfg: cfg}}
	r.traces.Store(new([]string))
	r.conn = &connector{bus: &cfg.Bus, dir: cfg.Dir, name: "analyzer n0", log: log, run: "run"}
	if err := r.conn.reconnect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.conn.conn.Close() })
	r.client = paramclient.New(paramclient.Config{Run: "run", Node: "n0", Shards: 1, Timeout: time.Minute, Log: log}, r.conn)
	if err := r.conn.Publish(t.Context(), recordstream.RecordSubject("run"), "id", []byte("record")); err != nil {
		t.Fatal(err)
	}
	results := &analyzer.Result{Outcome: new(summary.Outcome)}

	short, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if err := r.sendOutcome(short, results); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the run continues without services: %v", err)
	}
	if err := services.DeleteStream(t.Context(), recordstream.Name("run")); err != nil {
		t.Fatal(err)
	}
	if err := r.sendOutcome(t.Context(), results); err != nil {
		t.Errorf("after the run has ended: %v", err)
	}
}
