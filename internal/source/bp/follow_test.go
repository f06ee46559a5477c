package bp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// recordings are the datasets that these tests replay.
var recordings = []string{"ring-BP4", "ring-BP5", "burst", "ring-onefile-BP4", "ring-onefile-BP5"}

// TestFollowedDatasetYieldsSameStepsAsFinished replays recordings write by write; the
// reader polls after each.
func TestFollowedDatasetYieldsSameStepsAsFinished(t *testing.T) {
	for _, name := range recordings {
		t.Run(name, func(t *testing.T) {
			dataset := tracetest.Recorded(t, name)[0]
			want := readAll(t, dataset)
			w := newReplay(t, dataset)
			got, err := follow(t, w, nil)
			if !errors.Is(err, io.EOF) {
				t.Errorf("ended with %v, want io.EOF", err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got steps\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestStepArrivesAtFirstPollAfterIndexRecord counts polls, which are one poll interval
// apart.
func TestStepArrivesAtFirstPollAfterIndexRecord(t *testing.T) {
	w := newReplay(t, tracetest.Recorded(t, "burst")[0])
	_, err := follow(t, w, func(steps int) {
		if steps != w.steps {
			t.Errorf("after a poll %d steps had been published but %d were delivered", w.steps, steps)
		}
	})
	if !errors.Is(err, io.EOF) {
		t.Errorf("ended with %v, want io.EOF", err)
	}
}

// TestReaderWaitsForLateFiles simulates a network file system that shows the index
// before the other files.
func TestReaderWaitsForLateFiles(t *testing.T) {
	for _, name := range recordings {
		for _, late := range []string{"md.0", "mmd.0", "data.0"} {
			dataset := tracetest.Recorded(t, name)[0]
			if _, err := os.Stat(filepath.Join(dataset, late)); err != nil {
				continue
			}
			t.Run(name+"/"+late, func(t *testing.T) {
				w := newReplay(t, dataset)
				w.delay(late)
				got, err := follow(t, w, nil)
				if want := readAll(t, dataset); !errors.Is(err, io.EOF) || !slices.Equal(got, want) {
					t.Errorf("got %d steps and %v, want %d and io.EOF", len(got), err, len(want))
				}
			})
		}
	}
}

func TestMissingDataErrorNamesFile(t *testing.T) {
	for _, lost := range []string{"md.0", "mmd.0", "data.0"} {
		t.Run(lost, func(t *testing.T) {
			w := newReplay(t, tracetest.Recorded(t, "ring-BP5")[0])
			w.lose(lost)
			_, err := follow(t, w, nil)
			corrupt, ok := errors.AsType[*bp.CorruptError](err)
			if !ok || filepath.Base(corrupt.File) != lost || !strings.Contains(err.Error(), "waited 1m0s") {
				t.Errorf("got %v, want a CorruptError that names %s and the wait", err, lost)
			}
		})
	}
}

func TestKilledWriterReachesIdleLimit(t *testing.T) {
	for _, name := range []string{"ring-BP4", "ring-BP5"} {
		t.Run(name, func(t *testing.T) {
			dataset := tracetest.Recorded(t, name)[0]
			w := newReplay(t, dataset)
			w.stopBeforeClose()
			w.tear(5) // killed within an index record
			got, err := follow(t, w, nil)
			if !errors.Is(err, bp.ErrIdle) {
				t.Errorf("ended with %v, want ErrIdle", err)
			}
			if want := readAll(t, dataset); !slices.Equal(got, want[:len(want)-1]) {
				t.Errorf("got %d steps, want the first %d", len(got), len(want)-1)
			}
			if !w.reader.Active() {
				t.Error("the dataset does not count as active, but its writer did not close it")
			}
			if _, err := w.reader.Next(t.Context()); !errors.Is(err, bp.ErrIdle) {
				t.Errorf("a further call returned %v, want ErrIdle again", err)
			}
		})
	}
}

func TestReusedDirectoryIsDetected(t *testing.T) {
	for _, name := range []string{"ring-BP4", "ring-BP5"} {
		runs := tracetest.Recorded(t, name)
		truncate := func(w *replay) {
			for _, f := range []string{"md.idx", "md.0", "mmd.0", "data.0"} {
				if _, err := os.Stat(w.path(f)); err == nil {
					w.must(os.Truncate(w.path(f), 0))
				}
			}
		}
		f := func(what string, reuse func(w *replay)) {
			t.Run(name+"/"+what, func(t *testing.T) {
				w := newReplay(t, runs[0])
				w.stopBeforeClose()
				w.addWrite(func() { reuse(w) })
				if _, err := follow(t, w, nil); !errors.Is(err, bp.ErrRecreated) {
					t.Errorf("ended with %v, want ErrRecreated", err)
				}
			})
		}
		f("emptied", truncate)
		if name == "ring-BP4" { // a BP5 index of this size shows no difference
			f("written again", func(w *replay) {
				w.must(os.RemoveAll(w.dir))
				w.must(os.CopyFS(w.dir, os.DirFS(runs[1])))
				w.must(patch(w.path("md.idx"), 64+48, 1)) // time of the first step
			})
		}
	}
}

func TestDatasetFromEarlierRunIsIgnored(t *testing.T) {
	dataset := tracetest.Recorded(t, "ring-BP4")[0]
	old := tracetest.Copy(t, dataset)
	long := time.Unix(1_000_000_000, 0)
	if err := os.Chtimes(filepath.Join(old, "md.idx"), long, long); err != nil {
		t.Fatal(err)
	}
	opt := bp.Default()
	opt.Follow, opt.NotBefore = true, long.Add(time.Hour)
	polls := 0
	opt.Sleep = func(context.Context, time.Duration) error {
		if polls++; polls == 3 { // now the new run begins
			now := long.Add(2 * time.Hour)
			return os.Chtimes(filepath.Join(old, "md.idx"), now, now)
		}
		return nil
	}
	r, err := bp.Open(old, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(t.Context()); err != nil || polls != 3 {
		t.Errorf("the first step came after %d polls with error %v, want 3 and none", polls, err)
	}
}

func TestStalePagesAreReadAgain(t *testing.T) {
	for _, name := range []string{"ring-BP4", "ring-BP5"} {
		t.Run(name, func(t *testing.T) {
			dataset := tracetest.Recorded(t, name)[0]
			dir := tracetest.Copy(t, dataset)
			md := filepath.Join(dir, "md.0")
			whole, err := os.ReadFile(md)
			if err != nil {
				t.Fatal(err)
			}
			stale := make([]byte, len(whole))
			if err := os.WriteFile(md, stale, 0o600); err != nil {
				t.Fatal(err)
			}
			opt := bp.Default()
			opt.Follow = true
			opt.Sleep = func(context.Context, time.Duration) error { return os.WriteFile(md, whole, 0o600) }
			r, err := bp.Open(dir, opt)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if got, want := digests(t, r), readAll(t, dataset); !slices.Equal(got, want) {
				t.Errorf("got %d steps, want %d", len(got), len(want))
			}
		})
	}
}

func TestFollowingEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	opt := bp.Default()
	opt.Follow = true
	opt.Sleep = func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }
	r, err := bp.Open(filepath.Join(t.TempDir(), "never.bp"), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestWriterWithoutStepsEndsStream(t *testing.T) {
	f := func(size int, want error) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "x.bp")
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "md.idx"), make([]byte, size), 0o600)); err != nil {
			t.Fatal(err)
		}
		opt := bp.Default()
		opt.Follow, opt.Idle = true, time.Second
		opt.Sleep = func(context.Context, time.Duration) error { return nil }
		r, err := bp.Open(dir, opt)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Next(t.Context()); !errors.Is(err, want) {
			t.Errorf("an index of %d zeros: got %v, want %v", size, err, want)
		}
	}
	f(0, bp.ErrIdle) // not started
	f(39, io.EOF)    // as BP4 leaves it
	f(40, io.EOF)    // as BP5 leaves it
}

// replay writes a recorded dataset again as its writer did: for each step the
// data, then the metadata, then the index record; at the end it clears the
// active flag. Each call of sleep is one write.
type replay struct {
	t      *testing.T
	dir    string
	from   string
	writes []func()
	steps  int // published so far
	reader *bp.Reader
}

func (w *replay) path(name string) string { return filepath.Join(w.dir, name) }

func (w *replay) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *replay) addWrite(f func()) { w.writes = append(w.writes, f) }

// newReplay prepares the replay of a recording.
func newReplay(t *testing.T, recording string) *replay {
	t.Helper()
	w := &replay{t: t, from: recording, dir: filepath.Join(t.TempDir(), "replayed.bp")}
	idx, err := os.ReadFile(filepath.Join(recording, "md.idx"))
	w.must(err)
	isBP5 := idx[37] == 5
	active := 38
	if isBP5 {
		active = 39
	}
	idx[active] = 1
	w.addWrite(func() { w.must(os.Mkdir(w.dir, 0o755)) })
	for _, f := range []string{"md.idx", "md.0", "mmd.0", "data.0"} {
		if _, err := os.Stat(filepath.Join(recording, f)); err == nil {
			w.addWrite(func() { w.grow(f, 0) })
		}
	}
	published := int64(0) // of the index
	for _, s := range indexSteps(idx, isBP5) {
		w.addWrite(func() { w.grow("data.0", s.data) })
		if isBP5 {
			w.addWrite(func() { w.grow("mmd.0", -1) })
		}
		w.addWrite(func() { w.grow("md.0", s.meta) })
		from := published
		w.addWrite(func() { w.append("md.idx", idx[from:s.index]); w.steps++ })
		published = s.index
	}
	w.addWrite(func() { w.must(patch(w.path("md.idx"), int64(active), 0)) })
	return w
}

// indexStep has the sizes of the files when a step is published. For simplicity all
// data come with the first step.
type indexStep struct{ index, meta, data int64 }

func indexSteps(idx []byte, isBP5 bool) (steps []indexStep) {
	if !isBP5 {
		for at := 64; at+64 <= len(idx); at += 64 {
			steps = append(steps, indexStep{int64(at + 64), int64(binary.LittleEndian.Uint64(idx[at+40:])), -1})
		}
		return steps
	}
	for at := 64; at < len(idx); {
		size := 9 + int(binary.LittleEndian.Uint64(idx[at+1:]))
		if idx[at] == 's' {
			end := binary.LittleEndian.Uint64(idx[at+9:]) + binary.LittleEndian.Uint64(idx[at+17:])
			steps = append(steps, indexStep{int64(at + size), int64(end), -1})
		}
		at += size
	}
	return steps
}

// grow writes the first size bytes of the recorded file; -1 means all.
func (w *replay) grow(name string, size int64) {
	b, err := os.ReadFile(filepath.Join(w.from, name))
	w.must(err)
	if size >= 0 {
		b = b[:size]
	}
	w.must(os.WriteFile(w.path(name), b, 0o600))
}

func (w *replay) append(name string, b []byte) {
	f, err := os.OpenFile(w.path(name), os.O_APPEND|os.O_WRONLY, 0)
	w.must(err)
	_, err = f.Write(b)
	w.must(errors.Join(err, f.Close()))
}

func patch(path string, at int64, b byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{b}, at)
	return errors.Join(err, f.Close())
}

