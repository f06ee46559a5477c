package otf2_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/cputime"
	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/otf2"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// recorded are the archives in the directory of shared traces: one of TAU and one of Score-P.
var recorded = map[string]string{"hpcg-stall-OTF2": "hpcg-stall-OTF2", "mi300-example": "simple-mi300-example-run"}

// unpacked returns the anchor file of a recorded archive.
func unpacked(tb testing.TB, name string) string {
	tb.Helper()
	dir := tracetest.Unpack(tb, tracetest.Shared(tb, "traces", "otf2", name+".tar.zst"), recorded[name])
	anchor, ok := otf2.AnchorOf(dir)
	if !ok {
		tb.Fatalf("%s is no archive", dir)
	}
	return anchor
}

// drain opens an archive and reads all events.
func drain(tb testing.TB, anchor string) {
	tb.Helper()
	a, err := otf2.Open(anchor)
	if err != nil {
		tb.Fatal(err)
	}
	for _, rank := range a.Ranks {
		r, err := a.Steps(rank, new(tally.Tally))
		if err != nil {
			tb.Fatal(err)
		}
		for {
			_, err := r.Next(tb.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// BenchmarkSteps reads recorded archives.
func BenchmarkSteps(b *testing.B) {
	for name := range recorded {
		b.Run(name, func(b *testing.B) {
			anchor := unpacked(b, name)
			b.ReportAllocs()
			for b.Loop() {
				drain(b, anchor)
			}
		})
	}
}

// BenchmarkAgainstReferenceLibrary reads recorded archives in turns with the reference library, which reads one location after
// another (ratio) or merges all by time (ratio-merged). Speeds are events per second of processor time of all threads, and
// ratios those to the speed of the library. The target is 1.
func BenchmarkAgainstReferenceLibrary(b *testing.B) {
	program := buildReference(b)
	for name := range recorded {
		b.Run(name, func(b *testing.B) {
			anchor := unpacked(b, name)
			local, global := startReference(b, program, anchor, "local"), startReference(b, program, anchor, "global")
			var ours time.Duration
			drain(b, anchor)
			for b.Loop() {
				start := cputime.OfProcess()
				drain(b, anchor)
				ours += cputime.OfProcess() - start
				b.StopTimer()
				local.read(b)
				global.read(b)
				b.StartTimer()
			}
			b.ReportMetric(float64(local.events)/1e6/ours.Seconds(), "Mevents/cpu-s")
			b.ReportMetric(float64(local.events)/1e6/local.time.Seconds(), "Mevents/cpu-s-library")
			b.ReportMetric(local.time.Seconds()/ours.Seconds(), "ratio")
			b.ReportMetric(global.time.Seconds()/ours.Seconds(), "ratio-merged")
		})
	}
}

// buildReference compiles the program that reads with the reference library, and returns its path.
func buildReference(b *testing.B) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "read_events")
	var out []byte
	for _, library := range []string{"-lotf2", "-lopen-trace-format2"} { // its name, and that in Debian 12
		var err error
		out, err = exec.CommandContext(b.Context(), "cc", "-O2", "-o", program, "testdata/read_events.c", library).CombinedOutput()
		if err == nil {
			return program
		}
		if errors.Is(err, exec.ErrNotFound) {
			b.Skip("SKIP: there is no C compiler (cc)")
		}
	}
	b.Skipf("SKIP: there is no C library of OTF2 (Debian package libotf2-trace-dev):\n%s", out)
	return ""
}

// reference is a process that reads an archive with the reference library.
type reference struct {
	in     io.Writer
	out    *bufio.Reader
	events int           // of all readings
	time   time.Duration // processor time of all readings
}

// startReference starts the program. It reads the archive once, so that the next reading finds the files in memory.
func startReference(b *testing.B, program, anchor, mode string) *reference {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), program, anchor, mode)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil && b.Context().Err() == nil {
			b.Error(err)
		}
	})
	r := &reference{in: in, out: bufio.NewReader(out)}
	r.read(b)
	r.events, r.time = 0, 0
	return r
}

// read reads the archive once.
func (r *reference) read(b *testing.B) {
	b.Helper()
	if _, err := fmt.Fprintln(r.in, "read"); err != nil {
		b.Fatal(err)
	}
	var elapsed time.Duration
	var events int
	var sum string
	if _, err := fmt.Fscanln(r.out, &elapsed, &events, &sum); err != nil {
		b.Fatal(err)
	}
	r.events += events
	r.time += elapsed
}
