package chrome_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/cputime"
	"github.com/chimbuko/chimbuko/internal/source/chrome"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// large returns the path of a recorded trace in ../shared, its first file if it has several.
func large(tb testing.TB, name string) string {
	tb.Helper()
	path := tracetest.Kineto(tb, name)
	if files, err := filepath.Glob(filepath.Join(path, "*.json.gz")); err == nil && len(files) > 0 {
		return files[0]
	}
	return path
}

// drain reads all events and returns their number.
func drain(tb testing.TB, r *chrome.Reader) (n int) {
	tb.Helper()
	for {
		switch _, err := r.Next(); {
		case errors.Is(err, io.EOF):
			return n
		case err != nil:
			tb.Fatal(err)
		}
		n++
	}
}

// sink keeps the compiler from removing a loop.
var sink byte

// scan returns the sum of all bytes.
func scan(b []byte) (sum byte) {
	for _, c := range b {
		sum += c
	}
	return sum
}

// BenchmarkRead reads recorded traces, plain and compressed. MB/cpu-s is the speed by
// processor time; ratio is it divided by that of a loop over the same bytes, measured in
// turns with the reading. The target is 250 MB/cpu-s and a ratio of 0.2 for plain files.
func BenchmarkRead(b *testing.B) {
	for _, name := range []string{"hta-nccl", "hta-diff-control", "mi300-resnet", "straggler-AR", "transformer4-stalls"} {
		b.Run(name, func(b *testing.B) {
			path := large(b, name)
			packed, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			plain := unzip(b, path)
			b.Run("plain", func(b *testing.B) { benchmark(b, plain, plain) })
			b.Run("gzip", func(b *testing.B) { benchmark(b, packed, plain) })
		})
	}
}

func benchmark(b *testing.B, in, plain []byte) {
	b.SetBytes(int64(len(plain)))
	var reading, scanning time.Duration
	events := 0
	for b.Loop() {
		start := cputime.OfProcess()
		events += drain(b, chrome.NewReader(bytes.NewReader(in), wanted, nil))
		reading += cputime.OfProcess() - start
		b.StopTimer()
		start = cputime.OfProcess()
		sink += scan(plain)
		scanning += cputime.OfProcess() - start
		b.StartTimer()
	}
	b.ReportMetric(float64(len(plain))*float64(b.N)/1e6/reading.Seconds(), "MB/cpu-s")
	b.ReportMetric(float64(scanning)/float64(reading), "ratio")
	b.ReportMetric(float64(reading.Nanoseconds())/float64(events), "ns/event")
}
