package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// scenes is a store with simulated programs analyzed as by chimbuko analyze: burst, whose waits have
// causes, as a finished run, and the same as burst-live, with records only.
var scenes struct {
	sync.Once
	store provdb.Store
	err   error
}

func openScenes(t testing.TB) provdb.Store {
	t.Helper()
	scenes.Do(func() {
		ctx := context.WithoutCancel(t.Context())
		dir := filepath.Join(sharedDir, "scenes")
		if scenes.store, scenes.err = duckstore.Open(ctx, dir+".duckdb", duckstore.Options{}); scenes.err != nil {
			return
		}
		for _, name := range []string{"burst", "burst-live"} {
			if scenes.err = analyze(ctx, scenes.store, "burst", name); scenes.err != nil {
				return
			}
		}
	})
	if scenes.err != nil {
		t.Fatal(scenes.err)
	}
	return scenes.store
}

// analyze analyzes a built-in scenario into a run, which is finished unless its name ends in -live.
func analyze(ctx context.Context, store provdb.Store, scene, name string) error {
	text, err := scenario.Builtin(scene)
	if err != nil {
		return err
	}
	s, err := scenario.Parse(scene, text)
	if err != nil {
		return err
	}
	var inputs []analyzer.Input
	for _, stream := range simulate.New(s).Streams() {
		inputs = append(inputs, analyzer.Input{
			Path: fmt.Sprintf("%s-%d.bp", stream.ProgramName(), stream.Rank()), Program: stream.Program(),
			Steps: func(*tally.Tally) (trace.Steps, error) { return stream, nil },
		})
	}
	run := provdb.Run{Name: name, State: provdb.Running, Started: time.Unix(1_700_000_000, 0)}
	if run.ID, err = store.CreateRun(ctx, run); err != nil {
		return err
	}
	cfg := analyzer.Default()
	cfg.SpoolDir = sharedDir
	buffer := provdb.NewBuffer(ctx, store, run.ID, time.Minute, 1000)
	res, err := analyzer.New(cfg, rundir.NewStoreSink(buffer), nil).Run(ctx, inputs)
	if err != nil {
		return err
	}
	if err := buffer.Flush(ctx); err != nil || name != scene {
		return err
	}
	all, err := res.Collections()
	if err != nil {
		return err
	}
	if err := store.Write(ctx, run.ID, &provdb.Batch{
		Functions: all.FuncStats, Counters: all.CounterStats, Models: all.ADModels,
		Paths: all.PathStats,
	}); err != nil {
		return err
	}
	info := map[string]any{
		"totals": res.Totals, "review": res.Review, "changes": res.Changes,
		"settings": map[string]string{"algorithm": "tail", "min-samples": "30"},
	}
	if run.Info, err = json.Marshal(info); err != nil {
		return err
	}
	if err := store.UpdateRun(ctx, run); err != nil {
		return err
	}
	a, err := query.New(ctx, store, name)
	if err != nil {
		return err
	}
	found, err := a.Conclude(ctx, true)
	if err != nil {
		return err
	}
	if err := store.Write(ctx, run.ID, &provdb.Batch{Findings: found.Findings, Links: found.Links}); err != nil {
		return err
	}
	run.State, run.Finished = provdb.Finished, run.Started.Add(time.Hour)
	return store.UpdateRun(ctx, run)
}

// scene serves the scenes; the watched run is burst-live.
func scene(t testing.TB, change func(c *dashboard.Config, p *pipeline)) string {
	t.Helper()
	store := openScenes(t)
	at, _ := serve(t, func(c *dashboard.Config, p *pipeline) {
		c.Run, p.reader = "burst-live", store
		p.status = api.Status{Run: api.RunStatus{Name: "burst-live", State: api.Running, Now: time.Unix(1_700_000_100, 0)}}
		if change != nil {
			change(c, p)
		}
	})
	return at + "/api/v1/runs/"
}

// count returns one number of the store.
func count(t testing.TB, store provdb.Store, sql string, args ...any) int64 {
	t.Helper()
	rows, err := store.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := rows.Collect()
	if err != nil || len(all) != 1 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	n, _ := all[0][0].(int64)
	return n
}

// memory keeps labels.
type memory struct {
	mu  sync.Mutex
	all map[string]api.Label
	err error
}

func (m *memory) Labels(context.Context, string) (map[string]api.Label, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.all), m.err
}

func (m *memory) SetLabel(_ context.Context, _ string, l api.Label) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = make(map[string]api.Label)
	}
	m.all[l.Key] = l
	if l.State == api.LabelOpen && l.Note == "" {
		delete(m.all, l.Key)
	}
	return m.err
}
