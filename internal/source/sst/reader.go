// Package sst reads the steps of ADIOS2 SST streams from running programs,
// without ADIOS2: it finds the writer by its contact file, speaks the protocol
// of SST over TCP, and gives the same steps as package bp does of datasets. It
// knows nothing of what the variables mean.
//
// It takes care of the program that it reads from. A step is taken off the
// writer as soon as there is room for it, and released at once. Whatever goes
// wrong ends with the connection closed, upon which the writer continues without
// a reader. Nothing that the peer says is trusted.
//
// Only what SST does over TCP is understood: data plane "evpath", metadata of
// BP5, as ADIOS2 from version 2.9 has them. The rest is refused by name, with
// the setting that helps.
package sst

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// Options configures how to read a stream. Begin with Default.
type Options struct {
	// ConnectTimeout is how long to wait for the contact file, and for the
	// program behind it to answer; 0 is for ever.
	ConnectTimeout time.Duration
	// Idle is how long Next waits for a step before it returns bp.ErrIdle; 0
	// means for ever, bp.NoWait not at all.
	Idle time.Duration
	// Queue is how many bytes of steps are held that Next has not returned yet.
	// One step always is, however large.
	Queue int64
	// Preload has the writer send the data of a step when it ends it, rather
	// than when they are asked for. That saves the time of asking, but a writer
	// whose reader is slow waits in its EndStep then.
	Preload bool
	// Connected is called when the program has been asked to take us as a
	// reader, which it does when it is next at its stream; may be nil.
	Connected func(address string)
	// Tally takes the counts of what was lost; nil forgets them.
	Tally *tally.Tally
}

// Default returns sane options.
func Default() Options { return Options{ConnectTimeout: time.Minute, Queue: 64 << 20} }

// Validate reports what is wrong with the options.
func (o Options) Validate() error {
	var errs []error
	if o.ConnectTimeout < 0 || o.Idle < 0 && o.Idle != bp.NoWait {
		errs = append(errs, fmt.Errorf("connect timeout %v or idle limit %v is negative", o.ConnectTimeout, o.Idle))
	}
	if o.Queue <= 0 {
		errs = append(errs, fmt.Errorf("a queue of %d bytes holds nothing", o.Queue))
	}
	return errors.Join(errs...)
}

// ErrCut means that the program, or the connection with it, ended without the
// stream being closed. All steps that had come whole were returned before.
var ErrCut = errors.New("the stream ended without being closed: the program was killed or has crashed, or the connection with it broke")

// Reader iterates over the steps of one stream. Close it in any case: until
// then the program may wait for it. It serves one goroutine.
type Reader struct {
	path string
	opt  Options
	stop context.CancelFunc
	work sync.WaitGroup
	pool pool

	mu     sync.Mutex
	wake   chan struct{} // has one element when something changed
	room   sync.Cond     // the queue became shorter
	conns  []*conn
	resp   writerResponse
	stream *bp.Stream
	queue  []*pending // oldest first
	early  []stepData // data that came before their metadata
	bufs   [][]byte   // what those are in
	held   int64      // bytes of all these
	next   int        // of the queue: the first whose data are still to be asked for
	ahead  int64      // bytes of those before it
	broken int        // steps in the queue that are not whole
	asked  int        // requests that were not answered yet
	final  bool       // the writer closed the stream
	err    error      // how it ended; the queue is still to be read
	bytes  int64      // that came as data

	last    int64      // number of the last step that was returned
	current [][]byte   // what it is in
	skipped []*pending // discarded steps before the next, of which only attributes came
}

// pending is a step of which the metadata are here.
type pending struct {
	step      int64
	discarded bool
	unasked   bool // the data come by themselves
	asked     bool
	parts     []bp.Part
	wants     []uint64 // bytes of data of each writer that have not come
	missing   int      // writers whose data have not come
	size      int64    // bytes of the metadata, and of all the data
	here      int64    // bytes of what has come
	buffers   [][]byte
}

// Open begins to read the stream of the contact file at path, which need not be
// there yet. It does not wait; what goes wrong, Next tells.
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

// Active reports whether the stream may bring further steps.
func (r *Reader) Active() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err == nil
}

// Received returns how many bytes of data have come.
func (r *Reader) Received() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

// Close lets the writer continue without this reader, and frees all that the
// Reader holds. Steps become invalid.
func (r *Reader) Close() error {
	r.mu.Lock()
	r.fail(os.ErrClosed)
	r.err = os.ErrClosed
	r.queue, r.current, r.skipped, r.early, r.bufs = nil, nil, nil, nil, nil
	r.mu.Unlock()
	r.stop()
	r.work.Wait()
	r.pool.drop()
	return nil
}

// Forget gives back the memory of the last step, which becomes invalid, and
// what is kept for the next ones.
func (r *Reader) Forget() {
	r.mu.Lock()
	r.current = nil
	r.mu.Unlock()
	r.pool.drop()
}

// Next returns the next step, valid until the next call. It waits for one until
// the writer closes the stream (io.EOF), the idle limit passes (bp.ErrIdle), the
// stream breaks off (ErrCut) or ctx ends. All but bp.ErrIdle and ctx's error are
// final: they are returned again.
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

// take returns the next step if it is there.
func (r *Reader) take() (*bp.Step, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.current {
		r.pool.put(b)
	}
	r.current = r.current[:0]
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

// decode makes a step of what came; nil where the writer discarded it. Formats
// of discarded steps come with the next that is not, so until then their
// attributes wait.
func (r *Reader) decode(p *pending) (*bp.Step, error) {
	r.opt.Tally.Add(tally.StepsMissed, p.step-r.last-1)
	r.last = p.step
	if p.discarded {
		r.opt.Tally.Add(tally.StepsMissed, 1)
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
	r.skipped = nil
	return r.stream.Decode(int(p.step), p.parts)
}

func (r *Reader) recycle(p *pending) {
	for _, b := range p.buffers {
		r.pool.put(b)
	}
}

// notify has Next look again; mu is held.
func (r *Reader) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// fail ends the stream: the writer continues without us. What has come whole can
// still be read. mu is held.
func (r *Reader) fail(err error) {
	if r.err != nil {
		return
	}
	r.err = err
	r.leave()
	r.notify()
	r.room.Broadcast()
}

// leave says goodbye and closes the connections; mu is held.
func (r *Reader) leave() {
	for i, c := range r.conns {
		if i == 0 {
			_ = c.sendWithin(goodbyeTimeout, readerClose, values{"WSR_Stream": r.resp.writers[0].control}) // or it sees the connection end
		}
		_ = c.Close() // nothing more is expected of it
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
