package pgstore

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/cputime"

	"github.com/jackc/pgx/v5"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

// BenchmarkWrite writes new records to a server that waits for its disk, in
// batches as a Buffer makes them, and compares with what PostgreSQL can do: COPY of
// the finished rows into the same table.
func BenchmarkWrite(b *testing.B) {
	const records = 5 * provdb.DefaultSize
	all := storetest.Records(records, 1)
	server := pgtest.Start(b, pgtest.Options{})
	s := open(b, server.Database(b), Options{})
	prepared := preparedRows(b, all)

	var ours, bare, client, backends time.Duration
	n := 0
	for b.Loop() {
		n++
		id := newRun(b, s, fmt.Sprint("run ", n))
		start, before, served := time.Now(), cputime.OfProcess(), backendTime(b, s)
		for batch := range slices.Chunk(all, provdb.DefaultSize) {
			write(b, s, id, &provdb.Batch{Anomalies: batch})
		}
		ours += time.Since(start)
		client += cputime.OfProcess() - before
		backends += backendTime(b, s) - served

		start = time.Now()
		for batch := range slices.Chunk(prepared, provdb.DefaultSize) {
			for _, row := range batch {
				row[0] = int32(1_000_000 + n)
			}
			err := s.transaction(b.Context(), func(tx pgx.Tx) error {
				_, err := tx.CopyFrom(b.Context(), pgx.Identifier{"executions"}, executionColumns, pgx.CopyFromRows(batch))
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		bare += time.Since(start)
	}
	b.ReportMetric(float64(n*records)/ours.Seconds(), "records/s")
	b.ReportMetric(bare.Seconds()/ours.Seconds(), "ratio-to-bare-COPY")
	b.ReportMetric(client.Seconds()*1e6/float64(n*records), "client-cpu-us/record")
	b.ReportMetric(backends.Seconds()*1e6/float64(n*records), "server-cpu-us/record")
}

// backendTime returns the processor time of the server's processes for the connections of a store, 0 without /proc.
func backendTime(b *testing.B, s *Store) (sum time.Duration) {
	b.Helper()
	rows, err := s.pool.Query(b.Context(), "SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
	if err != nil {
		b.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		b.Fatal(err)
	}
	const tick = 10 * time.Millisecond // on all Linux systems
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third of proc(5) on
		for _, f := range fields[11:13] {
			n, err := strconv.Atoi(f)
			if err != nil {
				b.Fatal(err)
			}
			sum += time.Duration(n) * tick
		}
	}
	return sum
}

// BenchmarkDisk reports how much smaller the tables and indexes are than the records
// as JSON.
func BenchmarkDisk(b *testing.B) {
	all := storetest.Records(5*provdb.DefaultSize, 1)
	var text bytes.Buffer
	asJSON := 0
	for _, r := range all {
		text.Reset()
		if err := r.WriteJSON(&text); err != nil {
			b.Fatal(err)
		}
		asJSON += text.Len()
	}
	for b.Loop() {
		s := open(b, pgtest.Shared(b).Database(b), Options{})
		id := newRun(b, s, "run")
		for batch := range slices.Chunk(all, provdb.DefaultSize) {
			write(b, s, id, &provdb.Batch{Anomalies: batch})
		}
		var size int64
		err := s.pool.QueryRow(b.Context(), `SELECT sum(pg_total_relation_size(oid)) FROM pg_class
			WHERE relnamespace = 'chimbuko'::regnamespace AND relkind = 'r'`).Scan(&size)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(asJSON)/float64(size), "json-bytes/db-byte")
		b.ReportMetric(float64(size)/float64(len(all)), "db-bytes/record")
	}
}

func preparedRows(b *testing.B, records []*provenance.Record) [][]any {
	b.Helper()
	var rows [][]any
	for i, r := range records {
		e := &encoder{free: []int32{1}} // each row keeps its memory
		row, err := e.row(r, true, catalog.Refs{Func: int32(1 + i%40), Path: 1, Model: 1}, make([]int32, len(r.CallStack)+len(r.EventWindow.Execs)))
		if err != nil {
			b.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// BenchmarkPeers replaces the comparison of 10,000 ranks in 16 windows of time, as a live run does.
func BenchmarkPeers(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{})
	url := server.Database(b)
	s := open(b, url, Options{})
	id := newRun(b, s, "run")
	versions := []*provenance.Peers{storetest.Peers(10_000, 16, 1), storetest.Peers(10_000, 16, 2)}
	n := 0
	for b.Loop() {
		write(b, s, id, &provdb.Batch{Peers: versions[n%2]})
		n++
	}
	size, err := strconv.ParseFloat(server.Query(b, url, "SELECT pg_database_size(current_database())"), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(size/1e6, "MB")
}
