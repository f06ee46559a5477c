package dashboard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Overviews are made once for all streams, shown when they differ, and not made for
// nobody; synctest fails if the making goes on.
func TestOverviewsAreMadeOnceAndShownWhenTheyDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		var text atomic.Value // empty: it fails
		text.Store("first")
		b := &board{every: 2 * time.Second, make: func(context.Context) ([]byte, error) {
			made.Add(1)
			if text.Load() == "" {
				return nil, errors.New("the store is away")
			}
			return []byte(text.Load().(string)), nil
		}}
		b.wake() // nobody looks
		one, leaveOne := b.join(t.Context())
		if got := string(<-one); got != "first" {
			t.Errorf("got %q", got)
		}
		two, leaveTwo := b.join(t.Context())
		if got := string(<-two); got != "first" || made.Load() != 1 {
			t.Errorf("who comes later gets %q at once; %d were made", got, made.Load())
		}
		time.Sleep(21 * time.Second) //nolint:forbidigo // the clock is that of synctest
		if len(one)+len(two) != 0 || made.Load() != 11 {
			t.Errorf("%d made, and what is the same is shown again", made.Load())
		}
		text.Store("second")
		if a, b := string(<-one), string(<-two); a != "second" || b != "second" {
			t.Errorf("got %q and %q", a, b)
		}
		text.Store("")
		b.wake()
		synctest.Wait()
		if len(one) != 0 {
			t.Error("what failed is shown")
		}
		text.Store("third")
		b.wake()
		synctest.Wait()
		if len(one) != 1 || len(two) != 1 || string(<-one) != "third" {
			t.Error("who is woken does not look at once")
		}
		leaveOne()
		leaveTwo()
		before := made.Load()
		time.Sleep(time.Minute) //nolint:forbidigo // the clock is that of synctest
		if made.Load() != before {
			t.Errorf("%d were made for nobody", made.Load()-before)
		}
	})
}

// slowly counts, and takes its time for it.
func slowly(n *atomic.Int64, takes time.Duration, lasting bool) func(context.Context) (int64, bool, error) {
	return func(context.Context) (int64, bool, error) {
		time.Sleep(takes) //nolint:forbidigo // the clock is that of synctest
		return n.Add(1), lasting, nil
	}
}

func TestAMemoFindsOutOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found atomic.Int64
		lasting, takes := false, time.Second
		m := &memo[int64]{most: 2}
		get := func(key string, want int64) {
			t.Helper()
			if got, err := m.get(t.Context(), key, slowly(&found, takes, lasting)); got != want || err != nil {
				t.Errorf("%s: got %d, %v, want %d", key, got, err, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = m.get(ctx, "a", slowly(&found, takes, false)) }()
		synctest.Wait()
		cancel() // others may wait for it
		for range 5 {
			go get("a", 1)
		}
		get("a", 1)
		time.Sleep(9 * time.Second) //nolint:forbidigo // the clock is that of synctest
		get("a", 1)
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock is that of synctest
		go get("a", 2)
		synctest.Wait()
		get("a", 1)                 // while it is found out
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock is that of synctest
		get("a", 2)
		lasting, takes = true, 0
		get("b", 3)
		time.Sleep(time.Hour) //nolint:forbidigo // the clock is that of synctest
		get("b", 3)
		for i := range 10 {
			get(fmt.Sprint(i), int64(4+i))
		}
		if len(m.entries) > 2 {
			t.Errorf("%d are kept", len(m.entries))
		}
	})
}

func TestAMemoThatMayBeOldLetsNobodyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found atomic.Int64
		m := &memo[int64]{most: 2, old: true}
		get := func(want int64, takes time.Duration) {
			t.Helper()
			begin := time.Now()
			if got, err := m.get(t.Context(), "a", slowly(&found, time.Second, false)); got != want || err != nil || time.Since(begin) != takes {
				t.Errorf("got %d, %v after %v, want %d after %v", got, err, time.Since(begin), want, takes)
			}
		}
		get(1, time.Second)
		time.Sleep(11 * time.Second) //nolint:forbidigo // the clock is that of synctest
		get(1, 0)
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock is that of synctest
		get(2, 0)
		time.Sleep(time.Minute) //nolint:forbidigo // the clock is that of synctest
		get(3, time.Second)     // the one that is there is much too old
		time.Sleep(time.Minute) //nolint:forbidigo // the clock is that of synctest
		wrong := errors.New("no")
		if _, err := m.get(t.Context(), "a", func(context.Context) (int64, bool, error) { return 0, false, wrong }); !errors.Is(err, wrong) {
			t.Errorf("got %v", err)
		}
	})
}

func TestFunctionsHaveGroups(t *testing.T) {
	for name, want := range map[string]string{
		"MPI_Allreduce()": "mpi", "PMPI_Wait": "mpi", "mpi_send_": "mpi", "MPI Collective Sync": "mpi", "MPI_File_write_all()": "io", "ncclAllReduce": "mpi",
		"cudaLaunchKernel": "gpu", "cuLaunchKernel": "gpu", "cumulate(int)": "user", "hipMemcpy": "gpu", "hips": "user", "zeCommandListAppend": "gpu", "zero": "user",
		"open": "io", "read": "io", "write()": "io", "fopen64": "io", "pread64 [{/lib} {0}]": "io", "reader": "user", "write_block(FILE*)": "user",
		"H5Dwrite": "io", "h5fopen_f": "io", "adios2::Engine::Put": "io", "nc_put_var": "io", "ncmpi_put_var": "io",
		".TAU application": "user", "main": "user", "": "user", "void solver::Grid<double, 3>::relax(int)": "user", "openMesh": "user",
	} {
		if got := groupOf(name, false); got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
		if got := groupOf(name, true); got != "gpu" {
			t.Errorf("%q on a GPU is %s", name, got)
		}
	}
}
