package remotestore

import (
	"bufio"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// limits bound what others can make the owner do.
type limits struct {
	questions int           // answered at once; others wait
	receive   time.Duration // for a question to arrive
	stall     time.Duration // for a client to take what was written for it
	grace     time.Duration // for questions to end by themselves when the owner closes
	abort     time.Duration // for them to end when told to
}

var usual = limits{questions: 8, receive: 10 * time.Second, stall: 5 * time.Minute, grace: 2 * time.Second, abort: 5 * time.Second}

// An answer is sent when so much of it has gathered, or so long after the last.
const (
	flushSize  = 32 << 10
	flushAfter = 200 * time.Millisecond
)

var errEnding = fmt.Errorf("the process that owns the store is ending: %w", provdb.ErrClosed)

// Server answers the questions of other processes.
type Server struct {
	reader   provdb.Reader
	announce string
	own      announcement
	limits   limits

	http    http.Server
	served  chan error    // that of the listener
	slots   chan struct{} // one for each question that is being answered
	ctx     context.Context
	cancel  context.CancelFunc
	closing chan struct{} // closed when no question is begun any more
	close   sync.Once
	err     error // of the first Close
}

// Serve begins to answer questions from r and writes the file announce, so that
// Open finds it; one that is there already is replaced, for who owns the store
// may. When ctx ends, so do the questions that are under way, and others are
// refused. The caller closes the server before the store.
func Serve(ctx context.Context, r provdb.Reader, announce string) (*Server, error) {
	return serve(ctx, r, announce, usual)
}

func serve(ctx context.Context, r provdb.Reader, announce string, l limits) (*Server, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("answer other processes: %w", err)
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
		served: make(chan error, 1), slots: make(chan struct{}, l.questions), closing: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.http = http.Server{
		Handler:                      http.HandlerFunc(s.handle),
		BaseContext:                  func(net.Listener) context.Context { return s.ctx },
		ReadHeaderTimeout:            l.receive,
		ReadTimeout:                  l.receive, // ends with the body; answers have the deadlines of timedWriter
		IdleTimeout:                  l.receive,
		MaxHeaderBytes:               16 << 10,
		DisableGeneralOptionsHandler: true,
	}
	s.http.SetKeepAlivesEnabled(false)
	go func() { s.served <- s.http.Serve(listener) }()
	return s, nil
}

// Close takes the announcement away unless it is another owner's by now, stops
// listening and refuses the questions that wait. Those that are being answered
// get a little time to end and are then canceled; an error tells if the store
// does not end them even so. It may be called twice.
func (s *Server) Close() error {
	s.close.Do(func() { s.err = s.shutdown() })
	return s.err
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
	// What is still open are connections without a question, and clients that do
	// not read.
	err := errors.Join(removed, s.http.Close())
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if ended != nil {
		err = errors.Join(err, s.quiet(ctx, s.limits.abort))
	}
	return err
}

// drain waits until all connections are closed.
func (s *Server) drain(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return s.http.Shutdown(ctx)
}

// quiet waits until no question is being answered, and lets none begin.
func (s *Server) quiet(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for i := range cap(s.slots) {
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("%d questions of other processes do not end", cap(s.slots)-i)
		}
	}
	return nil
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	known := []byte("Bearer " + s.own.Token)
	switch {
	case subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), known) != 1:
		http.Error(w, "the token is not that of this owner", http.StatusUnauthorized)
		return
	case r.URL.Path != queryPath:
		http.Error(w, "only "+queryPath+" is answered", http.StatusNotFound)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "only POST is answered", http.StatusMethodNotAllowed)
		return
	}
	q, err := readQuestion(http.MaxBytesReader(w, r.Body, maxQuestion))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		http.Error(w, fmt.Sprintf("a question has at most %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge)
		return
	} else if err != nil {
		http.Error(w, "the question makes no sense: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", contentType)
	out := newStream(w, s.limits.stall)
	err = s.answer(r.Context(), q, out)
	if err != nil && s.ctx.Err() != nil {
		err = errEnding // whatever the store made of that
	}
	_ = out.end(err) // fails when the client is gone: nobody is left to tell
}

// answer writes the answer, but for its last line.
func (s *Server) answer(ctx context.Context, q question, out *stream) error {
	if q.SQL == nil {
		return out.columns(nil)
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
	rows, err := s.reader.Query(ctx, *q.SQL, q.Args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // the rows told all there is
	if err := out.columns(rows.Columns); err != nil {
		return err
	}
	for row, err := range rows.All {
		if err != nil {
			return err
		}
		if err := out.row(row); err != nil {
			return err
		}
	}
	return nil
}

func readQuestion(body io.Reader) (q question, err error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return q, err
	}
	if err := parse(text, &q); err != nil {
		return q, err
	}
	for i, v := range q.Args {
		if q.Args[i], err = fromWire(v); err != nil {
			return q, fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	return q, nil
}

// stream is an answer on its way. It is sent now and then, and at its end.
type stream struct {
	enc  *encoder
	buf  *bufio.Writer
	http *http.ResponseController
	sent time.Time
}

func newStream(w http.ResponseWriter, stall time.Duration) *stream {
	c := http.NewResponseController(w)
	buf := bufio.NewWriterSize(&timedWriter{w: w, http: c, stall: stall}, 2*flushSize)
	return &stream{enc: newEncoder(buf), buf: buf, http: c}
}

// columns are sent at once: the client waits for them alone.
func (s *stream) columns(all []provdb.Column) error {
	return s.send(s.enc.columns(all))
}

func (s *stream) row(values []any) error {
	if err := s.enc.row(values); err != nil {
		return err
	}
	if s.buf.Buffered() < flushSize && time.Since(s.sent) < flushAfter {
		return nil
	}
	return s.send(nil)
}

func (s *stream) end(err error) error { return s.send(s.enc.end(err)) }

func (s *stream) send(err error) error {
	if err == nil {
		err = s.buf.Flush()
	}
	if err == nil {
		err = s.http.Flush()
	}
	s.sent = time.Now()
	return err
}

// timedWriter gives up on a client that takes nothing for long.
type timedWriter struct {
	w     io.Writer
	http  *http.ResponseController
	stall time.Duration
}

func (t *timedWriter) Write(p []byte) (int, error) {
	if err := t.http.SetWriteDeadline(time.Now().Add(t.stall)); err != nil {
		return 0, err
	}
	return t.w.Write(p)
}
