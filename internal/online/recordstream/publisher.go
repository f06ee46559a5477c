// Package recordstream carries the records of analyzers to the store through a durable stream. A
// message leaves the stream when the store has committed it. A record that is sent twice is stored
// once.
package recordstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Stream stores messages durably before Publish returns nil.
type Stream interface {
	Publish(ctx context.Context, subject, id string, data []byte) error
}

// IDs assigns functions numbers that are the same for all ranks.
type IDs interface {
	Number(program trace.Program, name string) (int, bool)
	// NewIDs returns a channel that is closed when more functions get numbers.
	NewIDs() <-chan struct{}
}

// PublisherConfig configures a Publisher.
type PublisherConfig struct {
	Run     string
	Subject string
	Sender  string // prefix of message ids, different for each start of an analyzer
	Numbers IDs
	// Reviewing reports whether records are final. Before that, Records defers records that do not
	// fit to the review; after that it waits for room.
	Reviewing func() bool
	// MaxBytes approximately bounds the memory of waiting records.
	MaxBytes int64
	Log      *slog.Logger
}

// Publisher is an analyzer.RecordSink that sends records to a stream. It never blocks
// before the review; Run does the sending.
type Publisher struct {
	cfg    PublisherConfig
	stream Stream

	mu      sync.Mutex
	changed sync.Cond
	queue   []*item
	stats   Stats
}

// Stats counts the work of a Publisher.
type Stats struct {
	Sent     int64 // records
	Messages int64 // waiting
	Bytes    int64 // waiting, approximately
	Deferred int64 // records that did not fit and wait for the review
	Delayed  int64 // messages for which the stream had no room at first
	TooLarge int64 // records too large for the stream
	Err      error // of the last attempt to send
}

// item holds the records of a step of a rank.
type item struct {
	key       trace.StepKey
	anomalies []*provenance.Record
	typical   []*provenance.Record
	metadata  []provenance.Metadata
	size      int64
}

// NewPublisher returns a publisher. It sends nothing before Run.
func NewPublisher(cfg PublisherConfig, stream Stream) *Publisher {
	p := &Publisher{cfg: cfg, stream: stream}
	p.changed.L = &p.mu
	return p
}

// Metadata queues the metadata that appeared in a step.
func (p *Publisher) Metadata(_ context.Context, key trace.StepKey, facts []provenance.Metadata) error {
	p.push(&item{key: key, metadata: facts, size: 100 * int64(len(facts))})
	return nil
}

// Records queues the anomalies and typical executions of a step.
func (p *Publisher) Records(ctx context.Context, key trace.StepKey, anomalies, typical []*provenance.Record) error {
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

// Supersede drops the waiting records, because the review will pass all records again.
func (p *Publisher) Supersede() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = slices.DeleteFunc(p.queue, func(it *item) bool {
		drop := len(it.metadata) == 0
		if drop {
			p.stats.Messages--
			p.stats.Bytes -= it.size
		}
		return drop
	})
	p.changed.Broadcast()
}

// sizeOf estimates the size of a record in memory.
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

// Stats returns the current counters.
func (p *Publisher) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Flush waits until the stream has everything.
func (p *Publisher) Flush(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.changed.Broadcast)
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stats.Messages > 0 {
		if ctx.Err() != nil {
			return fmt.Errorf("%d messages are not in the stream: %w", p.stats.Messages, ctx.Err())
		}
		p.changed.Wait()
	}
	return nil
}

// Run sends until ctx ends.
func (p *Publisher) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, p.changed.Broadcast)
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for number := 0; ; number++ {
		for len(p.queue) == 0 {
			if ctx.Err() != nil {
				return
			}
			p.changed.Wait()
		}
		it := p.queue[0]
		p.queue[0] = nil
		p.queue = p.queue[1:]
		p.mu.Unlock()
		sent := p.send(ctx, it, number)
		p.mu.Lock()
		if !sent {
			return
		}
		p.stats.Messages--
		p.stats.Bytes -= it.size
		p.changed.Broadcast()
	}
}

