package remotestore

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/wire"
)

const (
	pingTimeout = 15 * time.Second
	dialTimeout = 5 * time.Second
)

var errRead = errors.New("the answer has already been read or closed")

// Client queries a store through its owner. It is safe for concurrent use.
type Client struct {
	announce string
	owner    announcement
	http     http.Client
	ctx      context.Context // ends with Close
	close    context.CancelCauseFunc
}

var _ provdb.Reader = (*Client)(nil)

// Open connects to the owner that wrote the file announce, and checks that it answers. The error is
//   - provdb.ErrNotFound if the file does not exist: the store has no owner, or its owner does not answer queries;
//   - ErrGone if the owner has ended without removing it, or is an earlier version of chimbuko;
//   - provdb.ErrInUse if the owner is on another host;
//   - fs.ErrPermission if the file cannot be read, or the owner rejects the token;
//   - fileformat.ErrNewer if the owner has a later protocol.
func Open(ctx context.Context, announce string) (*Client, error) {
	owner, err := readAnnouncement(announce)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	if owner.Host != host {
		return nil, fmt.Errorf("%s: %w: process %d on host %s (query there, or remove this file if that process has ended)",
			announce, provdb.ErrInUse, owner.PID, owner.Host)
	}
	c := &Client{announce: announce, owner: owner}
	c.http.Transport = &http.Transport{ // no proxy, and a connection for each query
		DialContext:        (&net.Dialer{Timeout: dialTimeout}).DialContext,
		DisableKeepAlives:  true,
		DisableCompression: true,
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.ctx, c.close = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := c.ping(ctx); err != nil {
		c.close(nil)
		return nil, err
	}
	return c, nil
}

// ping checks that the owner answers.
func (c *Client) ping(ctx context.Context) error {
	late := fmt.Errorf("%s: process %d does not answer: %w", c.announce, c.owner.PID, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(ctx, pingTimeout, late)
	defer cancel()
	rows, err := c.send(ctx, wire.Request{Ping: true})
	if err == nil {
		_, err = rows.Collect()
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrGone) {
		err = fmt.Errorf("%w (remove this file if that process does not own the store)", err)
	}
	return err
}

// Close ends all queries. The Client must not be used afterwards.
func (c *Client) Close() error {
	c.close(provdb.ErrClosed)
	return nil
}

// Query sends a query to the owner. Arguments are numbers, strings, booleans, times and nil. In addition to the errors of the
// store, it returns ErrGone if the owner has ended since Open, and provdb.ErrClosed if the owner ends during the query. The
// end of ctx also cancels the query at the owner.
func (c *Client) Query(ctx context.Context, sql string, args ...any) (*provdb.Rows, error) {
	if !utf8.ValidString(sql) {
		return nil, errors.New("the query is not valid UTF-8")
	}
	q, err := wire.NewRequest(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return c.send(ctx, q)
}

// send sends a query and reads the columns of its answer.
func (c *Client) send(ctx context.Context, q wire.Request) (*provdb.Rows, error) {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(q); err != nil {
		return nil, err
	}
	if body.Len() > maxRequest {
		return nil, fmt.Errorf("the query has %d bytes (limit %d)", body.Len(), maxRequest)
	}
	if c.ctx.Err() != nil {
		return nil, provdb.ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) }) //nolint:contextcheck // Close ends queries, too
	end := func(cause error) { unlink(); cancel(cause) }
	in, err := c.post(ctx, &body)
	if err != nil {
		err = c.explain(ctx, err)
		end(nil)
		return nil, err
	}
	d := wire.NewDecoder(in)
	columns, err := d.Header()
	if err != nil {
		err = errors.Join(c.explain(ctx, err), in.Close())
		end(nil)
		return nil, err
	}
	rows := &provdb.Rows{Columns: columns, Close: sync.OnceValue(func() error { end(errRead); return in.Close() })}
	rows.All = func(yield func([]any, error) bool) {
		defer func() { _ = rows.Close() }() // All has yielded the error
		err := ctx.Err()
		for err == nil {
			var row []any
			if row, err = d.Row(); errors.Is(err, wire.ErrEnd) {
				return
			}
			if err = errors.Join(err, ctx.Err()); err == nil && !yield(row, nil) {
				return
			}
		}
		yield(nil, c.explain(ctx, err))
	}
	return rows, nil
}

// post sends a query and returns the body of the answer.
func (c *Client) post(ctx context.Context, body io.Reader) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.owner.Address+queryPath, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.owner.Token)
	req.Header.Set("Content-Type", contentType)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Type") == contentType {
		return resp.Body, nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // for the error only
	err = errors.New(resp.Status + ": " + strings.TrimSpace(string(text)))
	if resp.StatusCode == http.StatusUnauthorized {
		err = fmt.Errorf("the owner rejects the token: %w", fs.ErrPermission)
	}
	return nil, errors.Join(err, resp.Body.Close())
}

// explain adds context to an error of a query.
func (c *Client) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return causeOf(ctx)
	}
	if _, ok := errors.AsType[*wire.Error](err); ok {
		return err
	}
	if errors.Is(err, syscall.ECONNREFUSED) || c.owner.isStale(c.announce) {
		return fmt.Errorf("%s: process %d: %w: %w", c.announce, c.owner.PID, ErrGone, err)
	}
	return fmt.Errorf("%s: query process %d: %w", c.announce, c.owner.PID, err)
}

// causeOf returns the reason why ctx ended: the error of the caller's context, or that of a Close.
func causeOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) || errors.Is(cause, errRead) || errors.Is(cause, provdb.ErrClosed) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
