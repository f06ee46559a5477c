package remotestore

import (
	"bytes"
	"context"
	"encoding/json"
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
)

// greeting is how long an owner may take to say that it is there, and dialing how
// long a connection may take.
const (
	greeting = 15 * time.Second
	dialing  = 5 * time.Second
)

var errRead = errors.New("the answer was read or closed already")

// Client asks the owner of a store. Several goroutines may call it.
type Client struct {
	announce string
	owner    announcement
	http     http.Client
	ctx      context.Context // ends with Close
	close    context.CancelCauseFunc
}

var _ provdb.Reader = (*Client)(nil)

// Open finds the owner that wrote the file announce, and makes sure that it
// answers. The error is
//   - provdb.ErrNotFound when there is no such file: nobody owns the store, or
//     does so without answering;
//   - ErrGone when the owner has left it behind;
//   - provdb.ErrInUse when the owner is on another host;
//   - fs.ErrPermission when the file cannot be read, or its token is refused;
//   - provdb.ErrNewer when the owner speaks a later protocol.
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
		return nil, fmt.Errorf("%s: %w: process %d on host %s; ask there, or remove this file if that process has ended",
			announce, provdb.ErrInUse, owner.PID, owner.Host)
	}
	c := &Client{announce: announce, owner: owner}
	c.http.Transport = &http.Transport{ // without a proxy, and with a connection for each question
		DialContext:        (&net.Dialer{Timeout: dialing}).DialContext,
		DisableKeepAlives:  true,
		DisableCompression: true,
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.ctx, c.close = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := c.greet(ctx); err != nil {
		c.close(nil)
		return nil, err
	}
	return c, nil
}

// greet asks nothing.
func (c *Client) greet(ctx context.Context) error {
	late := fmt.Errorf("%s: process %d does not answer: %w", c.announce, c.owner.PID, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(ctx, greeting, late)
	defer cancel()
	rows, err := c.ask(ctx, question{})
	if err == nil {
		_, err = rows.Collect()
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrGone) {
		err = fmt.Errorf("%w; remove this file if that process does not own the store", err)
	}
	return err
}

// Close ends the answers that are under way. Nothing may be asked after it.
func (c *Client) Close() error {
	c.close(provdb.ErrClosed)
	return nil
}

// Query asks the owner. Arguments are numbers, texts, truth values, times and
// nil. Beside the errors that the store gives, there are ErrGone when the owner
// has ended since Open, and provdb.ErrClosed when it ends while it answers. The
// end of ctx ends the question at the owner, too.
func (c *Client) Query(ctx context.Context, sql string, args ...any) (*provdb.Rows, error) {
	if !utf8.ValidString(sql) {
		return nil, errors.New("the question is not a text in UTF-8")
	}
	q := question{SQL: &sql}
	for i, v := range args {
		w, err := argToWire(v)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		q.Args = append(q.Args, w)
	}
	return c.ask(ctx, q)
}

// ask sends a question and reads the columns of its answer.
func (c *Client) ask(ctx context.Context, q question) (*provdb.Rows, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if len(body) > maxQuestion {
		return nil, fmt.Errorf("the question has %d bytes, at most %d are allowed", len(body), maxQuestion)
	}
	if c.ctx.Err() != nil {
		return nil, provdb.ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) }) //nolint:contextcheck // the client's life bounds the question's, too
	give := func(cause error) { unlink(); cancel(cause) }
	in, err := c.post(ctx, body)
	if err != nil {
		err = c.explain(ctx, err)
		give(nil)
		return nil, err
	}
	d := newDecoder(in)
	columns, err := d.header()
	if err != nil {
		err = errors.Join(c.explain(ctx, err), in.Close())
		give(nil)
		return nil, err
	}
	rows := &provdb.Rows{Columns: columns, Close: sync.OnceValue(func() error { give(errRead); return in.Close() })}
	rows.All = func(yield func([]any, error) bool) {
		defer func() { _ = rows.Close() }() // the rows told all there is
		err := ctx.Err()
		for err == nil {
			var row []any
			if row, err = d.row(); errors.Is(err, errEnd) {
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

// post sends a question and returns the answer's lines.
func (c *Client) post(ctx context.Context, body []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.owner.Address+queryPath, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.owner.Token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Type") == contentType {
		return resp.Body, nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // only to say more
	err = errors.New(resp.Status + ": " + strings.TrimSpace(string(text)))
	if resp.StatusCode == http.StatusUnauthorized {
		err = fmt.Errorf("the token is refused: %w", fs.ErrPermission)
	}
	return nil, errors.Join(err, resp.Body.Close())
}

// explain says what an error of a question means and what to do.
func (c *Client) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	if told := (*ownerError)(nil); errors.As(err, &told) {
		return err
	}
	if errors.Is(err, syscall.ECONNREFUSED) || c.owner.stale(c.announce) {
		return fmt.Errorf("%s: process %d: %w: %w", c.announce, c.owner.PID, ErrGone, err)
	}
	return fmt.Errorf("%s: ask process %d: %w", c.announce, c.owner.PID, err)
}

// ended is why a question was given up: by its caller, whose errors callers know,
// or by a Close.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) || errors.Is(cause, errRead) || errors.Is(cause, provdb.ErrClosed) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