// send sends an item, with retries. It returns false if ctx ends first.
func (p *Publisher) send(ctx context.Context, it *item, number int) bool {
	if !p.number(ctx, it) {
		return false
	}
	messages, err := it.messages(p.cfg.Run)
	if err != nil { // unreachable: all our records can be encoded
		p.cfg.Log.Error("dropping records that cannot be encoded", "error", err)
		return true
	}
	for i := range messages {
		if !p.publish(ctx, &messages[i], fmt.Sprintf("%s-%d-%d", p.cfg.Sender, number, i)) {
			return false
		}
	}
	return true
}

// publish publishes a message, with retries, and drops it if it can never fit. It
// returns false if ctx ends first.
func (p *Publisher) publish(ctx context.Context, m *message, id string) bool {
	data, err := proto.Marshal(m)
	if err != nil { // as above
		p.cfg.Log.Error("dropping records that cannot be encoded", "error", err)
		return true
	}
	held := false
	var outage wait.Outage
	for pause := (wait.Backoff{}); ; {
		err := p.stream.Publish(ctx, p.cfg.Subject, id, data)
		p.mu.Lock()
		p.stats.Err = err
		switch {
		case err == nil:
			p.stats.Sent += m.records
		case errors.Is(err, bus.ErrTooLarge):
			p.stats.TooLarge += m.records
		case errors.Is(err, bus.ErrFull) && !held:
			held = true
			p.stats.Delayed++
		}
		p.mu.Unlock()
		if errors.Is(err, bus.ErrTooLarge) {
			p.cfg.Log.Error("dropping records that are too large", "error", err)
			return true
		}
		if err == nil {
			return true
		}
		if lasted, log := outage.Failed("", time.Now()); log {
			p.cfg.Log.Warn("the stream does not accept records; they wait in this process", "error", err, "for_seconds", lasted.Seconds())
		}
		if pause.Wait(ctx) != nil {
			return false
		}
	}
}

// number sets the numbers of all functions of the records, and waits for missing ones. It returns
// false if ctx ends first.
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
		numbered := p.cfg.Numbers.NewIDs()
		for _, list := range [...][]*provenance.Record{it.anomalies, it.typical} {
			for _, r := range list {
				renumber(r, set)
			}
		}
		if !missing {
			return true
		}
		p.cfg.Numbers.NewIDs() // requests them
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

// messageSize is the approximate size of a message. It is small so that a small or nearly full
// stream accepts a part of a step.
const messageSize = 64 << 10

// message is a message of a stream.
type message struct {
	*protocol.RecordBatch
	records int64
}

// packer packs documents into messages of bounded size. The messages share the fields
// of head.
type packer struct {
	head  *protocol.RecordBatch
	limit int // of a message, in bytes
	all   []message
	size  int // of the last message
}

// last returns the message that has room for size more bytes.
func (p *packer) last(size int) *message {
	if len(p.all) == 0 || p.size > 0 && p.size+size > p.limit {
		p.size = 0
		p.all = append(p.all, message{RecordBatch: proto.CloneOf(p.head)})
	}
	p.size += size
	return &p.all[len(p.all)-1]
}

// pack adds records to a field of the messages.
func (p *packer) pack(records []*provenance.Record, field func(*protocol.RecordBatch) *[]byte) {
	c := new(coder)
	var m *message
	for _, r := range records {
		if at := p.last(1); at != m {
			*c = coder{number: make(map[string]uint64)}
			m = at
		}
		p.size += c.append(r) - 1
		m.records++
		*field(m.RecordBatch) = c.B
	}
}

// pack adds values as JSON to a field of the messages.
func pack[T any](p *packer, values []T, field func(*protocol.RecordBatch) *[][]byte) error {
	for i := range values {
		text, err := json.Marshal(&values[i])
		if err != nil {
			return err
		}
		to := field(p.last(len(text)).RecordBatch)
		*to = append(*to, text)
	}
	return nil
}

// messages returns the messages to publish.
func (it *item) messages(run string) ([]message, error) {
	p := &packer{limit: messageSize, head: &protocol.RecordBatch{
		Version: protocol.Version, Run: run, Program: uint32(it.key.Program), Rank: uint32(it.key.Rank), Step: uint32(it.key.Step),
	}}
	err := pack(p, it.metadata, func(m *protocol.RecordBatch) *[][]byte { return &m.Metadata })
	p.pack(it.anomalies, func(m *protocol.RecordBatch) *[]byte { return &m.Anomalies })
	p.pack(it.typical, func(m *protocol.RecordBatch) *[]byte { return &m.Typical })
	return p.all, err
}

