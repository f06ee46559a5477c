package remotestore

import (
	"bufio"
	"context"
	"crypto/subtle"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/wire"
)

// limits limits the load that other processes cause.
type limits struct {
	queries int           // queries that run concurrently; others wait
	receive time.Duration // time for a query to arrive
	stall   time.Duration // time for a client to read
	grace   time.Duration // time for queries to end when the owner closes
	abort   time.Duration // time for canceled queries to end
}

var defaultLimits = limits{queries: 8, receive: 10 * time.Second, stall: 5 * time.Minute, grace: 2 * time.Second, abort: 5 * time.Second}

// Buffered rows are flushed at this size, or this long after the last flush.
const (
	flushSize  = 32 << 10
	flushAfter = 200 * time.Millisecond
)

var errEnding = fmt.Errorf("the process that owns the store is ending: %w", provdb.ErrClosed)

// Server answers the queries of other processes.
type Server struct {
	reader   provdb.Reader
	announce string
	own      announcement
	limits   limits

	http    http.Server
	served  chan error    // result of the listener
	slots   chan struct{} // semaphore for queries
	ctx     context.Context
	cancel  context.CancelFunc
	closing chan struct{} // closed when no more queries may begin
	close   func() error  // the first call of shutdown
}

// Serve answers queries from r and writes the file announce, so that Open finds it. It replaces the file of an earlier owner.
// When ctx ends, the server cancels all queries and rejects new ones. Close the server before the store.
func Serve(ctx context.Context, r provdb.Reader, announce string) (*Server, error) {
	return serve(ctx, r, announce, defaultLimits)
}

func serve(ctx context.Context, r provdb.Reader, announce string, l limits) (*Server, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve queries of other processes: %w", err)
	}
	own, err := newAnnouncement(listener.Addr().String())
	if err == nil {
		err = own.write(announce)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("announce the store: %w", err), listener.Close())
	}
	s := &Server{
		reader: r, announce: announce, own: own, limits: l,
		served: make(chan error, 1), slots: make(chan struct{}, l.queries), closing: make(chan struct{}),
	}
	s.close = sync.OnceValue(s.shutdown)
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.http = http.Server{
		Handler:                      http.HandlerFunc(s.handle),
		BaseContext:                  func(net.Listener) context.Context { return s.ctx },
		ReadHeaderTimeout:            l.receive,
		ReadTimeout:                  l.receive, // of the body; see stream.Write for answers
		IdleTimeout:                  l.receive,
		MaxHeaderBytes:               16 << 10,
		DisableGeneralOptionsHandler: true,
	}
	s.http.SetKeepAlivesEnabled(false)
	go func() { s.served <- s.http.Serve(listener) }()
	return s, nil
}

// Close removes the announcement unless another owner has replaced it, stops listening, and rejects waiting queries. It
// cancels running queries after a short grace period, and fails if the store does not end them. It may be called twice.
func (s *Server) Close() error {
	return s.close()
}

func (s *Server) shutdown() error {
	defer s.cancel()
	removed := s.own.remove(s.announce)
	close(s.closing)
	ctx := context.WithoutCancel(s.ctx)
	ended := s.drain(ctx, s.limits.grace)
	if ended != nil {
		s.cancel()
		ended = s.drain(ctx, s.limits.abort)
	}
	// Close connections without a query, and connections of clients that do not read.
	err := errors.Join(removed, s.http.Close())
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if ended != nil {
		err = errors.Join(err, s.blockQueries(ctx, s.limits.abort))
	}
	return err
}

// drain waits until all connections are closed.
func (s *Server) drain(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return s.http.Shutdown(ctx)
}

// blockQueries rejects new queries and waits until no query runs.
func (s *Server) blockQueries(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for i := range cap(s.slots) {
		select {
		case s.slots <- struct{}{}: // even after the deadline
			continue
		default:
		}
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("%d queries of other processes do not end", cap(s.slots)-i)
		}
	}
	return nil
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	token := []byte("Bearer " + s.own.Token)
	switch {
	case subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), token) != 1:
		http.Error(w, "wrong token", http.StatusUnauthorized)
		return
	case r.URL.Path != queryPath:
		http.Error(w, "not found (want "+queryPath+")", http.StatusNotFound)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method not allowed (want POST)", http.StatusMethodNotAllowed)
		return
	}
	q, err := wire.ReadRequest(http.MaxBytesReader(w, r.Body, maxRequest))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		http.Error(w, fmt.Sprintf("query too large (limit %d bytes)", tooLarge.Limit), http.StatusRequestEntityTooLarge)
		return
	} else if err != nil {
		http.Error(w, "malformed query: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", contentType)
	out := newStream(w, s.limits.stall)
	err = s.answer(r.Context(), q, out)
	if err != nil && s.ctx.Err() != nil {
		err = errEnding // whatever the error of the store
	}
	_ = out.send(wire.Last(err), true) // fails only when the client is gone
}

// answer writes an answer, except its last frame.
func (s *Server) answer(ctx context.Context, q wire.Request, out *stream) error {
	if q.Ping {
		return out.send(wire.Frame{}, true)
	}
	select {
	case <-s.closing:
		return errEnding
	default:
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-s.closing:
		return errEnding
	case <-ctx.Done():
		return ctx.Err()
	}
	if q.Limits != nil {
		ctx = provdb.WithLimits(ctx, *q.Limits)
	}
	return wire.Answer(ctx, s.reader, q, out.send)
}

// stream sends an answer. It gives up if a client does not read for a long time.
type stream struct {
	w     http.ResponseWriter
	http  *http.ResponseController
	stall time.Duration
	buf   *bufio.Writer
	gob   *gob.Encoder
	sent  time.Time
}

func newStream(w http.ResponseWriter, stall time.Duration) *stream {
	s := &stream{w: w, http: http.NewResponseController(w), stall: stall}
	s.buf = bufio.NewWriterSize(s, 2*flushSize)
	s.gob = gob.NewEncoder(s.buf)
	return s
}

// send writes a frame. It flushes if now is true, or if enough is buffered.
func (s *stream) send(f wire.Frame, now bool) error {
	if err := s.gob.Encode(f); err != nil {
		return err
	}
	if !now && s.buf.Buffered() < flushSize && time.Since(s.sent) < flushAfter {
		return nil
	}
	s.sent = time.Now()
	return errors.Join(s.buf.Flush(), s.http.Flush())
}

// Write writes to the client before a deadline.
func (s *stream) Write(p []byte) (int, error) {
	if err := s.http.SetWriteDeadline(time.Now().Add(s.stall)); err != nil {
		return 0, err
	}
	return s.w.Write(p)
}
