package sst

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

func FuzzFrames(f *testing.F) {
	for _, name := range captures {
		rec := recorded(f, name)
		f.Add(rec.reader[:min(len(rec.reader), 4096)])
		f.Add(rec.writer[:min(len(rec.writer), 16384)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := &frames{r: bufio.NewReader(bytes.NewReader(b)), pool: &pool{max: 1 << 20}, expected: func() int64 { return 0 }}
		for read := 0; ; {
			fr, err := in.next()
			if err != nil {
				return
			}
			var again []byte
			switch {
			case fr.handshake != nil:
				continue // has bytes that mean nothing
			case fr.exchange != nil:
				again = fr.exchange.append(nil)
			case fr.record != nil:
				if cap(fr.record) > 2*len(b)+trustedSize {
					t.Fatalf("%d bytes of memory for %d that came", cap(fr.record), len(b))
				}
				again = appendRecord(nil, fr.record)
				in.pool.put(fr.record)
			default:
				t.Fatal("an empty frame without an error")
			}
			if read += len(again); read > len(b) {
				t.Fatalf("frames of %d bytes in %d", read, len(b))
			}
		}
	})
}

func FuzzHandshake(f *testing.F) {
	for _, name := range captures {
		rec := recorded(f, name)
		f.Add(rec.reader[:handshakeSize])
		f.Add(rec.writer[:handshakeSize])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := newTestConn(b)
		own := address{manager: 3}
		err := c.greet(address{manager: 7}, &own)
		fr, ferr := newTestConn(b).frames.next()
		if want := ferr == nil && fr.handshake != nil && fr.handshake.manager == 7; (err == nil) != want {
			t.Errorf("the handshake %+v is taken with the error %v", fr.handshake, err)
		}
	})
}

// FuzzMessage parses each message of a writer, in any format.
func FuzzMessage(f *testing.F) {
	formats := make(map[ffs.ID][]byte)
	for _, name := range captures {
		for _, fr := range framesOf(f, recorded(f, name).writer) {
			if fr.exchange != nil && fr.exchange.kind == announceFormat {
				formats[ffs.ID(fr.exchange.first)] = fr.exchange.second
			}
			if fr.record != nil && len(fr.record) < 1<<16 {
				f.Add(formats[ffs.ID(fr.record)], fr.record)
			}
		}
	}
	f.Fuzz(func(t *testing.T, rep, record []byte) {
		fm, err := ffs.ParseFormat(ffs.ID{}, rep)
		if err != nil {
			return
		}
		rec, err := fm.Decode(record)
		if err != nil {
			return
		}
		if s, err := parseStepMetadata(rec); err == nil {
			for _, fd := range s.formats {
				if len(fd.rep) > len(record) {
					t.Fatal("a format longer than its message")
				}
			}
		}
		if w, err := parseWriterResponse(rec); err == nil && len(w.writers) == 0 {
			t.Fatal("a response without writers")
		}
		if d, err := parseStepData(rec, 0, record); err == nil && len(d.data) > len(record) {
			t.Fatal("more data than the message has")
		}
		m := &incoming{Record: rec}
		_ = m.text("writer_data_plane") // any value
	})
}

// FuzzSession reads a stream of any bytes that a writer may send after the registration.
func FuzzSession(f *testing.F) {
	for _, name := range captures {
		b := recorded(f, name).writer
		f.Add(b[:min(len(b), 1<<14)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &Reader{path: "x.sst", opt: Default(), wake: make(chan struct{}, 1), stream: bp.NewStream("x.sst"), last: -1}
		r.opt.Queue = 1 << 40 // no one waits
		r.room.L = &r.mu
		c := newTestConn(b)
		c.frames.pool = &r.pool
		r.conns, r.resp = []*conn{c}, writerResponse{writers: []writerInfo{{control: 1, data: 2}}}
		r.receive(c)
		for last := -1; ; {
			s, err := r.take()
			if err != nil {
				break
			}
			if s == nil || s.Index <= last {
				t.Fatalf("after step %d came %v", last, s)
			}
			last = s.Index
			for i := range s.Variables {
				for j := range s.Variables[i].Blocks {
					blk := &s.Variables[i].Blocks[j]
					if blk.Size() > int64(len(b)) {
						continue // refused, or it is an error
					}
					_, _ = s.Bytes(&s.Variables[i], blk, make([]byte, blk.Size()), 0) // must not panic
				}
			}
		}
		if r.err == nil {
			t.Error("the stream has no end")
		}
	})
}

// testConn is a connection whose peer has sent everything and ignores input.
type testConn struct {
	net.Conn
	io.Reader
}

func (c testConn) Read(p []byte) (int, error)       { return c.Reader.Read(p) }
func (testConn) Write(p []byte) (int, error)        { return len(p), nil }
func (testConn) Close() error                       { return nil }
func (testConn) SetWriteDeadline(_ time.Time) error { return nil }
func (testConn) LocalAddr() net.Addr                { return &net.TCPAddr{} }

func newTestConn(b []byte) *conn {
	c := &conn{
		Conn: testConn{Reader: bytes.NewReader(b)}, formats: make(map[ffs.ID]*ffs.Format), requested: make(map[ffs.ID]uint32),
		announced: make(map[*outgoing]bool),
	}
	c.frames = frames{r: bufio.NewReader(c.Conn), pool: &pool{}, expected: c.expected}
	return c
}

func TestTruncatedStreamYieldsCompleteSteps(t *testing.T) {
	b := recorded(t, "writer1-reader1").writer
	last := 0
	for n := 0; n < len(b); n += 101 {
		r := &Reader{path: "x.sst", opt: Default(), wake: make(chan struct{}, 1), stream: bp.NewStream("x.sst"), last: -1}
		r.room.L = &r.mu
		c := newTestConn(b[:n])
		r.conns, r.resp = []*conn{c}, writerResponse{writers: []writerInfo{{control: 1, data: 2}}}
		r.receive(c)
		steps := 0
		for {
			if _, err := r.take(); err != nil {
				if !errors.Is(err, ErrCut) && !errors.Is(err, io.EOF) {
					t.Fatalf("cut after %d bytes: %v", n, err)
				}
				break
			}
			steps++
		}
		if steps < last {
			t.Fatalf("cut after %d bytes: %d steps, but there were %d before", n, steps, last)
		}
		last = steps
	}
	if last < 2 {
		t.Errorf("only %d steps", last)
	}
}
