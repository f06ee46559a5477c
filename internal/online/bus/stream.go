package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chimbuko/chimbuko/internal/base/wait"
)

const (
	dedupe      = 2 * time.Minute // how long a stream remembers ids
	callTimeout = 5 * time.Second // for one request to the server
	settling    = 15 * time.Second
	settleTick  = 100 * time.Millisecond
)

// Error codes of servers that cannot keep a stream: too few servers, no room, and no
// cluster.
const (
	codeNoPeers   jetstream.ErrorCode = 10005
	codeNoStorage jetstream.ErrorCode = 10047
	codeNoCluster jetstream.ErrorCode = 10074
)

// StreamOptions describe a stream. A zero value keeps the setting of an existing stream, and means
// the default for a new one.
type StreamOptions struct {
	Name     string
	Subjects []string // of its messages; * matches one token, > one or more
	MaxBytes int64    // on disk, with headers; no limit by default
	Replicas int      // servers of a cluster that keep it; 1 by default
}

// Stream keeps messages in files of the server until its consumer acknowledges them.
// A full stream rejects new ones.
type Stream struct {
	conn   *Conn
	name   string
	nats   jetstream.Stream
	newest atomic.Uint64 // sequence of the last message that is in the stream as far as this process has seen
}

// Stream creates a stream, or attaches to it and applies the settings in opt. Without
// subjects the stream must exist. It waits for the server until ctx ends.
func (c *Conn) Stream(ctx context.Context, opt StreamOptions) (*Stream, error) {
	s := &Stream{conn: c, name: opt.Name}
	err := checkWord("stream name", opt.Name)
	if err == nil {
		err = c.settle(ctx, func(ctx context.Context) (err error) {
			s.nats, err = c.stream(ctx, opt)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", opt.Name, withHint(err, opt))
	}
	return s, nil
}

// withHint adds a remedy to some errors of the server.
func withHint(err error, opt StreamOptions) error {
	api, ok := errors.AsType[*jetstream.APIError](err)
	switch {
	case ok && api.ErrorCode == codeNoStorage:
		return fmt.Errorf("no room for %d MB on each of %d servers (free some, or raise the limits of the account): %w",
			opt.MaxBytes>>20, max(opt.Replicas, 1), err)
	case ok && api.ErrorCode == codeNoCluster:
		return fmt.Errorf("a stream with %d replicas needs a cluster of that size: %w", opt.Replicas, err)
	}
	return err
}

func (c *Conn) stream(ctx context.Context, opt StreamOptions) (jetstream.Stream, error) {
	old, err := c.js.Stream(ctx, opt.Name)
	conf := jetstream.StreamConfig{
		Name: opt.Name, Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
		MaxBytes: -1, Replicas: 1, Duplicates: dedupe,
	}
	switch {
	case err == nil:
		conf = old.CachedInfo().Config
		if conf.Discard != jetstream.DiscardNew || conf.Retention != jetstream.LimitsPolicy {
			return nil, errors.New("a stream of this name may drop messages and belongs to another program: use another name")
		}
	case !errors.Is(err, jetstream.ErrStreamNotFound) || len(opt.Subjects) == 0:
		return nil, err
	}
	want := conf
	if len(opt.Subjects) > 0 {
		want.Subjects = opt.Subjects
	}
	want.MaxBytes, want.Replicas = cmp.Or(opt.MaxBytes, conf.MaxBytes), cmp.Or(opt.Replicas, conf.Replicas)
	switch {
	case old == nil:
		return c.js.CreateStream(ctx, want)
	case reflect.DeepEqual(want, conf):
		return old, nil
	}
	return c.js.UpdateStream(ctx, want)
}

// HasStream reports whether a stream exists. It waits for the server until ctx ends.
func (c *Conn) HasStream(ctx context.Context, name string) (bool, error) {
	err := c.settle(ctx, func(ctx context.Context) error {
		_, err := c.js.Stream(ctx, name)
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	return err == nil, err
}

// DeleteStream deletes a stream and its messages, if it exists.
func (c *Conn) DeleteStream(ctx context.Context, name string) error {
	err := c.settle(ctx, func(ctx context.Context) error { return c.js.DeleteStream(ctx, name) })
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("delete stream %s: %w", name, err)
	}
	return nil
}

// Pending returns the number and the bytes of messages that are not acknowledged, including all that this
// process published.
func (s *Stream) Pending(ctx context.Context) (messages, bytes uint64, err error) {
	info, err := s.info(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("stream %s: %w", s.name, err)
	}
	return info.State.Msgs, info.State.Bytes, nil
}

// The time between checks whether messages are acknowledged: at first and at most.
const (
	ackPoll    = 5 * time.Millisecond
	ackPollMax = 50 * time.Millisecond
)

// WaitAcked waits until all messages that the stream holds now are acknowledged.
func (s *Stream) WaitAcked(ctx context.Context) error {
	info, err := s.info(ctx)
	pause := ackPoll
	for last := uint64(0); err == nil && info.State.Msgs > 0; info, err = s.info(ctx) {
		if last == 0 {
			last = info.State.LastSeq
		}
		if info.State.FirstSeq > last {
			break
		}
		if err := wait.Sleep(ctx, pause); err != nil {
			return fmt.Errorf("%d messages of stream %s are not acknowledged: %w", info.State.Msgs, s.name, err)
		}
		pause = min(2*pause, ackPollMax)
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", s.name, err)
	}
	return nil
}

// errOutdated is the error of a former leader of the cluster that was cut off: for some time after its return it
// answers with its old state.
var errOutdated = errors.New("the server that answered lacks messages that the stream has confirmed")

// info returns the state of the stream, at least as new as the last message that this process published.
func (s *Stream) info(ctx context.Context) (info *jetstream.StreamInfo, err error) {
	err = s.conn.settle(ctx, func(ctx context.Context) error {
		info, err = s.infoOnce(ctx)
		return err
	})
	return info, err
}

func (s *Stream) infoOnce(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := s.nats.Info(ctx)
	if err == nil && info.State.LastSeq < s.newest.Load() {
		err = errOutdated
	}
	return info, err
}

// notePublished records that the stream has a message with this sequence.
func (s *Stream) notePublished(sequence uint64) {
	for old := s.newest.Load(); old < sequence && !s.newest.CompareAndSwap(old, sequence); old = s.newest.Load() {
	}
}

// settle calls f until the server answers: it retries without a connection, and while a cluster
// elects a leader. It gives up when ctx ends, or after a while with a connection but no answer.
func (c *Conn) settle(ctx context.Context, f func(context.Context) error) error {
	for began := (time.Time{}); ; {
		if err := c.Wait(ctx); err != nil {
			return err
		}
		if began.IsZero() {
			began = time.Now()
		}
		err := c.call(ctx, f)
		if err == nil || !isUnsettled(err) || ctx.Err() != nil || time.Since(began) > settling {
			return err
		}
		if wait.Sleep(ctx, settleTick) != nil {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// call calls f once, and cancels it when the connection is lost.
func (c *Conn) call(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ctx, done, err := c.within(ctx, "$JS.API.")
	if err != nil {
		return err
	}
	defer done()
	return c.explain(ctx, f(ctx))
}

// isUnsettled reports whether an error may go away by itself.
func isUnsettled(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		switch api.ErrorCode {
		case 10004, 10005, 10008, 10009, 10023, 10049, jetstream.JSErrCodeJetStreamNotEnabled: // no leader or too few servers yet
			return true
		case jetstream.JSErrCodeJetStreamNotEnabledForAccount: // the leader has not loaded the account yet
			return true
		case jetstream.JSErrCodeStreamNameInUse: // another process created the stream at the same moment
			return true
		}
		return false
	}
	return isAny(err, ErrNotConnected, errOutdated, nats.ErrNoResponders, nats.ErrTimeout, context.DeadlineExceeded,
		jetstream.ErrNoStreamResponse, jetstream.ErrJetStreamNotEnabled)
}

// IsTemporary reports whether an error of this package may go away by itself: without a
// connection, service, room in a stream or leader of a cluster at present.
func IsTemporary(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return slices.Contains(noLeader, api.ErrorCode) || api.ErrorCode == codeNoPeers && strings.Contains(api.Description, "offline")
	}
	return isAny(err, ErrNotConnected, ErrNoService, ErrFull, errOutdated, context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders,
		jetstream.ErrNoStreamResponse)
}

// noLeader are the error codes of servers of a cluster without a leader, or with too few
// servers that are reachable.
var noLeader = []jetstream.ErrorCode{10004, 10008, 10009, 10023, 10049}

// isAny reports whether err is one of kinds.
func isAny(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// checkWord rejects names that are not a single token of a subject.
func checkWord(what, s string) error {
	if err := checkName(what, s); err != nil {
		return err
	}
	if strings.ContainsAny(s, `.*>/\`) {
		return fmt.Errorf(`the %s %q must not contain .*>/\`, what, s)
	}
	return nil
}
