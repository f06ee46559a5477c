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

// ioName is the name of TAU's IO in the XML file of ADIOS2.
const ioName = "TAU trace data"

// advice returns the hint to set a parameter of SST.
func advice(parameter, value string) string {
	return fmt.Sprintf("set the parameter %s=%s of the engine SST for the IO %q in adios2.xml (docs/sst.md shows the file)", parameter,
		value, ioName)
}

const (
	// lookEvery is the interval between checks for a contact file.
	lookEvery = 50 * time.Millisecond

	// dialEvery is the interval between attempts to connect. Another program may use the
	// address by now.
	dialEvery = time.Second

	// greetTimeout is the limit for connecting and the first answers. The writer has a
	// thread for these, so that they do not depend on the program's work.
	greetTimeout = 15 * time.Second
)

// connect waits for the contact file and its writer, and checks the writer's data plane.
// It sets own.
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
			return nil, contact{}, r.explain(err, at) // another attempt will not help
		}
		if why == nil || waiting.Err() == nil && !isTimeout(err) { // unless the last attempt only timed out
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

// errNoContact marks a file that is not a contact file.
var errNoContact = errors.New("not a contact file")

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
	if err := c.within(ctx, func() error { return r.queryDataPlane(c, at) }); err != nil {
		return nil, at, err
	}
	return c, at, nil
}

// queryDataPlane checks the data plane of the writer.
func (r *Reader) queryDataPlane(c *conn, at contact) error {
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

// dataPlane is the supported data plane: TCP.
const dataPlane = "evpath"

// Conditions, which identify answers.
const (
	conditionPlane    = 1
	conditionRegister = 2
	conditionData     = 3
)

// await returns the next message of that name and drops others.
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

// silentError reports that the listening program does not answer as a writer.
type silentError struct {
	address
	err error
}

func (e *silentError) Error() string {
	return fmt.Sprintf("the program at %v gave no answer: %v", e.address, e.err)
}
func (e *silentError) Unwrap() error { return e.err }

// explain returns an error with the cause and a hint.
func (r *Reader) explain(err error, at contact) error {
	waited := r.opt.ConnectTimeout
	_, stranger := errors.AsType[*wrongPeerError](err)
	_, silent := errors.AsType[*silentError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no contact file within %v: the program has not opened its stream, or has ended; "+
			"it writes the file when TAU_ADIOS2_ENGINE=SST, and a longer --connect-timeout waits for it", r.path, waited)
	case errors.Is(err, syscall.ECONNREFUSED) || stranger:
		return fmt.Errorf("%s: stale contact file: its program has ended, and no process or another one listens at %v; "+
			"remove it before the program starts (%w)", r.path, at.address, err)
	case silent || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: %w; streams of ADIOS2 before 2.9 cannot be read: use a newer version, or write files with "+
			"TAU_ADIOS2_ENGINE=BP4", r.path, err)
	}
	return fmt.Errorf("%s: no connection with the program at %v within %v: %w; "+
		"if it has several networks, set NetworkInterface for SST in adios2.xml (docs/sst.md)", r.path, at.address, waited, err)
}

// register registers this reader with the writer, and connects to its other ranks. The
// writer answers at its next step.
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

// Numbers of this reader for the stream, which the writer repeats in its messages.
const (
	ownControl = 1
	ownData    = 2
)

// accept returns an error for an unsupported stream.
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
		return refuse("an SST stream that distributes its steps to several readers", "StepDistributionMode", "AllToAll")
	case w.rowMajor == 0:
		return &bp.UnsupportedError{Path: r.path, What: "a stream with column-major arrays, as Fortran writes them,"}
	}
	return nil
}

// join connects to another rank of the writer.
func (r *Reader) join(ctx context.Context, w writerInfo, own *address) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	var c *conn
	a, err := parseAddress(w.contact)
	if err == nil {
		c, err = dial(ctx, a, own, &r.pool)
	}
	if err != nil {
		return nil, fmt.Errorf("a rank of the program cannot be reached: %w", err)
	}
	return c, nil
}
