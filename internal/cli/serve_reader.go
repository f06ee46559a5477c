package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/provdb/pgstore"
	"github.com/chimbuko/chimbuko/internal/provdb/remotestore"
	"github.com/chimbuko/chimbuko/internal/rundir"
)

// distantReader asks a store that another process owns, or a server. It is opened
// with the first question, and again when its owner was.
type distantReader struct {
	server string // URL, or else
	dir    string // of the run
	// finished reports whether the run has.
	finished func() bool

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
	if !errors.Is(err, remotestore.ErrGone) {
		return rows, err
	}
	if r, err = d.open(ctx, r); err != nil {
		return nil, err
	}
	return r.Query(ctx, sql, args...)
}

// open returns the store, opened anew if it is not there or is gone.
func (d *distantReader) open(ctx context.Context, gone provdb.Reader) (provdb.Reader, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.store != nil && d.store != gone {
		return d.store, nil
	}
	if d.server != "" {
		s, err := pgstore.Open(ctx, d.server, pgstore.Options{ReadOnly: true})
		if err != nil {
			return nil, err
		}
		d.store, d.close = s, s.Close
		return s, nil
	}
	c, err := remotestore.Open(ctx, rundir.Owner(d.dir))
	if err == nil {
		d.store, d.close = c, c.Close
		return c, nil
	}
	if !d.finished() { // who opened the file now would keep its owner from it
		return nil, err
	}
	place, err := findStore(d.dir)
	if err != nil {
		return nil, err
	}
	if d.store, d.close, err = place.open(ctx); err != nil {
		d.store, d.close = nil, nil
		return nil, err
	}
	return d.store, nil
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
