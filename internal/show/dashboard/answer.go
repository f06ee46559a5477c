package dashboard

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// problem is an answer that says what went wrong, and what to do.
type problem struct {
	status  int
	Message string `json:"error"`
	Hint    string `json:"hint,omitempty"`
}

// Error is the message with its hint.
func (p *problem) Error() string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + "; " + p.Hint
}

// asProblem gives an error its status. Errors of the store keep their sentence:
// who has the token may know it.
func asProblem(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	text := err.Error()
	if _, ok := errors.AsType[*query.ChoiceError](err); ok {
		return &problem{http.StatusBadRequest, text, ""}
	}
	if _, ok := errors.AsType[*contrast.TermError](err); ok {
		return &problem{http.StatusBadRequest, text, "docs/dashboard.md tells what can be narrowed and grouped"}
	}
	for _, k := range []struct {
		err    error
		status int
		hint   string
	}{
		{provdb.ErrNotFound, http.StatusNotFound, ""},
		{provdb.ErrReadOnly, http.StatusForbidden, "ask with one SELECT; docs/sql.md lists the tables"},
		{provdb.ErrClosed, http.StatusServiceUnavailable, "the process is ending; ask the run directory instead"},
		{provdb.ErrInUse, http.StatusServiceUnavailable, "try again in a moment"},
		{context.DeadlineExceeded, http.StatusGatewayTimeout, "ask for less: fewer rows, one rank, a shorter time"},
		{context.Canceled, http.StatusServiceUnavailable, "the question was given up"},
	} {
		if errors.Is(err, k.err) {
			return &problem{k.status, text, k.hint}
		}
	}
	return &problem{http.StatusInternalServerError, text, ""}
}

// answer turns a function that answers a request into a handler.
func (s *server) answer(f func(r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r)
		if err != nil {
			writeProblem(w, r, err)
			return
		}
		switch f := v.(type) {
		case *file:
			f.write(w)
			return
		case *spooled:
			f.write(w)
			return
		}
		writeJSON(w, r, http.StatusOK, v)
	})
}

// file is an answer that is not JSON for the page.
type file struct {
	kind string // of content
	name string // under which a browser shall keep it; empty: it shall show it
	body []byte
}

// write sends it. Errors of writing are dropped, as those of writeJSON.
func (f *file) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	if f.name != "" {
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.name}))
	}
	h.Set("Content-Length", strconv.Itoa(len(f.body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(f.body)
}

func writeProblem(w http.ResponseWriter, r *http.Request, err error) {
	p := asProblem(err)
	if d, ok := errors.AsType[*detailed](err); ok {
		d.write(w, r)
		return
	}
	writeJSON(w, r, p.status, p)
}

// compressFrom is the size from which an answer is compressed.
const compressFrom = 1 << 10

// writeJSON writes a value, or a json.RawMessage as it is. Nobody is left to
// tell if the client is gone, so errors of writing are dropped.
func writeJSON(w http.ResponseWriter, r *http.Request, status int, v any) {
	body, ok := v.(json.RawMessage)
	if !ok {
		var err error
		if body, err = marshal(v); err != nil {
			status, body = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
		}
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= compressFrom && acceptsGzip(r) {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // the level is one that there is
		_, err := z.Write(body)
		if err = errors.Join(err, z.Close()); err == nil {
			h.Set("Content-Encoding", "gzip")
			body = b.Bytes()
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// acceptsGzip tells whether the client takes compressed answers.
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name = strings.TrimSpace(name); name != "gzip" && name != "*" {
			continue
		}
		_, value, given := strings.Cut(strings.ReplaceAll(q, " ", ""), "q=")
		weight, err := strconv.ParseFloat(value, 64)
		return !given || err == nil && weight > 0
	}
	return false
}

// marshal is json.Marshal without the care for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// asked is what a question to the store is about.
type asked struct {
	*query.Asker
	r     *http.Request
	p     *params
	known *known // of handlers that are informed
}

// question turns a function that asks the store about a run into a handler. Only
// so many questions are asked at once, and each only for so long.
func (s *server) question(f func(ctx context.Context, q *asked) (any, error)) http.Handler {
	return s.answer(func(r *http.Request) (any, error) { return s.ask(r, f) })
}

// ask asks the store about the run of a request, in its turn.
func (s *server) ask(r *http.Request, f func(ctx context.Context, q *asked) (any, error)) (any, error) {
	return s.askOf(r, r.PathValue("run"), f)
}

// askOf asks the store about a run.
func (s *server) askOf(r *http.Request, run string, f func(ctx context.Context, q *asked) (any, error)) (any, error) {
	ctx, done, err := s.slot(r.Context())
	if err != nil {
		return nil, err
	}
	defer done()
	a, err := s.asker(ctx, run)
	if err != nil {
		return nil, err
	}
	a.Memory = s.caches.atHand(runKey(&a.Run))
	v, err := f(ctx, &asked{Asker: a, r: r, p: newParams(r)})
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil {
		return nil, fmt.Errorf("no answer within %v: %w", s.Timeout, context.DeadlineExceeded)
	}
	return v, err
}

// slot waits until a question may be asked. The context bounds its time; done
// must be called when it is answered.
func (s *server) slot(ctx context.Context) (_ context.Context, done func(), err error) {
	return s.slotFor(ctx, s.Timeout)
}

// slotFor is slot for a question that may take some other time.
func (s *server) slotFor(ctx context.Context, timeout time.Duration) (_ context.Context, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	select {
	case s.slots <- struct{}{}:
		return ctx, func() { <-s.slots; cancel() }, nil
	case <-ctx.Done():
		cancel()
		return nil, nil, &problem{http.StatusServiceUnavailable, fmt.Sprintf("%d other questions are being answered", cap(s.slots)), "try again in a moment"}
	}
}

// askerBy finds a run. What is told of one that has ended is read once.
func (s *server) askerBy(ctx context.Context, r provdb.Reader, name string) (*query.Asker, error) {
	run, err := query.Find(ctx, r, name)
	if err != nil {
		return nil, err
	}
	key := runKey(run)
	if a := s.askers.atHand(key); a != nil {
		return a.By(r), nil
	}
	if run.State.Open() {
		return query.Of(ctx, r, *run)
	}
	a, err := s.askers.get(ctx, key, func(ctx context.Context) (*query.Asker, bool, error) {
		ctx, cancel := context.WithTimeout(ctx, s.Timeout)
		defer cancel()
		a, err := query.Of(ctx, r, *run)
		return a, true, err
	})
	if err != nil {
		return nil, err
	}
	return a.By(r), nil // which may be changed
}

// asker finds a run in the store.
func (s *server) asker(ctx context.Context, run string) (*query.Asker, error) {
	r := s.Source.Reader()
	if r == nil {
		return nil, &problem{http.StatusServiceUnavailable, "this process has no store, so nothing is known of single events and functions", "ask the process that stores the records"}
	}
	a, err := s.askerBy(ctx, r, run)
	if errors.Is(err, provdb.ErrNotFound) && run == s.Run {
		return nil, &problem{http.StatusNotFound, fmt.Sprintf("nothing of run %q is stored yet", run), "try again when the first records are written"}
	}
	if err != nil || !a.Guessed {
		return a, err
	}
	return a, s.begins.correct(ctx, a)
}
