package bp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// BenchmarkIdleLook polls a followed dataset that has nothing new. It reports the share
// of a processor that polling takes at the default interval.
func BenchmarkIdleLook(b *testing.B) {
	for run, flag := range map[string]int64{"ring-BP4": 38, "ring-BP5": 39} {
		b.Run(run, func(b *testing.B) {
			dataset := filepath.Join(b.TempDir(), "x.bp")
			if err := os.CopyFS(dataset, os.DirFS(tracetest.Recorded(b, run)[0])); err != nil {
				b.Fatal(err)
			}
			if err := patch(filepath.Join(dataset, "md.idx"), flag, 1); err != nil {
				b.Fatal(err)
			}
			opt := bp.Default()
			nothing := errors.New("nothing new")
			opt.Follow = true
			opt.Sleep = func(context.Context, time.Duration) error { return nothing }
			r, err := bp.Open(dataset, opt)
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			next := func() error { _, err := r.Next(b.Context()); return err }
			for err = next(); err == nil; err = next() { // the existing steps
			}
			for b.Loop() {
				if err := next(); !errors.Is(err, nothing) {
					b.Fatal(err)
				}
			}
			perPoll := b.Elapsed().Seconds() / float64(b.N)
			b.ReportMetric(100*perPoll/opt.Poll.Seconds(), "%cpu")
		})
	}
}
