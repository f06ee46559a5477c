package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	defaultDedupe = 2 * time.Minute
	callTimeout   = 5 * time.Second // for one question to the server
	settling      = 15 * time.Second
	settleTick    = 100 * time.Millisecond
)

// Error codes of servers that do not keep a stream: no room, and no cluster.
const (
	codeNoStorage jetstream.ErrorCode = 10047
	codeNoCluster jetstream.ErrorCode = 10074
)

// StreamOptions are those of a stream. What is left out stays as it is when the
// stream is there, and is the default otherwise.
type StreamOptions struct {
	Name     string
	Subjects []string      // those that it keeps; * and > stand for one and more words
	MaxBytes int64         // on disk, with headers; no limit by default
	Replicas int           // servers of a cluster that keep it; 1 by default
	Dedupe   time.Duration // how long ids are remembered; 2 minutes by default
}

// Stream keeps messages in files of the server until its consumer acknowledges them.
// When it is full it refuses new ones.
type Stream struct {
	conn   *Conn
	name   string
	nats   jetstream.Stream
	dedupe time.Duration
}

// Stream makes a stream, or attaches to it and changes what opt says otherwise.
// Without subjects it must be there. It waits for the server until ctx ends.
func (c *Conn) Stream(ctx context.Context, opt StreamOptions) (*Stream, error) {
	s := &Stream{conn: c, name: opt.Name}
	err := checkWord("name of the stream", opt.Name)
	if err == nil {
		err = c.settle(ctx, func(ctx context.Context) (err error) {
			s.nats, err = c.stream(ctx, opt)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", opt.Name, explained(err, opt))
	}
	s.dedupe = s.nats.CachedInfo().Config.Duplicates
	return s, nil
}

// explained says what can be done about some refusals of a server.
func explained(err error, opt StreamOptions) error {
	api, ok := errors.AsType[*jetstream.APIError](err)
	switch {
	case ok && api.ErrorCode == codeNoStorage:
		return fmt.Errorf("the server, or our account there, has no room for %d MB on each of %d servers: %w", opt.MaxBytes>>20, max(opt.Replicas, 1), err)
	case ok && api.ErrorCode == codeNoCluster:
		return fmt.Errorf("a stream on %d servers needs a cluster of so many: %w", opt.Replicas, err)
	}
	return err
}

func (c *Conn) stream(ctx context.Context, opt StreamOptions) (jetstream.Stream, error) {
	old, err := c.js.Stream(ctx, opt.Name)
	conf := jetstream.StreamConfig{
		Name: opt.Name, Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
		MaxBytes: -1, Replicas: 1, Duplicates: defaultDedupe, AllowDirect: true,
	}
	switch {
	case err == nil:
		conf = old.CachedInfo().Config
		if conf.Discard != jetstream.DiscardNew || conf.Retention != jetstream.LimitsPolicy {
			return nil, errors.New("there is one that was not made by this program and may drop messages: use another name")
		}
	case !errors.Is(err, jetstream.ErrStreamNotFound) || len(opt.Subjects) == 0:
		return nil, err
	}
	changed := old == nil
	if len(opt.Subjects) > 0 && strings.Join(conf.Subjects, " ") != strings.Join(opt.Subjects, " ") {
		conf.Subjects, changed = opt.Subjects, true
	}
	if opt.MaxBytes > 0 && conf.MaxBytes != opt.MaxBytes {
		conf.MaxBytes, changed = opt.MaxBytes, true
	}
	if opt.Replicas > 0 && conf.Replicas != opt.Replicas {
		conf.Replicas, changed = opt.Replicas, true
	}
	if opt.Dedupe > 0 && conf.Duplicates != opt.Dedupe {
		conf.Duplicates, changed = opt.Dedupe, true
	}
	switch {
	case !changed:
		return old, nil
	case old != nil:
		return c.js.UpdateStream(ctx, conf)
	}
	return c.js.CreateStream(ctx, conf)
}

// DeleteStream deletes a stream with all that it holds. That there is none is no
// error.
func (c *Conn) DeleteStream(ctx context.Context, name string) error {
	err := c.settle(ctx, func(ctx context.Context) error { return c.js.DeleteStream(ctx, name) })
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("delete stream %s: %w", name, err)
	}
	return nil
}

// Pending is what the stream holds: messages that are not acknowledged, where one
// sent in parts counts once for each, and their bytes.
func (s *Stream) Pending(ctx context.Context) (messages, bytes uint64, err error) {
	info, err := s.info(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("stream %s: %w", s.name, err)
	}
	return info.State.Msgs, info.State.Bytes, nil
}

func (s *Stream) info(ctx context.Context) (info *jetstream.StreamInfo, err error) {
	err = s.conn.settle(ctx, func(ctx context.Context) error {
		info, err = s.nats.Info(ctx)
		return err
	})
	return info, err
}

// settle calls f until it gives an answer: while there is no connection, and while
// the servers of a cluster agree on who answers. That ends with ctx, and where no
// server ever answers after some time.
func (c *Conn) settle(ctx context.Context, f func(context.Context) error) error {
	tick := time.NewTicker(settleTick)
	defer tick.Stop()
	for began := (time.Time{}); ; {
		if _, err := c.wait(ctx); err != nil {
			return err
		}
		if began.IsZero() {
			began = time.Now()
		}
		err := c.call(ctx, f)
		if err == nil || !unsettled(err) || ctx.Err() != nil || time.Since(began) > settling {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// call calls f once, and ends it with the connection.
func (c *Conn) call(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ctx, done, err := c.within(ctx, "$JS.API.")
	if err != nil {
		return err
	}
	defer done()
	if err = f(ctx); err != nil && (isAway(err) || errors.Is(context.Cause(ctx), ErrAway)) {
		return c.away()
	}
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrDenied) {
		return cause
	}
	return err
}

// unsettled tells whether an error may go away by itself.
func unsettled(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		switch api.ErrorCode {
		case 10004, 10005, 10008, 10009, 10023, 10049, jetstream.JSErrCodeJetStreamNotEnabled: // no leader, or too few servers, so far
			return true
		case jetstream.JSErrCodeStreamNameInUse: // another process made the stream in the same moment
			return true
		}
		return false
	}
	for _, kind := range []error{ErrAway, nats.ErrNoResponders, nats.ErrTimeout, context.DeadlineExceeded, jetstream.ErrNoStreamResponse, jetstream.ErrJetStreamNotEnabled} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// checkWord refuses names that a server does not take as one.
func checkWord(what, s string) error {
	if err := checkName(what, s); err != nil {
		return err
	}
	if strings.ContainsAny(s, `.*>/\`) {
		return fmt.Errorf(`the %s %q may have none of .*>/\`, what, s)
	}
	return nil
}
