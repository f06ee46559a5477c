package sst

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

// ioName is how TAU calls what it writes, in the XML file of ADIOS2.
const ioName = "TAU trace data"

// advice returns the parameter of SST to set, and where.
func advice(parameter, value string) string {
	return fmt.Sprintf("set the parameter %s=%s of the engine SST for the IO %q in adios2.xml (docs/sst.md shows the file)", parameter,
		value, ioName)
}

const (
	// lookEvery is how often a contact file is looked for.
	lookEvery = 50 * time.Millisecond

	// dialEvery is how often what a contact file names is tried again. It
	// may be someone else's by now.
	dialEvery = time.Second

	// greetTimeout is how long a writer may take to connect with and to say
	// what it is. A thread of its own does that, whatever the program is at.
	greetTimeout = 15 * time.Second
)

// connect waits for the contact file and for the writer behind it, and asks it
// how it sends its data. own is filled in.
func (r *Reader) connect(ctx context.Context, own *address) (*conn, contact, error) {
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if r.opt.ConnectTimeout > 0 {
		waiting, cancel = context.WithTimeout(ctx, r.opt.ConnectTimeout)
	}
	defer cancel()
	own.manager = rand.Uint32()>>1 | 1
	var why error
	for {
		c, at, err := r.attempt(waiting, own)
		if err == nil {
			return c, at, nil
		}
		if _, refused := errors.AsType[*bp.UnsupportedError](err); refused || errors.Is(err, errNoContact) {
			return nil, contact{}, err
		}
		if _, silent := errors.AsType[*silentError](err); silent && ctx.Err() == nil {
			return nil, contact{}, r.explain(err, at) // asking again will not help
		}
		if why == nil || waiting.Err() == nil && !isTimeout(err) { // the last attempt may only tell that time is up
			why = err
		}
		pause := lookEvery
		if !errors.Is(err, fs.ErrNotExist) {
			pause = dialEvery
		}
		timer := time.NewTimer(pause)
		select {
		case <-waiting.Done():
			timer.Stop()
			if ctx.Err() != nil {
				return nil, contact{}, ctx.Err()
			}
			return nil, contact{}, r.explain(why, at)
		case <-timer.C:
		}
	}
}

func isTimeout(err error) bool {
	timed, ok := errors.AsType[net.Error](err)
	return ok && timed.Timeout()
}

// errNoContact marks a file that is no contact file.
var errNoContact = errors.New("no contact file")

// attempt tries once to connect.
func (r *Reader) attempt(ctx context.Context, own *address) (*conn, contact, error) {
	text, err := os.ReadFile(r.path)
	if err != nil {
		return nil, contact{}, err
	}
	at, err := parseContact(r.path, text)
	if err != nil {
		return nil, at, errors.Join(err, errNoContact)
	}
	own.port = 0
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	c, err := dial(ctx, at.address, own, &r.pool)
	if err != nil {
		return nil, at, err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // it is over
	err = r.askDataPlane(c, at)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close() // the first error is the one that matters
		return nil, at, err
	}
	return c, at, nil
}

// askDataPlane asks how the writer sends its data.
func (r *Reader) askDataPlane(c *conn, at contact) error {
	if err := c.send(dpQuery, ffs.Values{"writer_ID": at.writer, "writer_response_condition": uint64(conditionPlane)}); err != nil {
		return err
	}
	m, b, err := r.await(c, dpResponseName)
	if err != nil {
		return &silentError{at.address, err}
	}
	defer r.pool.put(b)
	plane := m.text("writer_data_plane")
	if m.err != nil {
		return m.err
	}
	if plane != dataPlane {
		return &bp.UnsupportedError{
			Path: r.path, What: fmt.Sprintf("an SST stream with the data plane %q", plane), Advice: advice("DataTransport", "WAN"),
		}
	}
	return nil
}

// dataPlane is how data must be sent: over TCP.
const dataPlane = "evpath"

// Conditions: numbers by which answers are known.
const (
	conditionPlane    = 1
	conditionRegister = 2
	conditionData     = 3
)

// await receives the message of that name and passes over others.
func (r *Reader) await(c *conn, name string) (*incoming, []byte, error) {
	for {
		rec, b, err := c.receive()
		if err != nil {
			return nil, nil, err
		}
		if rec.Format.Name == name {
			return &incoming{Record: rec}, b, nil
		}
		r.pool.put(b)
	}
}

