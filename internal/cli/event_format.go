package cli

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// eventFormat prints one event.
type eventFormat func(e *namedEvent) error

// newEventFormat returns the format of that name, which prints to w.
func newEventFormat(name string, w *bufio.Writer) (eventFormat, error) {
	switch name {
	case "text":
		return textFormat(w), nil
	case "jsonl":
		return jsonFormat(w), nil
	case "csv":
		return csvFormat(w)
	}
	return nil, usagef("--format: unknown value %q (want text, jsonl, csv)", name)
}

func (e *namedEvent) isMessage() bool { return e.Kind == trace.Send || e.Kind == trace.Recv }

// label is the name, or the number of what has no name yet.
func (e *namedEvent) label() string {
	if e.known {
		return e.name
	}
	return "#" + strconv.FormatUint(uint64(e.ID), 10)
}

func textFormat(w *bufio.Writer) eventFormat {
	return func(e *namedEvent) error {
		fmt.Fprintf(w, "step %d  rank %d  thread %d  %d.%06d  ", e.step, e.rank, e.thread, e.Time/1e6, e.Time%1e6)
		var err error
		switch e.Kind {
		case trace.Send:
			_, err = fmt.Fprintf(w, "send     to %d, tag %d, %d bytes\n", e.Partner(), e.Tag, e.Value)
		case trace.Recv:
			_, err = fmt.Fprintf(w, "recv     from %d, tag %d, %d bytes\n", e.Partner(), e.Tag, e.Value)
		case trace.Count:
			_, err = fmt.Fprintf(w, "counter  %s = %d\n", e.label(), e.Value)
		default:
			_, err = fmt.Fprintf(w, "%-7s  %s\n", e.Kind, e.label())
		}
		return err
	}
}

// jsonFormat prints an object a line. It quotes each name only once.
func jsonFormat(w *bufio.Writer) eventFormat {
	quoted := make(map[string][]byte)
	var b []byte
	return func(e *namedEvent) error {
		number := func(key string, n int64) { b = strconv.AppendInt(append(append(b, key...), ':'), n, 10) }
		b = append(b[:0], '{')
		number(`"step"`, int64(e.step))
		number(`,"rank"`, int64(e.rank))
		number(`,"thread"`, int64(e.thread))
		number(`,"time_us"`, int64(e.Time))
		b = append(append(append(b, `,"kind":"`...), e.Kind.String()...), '"')
		number(`,"row"`, int64(e.Row))
		if e.isMessage() {
			number(`,"partner"`, int64(e.Partner()))
			number(`,"tag"`, int64(e.Tag))
			b = strconv.AppendUint(append(b, `,"bytes":`...), e.Value, 10)
		} else {
			number(`,"id"`, int64(e.ID))
			b = append(b, `,"name":`...)
			if e.known {
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

func csvFormat(w *bufio.Writer) (eventFormat, error) {
	c := csv.NewWriter(w) // which takes w for its own buffer: the caller flushes it
	if err := c.Write(csvHeader); err != nil {
		return nil, err
	}
	record := make([]string, len(csvHeader))
	return func(e *namedEvent) error {
		clear(record)
		record[0] = strconv.Itoa(e.step)
		record[1] = strconv.Itoa(int(e.rank))
		record[2] = strconv.FormatUint(uint64(e.thread), 10)
		record[3] = strconv.FormatInt(int64(e.Time), 10)
		record[4] = e.Kind.String()
		record[5] = strconv.FormatUint(uint64(e.Row), 10)
		if e.isMessage() {
			record[8] = strconv.Itoa(int(e.Partner()))
			record[9] = strconv.Itoa(int(e.Tag))
			record[10] = strconv.FormatUint(e.Value, 10)
		} else {
			record[6] = strconv.FormatUint(uint64(e.ID), 10)
			record[7] = e.name
		}
		if e.Kind == trace.Count {
			record[11] = strconv.FormatUint(e.Value, 10)
		}
		return c.Write(record)
	}, nil
}
