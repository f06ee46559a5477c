package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// distantReader asks a store that another process owns, or a server. It is opened
// with the first question, and again when its owner was, or when it was broken.
type distantReader struct {
	// find opens the store where it is now; what it returns gives it up.
	find func(ctx context.Context) (provdb.Reader, func() error, error)

	mu    sync.Mutex
	store provdb.Reader
	close func() error
}

// Query answers a question.
func (d *distantReader) Query(ctx context.Context, sql string, args ...any) (*provdb.Rows, error) {
	r, err := d.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	rows, err := r.Query(ctx, sql, args...)
	if !d.lost(r, err) {
		return rows, err
	}
	if r, err = d.open(ctx, r); err != nil {
		return nil, err
	}
	return r.Query(ctx, sql, args...)
}

// lost reports whether a store failed because it is gone or broken, or was given up as
// another question found that.
func (d *distantReader) lost(r provdb.Reader, err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Is(err, remotestore.ErrGone) || errors.Is(err, provdb.ErrBroken) || errors.Is(err, provdb.ErrClosed) && d.store != r
}

// open returns the store, opened anew if it is not there or is lost.
func (d *distantReader) open(ctx context.Context, lost provdb.Reader) (provdb.Reader, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.store != nil && d.store != lost {
		return d.store, nil
	}
	if d.close != nil {
		_ = d.close() // before it is opened again; nothing more comes from it
		d.store, d.close = nil, nil
	}
	store, closeStore, err := d.find(ctx)
	if err != nil {
		return nil, err
	}
	d.store, d.close = store, closeStore
	return store, nil
}

// Close gives the store up.
func (d *distantReader) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.close == nil {
		return nil
	}
	return d.close()
}

// findElsewhere opens the store of the run that is not in this process: a server, or
// what its owner tells, or the file if the run has ended. Who opened the file before
// would keep its owner from it.
func (s *serveRun) findElsewhere(ctx context.Context) (provdb.Reader, func() error, error) {
	if s.flags.store != "" {
		return storePlace{server: s.flags.store}.open(ctx)
	}
	c, err := remotestore.Open(ctx, rundir.Owner(s.flags.out))
	if err == nil {
		return c, c.Close, nil
	}
	if !s.hasFinished() {
		return nil, nil, err
	}
	place, err := findStore(s.flags.out)
	if err != nil {
		return nil, nil, err
	}
	return place.open(ctx)
}