// silentError reports that what listens does not answer as a writer does.
type silentError struct {
	address
	err error
}

func (e *silentError) Error() string {
	return fmt.Sprintf("what listens at %v gave no answer: %v", e.address, e.err)
}
func (e *silentError) Unwrap() error { return e.err }

// explain returns why there is no connection after all that time, and what to do.
func (r *Reader) explain(err error, at contact) error {
	waited := r.opt.ConnectTimeout
	_, stranger := errors.AsType[*strangerError](err)
	_, silent := errors.AsType[*silentError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no contact file within %v: the program has not opened its stream, or has ended; "+
			"it writes the file when TAU_ADIOS2_ENGINE=SST, and a longer --connect-timeout waits for it", r.path, waited)
	case errors.Is(err, syscall.ECONNREFUSED) || stranger:
		return fmt.Errorf("%s: stale contact file: its program has ended, and no process or another one listens at %v; "+
			"remove it before the program starts (%w)", r.path, at.address, err)
	case silent || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: %w; streams of ADIOS2 before 2.9 cannot be read: take a newer one, or have TAU write files with "+
			"TAU_ADIOS2_ENGINE=BP4", r.path, err)
	}
	return fmt.Errorf("%s: no connection with the program at %v within %v: %w; "+
		"where it has several networks, set NetworkInterface for SST in adios2.xml (docs/sst.md)", r.path, at.address, waited, err)
}

// register has the writer take us as a reader, and connects with its other
// ranks. The writer answers when it is next at its stream, so at its next step.
func (r *Reader) register(ctx context.Context, c *conn, at contact, own *address) (writerResponse, []*conn, error) {
	contact := own.encode()
	preload := uint64(0)
	if r.opt.Preload {
		preload = 1
	}
	if err := c.send(readerRegister, ffs.Values{
		"writer_ID": at.writer, "writer_response_condition": uint64(conditionRegister), "ReaderCohortSize": uint64(1), "SpecPreload": preload,
		"CP_ReaderInfo": []ffs.Values{{"ContactInfo": contact, "reader_ID": uint64(ownControl)}},
		"DP_ReaderInfo": []ffs.Values{{"ContactString": contact, "reader_ID": uint64(ownData)}},
	}); err != nil {
		return writerResponse{}, nil, err
	}
	if r.opt.Connected != nil {
		r.opt.Connected(at.String())
	}
	m, b, err := r.await(c, responseName)
	if err != nil {
		return writerResponse{}, nil, err
	}
	defer r.pool.put(b)
	resp, err := parseWriterResponse(m.Record)
	if err != nil {
		return resp, nil, err
	}
	if err := r.accept(&resp); err != nil {
		return resp, nil, err
	}
	conns := []*conn{c}
	for i, w := range resp.writers[1:] {
		other, err := r.join(ctx, w, own)
		if err != nil {
			for _, c := range conns[1:] {
				_ = c.Close() // the first error is the one that matters
			}
			return resp, nil, err
		}
		other.writer = 1 + i
		conns = append(conns, other)
	}
	return resp, conns, nil
}

// Our numbers for the stream, which come back in all messages.
const (
	ownControl = 1
	ownData    = 2
)

// accept refuses a stream that cannot be read.
func (r *Reader) accept(w *writerResponse) error {
	refuse := func(what, parameter, value string) error {
		return &bp.UnsupportedError{Path: r.path, What: what, Advice: advice(parameter, value)}
	}
	switch {
	case w.marshal != marshalBP5:
		return refuse("an SST stream that is not marshalled as BP5", "MarshalMethod", "BP5")
	case w.pattern != patternMin:
		return refuse("an SST stream with the communication pattern Peer", "CPCommPattern", "Min")
	case w.distribution != distributeAll:
		return refuse("an SST stream that deals its steps out to several readers", "StepDistributionMode", "AllToAll")
	case w.rowMajor == 0:
		return &bp.UnsupportedError{Path: r.path, What: "a stream with column-major arrays, as Fortran writes them,"}
	}
	return nil
}

// join connects with a further rank of the writer.
func (r *Reader) join(ctx context.Context, w writerInfo, own *address) (*conn, error) {
	a, err := parseAddress(w.contact)
	if err != nil {
		return nil, fmt.Errorf("a rank of the program cannot be reached: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	c, err := dial(ctx, a, own, &r.pool)
	if err != nil {
		return nil, fmt.Errorf("a rank of the program cannot be reached: %w", err)
	}
	return c, nil
}
