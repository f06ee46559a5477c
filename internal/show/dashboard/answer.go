package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func problem(status int, message, hint string) *api.Problem {
	return &api.Problem{Status: status, Message: message, Hint: hint}
}

// handler answers a request with a value to encode as JSON, or with a file.
type handler func(p *params) (any, error)

// ofRun returns a handler that calls f with the run in the path and the parameters that read
// returns.
func ofRun[P, T any](s *server, f func(ctx context.Context, run string, of P) (T, error), read func(p *params) P) handler {
	return func(p *params) (any, error) {
		of := read(p)
		if err := s.checkRun(p, p.done()); err != nil {
			return nil, err
		}
		return f(p.r.Context(), p.path("run"), of)
	}
}

// checkRun returns the error of an unknown run instead of err.
func (s *server) checkRun(p *params, err error) error {
	if err != nil && s.Packets == nil {
		_, unknown := s.insight.Version(p.r.Context(), p.path("run"))
		if unknown != nil && insight.AsProblem(unknown).Status == http.StatusNotFound {
			return unknown
		}
	}
	return err
}

// withoutRun returns a handler that calls f with the parameters that read returns.
func withoutRun[P, T any](f func(ctx context.Context, of P) (T, error), read func(p *params) P) handler {
	return func(p *params) (any, error) {
		of := read(p)
		if err := p.done(); err != nil {
			return nil, err
		}
		return f(p.r.Context(), of)
	}
}

// readNothing reads no parameters.
func readNothing(*params) struct{} { return struct{}{} }

// noParams adapts a function without parameters.
func noParams[T any](f func(ctx context.Context) (T, error)) func(context.Context, struct{}) (T, error) {
	return func(ctx context.Context, _ struct{}) (T, error) { return f(ctx) }
}

// runOnly adapts a function whose only parameter is the run.
func runOnly[T any](f func(ctx context.Context, run string) (T, error)) func(context.Context, string, struct{}) (T, error) {
	return func(ctx context.Context, run string, _ struct{}) (T, error) { return f(ctx, run) }
}

// compress compresses JSON from 1 KiB on.
var compress = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1<<10), gzhttp.CompressionLevel(1), gzhttp.EnableZstd(false),
		gzhttp.ContentTypes([]string{"application/json"}))
	if err != nil {
		panic(err) // the options are constant
	}
	return wrap
}()

// answer returns the HTTP handler of f.
func answer(f handler) http.Handler {
	return compress(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := f(newParams(r))
		if err != nil {
			writeProblem(w, err)
			return
		}
		if f, ok := v.(interface{ write(w http.ResponseWriter) }); ok {
			f.write(w)
			return
		}
		writeJSON(w, http.StatusOK, v)
	}))
}

// file is an answer in another format than JSON.
type file struct {
	kind string // content type
	name string // of the download; empty: the browser shows it
	body []byte
}

func (f *file) write(w http.ResponseWriter) {
	if f.name != "" {
		setAttachment(w.Header(), f.name)
	}
	writeBody(w, http.StatusOK, f.kind, f.body)
}

func setAttachment(h http.Header, name string) {
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
}

// writeBody writes an answer. Errors of writing are ignored: the client is gone.
func writeBody(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// retry is a temporary problem.
type retry struct {
	*api.Problem
	after time.Duration
}

// Unwrap returns the problem.
func (d *retry) Unwrap() error { return d.Problem }

func writeProblem(w http.ResponseWriter, err error) {
	p := insight.AsProblem(err)
	if d, ok := errors.AsType[*retry](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(d.after.Seconds()))))
	}
	if errors.Is(err, provdb.ErrBusy) {
		w.Header().Set("Retry-After", "5")
	}
	if e, ok := errors.AsType[*insight.SQLError](err); ok {
		writeJSON(w, p.Status, api.SQLProblem{Message: p.Message, Hint: p.Hint, Line: e.Line, Column: e.Column})
		return
	}
	writeJSON(w, p.Status, p)
}

// writeJSON writes a value, or a json.RawMessage unchanged.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, ok := v.(json.RawMessage)
	if !ok {
		var err error
		if body, err = api.Marshal(v); err != nil {
			status, body = http.StatusInternalServerError, []byte(`{"error":"cannot encode the answer as JSON"}`)
		}
	}
	writeBody(w, status, "application/json", body)
}
