package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/source/bpwriter"
	"github.com/chimbuko/chimbuko/internal/source/nccl"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// TruthFile is the name of the file with the truth about a simulation.
const TruthFile = "truth.jsonl"

// Target specifies where and how to write a simulation.
type Target struct {
	Dir    string
	Format Format // "" is BP4
	// HostDirs puts the datasets of each host into a separate directory.
	HostDirs bool
	// Speed is the factor relative to real time; 0 means without waiting.
	Speed float64
	// Now returns the time. Sleep waits for d or until ctx ends, and then returns its
	// error. Both are required if Speed > 0.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
	// OnStep is called after each step of a rank; may be nil.
	OnStep func(w Stats)
}

// Stats counts the output.
type Stats struct {
	Datasets, Steps         int
	Events, Calls           int64
	Bytes                   int64
	Planted, Minor, Victims int64         // calls that troubles affected
	MaxDelay                time.Duration // largest delay of a step
}

// Write runs the simulation and writes a BP4 dataset for each rank, with TAU's names, or a log of NCCL Inspector, and
// the truth: for logs, only the troubles, because the calls that they slow down are not in there, but
// lengthen the time between collective calls. It closes the datasets at the end; if ctx ends before that, they look like
// those of a killed program.
func (r *Run) Write(ctx context.Context, to Target) (done Stats, err error) {
	w := &writing{run: r, to: to}
	if err := to.Format.check(); err != nil {
		return done, err
	}
	if err := os.MkdirAll(to.Dir, 0o755); err != nil {
		return done, err
	}
	f, err := os.Create(filepath.Join(to.Dir, TruthFile))
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w.truth = truth.NewWriter(f)
	for _, t := range r.Troubles() {
		if to.Format.isLog() {
			t.Functions = []string{nccl.Between}
		}
		w.truth.Trouble(t)
	}
	if err := w.truth.Flush(); err != nil {
		return done, err
	}
	err = w.all(ctx)
	return w.done, errors.Join(err, w.truth.Flush())
}

// writing is the state of Write.
type writing struct {
	run     *Run
	to      Target
	truth   *truth.Writer
	writers []*bpwriter.Writer
	logs    []*inspectorLog // instead of writers
	step    bpwriter.Step
	start   time.Time
	done    Stats
}

func (w *writing) all(ctx context.Context) error {
	for _, s := range w.run.streams {
		dir := w.to.Dir
		if w.to.HostDirs {
			dir = filepath.Join(dir, s.Host())
		}
		if err := w.create(dir, s); err != nil {
			return err
		}
		w.done.Datasets++
	}
	if w.to.Speed > 0 {
		w.start = w.to.Now()
	}
	order := make([]int, len(w.run.streams))
	for i := range order {
		order[i] = i
	}
	// All ranks of a program share a Stream, so that memory does not grow with their
	// number.
	shared := make(map[*engine]*Stream)
	for w.run.Advance() {
		if w.to.Speed > 0 { // in the order of their ends, else of ranks
			slices.SortStableFunc(order, func(a, b int) int {
				return cmp.Compare(w.run.streams[a].ends(), w.run.streams[b].ends())
			})
		}
		for _, i := range order {
			s := w.run.streams[i]
			of := shared[s.e]
			if of == nil {
				of = &Stream{run: w.run, e: s.e, names: s.names}
				shared[s.e] = of
			}
			of.rank, of.next = s.rank, w.run.step
			if err := w.put(ctx, of, i); err != nil {
				return err
			}
		}
	}
	for _, bw := range w.writers {
		if err := bw.Close(); err != nil {
			return err
		}
	}
	for _, l := range w.logs {
		if err := l.file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// create creates the trace of a rank.
func (w *writing) create(dir string, s *Stream) error {
	if w.to.Format.isLog() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		l, err := newInspectorLog(dir, s, w.to.Format)
		w.logs = append(w.logs, l)
		return err
	}
	path := filepath.Join(dir, fmt.Sprintf("tau-metrics-%s-%d.bp", s.ProgramName(), s.Rank()))
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	bw, err := bpwriter.Create(path)
	if err != nil {
		return err
	}
	bw.Release()
	w.writers = append(w.writers, bw)
	return nil
}

// put waits for the time of a step of a rank, and writes it.
func (w *writing) put(ctx context.Context, s *Stream, i int) error {
	if err := w.wait(ctx, s); err != nil {
		return err
	}
	step, err := s.Next(ctx)
	if err != nil {
		return err
	}
	if w.logs != nil {
		before := w.logs[i].size
		err = w.logs[i].write(s, step)
		w.done.Bytes += w.logs[i].size - before
	} else {
		err = w.putStep(s, step, w.writers[i])
	}
	if err != nil {
		return err
	}
	w.done.Steps++
	w.done.Calls += int64(step.Funcs / 2)
	w.done.Events += int64(step.Funcs + step.Comms + step.Counters)
	if w.to.OnStep != nil {
		w.to.OnStep(w.done)
	}
	return nil
}

// putStep writes a step of a dataset.
func (w *writing) putStep(s *Stream, step *trace.Step, bw *bpwriter.Writer) error {
	bw.Begin(&w.step, int64(s.End())/1_000_000)
	enc := tau.Encoder{Names: s.names, Ranks: s.Ranks()}
	enc.Encode(&w.step, step, s.Rank())
	for _, write := range []func(*bpwriter.Step) (int, error){bw.WriteData, bw.WriteMetadata, bw.WriteIndex} {
		n, err := write(&w.step)
		if err != nil {
			return err
		}
		w.done.Bytes += int64(n)
	}
	bw.Release()
	for i := range s.out.calls {
		c := &s.out.calls[i]
		w.truth.Call(c)
		switch {
		case c.Role == truth.Victim:
			w.done.Victims++
		case c.Minor:
			w.done.Minor++
		default:
			w.done.Planted++
		}
	}
	if w.to.Speed > 0 && len(s.out.calls) > 0 {
		if err := w.truth.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// wait waits until the end of a step on the rank.
func (w *writing) wait(ctx context.Context, s *Stream) error {
	if err := ctx.Err(); err != nil || w.to.Speed == 0 {
		return err
	}
	since := time.Duration(s.ends()-w.run.scenario.Start.UnixMicro()) * time.Microsecond
	due := time.Duration(float64(since) / w.to.Speed)
	if passed := w.to.Now().Sub(w.start); passed < due {
		return w.to.Sleep(ctx, due-passed)
	} else if late := passed - due; late > w.done.MaxDelay {
		w.done.MaxDelay = late
	}
	return nil
}
