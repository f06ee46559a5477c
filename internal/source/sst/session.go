package sst

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"syscall"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

// maxRequested is the maximum number of unanswered requests for data. More would only fill the
// sockets.
const maxRequested = 64

// attach connects, registers and receives until the stream ends.
func (r *Reader) attach(ctx context.Context) error {
	var own address
	c, at, err := r.connect(ctx, &own)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // ctx has ended
	defer stop()
	if r.opt.Save {
		if err := r.restore(at); err != nil {
			r.failToSave(err)
		}
	}
	resp, conns, err := r.register(ctx, c, at, &own)
	if err != nil {
		_ = c.Close() // the first error is the one that matters
		return r.explainEnd(err)
	}
	r.mu.Lock()
	if r.err != nil { // closed in the meantime
		err = r.err
	}
	r.resp, r.conns = resp, conns
	if err == nil {
		err = c.send(readerActivate, ffs.Values{"WSR_Stream": resp.writers[0].control})
	}
	if err != nil {
		r.leave()
	}
	r.mu.Unlock()
	if err != nil {
		return r.explainEnd(err)
	}
	for _, other := range conns[1:] {
		r.work.Go(func() { r.receive(other) })
	}
	r.receive(c)
	return nil
}

// receive handles all messages of a connection.
func (r *Reader) receive(c *conn) {
	for {
		rec, b, err := c.receive()
		r.mu.Lock()
		if err == nil && r.err == nil {
			err = r.handle(c, rec, b)
		}
		if err != nil {
			r.fail(r.explainEnd(err))
		}
		for r.err == nil && r.held > 2*r.opt.Queue && len(r.queue) > 0 && r.queue[0].missing == 0 {
			r.room.Wait()
		}
		ended := r.err != nil
		r.mu.Unlock()
		if ended {
			return
		}
	}
}

// handle handles a message; mu is locked.
func (r *Reader) handle(c *conn, rec ffs.Record, b []byte) error {
	switch rec.Format.Name {
	case metadataName:
		s, err := parseStepMetadata(rec)
		if err != nil {
			return err
		}
		if err := r.begin(&s, b); err != nil {
			return err
		}
	case preloadName, replyName:
		d, err := parseStepData(rec, c.writer, b)
		if err != nil {
			return err
		}
		if rec.Format.Name == replyName {
			c.requestedBytes.Add(-int64(len(d.data)))
		}
		if err := r.arrive(d); err != nil && rec.Format.Name == replyName {
			return err
		} else if err != nil {
			r.pool.put(b) // unrequested data may be useless
		}
	case closeName:
		r.final = true
		r.pool.put(b)
	default: // not needed
		r.pool.put(b)
	}
	r.advance()
	return nil
}

// begin queues a step with its metadata.
func (r *Reader) begin(s *stepMetadata, b []byte) error {
	if s.step > math.MaxInt32 {
		return protocolError("a step with the number %d", s.step)
	}
	if last := r.newest(); int64(s.step) <= last {
		return protocolError("step %d after step %d", s.step, last)
	}
	for _, f := range s.formats {
		r.stream.AddFormat(f.id, f.rep)
	}
	p := &pending{step: int64(s.step), discarded: s.discarded, unrequested: s.preload, buffers: [][]byte{b}, size: int64(len(b))}
	p.parts = make([]bp.Part, max(len(s.metadata), len(s.attributes)))
	p.wants = make([]uint64, len(p.parts))
	for w, a := range s.attributes {
		p.parts[w].Attributes = a
	}
	if len(s.metadata) > len(r.resp.writers) {
		return protocolError("metadata of %d writers, want %d", len(s.metadata), len(r.resp.writers))
	}
	for w, md := range s.metadata {
		if len(md) == 0 {
			continue
		}
		n, err := r.stream.DataSize(md)
		if err != nil {
			return err
		}
		if n > math.MaxInt32-recordOverhead {
			return &bp.UnsupportedError{
				What:   fmt.Sprintf("a step of %d bytes", n),
				Advice: "have TAU write steps more often (TAU_ADIOS2_PERIODIC, TAU_ADIOS2_PERIOD)",
			}
		}
		p.parts[w].Metadata = md
		if n > 0 {
			p.wants[w] = n
			p.missing++
			p.size += int64(n)
		}
	}
	p.here = int64(len(b))
	r.held += p.here
	r.queue = append(r.queue, p)
	r.broken++
	r.adopt(p)
	if p.missing == 0 {
		return r.release(p)
	}
	return nil
}

