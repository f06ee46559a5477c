package recordstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/throttle"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Source delivers the messages of a stream.
type Source interface {
	Fetch(ctx context.Context, most int, wait time.Duration) ([]bus.Message, error)
	Ack(ctx context.Context, m bus.Message) error
}

// Storer writes the messages of a stream to a store. A message leaves the stream when
// the store has committed it.
type Storer struct {
	source     Source
	store      provdb.Writer
	run        provdb.RunID
	delay      time.Duration
	runSubject string
	lines      *throttle.Lines
	finish     func(ctx context.Context, info json.RawMessage) error
	log        *slog.Logger
	hurry      chan struct{} // closed by Hurry
	hurryOnce  sync.Once

	mu     sync.Mutex
	stored StorerStats
}

// StorerStats counts the work of a Storer.
type StorerStats struct {
	Documents int64
	Records   int64     // documents that are executions
	Refused   int64     // messages that can never be stored
	Newest    time.Time // when the last stored message was sent
	Err       error     // of the last write
	ErrAt     time.Time // when it failed
}

// The limits of a write: of messages and, approximately, of documents, which need much more memory.
const (
	fetchMost    = 512
	documentMost = 4096
)

// refusedEvery limits how often rejected messages are logged.
const refusedEvery = 10 * time.Second

// NewStorer returns a storer that gathers messages for at most delay. It calls finish with the
// information that was passed to Finish once everything before it is stored. It accepts run-level
// data only from runSubject, to which analyzers may not publish.
func NewStorer(
	source Source, store provdb.Writer, run provdb.RunID, delay time.Duration, runSubject string,
	finish func(context.Context, json.RawMessage) error, log *slog.Logger,
) *Storer {
	return &Storer{
		source: source, store: store, run: run, delay: delay, runSubject: runSubject, finish: finish, log: log, lines: throttle.New(refusedEvery),
		hurry: make(chan struct{}),
	}
}

// Stats returns the current counters.
func (s *Storer) Stats() StorerStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored
}

