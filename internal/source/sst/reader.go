// Package sst reads the steps of ADIOS2 SST streams from running programs without
// ADIOS2: it finds the writer by its contact file, implements the protocol of SST over
// TCP, and returns the same steps as package bp. It does not interpret the variables.
//
// It protects the program that it reads from. It takes a step from the writer as soon as
// there is room for it, and releases it at once. After any error it closes the
// connection, and the writer continues without a reader. It does not trust the peer.
//
// It supports SST over TCP: data plane "evpath" with BP5 metadata, as in ADIOS2 2.9 and
// later. Errors about other streams name the setting to change.
package sst

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

// Options configure a Reader. Start from Default.
type Options struct {
	// ConnectTimeout is how long to wait for the contact file and an answer of its
	// program; 0 means forever.
	ConnectTimeout time.Duration
	// Idle is how long Next waits for a step before it returns bp.ErrIdle; 0 means
	// forever, bp.NoWait not at all.
	Idle time.Duration
	// Queue is the number of bytes of steps to read ahead. One step of any size is always read
	// ahead.
	Queue int64
	// Preload makes the writer send the data of a step when the step ends instead of on request.
	// That saves the time of the request, but a writer then waits in its EndStep for a slow reader.
	Preload bool
	// Connected, if not nil, is called after the registration was sent. The program
	// answers it at its next step.
	Connected func(address string)
	// Save keeps the attributes of the stream in a file beside its contact file, because the writer
	// sends them only once. The next reader of the stream with this option returns them first, in
	// steps that have nothing else. They are on disk before Next returns their step.
	Save bool
	// Unsaved, if not nil, is called with the error if attributes cannot be saved.
	Unsaved func(error)
	// Tally counts losses; it may be nil.
	Tally *tally.Tally
}

// Default returns the default options.
func Default() Options { return Options{ConnectTimeout: time.Minute, Queue: 64 << 20} }

// Validate reports all errors in the options.
func (o Options) Validate() error {
	var errs []error
	if o.ConnectTimeout < 0 || o.Idle < 0 && o.Idle != bp.NoWait {
		errs = append(errs, fmt.Errorf("connect timeout %v or idle limit %v is negative", o.ConnectTimeout, o.Idle))
	}
	if o.Queue <= 0 {
		errs = append(errs, fmt.Errorf("queue of %d bytes must be positive", o.Queue))
	}
	return errors.Join(errs...)
}

// ErrCut means that the program or the connection ended before the stream was closed.
// Next returns all complete steps first.
var ErrCut = errors.New("the stream ended without being closed: the program was killed or has crashed, or the connection with it broke")

// Reader iterates over the steps of one stream. Always close it, because the program may
// wait for it until then. It serves one goroutine.
type Reader struct {
	path string
	opt  Options
	stop context.CancelFunc
	work sync.WaitGroup
	pool pool

	mu        sync.Mutex
	wake      chan struct{} // has one element if something changed
	room      sync.Cond     // the queue became shorter
	conns     []*conn
	resp      writerResponse
	stream    *bp.Stream
	queue     []*pending // oldest first
	early     []stepData // data that arrived before their metadata
	held      int64      // bytes of all these
	next      int        // index in queue of the first step whose data are not requested
	ahead     int64      // bytes of the steps before it
	broken    int        // number of incomplete steps in the queue
	requested int        // number of unanswered requests
	final     bool       // the writer closed the stream
	err       error      // that ended the stream; the queue may still have steps
	bytes     int64      // bytes of data received

	restored []savedStep // of an earlier reader, to return before all others
	saving   bool        // attributes

	started bool       // a step was returned
	last    int64      // number of the last returned step
	current [][]byte   // buffers of the last returned step
	skipped []*pending // discarded steps before the next one, with their attributes
}

// pending is a step whose metadata have arrived.
type pending struct {
	step        int64
	discarded   bool
	unrequested bool // the data come without a request
	requested   bool
	parts       []bp.Part
	wants       []uint64 // bytes of missing data by writer
	missing     int      // number of writers whose data are missing
	size        int64    // bytes of metadata and data
	here        int64    // bytes that have arrived
	buffers     [][]byte
}

// Open starts reading the stream of the contact file at path, which need not exist yet.
// It does not wait; Next returns errors.
func Open(path string, opt Options) (*Reader, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Reader{
		path: path, opt: opt, stop: stop, wake: make(chan struct{}, 1), stream: bp.NewStream(path), last: -1,
		pool: pool{max: opt.Queue},
	}
	r.room.L = &r.mu
	r.work.Go(func() { r.run(ctx) })
	return r, nil
}

// Path returns the path that was opened.
func (r *Reader) Path() string { return r.path }

// Engine returns "SST".
func (r *Reader) Engine() string { return "SST" }

// Active reports whether the stream may have further steps.
func (r *Reader) Active() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err == nil
}

// Received returns the number of bytes of data received.
func (r *Reader) Received() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

