// Package recordstream takes what analyzers keep to the store: through a durable
// stream, which a message leaves when the store has committed it. A record that
// is sent twice is stored once.
package recordstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Stream takes messages, and has them durably when Publish has returned nil.
type Stream interface {
	Publish(ctx context.Context, subject, id string, data []byte) error
}

// Numbers gives functions the numbers that are the same for all ranks.
type Numbers interface {
	Number(program trace.Program, name string) (int, bool)
	// Numbered is closed when functions get numbers that had none.
	Numbered() <-chan struct{}
}

// PublisherConfig says what a Publisher sends.
type PublisherConfig struct {
	Run     string
	Subject string
	Sender  string // names messages: another for each start of an analyzer
	Numbers Numbers
	// Reviewing reports whether records are final. Before, those that find no
	// room are left for the review; then, they are waited for.
	Reviewing func() bool
	// MaxBytes is about how much may wait in memory.
	MaxBytes int64
	Log      *slog.Logger
}

// Publisher sends what is kept. It is an analyzer.RecordSink that never waits
// until the review; Run does the sending.
type Publisher struct {
	cfg    PublisherConfig
	stream Stream

	mu      sync.Mutex
	changed sync.Cond
	queue   []*item
	stats   Stats
}

// Stats tells how a Publisher fares.
type Stats struct {
	Sent     int64 // records
	Messages int64 // waiting
	Bytes    int64 // waiting, about
	Deferred int64 // records that found no room and wait for the review
	Held     int64 // messages for which the stream had no room at first
	TooLarge int64 // records that the stream can never take
	Err      error // why the last message is not sent yet
}

// item is what a rank kept of a step.
type item struct {
	key       analyzer.StepKey
	anomalies []*provenance.Record
	typical   []*provenance.Record
	metadata  []provenance.Metadata
	size      int64
}

// NewPublisher returns a publisher; nothing is sent before Run.
func NewPublisher(cfg PublisherConfig, stream Stream) *Publisher {
	p := &Publisher{cfg: cfg, stream: stream}
	p.changed.L = &p.mu
	return p
}

// Metadata sends the facts that appeared in a step.
func (p *Publisher) Metadata(_ context.Context, key analyzer.StepKey, found []provenance.Metadata) error {
	p.push(&item{key: key, metadata: found, size: 100 * int64(len(found))})
	return nil
}

// Records sends the anomalies and typical executions of a step.
func (p *Publisher) Records(ctx context.Context, key analyzer.StepKey, anomalies, typical []*provenance.Record) error {
	it := &item{key: key, anomalies: anomalies, typical: typical}
	for _, list := range [...][]*provenance.Record{anomalies, typical} {
		for _, r := range list {
			it.size += sizeOf(r)
		}
	}
	stop := context.AfterFunc(ctx, p.changed.Broadcast)
	defer stop()
	p.mu.Lock()
	for p.stats.Bytes > p.cfg.MaxBytes {
		if !p.cfg.Reviewing() {
			p.stats.Deferred += int64(len(anomalies) + len(typical))
			p.mu.Unlock()
			return nil
		}
		if ctx.Err() != nil {
			p.mu.Unlock()
			return ctx.Err()
		}
		p.changed.Wait()
	}
	p.mu.Unlock()
	p.push(it)
	return nil
}

// sizeOf is about the size of a record in memory.
func sizeOf(r *provenance.Record) int64 {
	return 1000 + 120*int64(len(r.CallStack)+len(r.CounterEvents)+len(r.EventWindow.Execs)+len(r.EventWindow.Comms))
}

func (p *Publisher) push(it *item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, it)
	p.stats.Messages++
	p.stats.Bytes += it.size
	p.changed.Broadcast()
}

// Stats tells how the publisher fares.
func (p *Publisher) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Flush waits until all that was given is durable.
func (p *Publisher) Flush(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.changed.Broadcast)
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stats.Messages > 0 {
		if ctx.Err() != nil {
			return fmt.Errorf("%d messages are not stored: %w", p.stats.Messages, ctx.Err())
		}
		p.changed.Wait()
	}
	return nil
}

// Run sends until ctx ends.
func (p *Publisher) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, p.changed.Broadcast)
	defer stop()
	for number := 0; ; number++ {
		it := p.next(ctx)
		if it == nil {
			return
		}
		if !p.send(ctx, it, number) {
			return
		}
		p.mu.Lock()
		p.stats.Messages--
		p.stats.Bytes -= it.size
		p.changed.Broadcast()
		p.mu.Unlock()
	}
}

// next waits for something to send; nil when ctx has ended.
func (p *Publisher) next(ctx context.Context) *item {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 {
		if ctx.Err() != nil {
			return nil
		}
		p.changed.Wait()
	}
	it := p.queue[0]
	p.queue[0] = nil
	p.queue = p.queue[1:]
	return it
}

// Pauses between attempts to send.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// send sends until it succeeds; false when ctx ended before.
func (p *Publisher) send(ctx context.Context, it *item, number int) bool {
	if !p.number(ctx, it) {
		return false
	}
	messages, err := it.messages(p.cfg.Run)
	if err != nil { // nothing of ours cannot be encoded
		p.cfg.Log.Error("a message is lost: it cannot be encoded", "error", err)
		return true
	}
	for i, m := range messages {
		if !p.publish(ctx, m, fmt.Sprintf("%s-%d-%d", p.cfg.Sender, number, i)) {
			return false
		}
	}
	return true
}

