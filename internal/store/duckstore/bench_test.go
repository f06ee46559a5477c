package duckstore

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
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

// BenchmarkWrite writes records in batches. It reports the rate relative to that of the
// driver's appender with prepared rows of the same table, which should be at least 0.6.
func BenchmarkWrite(b *testing.B) {
	records := storetest.Records(benchRecords, 1)
	rows := encoded(b, records)
	var written, bare time.Duration
	for b.Loop() {
		written += writeAll(b, records)
		b.StopTimer()
		bare += appendAll(b, rows)
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N*benchRecords)/written.Seconds(), "records/s")
	b.ReportMetric(bare.Seconds()/written.Seconds(), "ratio-to-bare-appender")
}

func writeAll(b *testing.B, records []*provenance.Record) time.Duration {
	b.Helper()
	s, id := openBench(b)
	began := time.Now()
	for batch := range slices.Chunk(records, benchBatch) {
		if err := s.Write(b.Context(), id, &provdb.Batch{Anomalies: batch}); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(began)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return took
}

// encoded returns the rows of records, which share no memory.
func encoded(b *testing.B, records []*provenance.Record) [][]driver.Value {
	b.Helper()
	e := encoder{cat: catalog.New(), run: 1}
	rows := make([][]driver.Value, len(records))
	for i, r := range records {
		row, err := e.record(r, true)
		if err != nil {
			b.Fatal(err)
		}
		rows[i] = slices.Clone(row)
		for j, v := range rows[i] {
			if list, ok := v.([]any); ok {
				list = slices.Clone(list)
				for k := range list {
					list[k] = maps.Clone(list[k].(map[string]any))
				}
				rows[i][j] = list
			}
		}
	}
	return rows
}

func appendAll(b *testing.B, rows [][]driver.Value) time.Duration {
	b.Helper()
	s, _ := openBench(b)
	began := time.Now()
	for batch := range slices.Chunk(rows, benchBatch) {
		err := s.transaction(b.Context(), func(conn *sql.Conn) error {
			return conn.Raw(func(raw any) error {
				a, err := duckdb.NewAppender(raw.(driver.Conn), "prov", "main", "executions")
				if err != nil {
					return err
				}
				for _, row := range batch {
					if err := a.AppendRow(row...); err != nil {
						return err
					}
				}
				return a.Close()
			})
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(began)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return took
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
			began := processorTime(b)
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
			b.ReportMetric(float64((processorTime(b)-began).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
		})
	}
}

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
