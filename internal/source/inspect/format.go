package inspect

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// event is an event with its place and name.
type event struct {
	*trace.Event
	unit    trace.Unit
	step    int
	rank    trace.Rank
	thread  trace.Thread
	name    string // of the function or counter
	hasName bool
}

func (e *event) isMessage() bool { return e.Kind == trace.Send || e.Kind == trace.Recv }

// size returns the size of a message, or unknown.
func (e *event) size(unknown string) string {
	if n, ok := e.Size(); ok {
		return strconv.FormatUint(n, 10)
	}
	return unknown
}

// label returns the name, or the number of a function or counter that has no name yet.
func (e *event) label() string {
	if e.hasName {
		return e.name
	}
	return "#" + strconv.FormatUint(uint64(e.ID), 10)
}

// formats are the forms of events. Each starts writing to w, where errors stick, and
// returns the function that writes an event.
var formats = map[string]func(w *bufio.Writer) func(e *event) error{"text": textFormat, "jsonl": jsonFormat, "csv": csvFormat}

func textFormat(w *bufio.Writer) func(e *event) error {
	return func(e *event) error {
		second, digits := trace.Ticks(e.unit.PerSecond()), 6
		if e.unit == trace.Nanosecond {
			digits = 9
		}
		fmt.Fprintf(w, "step %d  rank %d  thread %d  %d.%0*d  ", e.step, e.rank, e.thread, e.Time/second, digits, e.Time%second)
		var err error
		switch e.Kind {
		case trace.Send:
			_, err = fmt.Fprintf(w, "send     to %d, tag %d, %s bytes\n", e.Partner(), e.Tag, e.size("unknown"))
		case trace.Recv:
			_, err = fmt.Fprintf(w, "recv     from %d, tag %d, %s bytes\n", e.Partner(), e.Tag, e.size("unknown"))
		case trace.Count:
			_, err = fmt.Fprintf(w, "counter  %s = %d\n", e.label(), e.Value)
		default:
			_, err = fmt.Fprintf(w, "%-7s  %s\n", e.Kind, e.label())
		}
		return err
	}
}

// jsonFormat writes an object per line. It quotes each name only once.
func jsonFormat(w *bufio.Writer) func(e *event) error {
	quoted := make(map[string][]byte)
	var b []byte
	return func(e *event) error {
		number := func(key string, n int64) { b = strconv.AppendInt(append(append(b, key...), ':'), n, 10) }
		b = append(b[:0], '{')
		number(`"step"`, int64(e.step))
		number(`,"rank"`, int64(e.rank))
		number(`,"thread"`, int64(e.thread))
		b = append(append(b, `,"time_us":`...), e.unit.MicrosText(e.Time)...)
		b = append(append(append(b, `,"kind":"`...), e.Kind.String()...), '"')
		number(`,"row"`, int64(e.Row))
		if e.isMessage() {
			number(`,"partner"`, int64(e.Partner()))
			number(`,"tag"`, int64(e.Tag))
			b = append(append(b, `,"bytes":`...), e.size("null")...)
		} else {
			number(`,"id"`, int64(e.ID))
			b = append(b, `,"name":`...)
			if e.hasName {
				q, ok := quoted[e.name]
				if !ok {
					q, _ = json.Marshal(e.name) // strings always marshal
					quoted[e.name] = q
				}
				b = append(b, q...)
			} else {
				b = append(b, "null"...)
			}
			if e.Kind == trace.Count {
				b = strconv.AppendUint(append(b, `,"value":`...), e.Value, 10)
			}
		}
		b = append(b, '}', '\n')
		_, err := w.Write(b)
		return err
	}
}

var csvHeader = []string{"step", "rank", "thread", "time_us", "kind", "row", "id", "name", "partner", "tag", "bytes", "value"}

func csvFormat(w *bufio.Writer) func(e *event) error {
	c := csv.NewWriter(w)  // uses w as its buffer, so the caller flushes it
	_ = c.Write(csvHeader) // errors stick to w
	record := make([]string, len(csvHeader))
	return func(e *event) error {
		clear(record)
		record[0] = strconv.Itoa(e.step)
		record[1] = strconv.Itoa(int(e.rank))
		record[2] = strconv.FormatUint(uint64(e.thread), 10)
		record[3] = e.unit.MicrosText(e.Time)
		record[4] = e.Kind.String()
		record[5] = strconv.FormatUint(uint64(e.Row), 10)
		if e.isMessage() {
			record[8] = strconv.Itoa(int(e.Partner()))
			record[9] = strconv.Itoa(int(e.Tag))
			record[10] = e.size("")
		} else {
			record[6] = strconv.FormatUint(uint64(e.ID), 10)
			record[7] = e.name
		}
		if e.Kind == trace.Count {
			record[11] = strconv.FormatUint(e.Value, 10)
		}
		return c.Write(record)
	}
}
