package duckstore

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/cputime"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
)

const (
	benchRecords = 20_000
	benchBatch   = 4096
)

func openBench(b *testing.B) (*Store, provdb.RunID) {
	b.Helper()
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), FileName), Options{})
	if err != nil {
		b.Fatal(err)
	}
	id, err := s.CreateRun(b.Context(), provdb.Run{Name: "run", State: provdb.Running})
	if err != nil {
		b.Fatal(err)
	}
	return s, id
}

// BenchmarkWrite writes records in batches, and reports the rate and the processor time.
func BenchmarkWrite(b *testing.B) {
	records := storetest.Records(benchRecords, 1)
	var written, cpu time.Duration
	for b.Loop() {
		took, used := writeAll(b, records)
		written, cpu = written+took, cpu+used
	}
	b.ReportMetric(float64(b.N*benchRecords)/written.Seconds(), "records/s")
	b.ReportMetric(cpu.Seconds()*1e6/float64(b.N*benchRecords), "cpu-us/record")
}

func writeAll(b *testing.B, records []*provenance.Record) (took, cpu time.Duration) {
	b.Helper()
	s, id := openBench(b)
	began, before := time.Now(), cputime.OfProcess()
	for batch := range slices.Chunk(records, benchBatch) {
		if err := s.Write(b.Context(), id, &provdb.Batch{Anomalies: batch}); err != nil {
			b.Fatal(err)
		}
	}
	took, cpu = time.Since(began), cputime.OfProcess()-before
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return took, cpu
}

// BenchmarkDisk reports how much smaller the file is than the records as JSON.
func BenchmarkDisk(b *testing.B) {
	records := storetest.Records(benchRecords, 1)
	var text bytes.Buffer
	var asJSON int64
	for _, r := range records {
		text.Reset()
		if err := r.WriteJSON(&text); err != nil {
			b.Fatal(err)
		}
		asJSON += int64(text.Len())
	}
	for b.Loop() {
		s, id := openBench(b)
		for batch := range slices.Chunk(records, benchBatch) {
			if err := s.Write(b.Context(), id, &provdb.Batch{Anomalies: batch}); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		size := Size(s.path)
		b.ReportMetric(float64(asJSON)/float64(size), "json-bytes/db-byte")
		b.ReportMetric(float64(size)/benchRecords, "db-bytes/record")
	}
}

// BenchmarkPeers replaces the comparison of 10,000 ranks in 16 windows of time, as a live run does.
func BenchmarkPeers(b *testing.B) {
	s, id := openBench(b)
	versions := []*provenance.Peers{storetest.Peers(10_000, 16, 1), storetest.Peers(10_000, 16, 2)}
	n := 0
	for b.Loop() {
		if err := s.Write(b.Context(), id, &provdb.Batch{Peers: versions[n%2]}); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(Size(s.path))/1e6, "MB")
}

// BenchmarkOpen opens and closes new and existing files. It reports the processor time.
func BenchmarkOpen(b *testing.B) {
	for _, name := range []string{"new", "existing"} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), FileName)
			began := cputime.OfProcess()
			for b.Loop() {
				s, err := Open(b.Context(), path, Options{})
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				if name == "new" {
					if err := os.Remove(path); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64((cputime.OfProcess()-began).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
		})
	}
}
