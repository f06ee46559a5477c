package question_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/pgtest"
	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/provdb/duckstore"
	"github.com/chimbuko/chimbuko/internal/provdb/pgstore"
	"github.com/chimbuko/chimbuko/internal/provdb/storetest"
	"github.com/chimbuko/chimbuko/internal/question"
	"github.com/chimbuko/chimbuko/internal/trace"
)

func TestTimelinesFromMemoryAreThoseOfTheStore(t *testing.T) {
	t.Run("DuckDB", func(t *testing.T) {
		s, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), duckstore.FileName), duckstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		compareTimelines(t, s)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		s, err := pgstore.Open(t.Context(), pgtest.Shared(t).Database(t), pgstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		compareTimelines(t, s)
	})
}

func compareTimelines(t *testing.T, s provdb.Store) {
	t.Helper()
	t.Cleanup(func() { _ = s.Close() })
	ctx := context.WithoutCancel(t.Context())
	id, err := s.CreateRun(ctx, provdb.Run{Name: "run", State: provdb.Running, Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	const records = 9000 // more than two blocks
	all := storetest.Records(records, 3)
	for i, r := range all {
		switch i % 50 {
		case 0: // of no time
			r.Exit = r.Entry
		case 1: // long
			r.Exit = r.Entry + trace.Micros(i)*10_000
		case 2:
			r.Kind = ""
		}
	}
	if err := s.Write(ctx, id, &provdb.Batch{Anomalies: all}); err != nil {
		t.Fatal(err)
	}
	store, err := question.New(ctx, s, "run")
	if err != nil {
		t.Fatal(err)
	}
	memory := *store
	if memory.InMemory, err = store.Times(ctx, records); err != nil || memory.InMemory == nil {
		t.Fatal(memory.InMemory, err)
	}
	one, err := store.Function(ctx, "*relax_22*", nil)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		q := question.Timeline{From: trace.Micros(rng.Int64N(12e6)) - 2e6, Columns: 1 + rng.IntN(400)}
		q.To = q.From + 1 + trace.Micros(rng.Int64N([]int64{10, 1e5, 15e6}[rng.IntN(3)]))
		if rng.IntN(3) > 0 {
			q.Lines = make(map[question.Process]int)
			for rank := range rng.IntN(2 * storetest.Ranks) {
				q.Lines[question.Process{Rank: trace.Rank(rank)}] = rank * 37 % 50
			}
		}
		q.Filter.Function = []string{"", "MPI_*", "*relax_2?(*", "nobody"}[rng.IntN(4)]
		if rng.IntN(4) == 0 {
			q.Filter.Kinds = []string{"slow", "gpu"}
		}
		if rng.IntN(4) == 0 {
			q.Filter.One = one
		}
		want, err := store.Timeline(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := memory.Timeline(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 && len(want) == 0 {
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("from %d to %d in %d columns, %d lines, %+v:\ngot  %+v\nwant %+v", q.From, q.To, q.Columns, len(q.Lines), q.Filter, got, want)
		}
	}
}

func TestTimesOfTooManyAnomaliesAreNotKept(t *testing.T) {
	s, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), duckstore.FileName), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	id, err := s.CreateRun(t.Context(), provdb.Run{Name: "run", State: provdb.Running, Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	records := storetest.Records(40, 3)
	for _, r := range records {
		r.Status = "confirmed"
	}
	if err := s.Write(t.Context(), id, &provdb.Batch{Anomalies: records}); err != nil {
		t.Fatal(err)
	}
	a, err := question.New(t.Context(), s, "run")
	if err != nil {
		t.Fatal(err)
	}
	for limit, kept := range map[int]bool{39: false, 40: true} {
		if times, err := a.Times(t.Context(), limit); err != nil || (times != nil) != kept {
			t.Errorf("of 40 anomalies, with room for %d: %v, %v", limit, times != nil, err)
		}
	}
}
