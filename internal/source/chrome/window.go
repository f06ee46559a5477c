package chrome

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
)

const (
	firstWindow = 256 << 10
	slack       = 8 // zero bytes after the window, so that loops end and words can be loaded
)

// window is the part of the input in memory.
type window struct {
	src  io.Reader
	raw  *counter // compressed input; nil if it is plain
	in   *bufio.Reader
	buf  []byte
	pos  int   // next byte
	end  int   // of the bytes that were read
	base int64 // offset of buf[0]
	eof  bool  // nothing follows end
	err  error // reason, if not io.EOF
}

// counter counts the bytes that were read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// open detects compression by the first bytes.
func (w *window) open() {
	w.buf = make([]byte, firstWindow+slack)
	raw := &counter{r: w.src}
	in := bufio.NewReaderSize(raw, 64<<10)
	w.src = in
	head, err := in.Peek(2)
	switch {
	case len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b:
		w.raw, w.in = raw, in
		z, err := gzip.NewReader(in)
		if err != nil {
			w.stop(err)
			return
		}
		w.src = z
	case err != nil && !errors.Is(err, io.EOF):
		w.err = err
	}
}

// stop ends the input.
func (w *window) stop(err error) {
	w.eof = true
	if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		w.err = err
	}
}

// compressed returns the number of compressed bytes that were used, or -1.
func (w *window) compressed() int64 {
	if w.raw == nil {
		return -1
	}
	return w.raw.n - int64(w.in.Buffered())
}

// more drops the bytes before keep and reads more. It returns false at the end of the input, or if
// limit bytes from keep are already in memory. Positions move by -keep.
func (w *window) more(keep, limit int) bool {
	kept := w.end - keep
	if w.eof || kept >= limit {
		return false
	}
	from := w.buf[keep:w.end]
	if kept > (len(w.buf)-slack)/2 {
		w.buf = make([]byte, 2*(len(w.buf)-slack)+slack)
	}
	copy(w.buf, from)
	w.base += int64(keep)
	w.pos -= keep
	w.end = kept
	// A long event is parsed again from its start: read as much as it has already.
	before := w.end
	for idle := 0; w.end == before || w.end-before < kept/2; {
		n, err := w.src.Read(w.buf[w.end : len(w.buf)-slack])
		w.end += n
		if err != nil {
			w.stop(err)
			break
		}
		if n > 0 {
			idle = 0
		} else if idle++; idle == 100 {
			w.stop(io.ErrNoProgress)
			break
		}
	}
	clear(w.buf[w.end : w.end+slack])
	return w.end > before
}
