package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// pipeline is a source with the status that a test sets.
type pipeline struct {
	mu     sync.Mutex
	status api.Status
	err    error
	calls  int
	reader provdb.Reader
}

func (p *pipeline) Status(ctx context.Context) (*api.Status, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.err != nil || ctx.Err() != nil {
		return nil, fmt.Errorf("the bus does not answer: %w", p.err)
	}
	s := p.status
	return &s, nil
}

func (p *pipeline) Reader() provdb.Reader { return p.reader }

func (p *pipeline) set(change func(p *pipeline)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// someStatus has a value in every part.
func someStatus() api.Status {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	return api.Status{
		Run: api.RunStatus{Name: "monday", State: api.Running, Started: now.Add(-time.Minute), Now: now, Version: "v1"},
		Totals: api.Totals{
			Ranks: 3, RanksEnded: 1, RanksExpected: 4, Steps: 30, Events: 4000, Calls: 1900, Anomalies: 7, Functions: 12,
			BytesRead: 1 << 20, RecordsSent: 9, RecordsStored: 8,
		},
		Nodes: []api.Node{{
			Name: "node-a", Host: "nid001", PID: 17, State: api.NodeReading, Connected: now, LastHeard: now, Ranks: 3, StepsRead: 30,
			StepsExchanged: 29,
			Behind:         0.25, Events: 4000, EventKinds: map[string]int64{"function": 3800, "counter": 200}, Calls: 1900, Drops: 2,
			OutboxMessages: 5,
			OutboxBytes:    512,
			Exchange:       api.Latency{Count: 29, Last: 0.002, Mean: 0.25, Max: 0.1}, RSS: 1 << 26, CPU: 3.5,
			Stages:  []api.Stage{{Name: "read", Runs: 30, Seconds: 1.5}, {Name: "judge", Runs: 30, Seconds: 0.5}},
			Tallies: []api.Tally{{Name: "exit-lost", Severity: "repaired", Count: 3, Sentence: "calls whose exit is missing"}},
		}},
		Ranks: []api.Rank{
			{Rank: 0, Host: "nid001", Node: "node-a", Step: 10},
			{Rank: 1, Step: 9, Behind: 2.5, Anomalies: 7},
			{Program: 1, Rank: 0, Ended: true},
		},
		Shards: []api.Shard{{
			Name: "0", Exchanges: 29, Repeated: 1, Latency: api.Latency{Count: 29, Mean: 0.001, P50: 0.0005, P99: 0.02}, Models: 12, Version: 88,
			Snapshot: &api.Snapshot{Age: 3, Duration: 0.1, Bytes: 4096},
		}},
		Store:  &api.StoreStatus{Kind: "duckdb", Records: 8, PendingMessages: 1, PendingBytes: 100, Lag: 0.5, RecordsPerSecond: 2},
		Sender: &api.Sender{Sent: 60, LastStatus: 200, LastSent: now},
		Health: []api.Health{{Part: "store", OK: true, Severity: api.SeverityInfo, Sentence: "records are stored"}},
	}
}

const numRecords = 2500

var shared struct {
	sync.Once
	store provdb.Store
	err   error
}

// filled is a store with a run of some records, monday, and a smaller one, tuesday/two. Tests with
// a server share it and do not write to it.
func filled(t testing.TB) provdb.Store {
	t.Helper()
	tracetest.SkipShort(t, "starts a server")
	shared.Do(func() {
		ctx := context.WithoutCancel(t.Context())
		if shared.store, shared.err = duckstore.Open(ctx, filepath.Join(sharedDir, "store.duckdb"), duckstore.Options{}); shared.err != nil {
			return
		}
		if _, shared.err = fill(ctx, shared.store, "monday", numRecords); shared.err == nil {
			_, shared.err = fill(ctx, shared.store, "tuesday/two", 40)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.store
}

// fill makes a run with n anomalies and a quarter as many typical executions.
func fill(ctx context.Context, s provdb.Store, name string, n int) (provdb.RunID, error) {
	id, err := s.CreateRun(ctx, provdb.Run{
		Name: name, State: provdb.Running, Started: time.Unix(1_700_000_000, 0),
		Info: json.RawMessage(`{"settings":{"workers":2}}`),
	})
	if err != nil {
		return 0, err
	}
	records := storetest.Records(n+n/4, 1)
	b := &provdb.Batch{Anomalies: records[:n:n], Typical: records[n:]}
	for _, r := range b.Typical {
		r.Status, r.LostTime, r.Kind, r.Why = "", 0, "", ""
	}
	for rank := range 3 {
		facts := []provenance.Metadata{
			{RID: records[rank].RID, Descr: "Hostname", Value: "node0000"},
			{RID: records[rank].RID, Descr: "CPU_Type", Value: "a \"fast\" one"},
		}
		b.Metadata = append(b.Metadata, provdb.StepMetadata{Rank: records[rank].RID, Facts: facts})
	}
	seen := make(map[int]bool)
	summary := stats.Summary{Accumulate: 5000, Count: 100, Mean: 50, Minimum: 1, Maximum: 99}
	for _, r := range records {
		if !seen[r.FID] && r.FID%2 == 0 { // half of the functions have no profile
			b.Functions = append(b.Functions, provenance.FuncStats{
				FID: r.FID, Name: r.Func,
				RuntimeProfile: provenance.RuntimeProfile{Exclusive: summary, Inclusive: summary},
			})
			b.Models = append(b.Models, provenance.ADModel{FID: r.FID, Name: r.Func, Model: r.AlgoParams})
		}
		seen[r.FID] = true
	}
	for i := range 3 {
		b.Counters = append(b.Counters, provenance.CounterStats{Name: fmt.Sprintf("counter %d", i), Stats: summary})
	}
	return id, s.Write(ctx, id, b)
}

// serve starts a server; change changes its configuration.
func serve(t testing.TB, change func(c *dashboard.Config, p *pipeline)) (address string, p *pipeline) {
	t.Helper()
	p = &pipeline{status: someStatus(), reader: filled(t)}
	c := dashboard.Config{Config: insight.Config{Source: p, Run: "monday"}, Version: "v1", Tick: 10 * time.Millisecond}
	if change != nil {
		change(&c, p)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(dashboard.New(c))
	t.Cleanup(s.Close)
	return s.URL, p
}

// answer is a response.
type answer struct {
	code   int
	header http.Header
	body   string
}

// do sends a request with headers "Name: value"; a body makes it a POST.
func do(t testing.TB, address, body string, headers ...string) answer {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
		headers = append([]string{"Content-Type: application/json"}, headers...)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if req.Header.Set(name, value); name == "Host" {
			req.Host = value
		}
		if name == "Method" {
			req.Method = value
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// want reads the JSON of an answer that has a status code.
func want[T any](t testing.TB, a answer, code int) (v T) {
	t.Helper()
	if a.code != code {
		t.Fatalf("status %d, want %d: %s", a.code, code, a.body)
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(a.body)))
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return v
}

type object = map[string]any

// page is a list of rows.
type page struct {
	Rows []object
	Next string
}

// fails checks that a request is rejected with a status and a message.
func fails(t testing.TB, a answer, code int, part string) {
	t.Helper()
	p := want[struct{ Error, Hint string }](t, a, code)
	if !strings.Contains(p.Error+"; "+p.Hint, part) || p.Error == "" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s as %s, want a part %q", a.body, a.header.Get("Content-Type"), part)
	}
}

// emptyStore is a store for one test with a server.
func emptyStore(t testing.TB) provdb.Store {
	t.Helper()
	tracetest.SkipShort(t, "starts a server")
	s, err := duckstore.Open(context.WithoutCancel(t.Context()), filepath.Join(t.TempDir(), "store.duckdb"), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
	return s
}
