package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
)

// fiftyThousand is the number of anomalies of the benchmarks, on 1000 ranks.
const fiftyThousand = 50_000

// large is a store with a finished and a running run, shared by all benchmarks.
var large struct {
	sync.Once
	store provdb.Store
	err   error
}

func openLarge(b *testing.B) provdb.Store {
	b.Helper()
	large.Do(func() {
		ctx := context.WithoutCancel(b.Context())
		if large.store, large.err = duckstore.Open(ctx, filepath.Join(sharedDir, "large.duckdb"), duckstore.Options{}); large.err != nil {
			return
		}
		_, running := fill(ctx, large.store, "running", fiftyThousand)
		id, ended := fill(ctx, large.store, "ended", fiftyThousand)
		if large.err = errors.Join(running, ended); large.err == nil {
			large.err = finish(ctx, large.store, id, "ended")
		}
	})
	if large.err != nil {
		b.Fatal(large.err)
	}
	return large.store
}

// finish ends a run as chimbuko does, with findings and totals.
func finish(ctx context.Context, s provdb.Store, id provdb.RunID, name string) error {
	a, err := query.New(ctx, s, name)
	if err != nil {
		return err
	}
	found, err := a.Conclude(ctx, true)
	if err != nil {
		return err
	}
	if err := s.Write(ctx, id, &provdb.Batch{Findings: found.Findings, Links: found.Links}); err != nil {
		return err
	}
	run := a.Run
	run.State, run.Finished = provdb.Finished, run.Started.Add(time.Hour)
	run.Info = json.RawMessage(`{"settings":{"algorithm":"hbos","min-samples":"30"},"totals":{"begin_us":1700000000000000,"events":41000000,"calls":20000000}}`)
	return s.UpdateRun(ctx, run)
}

// measure requests a path repeatedly and reports the median in milliseconds. fresh starts a new
// server each time.
func measure(b *testing.B, run, path string, fresh bool) {
	store := openLarge(b)
	p := &pipeline{status: someStatus(), reader: store}
	handler := func() http.Handler {
		return dashboard.New(dashboard.Config{Config: insight.Config{Source: p, Run: "running"}})
	}
	h := handler()
	request := func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "http://localhost/api/v1/runs/"+run+path, nil))
		if w.Code != http.StatusOK {
			b.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	request()
	var took []float64
	for b.Loop() {
		if fresh {
			h = handler()
		}
		begin := time.Now()
		request()
		took = append(took, float64(time.Since(begin).Microseconds())/1000)
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "ms-median")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkOverview(b *testing.B) {
	b.Run("ended", func(b *testing.B) { measure(b, "ended", "/overview", false) })
	b.Run("ended-first", func(b *testing.B) { measure(b, "ended", "/overview", true) })
	b.Run("running", func(b *testing.B) { measure(b, "running", "/overview", false) })
	b.Run("running-first", func(b *testing.B) { measure(b, "running", "/overview", true) })
	b.Run("findings", func(b *testing.B) { measure(b, "ended", "/findings", false) })
}

func BenchmarkHeatmap(b *testing.B) {
	b.Run("usual", func(b *testing.B) { measure(b, "ended", "/heatmap", false) })
	b.Run("largest", func(b *testing.B) { measure(b, "ended", "/heatmap?columns=2000&rows=300", false) })
	b.Run("zoomed", func(b *testing.B) { measure(b, "ended", "/heatmap?from=10&to=12&host=node00*&func=MPI_*", false) })
}

func BenchmarkEvidence(b *testing.B) {
	id := storetest.Records(fiftyThousand/2, 1)[fiftyThousand/2-1].EventID
	b.Run("evidence", func(b *testing.B) { measure(b, "ended", "/events/"+id+"/evidence", false) })
	b.Run("running", func(b *testing.B) { measure(b, "running", "/events/"+id+"/evidence", false) })
	b.Run("window", func(b *testing.B) { measure(b, "ended", "/events/"+id+"/window", false) })
	b.Run("functions", func(b *testing.B) { measure(b, "ended", "/functions", false) })
	b.Run("function", func(b *testing.B) { measure(b, "ended", "/functions/0:3", false) })
	b.Run("flame", func(b *testing.B) { measure(b, "ended", "/flame", false) })
	b.Run("search", func(b *testing.B) { measure(b, "ended", "/search?q=mpi", false) })
}

func BenchmarkExplain(b *testing.B) {
	b.Run("all", func(b *testing.B) { measure(b, "ended", "/explain", false) })
	b.Run("box", func(b *testing.B) { measure(b, "ended", "/explain?rank=0-31&from=1&to=5", false) })
	b.Run("function", func(b *testing.B) { measure(b, "ended", "/explain?func=MPI_*", false) })
	b.Run("closely", func(b *testing.B) { measure(b, "ended", "/explain?only=bytes=1000..", false) })
	b.Run("lasso", func(b *testing.B) { measure(b, "ended", "/explain?lasso=0:1,20:1,20:1000000,10:2000,0:1000000", false) })
	// Answers about running runs are not cached.
	b.Run("groups", func(b *testing.B) { measure(b, "running", "/explain/groups?by=rank", false) })
	b.Run("groups-closely", func(b *testing.B) { measure(b, "running", "/explain/groups?by=bytes", false) })
}
