package truth

import (
	"bufio"
	"encoding/json"
	"io"
)

// Writer writes a truth.jsonl. Troubles must precede calls. It keeps nothing of its
// arguments and allocates nothing for a call. After the first error it writes nothing,
// and Flush returns that error. It must not be shared.
type Writer struct {
	buf *bufio.Writer
	enc *json.Encoder
	err error
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer {
	buf := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	return &Writer{buf: buf, enc: enc}
}

// Flush writes buffered lines, and returns the first error.
func (w *Writer) Flush() error {
	if w.err == nil {
		w.err = w.buf.Flush()
	}
	return w.err
}

// Trouble writes the line of a trouble.
func (w *Writer) Trouble(t *Trouble) {
	line := *t
	line.Hosts, line.Ranks, line.Functions = notNil(t.Hosts), notNil(t.Ranks), notNil(t.Functions)
	w.write(&line)
}

// notNil returns a list that JSON writes as [], not null, if it is empty.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Call writes the line of a call.
func (w *Writer) Call(c *Call) { w.write(c) }

func (w *Writer) write(line any) {
	if w.err == nil {
		w.err = w.enc.Encode(line)
	}
}