// Close lets the writer continue without this reader and frees all memory. Steps become
// invalid. Saved attributes remain until the stream was read to its end.
func (r *Reader) Close() error {
	r.mu.Lock()
	if r.saving && errors.Is(r.err, io.EOF) && len(r.queue) == 0 {
		_ = os.Remove(r.path + SavedSuffix) // a file that remains does no harm
	}
	r.fail(os.ErrClosed)
	r.err = os.ErrClosed
	r.queue, r.current, r.skipped, r.early = nil, nil, nil, nil
	r.mu.Unlock()
	r.stop()
	r.work.Wait()
	r.pool.drop()
	return nil
}

// Forget frees the memory of the last step, which becomes invalid, and all spare
// buffers.
func (r *Reader) Forget() {
	r.mu.Lock()
	r.current = nil
	r.mu.Unlock()
	r.pool.drop()
}

// Next returns the next step, valid until the next call. It waits until the writer closes
// the stream (io.EOF), the idle limit passes (bp.ErrIdle), the stream breaks (ErrCut) or
// ctx ends. All errors except bp.ErrIdle and ctx's are final: further calls return them
// again.
func (r *Reader) Next(ctx context.Context) (*bp.Step, error) {
	var idle <-chan time.Time
	if r.opt.Idle > 0 {
		timer := time.NewTimer(r.opt.Idle)
		defer timer.Stop()
		idle = timer.C
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if step, err := r.take(); step != nil || err != nil {
			return step, err
		}
		if r.opt.Idle == bp.NoWait {
			return nil, r.idle()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-idle:
			return nil, r.idle()
		case <-r.wake:
		}
	}
}

func (r *Reader) idle() error { return fmt.Errorf("%s: %w", r.path, bp.ErrIdle) }

// take returns the next step if it is complete.
func (r *Reader) take() (*bp.Step, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.current {
		r.pool.put(b)
	}
	r.current = r.current[:0]
	if len(r.restored) > 0 {
		saved := &r.restored[0]
		r.restored = r.restored[1:]
		return r.stream.Restore(saved.Step, saved.Attributes), nil
	}
	for len(r.queue) > 0 && r.queue[0].missing == 0 {
		p := r.queue[0]
		r.queue[0] = nil
		r.queue = r.queue[1:]
		r.held -= p.here
		if r.next > 0 {
			r.ahead -= p.size
			r.next--
		}
		step, err := r.decode(p)
		if err != nil {
			r.fail(err)
			r.queue, r.err = nil, err
			return nil, err
		}
		r.advance()
		r.room.Broadcast()
		if step != nil {
			r.current = append(r.current, p.buffers...)
			return step, nil
		}
	}
	return nil, r.err
}

// decode decodes a step, or returns nil if the writer discarded it. The formats of
// discarded steps come with the next step that is not discarded, so their attributes wait
// until then.
func (r *Reader) decode(p *pending) (*bp.Step, error) {
	lost := tally.StepsMissed
	if !r.started {
		lost = tally.StepsUnattended
	}
	r.opt.Tally.Add(lost, p.step-r.last-1)
	r.last = p.step
	if p.discarded {
		r.opt.Tally.Add(lost, 1)
		if slices.ContainsFunc(p.parts, func(p bp.Part) bool { return len(p.Attributes) > 0 }) {
			r.skipped = append(r.skipped, p)
		} else {
			r.recycle(p)
		}
		return nil, nil
	}
	for _, s := range r.skipped {
		if err := r.stream.Skip(int(s.step), s.parts); err != nil {
			return nil, err
		}
		r.recycle(s)
	}
	r.skipped, r.started = nil, true
	step, err := r.stream.Decode(int(p.step), p.parts)
	if err == nil && r.saving && len(step.Attributes) > 0 {
		if err := r.save(step); err != nil {
			r.failToSave(err)
		}
	}
	return step, err
}

func (r *Reader) recycle(p *pending) {
	for _, b := range p.buffers {
		r.pool.put(b)
	}
}

// notify makes Next try again; mu is locked.
func (r *Reader) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// fail ends the stream: the writer continues without this reader. Complete steps can
// still be read. mu is locked.
func (r *Reader) fail(err error) {
	if r.err != nil {
		return
	}
	r.err = err
	r.leave()
	r.notify()
	r.room.Broadcast()
}

// leave notifies the writer and closes the connections; mu is locked.
func (r *Reader) leave() {
	for i, c := range r.conns {
		if i == 0 {
			_ = c.sendWithin(goodbyeTimeout, readerClose, ffs.Values{"WSR_Stream": r.resp.writers[0].control}) // else it sees the connection end
		}
		_ = c.Close() // it is not used again
	}
	r.conns = nil
}

// run reads the stream to its end.
func (r *Reader) run(ctx context.Context) {
	if err := r.attach(ctx); err != nil {
		r.mu.Lock()
		r.fail(err)
		r.mu.Unlock()
	}
}