// publishAll publishes messages under ids that begin with id.
func publishAll(ctx context.Context, stream Stream, subject, id string, messages []message) error {
	for i := range messages {
		data, err := proto.Marshal(messages[i])
		if err != nil {
			return err
		}
		if err := stream.Publish(ctx, subject, fmt.Sprintf("%s-%d", id, i), data); err != nil {
			return err
		}
	}
	return nil
}

// SendAnomalies sends anomalies to replace those in the store. The ids of its messages
// begin with id.
func SendAnomalies(ctx context.Context, stream Stream, run, subject, id string, anomalies []*provenance.Record) error {
	messages, err := (&item{anomalies: anomalies}).messages(run)
	if err != nil {
		return err
	}
	return publishAll(ctx, stream, subject, id, messages)
}

// SendPaths sends the statistics of all call paths of the run so far, to replace
// those in the store. The ids of its messages begin with id.
func SendPaths(ctx context.Context, stream Stream, run, subject, id string, paths []provenance.PathStats) error {
	p := &packer{head: &protocol.RecordBatch{Version: protocol.Version, Run: run}, limit: math.MaxInt} // one message: they are a tree
	if err := pack(p, paths, func(m *protocol.RecordBatch) *[][]byte { return &m.PathStats }); err != nil {
		return err
	}
	return publishAll(ctx, stream, subject, id+"-paths", p.all)
}

// SendPeers sends a comparison of peers, to replace the one in the store. If it is too large for the stream, SendPeers omits
// first the windows of threads, then those of ranks, and finally the activities. The ids of its messages begin with id.
func SendPeers(ctx context.Context, stream Stream, run, subject, id string, peers *provenance.Peers) error {
	all := provenance.Peers{Loads: slices.Clone(peers.Loads), Efficiency: peers.Efficiency, Slow: peers.Slow, Activity: peers.Activity}
	for leaveOut := 0; ; leaveOut++ {
		for i := range all.Loads {
			if l := &all.Loads[i]; leaveOut == 1 && l.TID != provenance.AllThreads || leaveOut == 2 {
				l.Windows = nil
			}
		}
		if leaveOut == 3 {
			all.Activity = nil
		}
		text, err := json.Marshal(&all)
		if err != nil {
			return err
		}
		m := &protocol.RecordBatch{Version: protocol.Version, Run: run, Peers: text}
		err = publishAll(ctx, stream, subject, id+"-peers", []message{{RecordBatch: m}})
		if !errors.Is(err, bus.ErrTooLarge) || leaveOut == 3 {
			return err
		}
	}
}

// SendBreakdown sends the time of GPUs and the collective operations, to replace those in the store. The ids of its
// messages begin with id.
func SendBreakdown(ctx context.Context, stream Stream, run, subject, id string, b *provenance.Breakdown) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	m := &protocol.RecordBatch{Version: protocol.Version, Run: run, Breakdown: text}
	return publishAll(ctx, stream, subject, id+"-breakdown", []message{{RecordBatch: m}})
}

// Finish sends the run-level data and then the information about the run, which ends the run. The
// ids of its messages begin with id.
func Finish(ctx context.Context, stream Stream, run, subject, id string, data *provenance.Collections, info any) error {
	p := &packer{limit: messageSize, head: &protocol.RecordBatch{Version: protocol.Version, Run: run}}
	end, err := json.Marshal(info)
	err = errors.Join(err,
		pack(p, data.FuncStats, func(m *protocol.RecordBatch) *[][]byte { return &m.FuncStats }),
		pack(p, data.CounterStats, func(m *protocol.RecordBatch) *[][]byte { return &m.CounterStats }),
		pack(p, data.ADModels, func(m *protocol.RecordBatch) *[][]byte { return &m.AdModels }),
		SendPaths(ctx, stream, run, subject, id, data.PathStats))
	if err == nil && data.Peers != nil {
		err = SendPeers(ctx, stream, run, subject, id, data.Peers)
	}
	if err == nil && data.Breakdown.Len() > 0 {
		err = SendBreakdown(ctx, stream, run, subject, id, data.Breakdown)
	}
	if err != nil {
		return err
	}
	p.last(len(end)).Finish = end
	return publishAll(ctx, stream, subject, id, p.all)
}