// Run stores messages until the run has finished, when it returns nil. It fails when
// ctx ends, when another consumer takes over the stream, and with provdb.ErrBroken when
// the store must be reopened.
func (s *Storer) Run(ctx context.Context) error {
	for finished := false; !finished; {
		var messages []bus.Message
		err := s.retry(ctx, func() (err error) {
			messages, err = s.gather(ctx)
			return err
		})
		for err == nil && len(messages) > 0 && !finished {
			var n int
			n, finished, err = s.commit(ctx, messages)
			messages = messages[n:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Hurry makes Run store messages as they arrive from now on, because the run is ending and others wait for
// the store. Further calls do nothing.
func (s *Storer) Hurry() { s.hurryOnce.Do(func() { close(s.hurry) }) }

// gather returns the messages that arrive before delay has passed, at most fetchMost. After Hurry it
// returns the messages that the stream has without waiting for more. The result may be empty.
func (s *Storer) gather(ctx context.Context) ([]bus.Message, error) {
	late := time.NewTimer(s.delay)
	defer late.Stop()
	all, err := s.source.Fetch(ctx, fetchMost, 0)
	if err == nil && len(all) == 0 {
		all, err = s.source.Fetch(ctx, 1, s.delay)
	}
	if err != nil || len(all) == 0 || len(all) == fetchMost {
		return all, err
	}
	select {
	case <-late.C:
	case <-s.hurry:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	more, err := s.source.Fetch(ctx, fetchMost-len(all), 0)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil { // the next call returns it, too
		return all, nil //nolint:nilerr // these messages are not delivered again
	}
	return append(all, more...), nil
}

// retry calls f until it succeeds. It fails with the errors of Run.
func (s *Storer) retry(ctx context.Context, f func() error) error {
	for pause := (wait.Backoff{}); ; {
		err := f()
		switch {
		case ctx.Err() != nil && errors.Is(err, ctx.Err()): // not an error of the store
			return err
		case errors.Is(err, bus.ErrTaken), errors.Is(err, bus.ErrClosed):
			return err
		}
		if s.note(err); err == nil || errors.Is(err, provdb.ErrBroken) {
			return err
		}
		if err := pause.Wait(ctx); err != nil {
			return err
		}
	}
}

// note sets the error in the counters, and logs a new one.
func (s *Storer) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && (s.stored.Err == nil || s.stored.Err.Error() != err.Error()) {
		s.log.Error("cannot store records; they wait in the stream", "error", err)
	}
	s.stored.Err, s.stored.ErrAt = err, time.Time{}
	if err != nil {
		s.stored.ErrAt = time.Now()
	}
}

// commit stores and acknowledges the first messages, as many as a write may have. It returns their
// number, and whether the run has finished.
func (s *Storer) commit(ctx context.Context, messages []bus.Message) (n int, finished bool, err error) {
	var all provdb.Batch
	var info json.RawMessage
	for n < len(messages) && all.Len() < documentMost && info == nil {
		m := messages[n]
		n++
		batch, end, err := s.decode(m)
		if err != nil {
			s.refuse(m, err)
			continue
		}
		all.Merge(batch)
		if len(end) > 0 {
			info = end
		}
	}
	messages = messages[:n]
	err = s.retry(ctx, func() error {
		err := s.write(ctx, &all, messages)
		if err == nil && info != nil {
			err = s.finish(ctx, info)
		}
		return err
	})
	if err != nil {
		return n, false, err
	}
	last := messages[n-1]
	if err := s.retry(ctx, func() error { return s.source.Ack(ctx, last) }); err != nil {
		return n, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored.Documents += int64(all.Len())
	s.stored.Records += int64(len(all.Anomalies) + len(all.Typical))
	s.stored.Newest = last.Time
	return n, info != nil, nil
}

// write writes a batch. If it is invalid, write stores the valid messages one by one.
func (s *Storer) write(ctx context.Context, all *provdb.Batch, messages []bus.Message) error {
	if all.Len() == 0 {
		return nil
	}
	if all.Validate() == nil {
		return s.store.Write(ctx, s.run, all)
	}
	for _, m := range messages {
		batch, _, err := s.decode(m)
		if err != nil {
			continue
		}
		if err := batch.Validate(); err != nil {
			s.refuse(m, err)
			continue
		}
		if err := s.store.Write(ctx, s.run, batch); err != nil {
			return err
		}
	}
	return nil
}

// refuse logs and counts a message that can never be stored.
func (s *Storer) refuse(m bus.Message, err error) {
	if due, left := s.lines.Allow("refused", time.Now()); due {
		s.log.Error("dropping an invalid message of the record stream", "message", m.ID, "error", err, "others", left)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored.Refused++
}

// decode decodes a message, and the information about the run if it is the last.
func (s *Storer) decode(m bus.Message) (b *provdb.Batch, finish json.RawMessage, err error) {
	b, finish, err = decode(m.Data)
	runLevel := err == nil && (len(finish) > 0 || len(b.Functions)+len(b.Counters)+len(b.Models)+len(b.Paths) > 0 || b.Peers != nil ||
		b.Breakdown != nil)
	if runLevel && m.Subject != s.runSubject {
		return nil, nil, errors.New("not allowed to publish run-level data")
	}
	return b, finish, err
}

func decode(data []byte) (b *provdb.Batch, finish json.RawMessage, err error) {
	m := new(protocol.RecordBatch)
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, nil, fmt.Errorf("decode a batch of records: %w", err)
	}
	if err := protocol.Format.Check(int(m.GetVersion())); err != nil {
		return nil, nil, fmt.Errorf("batch of records: %w", err)
	}
	b = new(provdb.Batch)
	facts := []provenance.Metadata{}
	var invalid [2]error
	b.Anomalies, invalid[0] = ReadRecords(m.GetAnomalies())
	b.Typical, invalid[1] = ReadRecords(m.GetTypical())
	err = errors.Join(invalid[0], invalid[1], readAll(m.GetMetadata(), &facts),
		readAll(m.GetFuncStats(), &b.Functions), readAll(m.GetCounterStats(), &b.Counters),
		readAll(m.GetAdModels(), &b.Models), readAll(m.GetPathStats(), &b.Paths))
	if text := m.GetPeers(); len(text) > 0 {
		b.Peers = new(provenance.Peers)
		err = errors.Join(err, json.Unmarshal(text, b.Peers))
	}
	if text := m.GetBreakdown(); len(text) > 0 {
		b.Breakdown = new(provenance.Breakdown)
		err = errors.Join(err, json.Unmarshal(text, b.Breakdown))
	}
	if len(facts) > 0 {
		key := provdb.StepMetadata{Program: trace.Program(m.GetProgram()), Rank: trace.Rank(m.GetRank()), Step: int(m.GetStep()), Facts: facts}
		b.Metadata = []provdb.StepMetadata{key}
	}
	return b, m.GetFinish(), err
}

// readAll decodes documents.
func readAll[T any](documents [][]byte, all *[]T) error {
	*all = slices.Grow(*all, len(documents))
	for i, text := range documents {
		var v T
		if err := json.Unmarshal(text, &v); err != nil {
			return fmt.Errorf("document %d: %w", i, err)
		}
		*all = append(*all, v)
	}
	return nil
}