// stopBeforeClose leaves the active flag set.
func (w *replay) stopBeforeClose() { w.writes = w.writes[:len(w.writes)-1] }

// tear lets the last write, an index record, write only its first n bytes.
func (w *replay) tear(n int64) {
	last := len(w.writes) - 1
	whole := w.writes[last]
	w.writes[last] = func() {
		before, err := os.Stat(w.path("md.idx"))
		w.must(err)
		whole()
		w.steps--
		w.must(os.Truncate(w.path("md.idx"), before.Size()+n))
	}
}

// delay hides a file's growth until everything else is written.
func (w *replay) delay(name string) {
	seen := func() { w.grow(name, -1) }
	for i, write := range w.writes {
		w.writes[i] = func() { write(); w.hide(name) }
	}
	w.addWrite(seen)
}

// lose hides a file's growth forever.
func (w *replay) lose(name string) {
	w.delay(name)
	w.writes = w.writes[:len(w.writes)-1]
}

func (w *replay) hide(name string) {
	if _, err := os.Stat(w.path(name)); err == nil {
		w.must(os.Truncate(w.path(name), 0))
	}
}

// follow reads the dataset while it is replayed, one write at each sleep, and returns
// the digests of the steps and the error that ended it. Before each write it calls
// onPoll with the number of steps that have been delivered.
func follow(t *testing.T, w *replay, onPoll func(steps int)) (got []string, err error) {
	t.Helper()
	opt := bp.Default()
	opt.Follow, opt.Idle = true, time.Minute
	opt.Sleep = func(context.Context, time.Duration) error {
		if onPoll != nil {
			onPoll(len(got))
		}
		if len(w.writes) > 0 {
			w.writes[0]()
			w.writes = w.writes[1:]
		}
		return nil
	}
	w.reader, err = bp.Open(w.dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.reader.Close() })
	for {
		s, err := w.reader.Next(t.Context())
		if err != nil {
			return got, err
		}
		got = append(got, digest(t, s))
	}
}

// readAll returns the digests of all steps of a finished dataset.
func readAll(t *testing.T, dataset string) []string {
	t.Helper()
	r, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return digests(t, r)
}

func digests(t *testing.T, r *bp.Reader) (all []string) {
	t.Helper()
	for {
		s, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, digest(t, s))
	}
}

// digest returns a line with the content of a step, and hashes of its arrays.
func digest(t *testing.T, s *bp.Step) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "step %d:", s.Index)
	for i := range s.Variables {
		v := &s.Variables[i]
		fmt.Fprintf(&b, " %s %v %v", v.Name, v.Type, v.Shape)
		for j := range v.Blocks {
			blk := &v.Blocks[j]
			p := make([]byte, blk.Size())
			if err := s.ReadAt(v, blk, p, 0); err != nil {
				t.Fatal(err)
			}
			h := fnv.New64a()
			_, _ = h.Write(p) // never fails
			fmt.Fprintf(&b, " %v%v%v %x %x;", blk.Shape, blk.Start, blk.Count, blk.Value, h.Sum64())
		}
	}
	for _, a := range s.Attributes {
		fmt.Fprintf(&b, " %s=%q", a.Name, a.Values)
	}
	return b.String()
}
