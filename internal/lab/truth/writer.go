package truth

import (
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// bufferSize is how much a Writer holds before it writes.
const bufferSize = 64 << 10

// Writer writes a truth.jsonl. Troubles come first, then calls. It keeps nothing of
// what it is given and allocates nothing for a call. After the first error it
// writes nothing more, and Flush returns that error. It must not be shared.
type Writer struct {
	w   io.Writer
	buf []byte
	err error
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, buf: make([]byte, 0, bufferSize+4<<10)}
}

// Flush writes what is still held, and returns the first error there was.
func (w *Writer) Flush() error {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.w.Write(w.buf)
	}
	w.buf = w.buf[:0]
	return w.err
}

// Trouble writes the line of a trouble.
func (w *Writer) Trouble(t *Trouble) {
	w.buf = append(w.buf, `{"trouble":`...)
	w.text(t.Name)
	w.key("kind")
	w.text(t.Kind)
	w.key("each")
	w.buf = strconv.AppendBool(w.buf, t.Each)
	w.key("program")
	w.buf = strconv.AppendUint(w.buf, uint64(t.Program), 10)
	w.key("hosts")
	w.texts(t.Hosts)
	w.key("ranks")
	w.ranks(t.Ranks)
	w.key("functions")
	w.texts(t.Functions)
	w.number("from_us", int64(t.From))
	w.number("to_us", int64(t.To))
	w.key("text")
	w.text(t.Text)
	w.end()
}

// Call writes the line of a call.
func (w *Writer) Call(c *Call) {
	w.buf = append(w.buf, `{"call":`...)
	w.text(c.Event)
	w.key("trouble")
	w.text(c.Trouble)
	w.key("role")
	w.text(string(c.Role))
	w.key("program")
	w.buf = strconv.AppendUint(w.buf, uint64(c.Program), 10)
	w.number("rank", int64(c.Rank))
	w.key("thread")
	w.buf = strconv.AppendUint(w.buf, uint64(c.Thread), 10)
	w.key("function")
	w.text(c.Function)
	w.number("entry_us", int64(c.Entry))
	w.number("exit_us", int64(c.Exit))
	w.number("injected_us", int64(c.Injected))
	if c.Culprit != nil {
		w.number("culprit", int64(*c.Culprit))
	}
	if c.Minor {
		w.key("minor")
		w.buf = append(w.buf, "true"...)
	}
	w.end()
}

func (w *Writer) end() {
	w.buf = append(w.buf, '}', '\n')
	if len(w.buf) >= bufferSize {
		_ = w.Flush() // the error sticks
	}
}

func (w *Writer) key(name string) {
	w.buf = append(w.buf, ',', '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

func (w *Writer) number(name string, n int64) {
	w.key(name)
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

func (w *Writer) texts(list []string) {
	w.buf = append(w.buf, '[')
	for i, s := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.text(s)
	}
	w.buf = append(w.buf, ']')
}

func (w *Writer) ranks(list []trace.Rank) {
	w.buf = append(w.buf, '[')
	for i, r := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = strconv.AppendInt(w.buf, int64(r), 10)
	}
	w.buf = append(w.buf, ']')
}

// text appends s as JSON. What is not UTF-8 becomes U+FFFD.
func (w *Writer) text(s string) {
	const hex = "0123456789abcdef"
	b := append(w.buf, '"')
	start := 0 // of what is not yet appended
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), `\ufffd`...)
				start = i + 1
			}
			i += size
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			b = append(b, s[start:i]...)
			if c < ' ' {
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			} else {
				b = append(b, '\\', c)
			}
			start = i + 1
		}
		i++
	}
	b = append(b, s[start:]...)
	w.buf = append(b, '"')
}
