package rundir

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// breakable is a store that fails every query once it is broken, as DuckDB does after a
// fatal error.
type breakable struct {
	*duckstore.Store
	broken atomic.Bool
}

func (b *breakable) Query(ctx context.Context, sql string, args ...any) (*provdb.Rows, error) {
	if b.broken.Load() {
		return nil, provdb.ErrBroken
	}
	return b.Store.Query(ctx, sql, args...)
}

func TestLazyReaderReopensBrokenStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "provenance.duckdb")
	s, err := duckstore.Open(t.Context(), file, duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var opened []*breakable
	d := &LazyReader{Find: func(ctx context.Context) (Reader, error) {
		s, err := duckstore.Open(ctx, file, duckstore.Options{ReadOnly: true}) // fails while the file is open
		if err != nil {
			return nil, err
		}
		opened = append(opened, &breakable{Store: s})
		return opened[len(opened)-1], nil
	}}
	query := func() error {
		rows, err := d.Query(t.Context(), "SELECT 1")
		if err != nil {
			return err
		}
		_, err = rows.Collect()
		return err
	}
	for round := range 3 {
		if err := query(); err != nil {
			t.Fatal(err)
		}
		opened[round].broken.Store(true)
		var queries sync.WaitGroup
		for range 8 {
			queries.Go(func() {
				if err := query(); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		queries.Wait()
		if len(opened) != round+2 {
			t.Fatalf("round %d: opened %d times", round, len(opened))
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := query(); !errors.Is(err, provdb.ErrClosed) || len(opened) != 4 {
		t.Errorf("after Close: %v, opened %d times", err, len(opened))
	}
}
