package provdb

import (
	"context"
	"math"
	"sync"
	"time"
)

// Buffer merges small batches of a run and writes them as larger ones, at the latest after a delay.
// It is safe for concurrent use.
type Buffer struct {
	w     Writer
	run   RunID
	delay time.Duration
	size  int

	mu      sync.Mutex
	changed sync.Cond // signals changes of pending, writing and err
	pending Batch
	writing bool
	err     error // of the first failed write, after which nothing is written
	timer   *time.Timer
}

// Default limits of a Buffer.
const (
	DefaultDelay = time.Second
	DefaultSize  = 4096 // documents
)

// NewBuffer returns a buffer for a run that writes when it has size documents, or delay after the
// first of them. Delayed writes use ctx.
func NewBuffer(ctx context.Context, w Writer, run RunID, delay time.Duration, size int) *Buffer {
	b := &Buffer{w: w, run: run, delay: delay, size: size}
	b.changed.L = &b.mu
	b.timer = time.AfterFunc(math.MaxInt64, func() { b.write(ctx) }) // Add resets it
	return b
}

// Add adds a batch, which the buffer then owns. It blocks while the buffer is full, and returns the
// error of an earlier write. The batch is durable when a later Flush returns nil.
func (b *Buffer) Add(ctx context.Context, batch *Batch) error {
	b.mu.Lock()
	for b.err == nil && b.pending.Len() >= b.size { // the Add that filled it writes it
		b.changed.Wait()
	}
	if b.err != nil {
		defer b.mu.Unlock()
		return b.err
	}
	if b.pending.Len() == 0 {
		b.timer.Reset(b.delay)
	}
	b.pending.Merge(batch)
	full := b.pending.Len() >= b.size
	b.mu.Unlock()
	if full {
		b.write(ctx)
	}
	return nil
}

// Flush writes the pending batch and waits until it is durable.
func (b *Buffer) Flush(ctx context.Context) error {
	b.write(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.writing {
		b.changed.Wait()
	}
	return b.err
}

// write writes the pending batch, after a write in progress has ended.
func (b *Buffer) write(ctx context.Context) {
	b.mu.Lock()
	for b.writing {
		b.changed.Wait()
	}
	b.timer.Stop()
	batch := b.pending
	if b.err != nil || batch.Len() == 0 {
		b.mu.Unlock()
		return
	}
	b.pending, b.writing = Batch{}, true
	b.changed.Broadcast()
	b.mu.Unlock()

	err := b.w.Write(ctx, b.run, &batch)

	b.mu.Lock()
	b.writing = false
	if b.err == nil {
		b.err = err
	}
	b.changed.Broadcast()
	b.mu.Unlock()
}

// Merge adds the documents of o to b. Call paths, findings and links, the comparison of peers
// and the breakdown of o replace those of b.
func (b *Batch) Merge(o *Batch) {
	b.Anomalies = append(b.Anomalies, o.Anomalies...)
	b.Typical = append(b.Typical, o.Typical...)
	b.Metadata = append(b.Metadata, o.Metadata...)
	b.Functions = append(b.Functions, o.Functions...)
	b.Counters = append(b.Counters, o.Counters...)
	b.Models = append(b.Models, o.Models...)
	if len(o.Paths) > 0 {
		b.Paths = o.Paths
	}
	if o.HasFindings() {
		b.Findings, b.Links = o.Findings, o.Links
	}
	if o.HasPeers() {
		b.Peers = o.Peers
	}
	if o.Breakdown.Len() > 0 {
		b.Breakdown = o.Breakdown
	}
}
