package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/insight"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// tick is one look at the pipeline, shared by all streams.
type tick struct {
	seq   int64
	state api.State
	full  []byte // the Status as JSON
	slim  []byte // without ranks
	err   error  // of the source; nothing else is set then
}

// hub looks at the pipeline at equal times while there are streams, once for all
// of them.
type hub struct {
	source insight.Source
	every  time.Duration
	most   int // streams

	mu      sync.Mutex
	seq     int64
	streams map[chan tick]bool
	stop    context.CancelFunc // of the looking
}

// join returns a channel of ticks. A reader that is slow misses some, but never
// the newest. leave must be called.
func (h *hub) join(ctx context.Context) (ticks <-chan tick, leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= h.most {
		return nil, nil, &problem{
			http.StatusServiceUnavailable, fmt.Sprintf("%d streams are open already", h.most),
			"close pages that are not looked at",
		}
	}
	if h.streams == nil {
		h.streams = make(map[chan tick]bool)
	}
	ch := make(chan tick, 1)
	h.streams[ch] = true
	if len(h.streams) == 1 {
		ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx)) // other streams may outlive this one
		go h.run(ctx)
	}
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if delete(h.streams, ch); len(h.streams) == 0 {
			h.stop()
		}
	}, nil
}

func (h *hub) run(ctx context.Context) {
	t := time.NewTicker(h.every)
	defer t.Stop()
	for {
		h.look(ctx)
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// look takes the Status and hands it to all streams.
func (h *hub) look(ctx context.Context) {
	var t tick
	status, err := h.source.Status(ctx)
	if err == nil {
		slim := *status
		slim.Ranks = nil
		t.state = status.Run.State
		t.full, err = api.Marshal(status)
		t.slim, t.err = api.Marshal(&slim)
	}
	t.err = errors.Join(err, t.err)
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return // the streams that are there now have another to look for them
	}
	h.seq++
	t.seq = h.seq
	for ch := range h.streams {
		select {
		case <-ch: // missed
		default:
		}
		ch <- t // there is room, and nobody else sends
	}
}

// sequence is the number of the last tick.
func (h *hub) sequence() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seq
}

// stall is how long a client may take nothing before its stream is given up.
const stall = 30 * time.Second

// stream sends server-sent events: a tick with the Status at equal times, state when
// that of the run has changed, and overview at once and when it has changed. A client
// that comes back gets a snapshot first, instead of what it missed.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	p := newParams(r)
	slim := p.word("ranks", "true") == "false"
	err := p.done()
	if err == nil {
		err = s.watched(r.PathValue("run"))
	}
	if err != nil {
		writeProblem(w, r, err)
		return
	}
	ticks, leave, err := s.hub.join(r.Context())
	if err != nil {
		writeProblem(w, r, err)
		return
	}
	defer leave()
	overviews, leaveBoard := s.board.join(r.Context())
	defer leaveBoard()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies shall pass events on at once
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
			err = out.event("overview", s.hub.sequence(), json.RawMessage(text))
		case <-r.Context().Done():
			return
		}
	}
}

// resume sends what a client needs that does not know what it missed. The
// number of the event is that of the last tick.
func (s *server) resume(ctx context.Context, out *eventWriter) error {
	seq := s.hub.sequence()
	answer, err := s.insight.Snapshot(ctx, s.Run, insight.SnapshotParams{Top: snapshotTop, Newest: snapshotNewest})
	if err != nil {
		return out.event("problem", seq, asProblem(err))
	}
	return out.event("snapshot", seq, answer)
}

// eventWriter writes server-sent events, each at once.
type eventWriter struct {
	w    http.ResponseWriter
	http *http.ResponseController
}

// begin tells how soon to come back after a stream was cut.
func (e *eventWriter) begin(retry time.Duration) error {
	return e.send(fmt.Appendf(nil, "retry: %d\n\n", retry.Milliseconds()))
}

func (e *eventWriter) tick(t tick, slim bool) error {
	switch {
	case t.err != nil:
		return e.event("problem", t.seq, asProblem(t.err))
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

// release leaves no deadline to what follows on the connection.
func (e *eventWriter) release() { _ = e.http.SetWriteDeadline(time.Time{}) }