// newest returns the number of the last step whose metadata have arrived.
func (r *Reader) newest() int64 {
	if len(r.queue) > 0 {
		return r.queue[len(r.queue)-1].step
	}
	return r.last
}

// adopt adds the data that arrived before the metadata to a step, and drops the data of
// earlier steps without metadata.
func (r *Reader) adopt(p *pending) {
	r.early = slices.DeleteFunc(r.early, func(d stepData) bool {
		if d.step > uint64(p.step) {
			return false
		}
		if d.step < uint64(p.step) || !p.take(d) {
			r.held -= int64(len(d.buf))
			r.pool.put(d.buf)
		}
		return true
	})
}

// take adds data to the step and reports whether they belong to it.
func (p *pending) take(d stepData) bool {
	if d.writer >= len(p.wants) || p.wants[d.writer] == 0 || uint64(len(d.data)) < p.wants[d.writer] {
		return false
	}
	p.parts[d.writer].Data = d.data
	p.wants[d.writer] = 0
	p.missing--
	p.buffers = append(p.buffers, d.buf)
	p.here += int64(len(d.buf))
	return true
}

// arrive adds data to their step.
func (r *Reader) arrive(d stepData) error {
	r.bytes += int64(len(d.data))
	unasked := func() error {
		return protocolError("%d bytes of data of writer %d for step %d, which were not requested", len(d.data), d.writer, d.step)
	}
	at, found := slices.BinarySearchFunc(r.queue, d.step, func(p *pending, step uint64) int { return cmp.Compare(uint64(p.step), step) })
	if found {
		p := r.queue[at]
		if p.requested {
			r.requested--
		}
		if !p.take(d) {
			return unasked()
		}
		r.held += int64(len(d.buf))
		if p.missing == 0 {
			return r.release(p)
		}
		return nil
	}
	if d.step > math.MaxInt32 || int64(d.step) <= r.newest() {
		return unasked()
	}
	r.early = append(r.early, d)
	r.held += int64(len(d.buf))
	return nil
}

// release reports to the writer that a step has arrived completely.
func (r *Reader) release(p *pending) error {
	r.broken--
	r.notify()
	if p.discarded {
		return nil
	}
	return r.conns[0].send(releaseTimestep, ffs.Values{"WSR_Stream": r.resp.writers[0].control, "Timestep": uint64(p.step)})
}

// advance requests the data of the next steps as far as there is room for them, and ends
// the stream after the last. mu is locked.
func (r *Reader) advance() {
	if r.err != nil {
		return
	}
	for ; r.next < len(r.queue); r.next++ {
		p := r.queue[r.next]
		if p.missing > 0 && !p.unrequested {
			if r.ahead > 0 && r.ahead+p.size > r.opt.Queue || r.requested >= maxRequested {
				return
			}
			if err := r.request(p); err != nil {
				r.fail(r.explainEnd(err))
				return
			}
		}
		r.ahead += p.size
	}
	if r.broken == 0 && r.final {
		r.fail(io.EOF)
	}
}

// request requests the data of a step.
func (r *Reader) request(p *pending) error {
	p.requested = true
	for w, n := range p.wants {
		if n == 0 {
			continue
		}
		r.requested++
		r.conns[w].requestedBytes.Add(int64(n))
		if err := r.conns[w].send(readRequest, ffs.Values{
			"Timestep": uint64(p.step), "Offset": uint64(0), "Length": n, "WS_Stream": r.resp.writers[w].data,
			"RS_Stream": uint64(ownData), "RequestingRank": uint64(0), "NotifyCondition": uint64(conditionData),
		}); err != nil {
			return err
		}
	}
	return nil
}

// explainEnd adds the meaning to an error of a connection.
func (r *Reader) explainEnd(err error) error {
	if refused, ok := errors.AsType[*bp.UnsupportedError](err); ok {
		if refused.Path == "" {
			refused.Path = r.path
		}
		return err
	}
	if isCut(err) {
		return fmt.Errorf("%s: %w (%w)", r.path, ErrCut, err)
	}
	if _, ok := errors.AsType[*bp.CorruptError](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", r.path, err)
}

// isCut reports whether an error means that the connection ended.
func isCut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ETIMEDOUT)
}