// publish has the stream take a message, unless it never can; false when ctx ended
// before.
func (p *Publisher) publish(ctx context.Context, m *protocol.RecordBatch, id string) bool {
	data, err := proto.Marshal(m)
	if err != nil { // as above
		p.cfg.Log.Error("a message is lost: it cannot be encoded", "error", err)
		return true
	}
	held := false
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := p.stream.Publish(ctx, p.cfg.Subject, id, data)
		full, never := errors.Is(err, bus.ErrFull), errors.Is(err, bus.ErrTooLarge)
		p.mu.Lock()
		p.stats.Err = err
		if full && !held {
			held = true
			p.stats.Held++
		}
		switch records := int64(len(m.GetAnomalies()) + len(m.GetTypical())); {
		case err == nil:
			p.stats.Sent += records
		case never:
			p.stats.TooLarge += records
		}
		p.mu.Unlock()
		switch {
		case err == nil:
			return true
		case never:
			p.cfg.Log.Error("records are lost: the stream is too small for them; give chimbuko serve a larger --stream-size", "error", err)
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// number gives all functions of the records their numbers, for which it waits;
// false when ctx ended before.
func (p *Publisher) number(ctx context.Context, it *item) bool {
	for {
		missing := false
		set := func(fid *int, name string) {
			if strings.HasPrefix(name, "#") { // the trace never named it
				return
			}
			id, ok := p.cfg.Numbers.Number(it.key.Program, name)
			missing = missing || !ok
			*fid = id
		}
		numbered := p.cfg.Numbers.Numbered()
		for _, list := range [...][]*provenance.Record{it.anomalies, it.typical} {
			for _, r := range list {
				renumber(r, set)
			}
		}
		if !missing {
			return true
		}
		p.cfg.Numbers.Numbered() // asks for them
		select {
		case <-ctx.Done():
			return false
		case <-numbered:
		}
	}
}

// renumber calls set for each function of a record.
func renumber(r *provenance.Record, set func(fid *int, name string)) {
	set(&r.FID, r.Func)
	for i := range r.CallStack {
		set(&r.CallStack[i].FID, r.CallStack[i].Func)
	}
	for i := range r.EventWindow.Execs {
		set(&r.EventWindow.Execs[i].FID, r.EventWindow.Execs[i].Func)
	}
	if parent, ok := r.GPUParent.(provenance.GPUParent); ok {
		for i := range parent.CallStack {
			set(&parent.CallStack[i].FID, parent.CallStack[i].Func)
		}
	}
}

// messageSize is about how large a message is at most. A stream that is nearly full,
// or small, takes a part of what a step left.
const messageSize = 256 << 10

// messages returns what the stream is to take, in messages of bounded size.
func (it *item) messages(run string) (all []*protocol.RecordBatch, err error) {
	size := 0
	next := func() *protocol.RecordBatch {
		size = 0
		all = append(all, &protocol.RecordBatch{
			Version: protocol.Version, Run: run, Program: uint32(it.key.Program), Rank: uint32(it.key.Rank), Step: uint32(it.key.Step),
		})
		return all[len(all)-1]
	}
	m := next()
	if m.Metadata, err = writeAll(it.metadata); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for i, records := range [...][]*provenance.Record{it.anomalies, it.typical} {
		for _, r := range records {
			b.Reset()
			if err := r.WriteJSON(&b); err != nil {
				return nil, fmt.Errorf("record %s: %w", r.EventID, err)
			}
			if size > 0 && size+b.Len() > messageSize {
				m = next()
			}
			size += b.Len()
			to := &m.Anomalies
			if i == 1 {
				to = &m.Typical
			}
			*to = append(*to, bytes.Clone(b.Bytes()))
		}
	}
	return all, nil
}

// writeAll writes documents.
func writeAll[T any](values []T) (documents [][]byte, err error) {
	for i := range values {
		text, err := json.Marshal(&values[i])
		if err != nil {
			return nil, err
		}
		documents = append(documents, text)
	}
	return documents, nil
}

// SendAnomalies sends anomalies that are in the store, to replace them. The id names the
// messages.
func SendAnomalies(ctx context.Context, stream Stream, run, subject, id string, anomalies []*provenance.Record) error {
	messages, err := (&item{anomalies: anomalies}).messages(run)
	if err != nil {
		return err
	}
	for i, m := range messages {
		data, err := proto.Marshal(m)
		if err != nil {
			return err
		}
		if err := stream.Publish(ctx, subject, fmt.Sprintf("%s-%d", id, i), data); err != nil {
			return err
		}
	}
	return nil
}

// SendPaths sends all calls of the run so far by call path, which replace what was
// sent before. The id names the message.
func SendPaths(ctx context.Context, stream Stream, run, subject, id string, paths []provenance.PathStats) error {
	documents, err := writeAll(paths)
	if err != nil {
		return err
	}
	data, err := proto.Marshal(&protocol.RecordBatch{Version: protocol.Version, Run: run, PathStats: documents})
	if err != nil {
		return err
	}
	return stream.Publish(ctx, subject, id, data)
}

// Finish sends what is known over all ranks and the information about the run,
// which is its end. The id names the message.
func Finish(ctx context.Context, stream Stream, run, subject, id string, known *provenance.Collections, info any) error {
	m := &protocol.RecordBatch{Version: protocol.Version, Run: run}
	var errs [5]error
	m.FuncStats, errs[0] = writeAll(known.FuncStats)
	m.CounterStats, errs[1] = writeAll(known.CounterStats)
	m.AdModels, errs[2] = writeAll(known.ADModels)
	m.PathStats, errs[4] = writeAll(known.PathStats)
	m.Finish, errs[3] = json.Marshal(info)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	data, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return stream.Publish(ctx, subject, id, data)
}
