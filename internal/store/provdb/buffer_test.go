package provdb_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// slow is a Writer that takes a fixed time and records the sizes of batches.
type slow struct {
	provdb.Writer
	takes time.Duration
	fails error

	mu    sync.Mutex
	sizes []int
	busy  bool
	began time.Time
}

func (w *slow) Write(ctx context.Context, _ provdb.RunID, b *provdb.Batch) error {
	w.mu.Lock()
	if w.busy {
		panic("two writes at once")
	}
	w.busy = true
	w.sizes = append(w.sizes, b.Len())
	w.mu.Unlock()
	select {
	case <-time.After(w.takes):
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
	return errors.Join(w.fails, ctx.Err())
}

func (w *slow) wrote(t *testing.T, want ...int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sizes) != len(want) {
		t.Fatalf("at %v: got batches of %v, want %v", time.Since(w.began), w.sizes, want)
	}
	for i := range want {
		if w.sizes[i] != want[i] {
			t.Fatalf("at %v: got batches of %v, want %v", time.Since(w.began), w.sizes, want)
		}
	}
}

func some(n int) *provdb.Batch { return &provdb.Batch{Anomalies: make([]*provenance.Record, n)} }

func add(t *testing.T, b *provdb.Buffer, n int) {
	t.Helper()
	if err := b.Add(t.Context(), some(n)); err != nil {
		t.Fatal(err)
	}
}

// pass advances the fake clock.
func pass(d time.Duration) { <-time.After(d); synctest.Wait() }

func TestDelayStartsWithFirstDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slow{began: time.Now()}
		b := provdb.NewBuffer(t.Context(), w, 1, time.Second, 100)
		pass(10 * time.Second) // the buffer is empty
		w.wrote(t)
		add(t, b, 1)
		pass(999 * time.Millisecond)
		add(t, b, 2)
		w.wrote(t)
		pass(time.Millisecond)
		w.wrote(t, 3)
		pass(10 * time.Second)
		w.wrote(t, 3)
		add(t, b, 4)
		pass(time.Second)
		w.wrote(t, 3, 4)
	})
}

func TestFullBufferIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slow{began: time.Now()}
		b := provdb.NewBuffer(t.Context(), w, 1, time.Hour, 10)
		add(t, b, 9)
		w.wrote(t)
		add(t, b, 1)
		w.wrote(t, 10)
		add(t, b, 25)
		w.wrote(t, 10, 25)
		pass(2 * time.Hour)
		w.wrote(t, 10, 25)
	})
}

func TestSlowWriterBlocksAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slow{takes: time.Minute, began: time.Now()}
		b := provdb.NewBuffer(t.Context(), w, 1, time.Hour, 10)
		var adding sync.WaitGroup
		for range 6 {
			adding.Go(func() { add(t, b, 10) })
		}
		pass(time.Second)
		w.wrote(t, 10) // one is being written, one is pending, the others block
		adding.Wait()
		if err := b.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, n := range w.sizes {
			total += n
		}
		if total != 60 || time.Since(w.began) < 3*time.Minute {
			t.Errorf("got batches of %v in %v", w.sizes, time.Since(w.began))
		}
	})
}

func TestFlushWaitsForRunningWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slow{takes: time.Minute, began: time.Now()}
		b := provdb.NewBuffer(t.Context(), w, 1, time.Second, 100)
		add(t, b, 1)
		pass(2 * time.Second)
		w.wrote(t, 1)
		if err := b.Flush(t.Context()); err != nil || time.Since(w.began) != 61*time.Second {
			t.Errorf("Flush returned after %v, error %v", time.Since(w.began), err)
		}
	})
}

func TestNothingIsWrittenAfterError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slow{fails: provdb.ErrNotFound, began: time.Now()}
		b := provdb.NewBuffer(t.Context(), w, 1, time.Second, 100)
		add(t, b, 1)
		pass(time.Second)
		w.wrote(t, 1)
		w.fails = nil
		for range 2 {
			if err := b.Add(t.Context(), some(1)); !errors.Is(err, provdb.ErrNotFound) {
				t.Errorf("Add: got error %v", err)
			}
			if err := b.Flush(t.Context()); !errors.Is(err, provdb.ErrNotFound) {
				t.Errorf("Flush: got error %v", err)
			}
		}
		pass(time.Hour)
		w.wrote(t, 1)
	})
}

func TestBatchCountsDocuments(t *testing.T) {
	b := &provdb.Batch{
		Anomalies: make([]*provenance.Record, 1), Typical: make([]*provenance.Record, 2), Functions: make([]provenance.FuncStats, 3),
		Counters: make([]provenance.CounterStats, 4), Models: make([]provenance.ADModel, 5),
		Metadata: []provdb.StepMetadata{{Facts: make([]provenance.Metadata, 6)}, {}, {Facts: make([]provenance.Metadata, 7)}},
	}
	if b.Len() != 28 {
		t.Errorf("got %d, want 28", b.Len())
	}
	b.Paths = make([]provenance.PathStats, 8)
	if b.Len() != 36 {
		t.Errorf("with call paths: got %d, want 36", b.Len())
	}
	all := &provdb.Batch{}
	all.Merge(b)
	all.Merge(b)
	if all.Len() != 2*28+8 || b.Len() != 36 { // later call paths replace earlier ones
		t.Errorf("got %d documents after merging, %d in the merged batch", all.Len(), b.Len())
	}
	peers := &provdb.Batch{Peers: &provenance.Peers{
		Loads: make([]provenance.RankLoad, 2), Efficiency: make([]provenance.Efficiency, 3), Slow: make([]provenance.SlowPeer, 4),
	}}
	peers.Merge(&provdb.Batch{Peers: new(provenance.Peers)}) // has none
	if peers.Len() != 9 {
		t.Errorf("with peers: got %d, want 9", peers.Len())
	}
	peers.Merge(&provdb.Batch{Peers: &provenance.Peers{Slow: make([]provenance.SlowPeer, 1)}})
	if peers.Len() != 1 { // later peers replace earlier ones
		t.Errorf("with later peers: got %d, want 1", peers.Len())
	}
}
