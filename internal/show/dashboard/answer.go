package dashboard

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/insight"

	"github.com/chimbuko/chimbuko/internal/show/api"
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

// statuses are those of kinds of problems.
var statuses = map[api.ProblemKind]int{
	api.Internal: http.StatusInternalServerError, api.Invalid: http.StatusBadRequest, api.NotFound: http.StatusNotFound,
	api.Forbidden: http.StatusForbidden, api.Unavailable: http.StatusServiceUnavailable, api.TooLarge: http.StatusRequestEntityTooLarge,
	api.TimedOut: http.StatusGatewayTimeout,
}

// asProblem gives an error its status.
func asProblem(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	p := insight.AsProblem(err)
	return &problem{statuses[p.Kind], p.Message, p.Hint}
}

// handler answers a request, whose parameters it takes from p.
type handler func(r *http.Request, p *params) (any, error)

// call asks with parameters, unless they are wrong.
func call[P, T any](r *http.Request, p *params, f func(ctx context.Context, run string, of P) (T, error), of P) (none T, err error) {
	if err := p.done(); err != nil {
		return none, err
	}
	return f(r.Context(), r.PathValue("run"), of)
}

// plain is call for what needs no parameters.
func plain[T any](f func(ctx context.Context, run string) (T, error)) handler {
	return func(r *http.Request, p *params) (any, error) {
		if err := p.done(); err != nil {
			return nil, err
		}
		return f(r.Context(), r.PathValue("run"))
	}
}

// answer turns a function that answers a request into a handler.
func (s *server) answer(f handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r, newParams(r))
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

// retry is a problem that is over after some time.
type retry struct {
	*problem
	after time.Duration
}

// Unwrap is the problem itself.
func (d *retry) Unwrap() error { return d.problem }

func writeProblem(w http.ResponseWriter, r *http.Request, err error) {
	p := asProblem(err)
	if d, ok := errors.AsType[*retry](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(d.after.Seconds()))))
	}
	if e, ok := errors.AsType[*insight.SQLError](err); ok {
		writeJSON(w, r, p.status, api.SQLProblem{Message: p.Message, Hint: p.Hint, Line: e.Line, Column: e.Column})
		return
	}
	writeJSON(w, r, p.status, p)
}

// compressFrom is the size from which an answer is compressed.
const compressFrom = 1 << 10

// writeJSON writes a value, or a json.RawMessage as it is. Nobody is left to
// tell if the client is gone, so errors of writing are dropped.
func writeJSON(w http.ResponseWriter, r *http.Request, status int, v any) {
	var err error
	body, ok := v.(json.RawMessage)
	if !ok {
		if body, err = api.Marshal(v); err != nil {
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
