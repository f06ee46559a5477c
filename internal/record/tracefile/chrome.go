package tracefile

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// chromeTrace is a trace in the JSON object format.
type chromeTrace struct {
	DisplayTimeUnit string        `json:"displayTimeUnit"`
	TraceEvents     []chromeEvent `json:"traceEvents"`
}

// chromeEvent is one event. Its phase is M for the name of a track, X for a slice, i for a
// point in time, C for a value of a counter, s and f for the ends of an arrow.
type chromeEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	Time  json.Number    `json:"ts,omitempty"` // microseconds; except for M
	Dur   json.Number    `json:"dur,omitempty"`
	PID   uint64         `json:"pid"`
	TID   uint64         `json:"tid"`
	Scope string         `json:"s,omitempty"`  // of an instant: t, its thread
	ID    string         `json:"id,omitempty"` // of an arrow
	Bind  string         `json:"bp,omitempty"` // of the end of an arrow: e, the slice around it
	Args  map[string]any `json:"args,omitempty"`
}

func writeChrome(w io.Writer, m *model) error {
	out := chromeTrace{DisplayTimeUnit: "ns", TraceEvents: make([]chromeEvent, 0, len(m.tracks)+len(m.events))}
	for _, t := range m.tracks {
		e := chromeEvent{Phase: "M", PID: t.pid, TID: t.tid, Args: map[string]any{"name": provenance.Text(t.name)}}
		switch t.kind {
		case processTrack:
			e.Name = "process_name"
		case threadTrack:
			e.Name = "thread_name"
		default:
			continue // counters name themselves
		}
		out.TraceEvents = append(out.TraceEvents, e)
	}
	for i := range m.events {
		out.TraceEvents = m.appendChrome(out.TraceEvents, &m.events[i])
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

// appendChrome appends an event and its ends of arrows.
func (m *model) appendChrome(list []chromeEvent, e *event) []chromeEvent {
	c := chromeEvent{
		Name: provenance.Text(e.name), Cat: strings.Join(e.categories, ","),
		Time: m.micros(e.time), PID: e.track.pid, TID: e.track.tid, Args: chromeArgs(e.args),
	}
	switch e.kind {
	case begin:
		c.Phase, c.Dur = "X", m.micros(e.span)
	case end: // the slice has its duration
		return list
	case instant:
		c.Phase, c.Scope = "i", "t"
	case count:
		c.Phase, c.Name, c.Args = "C", counterName(e.track), map[string]any{"value": e.value}
	}
	list = append(list, c)
	for _, f := range e.flows {
		arrow := chromeEvent{
			Name: f.name, Cat: f.name, Phase: "s", ID: fmt.Sprintf("%#x", f.id),
			Time: c.Time, PID: c.PID, TID: c.TID,
		}
		if !f.out {
			arrow.Phase, arrow.Bind = "f", "e"
		}
		list = append(list, arrow)
	}
	return list
}

// micros returns a time with all its digits.
func (m *model) micros(t trace.Ticks) json.Number { return json.Number(m.unit.MicrosText(t)) }

// counterName returns the name of a counter that is unique in the process.
func counterName(t *track) string {
	if t.parent.kind == groupTrack {
		return provenance.Text(t.parent.name + ": " + t.name)
	}
	return provenance.Text(t.name)
}

func chromeArgs(args []arg) map[string]any {
	object := make(map[string]any, len(args))
	for _, a := range args {
		switch v := a.value.(type) {
		case string:
			object[a.name] = provenance.Text(v)
		case float64:
			object[a.name] = v
			if math.IsNaN(v) || math.IsInf(v, 0) { // not a JSON number
				object[a.name] = fmt.Sprint(v)
			}
		default:
			object[a.name] = v
		}
	}
	return object
}
