package cli_test

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/cli"
	"github.com/chimbuko/chimbuko/internal/record/recordfile"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/pgstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// bytesBelow is the size of all files below a directory.
func bytesBelow(b *testing.B, dir string) (n int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(path) // of what a link points to
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func analyzeRun(b *testing.B, run, records string) (dir string, traceBytes int64) {
	b.Helper()
	traces := tracetest.Large(b, run)
	for _, t := range traces {
		traceBytes += bytesBelow(b, t)
	}
	dir = filepath.Join(b.TempDir(), records)
	env := &cli.Env{Stdout: io.Discard, Stderr: io.Discard}
	if code := cli.Run(b.Context(), env, append([]string{"analyze", "--records", records, "--out", dir}, traces...)); code != 0 {
		b.Fatalf("analyze ends with %d", code)
	}
	return dir, traceBytes
}

// BenchmarkReduction prints how many bytes of traces become one byte of the run
// directory, and how many bytes of the same records as JSON.
func BenchmarkReduction(b *testing.B) {
	for _, run := range []string{"heat2d-large-BP4", "heat2d-large-BP5"} {
		b.Run(run, func(b *testing.B) {
			for b.Loop() {
				dir, traceBytes := analyzeRun(b, run, "db")
				files, _ := analyzeRun(b, run, "json")
				size := bytesBelow(b, dir)
				b.ReportMetric(float64(traceBytes)/float64(size), "trace-bytes/byte")
				b.ReportMetric(float64(bytesBelow(b, files))/float64(size), "json-bytes/byte")
			}
		})
	}
}

// BenchmarkWriteHeat2d prints how fast the records of a real run are stored.
func BenchmarkWriteHeat2d(b *testing.B) {
	files, _ := analyzeRun(b, "heat2d-large-BP5", "json")
	batch := new(provdb.Batch)
	for step, err := range recordfile.Steps(b.Context(), files, nil) {
		if err != nil {
			b.Fatal(err)
		}
		batch.Merge(&provdb.Batch{Anomalies: step.Anomalies, Typical: step.Typical})
	}
	for name, open := range map[string]func(ctx context.Context) (provdb.Store, error){
		"DuckDB": func(ctx context.Context) (provdb.Store, error) {
			return duckstore.Open(ctx, filepath.Join(b.TempDir(), duckstore.FileName), duckstore.Options{})
		},
		"PostgreSQL": func(ctx context.Context) (provdb.Store, error) {
			return pgstore.Open(ctx, pgtest.Shared(b).Database(b), pgstore.Options{})
		},
	} {
		b.Run(name, func(b *testing.B) {
			var spent time.Duration
			n := 0
			for b.Loop() {
				store, err := open(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				id, err := store.CreateRun(b.Context(), provdb.Run{Name: "run", State: provdb.Running, Started: time.Now()})
				if err != nil {
					b.Fatal(err)
				}
				begin := time.Now()
				if err := store.Write(b.Context(), id, batch); err != nil {
					b.Fatal(err)
				}
				spent += time.Since(begin)
				n += batch.Len()
				if err := store.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/spent.Seconds(), "records/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
