package pgstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

// Two stores share nothing, like two processes. Each record has a function, a path, a model
// and a state that no other has, and others that all records share.
func TestSeveralProcessesNumberOneRun(t *testing.T) {
	const batches, size = 6, 15
	url := pgtest.Shared(t).Database(t)
	stores := []*Store{open(t, url, Options{}), open(t, url, Options{})}
	id := newRun(t, stores[0], "run")
	var all []*provenance.Record
	var writers sync.WaitGroup
	for k := range 4 {
		records := storetest.Records(batches*size, uint64(k))
		for i, r := range records {
			r.PID, r.RID, r.EventID = 0, 0, fmt.Sprintf("0:%d:%d", k, i)
			if i%2 == 0 {
				r.FID, r.Func = 1000*k+i, fmt.Sprintf("function %d of writer %d", i, k)
				r.CallStack[0].FID, r.CallStack[0].Func = r.FID, r.Func
				r.AlgoParams = json.RawMessage(fmt.Sprintf(`{"writer": %d, "model": %d}`, k, i))
				r.NodeState = &provenance.NodeState{Timestamp: r.Entry, Data: []provenance.StateEntry{{
					Field: fmt.Sprint("field ", k),
					Value: uint64(i),
				}}}
			}
		}
		all = append(all, records...)
		writers.Go(func() {
			for batch := range slices.Chunk(records, size) {
				if err := stores[k%2].Write(t.Context(), id, &provdb.Batch{Anomalies: batch}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	s := stores[0]
	for table, column := range map[string]string{"functions": "fn", "paths": "path", "samples": "sample"} {
		expect(t, s, [][]any{{true, true}}, "SELECT count(*) = max("+column+"), count(*) = count(DISTINCT "+
			""+column+") FROM "+table+" WHERE run = $1", id)
	}
	expect(t, s, [][]any{{true}}, "SELECT count(*) = count(DISTINCT (fid, name)) FROM functions")
	expect(t, s, [][]any{{true}}, "SELECT count(*) = count(DISTINCT fns) FROM paths")
	expect(t, s, [][]any{{true}}, `SELECT count(*) = count(DISTINCT ("timestamp", state)) FROM samples`)
	expect(t, s, [][]any{{true}}, "SELECT count(*) = count(DISTINCT (fn, params::text)) FROM models")
	sameRecords(t, s, id, all)
}

// sameRecords compares the anomalies of a run with the written records.
func sameRecords(t *testing.T, s *Store, id provdb.RunID, records []*provenance.Record) {
	t.Helper()
	stored := make(map[string]json.RawMessage)
	for _, row := range query(t, s, "SELECT doc->>'event_id', doc FROM anomalies_json WHERE run = $1", id) {
		stored[row[0].(string)] = row[1].(json.RawMessage)
	}
	if len(stored) != len(records) {
		t.Errorf("got %d records, want %d", len(stored), len(records))
	}
	for _, r := range records {
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := stored[r.EventID]; got == nil || !sameJSON(t, got, want) {
			t.Errorf("event %s:\n got %s\nwant %s", r.EventID, got, want)
			return
		}
	}
}

// Writers store the same batches repeatedly while the server crashes and restarts. All
// acknowledged records exist, and no write fails.
func TestWritesSurviveServerCrash(t *testing.T) {
	const size, enough = 50, 20
	server := pgtest.Start(t, pgtest.Options{})
	s := open(t, server.Database(t), Options{RetryTime: 2 * time.Minute})
	id := newRun(t, s, "run")
	records := storetest.Records(30*size, 1)
	var stop atomic.Bool
	var written atomic.Int64
	tick, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; !stop.Load(); n++ {
			at := size * n % len(records)
			if err := s.Write(t.Context(), id, &provdb.Batch{Anomalies: records[at : at+size]}); err != nil {
				t.Errorf("batch %d: %v", n, err)
				return
			}
			written.Add(1)
			select {
			case tick <- struct{}{}:
			default:
			}
		}
	}()
	more := func() {
		for until := written.Load() + enough; written.Load() < until; {
			select {
			case <-tick:
			case <-ended:
				t.FailNow()
			}
		}
	}
	for range 2 {
		more()
		server.Kill(t)
		server.Restart(t)
	}
	more()
	stop.Store(true)
	<-ended
	sameRecords(t, s, id, records[:min(size*int(written.Load()), len(records))])
}

func TestUnreachableServerIsAnErrorUntilItReturns(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{NoSync: true})
	s := open(t, server.Database(t), Options{RetryTime: 50 * time.Millisecond})
	id := newRun(t, s, "run")
	records := storetest.Records(30, 1)
	write(t, s, id, &provdb.Batch{Anomalies: records[:10]})
	server.Stop(t)
	for what, err := range map[string]error{
		"write":  s.Write(t.Context(), id, &provdb.Batch{Anomalies: records[10:20]}),
		"update": s.UpdateRun(t.Context(), provdb.Run{ID: id, State: provdb.Finished, Started: time.Unix(1, 0)}),
		"query":  errorOf(s.Query(t.Context(), "SELECT 1")),
		"create": errorOf(s.CreateRun(t.Context(), provdb.Run{Name: "another"})),
	} {
		if err == nil || !strings.Contains(err.Error(), "check that it runs") || !strings.HasPrefix(err.Error(), s.name) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	server.Restart(t)
	write(t, s, id, &provdb.Batch{Anomalies: records[10:]})
	sameRecords(t, s, id, records)
	server.Restart(t)
	sameRecords(t, s, id, records) // over a new connection
}

func errorOf[T any](_ T, err error) error { return err }

// Two writers store the same executions in opposite order and wait for each other:
// PostgreSQL aborts one of them, which is retried.
func TestDeadlocksAreRetried(t *testing.T) {
	s := newStore(t)
	id := newRun(t, s, "run")
	records := storetest.Records(2, 1)
	write(t, s, id, &provdb.Batch{Anomalies: records}) // stores all entries
	s.numbersOf(id).replaces.Store(true)

	locked, done := make(chan struct{}), make(chan error)
	go func() {
		done <- s.transaction(t.Context(), func(tx pgx.Tx) error {
			const lock = "SELECT FROM executions WHERE rid = $1 FOR UPDATE"
			if _, err := tx.Exec(t.Context(), lock, int32(records[1].RID)); err != nil {
				return err
			}
			close(locked)
			const waiting = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted"
			for is := false; !is; { // until the write waits for this transaction
				if err := tx.QueryRow(t.Context(), waiting).Scan(&is); err != nil {
					return err
				}
			}
			_, err := tx.Exec(t.Context(), lock, int32(records[0].RID))
			return err
		})
	}()
	<-locked
	write(t, s, id, &provdb.Batch{Anomalies: records})
	if err := <-done; err != nil && state(err) != deadlockDetected {
		t.Error(err)
	}
	sameRecords(t, s, id, records)
}

func TestWriteFailsForDeletedRun(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	a, b := open(t, url, Options{}), open(t, url, Options{})
	id := newRun(t, a, "run")
	batch := &provdb.Batch{Anomalies: storetest.Records(5, 1)}
	write(t, a, id, batch)
	if err := b.DeleteRun(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	other := newRun(t, b, "another")
	if other == id {
		t.Errorf("the number %d of a deleted run is reused", id)
	}
	for _, batch := range []*provdb.Batch{batch, {Anomalies: storetest.Records(50, 2)}} { // with and without new entries
		if err := a.Write(t.Context(), id, batch); !errors.Is(err, provdb.ErrNotFound) {
			t.Errorf("got %v, want %v", err, provdb.ErrNotFound)
		}
	}
	for _, table := range runTables[1:] {
		expect(t, a, [][]any{{int64(0)}}, "SELECT count(*) FROM "+table+" WHERE run = $1", id)
	}
}

func TestRecordsAreReplacedEitherWay(t *testing.T) {
	s := newStore(t)
	id := newRun(t, s, "run")
	records := storetest.Records(60, 1)
	write(t, s, id, &provdb.Batch{Anomalies: records[:40]})
	for _, r := range records {
		r.Status = provenance.Confirmed
	}
	write(t, s, id, &provdb.Batch{Anomalies: records[30:50]}) // detects the replacement
	if n := s.numbersOf(id); !n.replaces.Load() {
		t.Error("replaces is false after a replacement")
	}
	write(t, s, id, &provdb.Batch{Anomalies: records[:40]}) // expects replacements
	write(t, s, id, &provdb.Batch{Anomalies: records[50:]}) // replaces nothing
	if n := s.numbersOf(id); n.replaces.Load() {
		t.Error("replaces is true after new records")
	}
	sameRecords(t, s, id, records)
}

func TestUnusualIDsAndNumbersRoundTrip(t *testing.T) {
	long := func(tail string) func(r *provenance.Record) {
		return func(r *provenance.Record) { r.EventID = strings.Repeat("long ", 2000) + tail }
	}
	records := storetest.Records(6, 1)
	for i, change := range []func(r *provenance.Record){
		long("a"), long("b"),
		func(r *provenance.Record) { r.PID = 1<<31 - 1 },
		func(r *provenance.Record) { r.Version = 1 << 40 },
		func(r *provenance.Record) { r.FID = 1 << 40 },
		func(r *provenance.Record) { r.GPUParent = []any{"a\x00", 1.5} },
	} {
		change(records[i])
	}
	s := newStore(t)
	id := newRun(t, s, "run")
	for range 2 {
		write(t, s, id, &provdb.Batch{Anomalies: records})
	}
	records[5].GPUParent = []any{`a\x00`, 1.5}
	sameRecords(t, s, id, records)
	again := open(t, s.pool.Config().ConnString(), Options{}) // reads the entries
	write(t, again, id, &provdb.Batch{Anomalies: records})
	sameRecords(t, again, id, records)
}

// Without statistics, PostgreSQL compares each execution with each link, until it updates them within minutes.
func TestFindingsCanBeJoinedAtOnce(t *testing.T) {
	s := open(t, pgtest.Shared(t).Database(t), Options{})
	id := newRun(t, s, "run")
	records := storetest.Records(500, 1)
	batch := &provdb.Batch{Anomalies: records, Findings: []provenance.Finding{{Number: 1}}}
	for _, r := range records {
		batch.Links = append(batch.Links, provenance.Link{PID: r.PID, RID: r.RID, EventID: r.EventID, Finding: 1})
	}
	if err := s.Write(t.Context(), id, batch); err != nil {
		t.Fatal(err)
	}
	expect(t, s, [][]any{{"executions", int64(500)}, {"links", int64(500)}},
		"SELECT relname, reltuples::bigint FROM pg_class WHERE relname IN ('executions', 'links') ORDER BY relname")
}
