package storetest

import (
	"context"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// watched reports each written batch.
type watched struct {
	provdb.Writer
	wrote chan int // number of documents
}

func (w *watched) Write(ctx context.Context, run provdb.RunID, batch *provdb.Batch) error {
	err := w.Writer.Write(ctx, run, batch)
	if err == nil {
		w.wrote <- batch.Len()
	}
	return err
}

// buffered returns a buffer of the store.
func (f *fixture) buffered(delay time.Duration, size int) (*provdb.Buffer, *watched) {
	w := &watched{Writer: f.store, wrote: make(chan int, 100)}
	return provdb.NewBuffer(f.Context(), w, f.run, delay, size), w
}

// next waits for a batch to be written.
func (f *fixture) next(w *watched) int {
	f.Helper()
	select {
	case n := <-w.wrote:
		return n
	case <-time.After(queryTimeout):
		f.Fatal("no batch was written")
		return 0
	}
}

func (f *fixture) add(b *provdb.Buffer, batch *provdb.Batch) {
	f.Helper()
	if err := b.Add(f.Context(), batch); err != nil {
		f.Fatal(err)
	}
}

var bufferTests = []test{
	{"Add stores after the delay", func(f *fixture) {
		b, w := f.buffered(20*time.Millisecond, 1<<20)
		for i, r := range Records(3, 1) {
			f.add(b, records(r))
			if n := f.next(w); n != 1 {
				f.Errorf("a batch of %d documents, want 1", n)
			}
			f.want([][]any{{int64(i + 1)}}, "SELECT count(*) FROM anomalies")
		}
	}},
	{"Add stores a full buffer before the delay", func(f *fixture) {
		b, w := f.buffered(time.Hour, 10)
		all := Records(25, 1)
		for i := 0; i < len(all); i += 5 {
			f.add(b, records(all[i:i+5]...))
		}
		for range 2 {
			if n := f.next(w); n != 10 {
				f.Errorf("a batch of %d documents, want 10", n)
			}
		}
		f.want([][]any{{int64(20)}}, "SELECT count(*) FROM anomalies")
		if err := b.Flush(f.Context()); err != nil {
			f.Fatal(err)
		}
		f.wantDocs(f.run, "anomalies", toAny(all)...)
	}},
	{"Flush stores", func(f *fixture) {
		b, _ := f.buffered(time.Hour, 1<<20)
		f.add(b, full(10, 1))
		f.add(b, full(20, 1)) // with the same records
		f.want([][]any{{int64(0)}}, "SELECT count(*) FROM anomalies")
		if err := b.Flush(f.Context()); err != nil {
			f.Fatal(err)
		}
		want := full(20, 1)
		want.Typical = append(want.Typical, full(10, 1).Typical...)
		f.want([][]any{{int64(25)}}, "SELECT count(*) FROM executions")
		f.wantDocs(f.run, "func_stats", toAny(want.Functions)...)
		if err := b.Flush(f.Context()); err != nil { // empty
			f.Error(err)
		}
	}},
	{"the first error is permanent", func(f *fixture) {
		b := provdb.NewBuffer(f.Context(), f.store, f.run+1000, time.Hour, 1<<20)
		f.add(b, full(1, 1))
		f.wantError(provdb.ErrNotFound, b.Flush(f.Context()))
		f.wantError(provdb.ErrNotFound, b.Add(f.Context(), full(1, 1)))
		f.wantError(provdb.ErrNotFound, b.Flush(f.Context()))
	}},
}
