package query_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/cputime"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// BenchmarkCopyDuckDB measures queries over a run in memory.
func BenchmarkCopyDuckDB(b *testing.B) {
	ctx := context.WithoutCancel(b.Context())
	a := largeDuck.open(b, func() (provdb.Store, error) {
		return duckstore.Open(ctx, filepath.Join(dir, duckstore.FileName), duckstore.Options{})
	})
	begin, used := time.Now(), cputime.OfProcess()
	var err error
	if a.Memory, err = a.Copy(ctx, executions.MaxCached); err != nil {
		b.Fatal(err)
	}
	b.Logf("copy: %v, processor %v", time.Since(begin), cputime.OfProcess()-used)
	begin, used = time.Now(), cputime.OfProcess()
	if err := a.ForExplain(ctx, 1); err != nil {
		b.Fatal(err)
	}
	b.Logf("details: %v, processor %v", time.Since(begin), cputime.OfProcess()-used)
	kept, err := a.Counts(ctx, 0)
	if err != nil {
		b.Fatal(err)
	}
	extent := kept.End - a.Begin
	ranks, err := a.Ranks(ctx, 1_000_000)
	if err != nil {
		b.Fatal(err)
	}
	lines := make(map[trace.RankKey]int)
	for i, r := range ranks {
		lines[r.RankKey] = i * 50 / len(ranks)
	}
	f, err := a.Function(ctx, "*relax_22*", nil)
	if err != nil {
		b.Fatal(err)
	}
	id := someEvent(b, a)
	since, until := extent/2, extent/2+extent/20
	for _, q := range []struct {
		name string
		ask  func() error
	}{
		{"heatmap", func() error {
			_, err := a.Timeline(ctx, executions.Timeline{To: extent, Columns: 300, Lines: lines})
			return err
		}},
		{"heatmap-6%", func() error {
			_, err := a.Timeline(ctx, executions.Timeline{From: since, To: until, Columns: 300, Lines: lines})
			return err
		}},
		{"strip", func() error { _, err := a.Timeline(ctx, executions.Timeline{To: extent, Columns: 120}); return err }},
		{"points", func() error { _, err := a.PointsOfFunction(ctx, f, 500); return err }},
		{"typical", func() error { _, err := a.TypicalPoints(ctx, f, 500); return err }},
		{"ranks", func() error { _, err := a.RankLosses(ctx, f, 20); return err }},
		{"path-losses", func() error { _, err := a.PathLosses(ctx, f, 20); return err }},
		{"functions", func() error {
			_, err := a.FunctionTable(ctx, query.FunctionTable{Order: "lost", Limit: 50})
			return err
		}},
		{"evidence", func() error { _, _, _, _, err := a.EventWithTwin(ctx, id, nil); return err }},
		{"event", func() error { _, err := a.Event(ctx, id, nil); return err }},
		{"related", func() error { _, err := a.Related(ctx, 0, id); return err }},
		{"list", func() error {
			rows, err := a.Executions(ctx, executions.Filter{Order: "lost", Limit: 50})
			if err == nil {
				_, err = rows.Collect()
			}
			return err
		}},
		{"explain/all", func() error {
			_, err := a.Explain(ctx, query.Selection{Ranks: ranks, Extent: extent})
			return err
		}},
		{"explain/box", func() error {
			s, u := trace.Microsecond.Duration(trace.Ticks(since)), trace.Microsecond.Duration(trace.Ticks(until))
			_, err := a.Explain(ctx, query.Selection{Ranks: ranks, Extent: extent, Filter: executions.Filter{Since: &s, Until: &u}})
			return err
		}},
		{"explain/function", func() error {
			_, err := a.Explain(ctx, query.Selection{Ranks: ranks, Extent: extent, Filter: executions.Filter{One: f}})
			return err
		}},
		{"group/host", func() error {
			_, err := a.Group(ctx, query.Selection{Ranks: ranks, Extent: extent}, contrast.FieldKey{Kind: contrast.FieldHost}, 20)
			return err
		}},
		{"group/path", func() error {
			_, err := a.Group(ctx, query.Selection{Ranks: ranks, Extent: extent}, contrast.FieldKey{Kind: contrast.FieldPath}, 20)
			return err
		}},
	} {
		b.Run(q.name, func(b *testing.B) {
			used, n := cputime.OfProcess(), 0
			for b.Loop() {
				if err := q.ask(); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64((cputime.OfProcess()-used).Microseconds())/1000/float64(n), "cpu-ms")
		})
	}
}
