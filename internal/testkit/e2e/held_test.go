package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/source/replay"
)

// held makes this program one whose traces never end, on a machine of any speed.
var held = flag.Int("held", 0, "write so many steps of the traces, a pattern, into a directory, and then wait for a signal")

// runHeld writes steps of traces, all traces together, and ends as chimbuko trace replay does at a signal.
func runHeld(steps int, pattern, dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	traces, err := filepath.Glob(pattern)
	var sets []replay.Dataset
	for _, path := range traces {
		sets = append(sets, replay.Dataset{From: path, To: filepath.Join(dir, filepath.Base(path))})
	}
	cfg := replay.Default()
	cfg.Speed, cfg.Now, cfg.Sleep = 0, time.Now, wait.Sleep
	cfg.OnStep = func() {
		if steps--; steps == 0 {
			<-ctx.Done()
		}
	}
	var p *replay.Replay
	if err == nil {
		p, err = replay.Plan(ctx, sets, cfg)
	}
	if err == nil {
		_, err = p.Run(ctx)
	}
	fmt.Fprintln(os.Stderr, "the replay has ended:", err)
	return 1
}

// holder is the path of this program.
func holder(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// holding is a line of shell that writes steps of each trace of a recording where TAU would, and then waits for a signal.
func (s *scene) holding(r recording, steps int) string {
	s.t.Helper()
	return fmt.Sprintf(`"%s" -held %d "%s/*.bp" "$(dirname "$TAU_ADIOS2_FILENAME")"`, holder(s.t), steps*len(r.traces), r.dir())
}
