package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/insight"
)

// minOverview is the shortest time between two overviews of a stream.
const minOverview = 2 * time.Second

// tick is a status of the pipeline for all streams.
type tick struct {
	seq   int64
	state api.State
	full  []byte // the status as JSON
	slim  []byte // without ranks
	err   error  // of the source; all other fields but seq are unset then
}

func (s *server) tick(ctx context.Context, _ *tick) (t tick, ok bool) {
	status, err := s.Source.Status(ctx)
	if err == nil {
		slim := *status
		slim.Ranks = nil
		t.state = status.Run.State
		t.full, err = api.Marshal(status)
		t.slim, t.err = api.Marshal(&slim)
	}
	t.err = errors.Join(err, t.err)
	t.seq = s.seq.Add(1)
	return t, true
}

// changedOverview returns the overview of the watched run if it differs from the last one. Errors
// are not published: ticks contain those of the pipeline, and the next overview may succeed.
func (s *server) changedOverview(ctx context.Context, last *[]byte) (text []byte, changed bool) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	o, err := s.views.Overview(ctx, s.Run, insight.OverviewParams{Columns: insight.DefaultColumns, Findings: defaultWorst})
	if err == nil {
		text, err = api.Marshal(o)
	}
	return text, err == nil && (last == nil || !bytes.Equal(text, *last))
}

// stall is the time after which the stream of a client that reads nothing ends.
const stall = 30 * time.Second

// stream sends server-sent events: a tick with the status at regular times, state when the state
// of the run has changed, and overview at once and after changes. A client that reconnects gets a
// snapshot first, instead of the missed events.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	p := newParams(r)
	slim := p.word("ranks", "true") == "false"
	err := s.checkWatched(p.path("run"))
	if err == nil {
		err = p.done()
	}
	if err != nil {
		writeProblem(w, err)
		return
	}
	ticks, leave, ok1 := s.ticks.join(r.Context())
	if ok1 {
		defer leave()
	}
	overviews, leave, ok2 := s.overviews.join(r.Context())
	if ok2 {
		defer leave()
	}
	if !ok1 || !ok2 {
		writeProblem(w, problem(http.StatusServiceUnavailable, fmt.Sprintf("%d streams are open", s.Streams), "close unused pages"))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies must not delay events
	out := &eventWriter{w: w, http: http.NewResponseController(w)}
	defer out.release()
	w.WriteHeader(http.StatusOK)
	err = out.begin(s.Tick)
	if r.Header.Get("Last-Event-ID") != "" && err == nil {
		err = s.resume(r.Context(), out)
	}
	for state := api.State(""); err == nil; {
		select {
		case t := <-ticks:
			if t.err == nil && state != "" && state != t.state {
				err = out.event("state", t.seq, map[string]api.State{"state": t.state, "previous": state})
			}
			if t.err == nil {
				state = t.state
			}
			err = errors.Join(err, out.tick(t, slim))
		case text := <-overviews:
			err = out.event("overview", s.seq.Load(), json.RawMessage(text))
		case <-r.Context().Done():
			return
		}
	}
}

// resume sends a snapshot to a client that missed events.
func (s *server) resume(ctx context.Context, out *eventWriter) error {
	seq := s.seq.Load()
	answer, err := s.insight.Snapshot(ctx, s.Run, insight.SnapshotParams{Top: snapshotTop, Newest: snapshotNewest})
	if err != nil {
		return out.event("problem", seq, insight.AsProblem(err))
	}
	return out.event("snapshot", seq, answer)
}

// eventWriter writes server-sent events without delay.
type eventWriter struct {
	w    http.ResponseWriter
	http *http.ResponseController
}

// begin sends the time after which to reconnect.
func (e *eventWriter) begin(retry time.Duration) error {
	return e.send(fmt.Appendf(nil, "retry: %d\n\n", retry.Milliseconds()))
}

func (e *eventWriter) tick(t tick, slim bool) error {
	switch {
	case t.err != nil:
		return e.event("problem", t.seq, insight.AsProblem(t.err))
	case slim:
		return e.event("tick", t.seq, json.RawMessage(t.slim))
	}
	return e.event("tick", t.seq, json.RawMessage(t.full))
}

// event writes one event; its JSON has no line breaks.
func (e *eventWriter) event(name string, seq int64, data any) error {
	text, ok := data.(json.RawMessage)
	if !ok {
		var err error
		if text, err = api.Marshal(data); err != nil {
			return err
		}
	}
	return e.send(fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", seq, name, text))
}

func (e *eventWriter) send(text []byte) error {
	if err := e.http.SetWriteDeadline(time.Now().Add(stall)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.http.Flush()
}

// release removes the deadline from the connection.
func (e *eventWriter) release() { _ = e.http.SetWriteDeadline(time.Time{}) }
