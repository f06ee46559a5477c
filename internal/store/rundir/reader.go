package rundir

import (
	"context"
	"errors"
	"sync"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
)

// LazyReader reads a store of another process or a server. It opens the store with the
// first query, and again after the owner was restarted or the store broke.
type LazyReader struct {
	// Find opens the store at its current place.
	Find func(ctx context.Context) (Reader, error)

	mu    sync.Mutex
	store Reader // nil before the first query
}

// Query runs a statement.
func (d *LazyReader) Query(ctx context.Context, sql string, args ...any) (*provdb.Rows, error) {
	r, err := d.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	rows, err := r.Query(ctx, sql, args...)
	if !d.isLost(r, err) {
		return rows, err
	}
	if r, err = d.open(ctx, r); err != nil {
		return nil, err
	}
	return r.Query(ctx, sql, args...)
}

// isLost reports whether a query failed because the store is gone or broken, or because another
// query has closed it for that reason.
func (d *LazyReader) isLost(r provdb.Reader, err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Is(err, remotestore.ErrGone) || errors.Is(err, provdb.ErrBroken) || errors.Is(err, provdb.ErrClosed) && d.store != r
}

// open returns the store, and opens it again if it is lost.
func (d *LazyReader) open(ctx context.Context, lost provdb.Reader) (provdb.Reader, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.store != nil && d.store != lost {
		return d.store, nil
	}
	if d.store != nil {
		_ = d.store.Close() // it is lost
		d.store = nil
	}
	store, err := d.Find(ctx)
	if err != nil {
		return nil, err
	}
	d.store = store
	return store, nil
}

// Close closes the store.
func (d *LazyReader) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.store == nil {
		return nil
	}
	return d.store.Close()
}
