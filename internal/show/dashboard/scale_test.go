//go:build unix

package dashboard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
)

// The run of BenchmarkInteractions.
const (
	scaleAnomalies = 1_000_000
	scaleBase      = 20_000 // anomalies before copying
	scaleRanks     = 10_000
	scaleTypical   = 4 // anomalies for each typical execution
	scaleTarget    = 100 * time.Millisecond
)

// openScale opens the run in the directory CHIMBUKO_BENCH_RUN, or creates a finished one of 10,000
// ranks with a million anomalies. CHIMBUKO_BENCH_STORE names a directory in which it is kept for
// the next time.
func openScale(b *testing.B) *scale {
	b.Helper()
	if dir := os.Getenv("CHIMBUKO_BENCH_RUN"); dir != "" {
		return newScale(b, filepath.Join(dir, duckstore.FileName), duckstore.Options{ReadOnly: true})
	}
	dir, keep := os.Getenv("CHIMBUKO_BENCH_STORE"), true
	if dir == "" {
		dir, keep = b.TempDir(), false
	}
	file := filepath.Join(dir, "scale.duckdb")
	if _, err := os.Stat(file); err != nil {
		begin := time.Now()
		if err := errors.Join(makeBase(b.Context(), file), multiply(b.Context(), file)); err != nil {
			if keep {
				_ = os.Remove(file) // incomplete
			}
			b.Fatal(err)
		}
		size, _ := os.Stat(file)
		fmt.Printf("made a run of %d ranks with %d anomalies in %.0f s, %d MB\n", scaleRanks, scaleAnomalies, time.Since(begin).Seconds(),
			size.Size()>>20)
	}
	return newScale(b, file, duckstore.Options{})
}

// scale is the run of the benchmark.
type scale struct {
	store  provdb.Store
	name   string
	before string  // a run to compare it with; or itself
	length float64 // seconds
	ranks  []executions.RankHost
	hosts  []string
	roles  map[string][]string // events of a live run, whose store has no roles; nil if it is finished
}

// newScale opens the last run of a store.
func newScale(b *testing.B, file string, o duckstore.Options) *scale {
	b.Helper()
	ctx := context.WithoutCancel(b.Context())
	store, err := duckstore.Open(ctx, file, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	runs, err := query.Runs(ctx, store)
	if err != nil || len(runs) == 0 {
		b.Fatalf("runs %v: %v", runs, err)
	}
	s := &scale{store: store, name: runs[len(runs)-1].Name, before: runs[0].Name}
	a, err := query.New(ctx, store, s.name)
	if err != nil {
		b.Fatal(err)
	}
	kept, err := a.Counts(ctx, 0)
	if err != nil {
		b.Fatal(err)
	}
	s.length = float64(kept.End-a.Begin) / 1e6
	if s.ranks, err = a.Ranks(ctx, scaleAnomalies); err != nil || len(s.ranks) == 0 {
		b.Fatalf("%d ranks: %v", len(s.ranks), err)
	}
	for i := range s.ranks {
		s.hosts = append(s.hosts, s.ranks[i].Host)
	}
	slices.Sort(s.hosts)
	s.hosts = slices.Compact(s.hosts)
	fmt.Printf("run %s: %d ranks on %d hosts, %.0f s, %d anomalies among %d executions that are kept\n", s.name, len(s.ranks), len(s.hosts),
		s.length, kept.Anomalies, kept.Executions)
	return s
}

// scaleRate is how many records per second a live run stores.
const scaleRate = 100

// resume makes the run live: not finished, with new records each second until the benchmark ends. It is that of a
// copy of the store.
func (s *scale) resume(b *testing.B) *scale {
	b.Helper()
	var file string
	rows, err := s.store.Query(b.Context(), "SELECT path FROM duckdb_databases() WHERE path IS NOT NULL")
	if err == nil {
		var all [][]any
		if all, err = rows.Collect(); err == nil && len(all) > 0 {
			file, _ = all[0][0].(string)
		}
	}
	if err != nil || file == "" {
		b.Fatalf("the file of the store %q: %v", file, err)
	}
	roles := map[string][]string{"culprit": s.linked(b, "culprit"), "victim": s.linked(b, "victim")}
	if err := s.store.Close(); err != nil {
		b.Fatal(err)
	}
	own := filepath.Join(b.TempDir(), "live.duckdb")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(own, text, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	s = newScale(b, own, duckstore.Options{})
	s.roles = roles
	runs, err := query.Runs(b.Context(), s.store)
	if err != nil {
		b.Fatal(err)
	}
	run := runs[len(runs)-1]
	run.State, run.Finished = provdb.Running, time.Time{}
	if err := s.store.UpdateRun(b.Context(), run); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for seed := uint64(1000); wait.Sleep(ctx, time.Second) == nil; seed++ {
			records := storetest.Records(scaleRate, seed)
			for _, r := range records {
				r.EventID = fmt.Sprintf("%s:%d", r.EventID, seed)
			}
			if err := s.store.Write(ctx, run.ID, &provdb.Batch{Anomalies: records}); err != nil && ctx.Err() == nil {
				b.Error(err)
			}
		}
	})
	b.Cleanup(func() {
		cancel()
		writing.Wait()
	})
	return s
}

// makeBase stores the start of the run as chimbuko does, and ends it.
func makeBase(ctx context.Context, file string) (err error) {
	s, err := duckstore.Open(ctx, file, duckstore.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	id, err := s.CreateRun(ctx, provdb.Run{Name: "scale", State: provdb.Running, Started: time.Unix(1_700_000_000, 0)})
	if err != nil {
		return err
	}
	if err := s.Write(ctx, id, scaleSurroundings()); err != nil {
		return err
	}
	b, n := new(provdb.Batch), 0
	for r := range storetest.StreamOf(scaleBase+scaleBase/scaleTypical, scaleRanks, 1) {
		if n++; n%(scaleTypical+1) == 0 {
			r.Status, r.LostTime, r.Kind, r.Why = "", 0, "", ""
			b.Typical = append(b.Typical, r)
		} else {
			b.Anomalies = append(b.Anomalies, r)
		}
	}
	if err := s.Write(ctx, id, b); err != nil {
		return err
	}
	return finish(ctx, s, id, "scale")
}

// multiply continues the run by copying its start to later times and other ranks, and adds a run
// "before" to compare it with. It works in the database, since writing a million records is slow.
func multiply(ctx context.Context, file string) (err error) {
	db, err := sql.Open("duckdb", file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	const moved = "(rid + 1237 * $1::INTEGER) % 10000"
	const copies = scaleAnomalies / scaleBase
	do := func(statement string, args ...any) {
		if err != nil {
			return
		}
		if _, err = db.ExecContext(ctx, statement, args...); err != nil {
			err = fmt.Errorf("%s: %w", statement, err)
		}
	}
	entangle(do)
	do("CREATE TEMP TABLE base AS SELECT * FROM executions")
	do("CREATE TEMP TABLE base_links AS SELECT * FROM links")
	for n := int64(1); n < copies; n++ {
		do(`INSERT INTO executions SELECT * REPLACE (`+moved+` AS rid, 'node' || lpad((`+moved+` // 8)::VARCHAR, 4, '0') AS hostname,
			ev_step + 3 * $1::INTEGER AS ev_step, io_step + 3 * $1::INTEGER AS io_step, entry + 3000000 * $1::INTEGER AS entry, "exit" + 3000000 * $1::INTEGER AS "exit",
			io_step_tstart + 3000000 * $1::INTEGER AS io_step_tstart, io_step_tend + 3000000 * $1::INTEGER AS io_step_tend) FROM base`, n)
		do(`INSERT INTO links SELECT * REPLACE (`+moved+` AS rid, (late_rid + 1237 * $1::INTEGER) % 10000 AS late_rid,
			`+movedEvent("event_id")+` AS event_id, `+movedEvent("culprit_event_id")+` AS culprit_event_id) FROM base_links`, n)
	}
	do("DELETE FROM rollups")
	do("INSERT INTO rollups SELECT * EXCLUDE (\"rank\") FROM live_rollups")
	do(`UPDATE findings SET calls = calls * $1::BIGINT, lost_us = lost_us * $1::BIGINT, lost_own_us = lost_own_us * $1::BIGINT,
		waits = waits * $1::BIGINT, lost_caused_us = lost_caused_us * $1::BIGINT, last_us = last_us + 3000000 * $1::BIGINT,
		ranks = coalesce((SELECT to_json(list(DISTINCT rid ORDER BY rid)) FROM links l WHERE l.finding = findings.finding), ranks),
		hosts = coalesce((SELECT to_json(list(DISTINCT 'node' || lpad((rid // 8)::VARCHAR, 4, '0'))) FROM links l
			WHERE l.finding = findings.finding), hosts)
		WHERE kind <> 'slow-peer'`, int64(copies))
	for _, table := range []string{"functions", "paths", "models", "final_models", "metadata", "profiles", "counter_stats", "path_profiles"} {
		do("INSERT INTO " + table + " SELECT * REPLACE (2 AS run) FROM " + table + " WHERE run = 1")
	}
	do("INSERT INTO runs SELECT * REPLACE (2 AS run, 'before' AS name, started - INTERVAL 1 DAY AS started, finished - INTERVAL 1 DAY AS " +
		"finished) FROM runs")
	do("INSERT INTO executions SELECT * REPLACE (2 AS run) FROM base")
	do("INSERT INTO rollups SELECT * REPLACE (2 AS run, lost_us * (50 + rid % 100) // 100 AS lost_us) FROM rollups")
	do("CHECKPOINT")
	return err
}

// entangle links anomalies: in half of them one of twenty is the culprit of the other nineteen, and
// a quarter of all waited for a single one.
func entangle(do func(statement string, args ...any)) {
	do(`CREATE TEMP TABLE chained AS SELECT pid, rid, event_id, CASE WHEN n < $1::INTEGER THEN 0 ELSE n // 20 END AS chain
		FROM (SELECT pid, rid, event_id, row_number() OVER (ORDER BY rid, event_id) - 1 AS n FROM links) l`, int64(scaleBase/4))
	do(`CREATE TEMP TABLE chains AS SELECT chain, min_by(pid, rid) AS pid, min_by(event_id, rid) AS event_id, min(rid) AS rid, count(*) AS n
		FROM chained WHERE chain % 2 = 0 GROUP BY chain`)
	do(`UPDATE links SET "role" = CASE WHEN links.event_id = h.event_id THEN 'culprit' ELSE 'victim' END, hops = CASE WHEN links.event_id = h.event_id THEN 0 ELSE 1 END,
		culprit_pid = CASE WHEN links.event_id = h.event_id THEN NULL ELSE h.pid END, culprit_event_id = CASE WHEN links.event_id = h.event_id THEN NULL ELSE h.event_id END,
		late_rid = CASE WHEN links.event_id = h.event_id THEN NULL ELSE h.rid END, waits = CASE WHEN links.event_id = h.event_id THEN h.n - 1 ELSE 0 END,
		wait_ranks = CASE WHEN links.event_id = h.event_id THEN h.n - 1 ELSE 0 END, waits_lost_us = CASE WHEN links.event_id = h.event_id THEN h.n * 1000 ELSE 0 END
		FROM chained c JOIN chains h ON h.chain = c.chain WHERE c.pid = links.pid AND c.rid = links.rid AND c.event_id = links.event_id`)
}

// movedEvent returns the id of an event in a copy.
func movedEvent(column string) string {
	part := func(n int) string { return fmt.Sprintf("split_part(%s, ':', %d)::INTEGER", column, n) }
	return "((" + part(1) + " + 1237 * $1::INTEGER) % 10000) || ':' || (" + part(2) + " + 3 * $1::INTEGER) || ':' || " + part(3)
}

// scalePeers compares the ranks in 16 windows of time: node0100 is slow in the second half, and the ranks of node0200
// have no data.
func scalePeers() *provenance.Peers {
	p := storetest.Peers(scaleRanks, 16, 1)
	slow := provenance.SlowPeer{
		Pattern: provenance.Since, Host: "node0100", Hosts: []string{"node0100"}, TID: provenance.AllThreads, Role: 1, Peers: scaleRanks - 8,
		Ratio: 1.9, From: 8, LostOwn: 30e6, LostCaused: 300e6, Saved: 3e6, Share: 0.2, Confidence: 1, Twin: new(trace.Rank(3)),
		Functions: []provenance.SlowFunction{{Func: p.Loads[0].Functions[0].Func, Calls: 800, Mean: 1900, Peers: 1000, Beyond: 30e6}},
		SyncShare: 0.01, PeerSync: 0.3,
	}
	for i := range p.Loads {
		l := &p.Loads[i]
		if l.Host = fmt.Sprintf("node%04d", l.RID/8); l.Host != slow.Host {
			continue
		}
		slow.Ranks = append(slow.Ranks, l.RID)
		for k := 8; k < len(l.Windows); k++ {
			l.Windows[k].Ratio = new(1.9)
		}
		l.Ratio, slow.Windows = new(1.45), l.Windows
	}
	p.Slow = []provenance.SlowPeer{slow}
	p.Loads = slices.DeleteFunc(p.Loads, func(l provenance.RankLoad) bool { return l.Host == "node0200" })
	return p
}

// scaleSurroundings returns the data besides executions: hosts of ranks, calls and models of
// functions, counters, and call paths.
func scaleSurroundings() *provdb.Batch {
	b := &provdb.Batch{Peers: scalePeers()}
	for rank := range trace.Rank(scaleRanks) {
		facts := []provenance.Metadata{{RID: rank, Descr: "Hostname", Value: fmt.Sprintf("node%04d", rank/8)}}
		for i := range 20 {
			facts = append(facts, provenance.Metadata{RID: rank, Descr: fmt.Sprintf("fact %d", i), Value: fmt.Sprintf("value %d", rank)})
		}
		b.Metadata = append(b.Metadata, provdb.StepMetadata{Rank: rank, Facts: facts})
	}
	summary := stats.Summary{Accumulate: 5000, Count: 100_000, Mean: 50, Minimum: 1, Maximum: 99}
	seen := make(map[int]bool)
	for r := range storetest.Stream(2000, 1) {
		if !seen[r.FID] {
			seen[r.FID] = true
			b.Functions = append(b.Functions, provenance.FuncStats{
				FID: r.FID, Name: r.Func,
				RuntimeProfile: provenance.RuntimeProfile{Exclusive: summary, Inclusive: summary},
			})
			b.Models = append(b.Models, provenance.ADModel{FID: r.FID, Name: r.Func, Model: r.AlgoParams})
		}
	}
	call := func(f *provenance.FuncStats, parent int) {
		b.Paths = append(b.Paths, provenance.PathStats{
			Node: len(b.Paths) + 1, Parent: parent, FID: f.FID, Func: f.Name, Calls: 1000,
			Exclusive: trace.Ticks(1000 * (1 + f.FID%97)),
		})
	}
	for i := range b.Functions {
		call(&b.Functions[i], min(i, 1))
	}
	odd := len(b.Functions)
	for i := range 2000 { // functions that are never odd
		b.Functions = append(b.Functions, provenance.FuncStats{
			FID: 1000 + i, Name: fmt.Sprintf("void app::Quiet<%d>::run(int)", i),
			RuntimeProfile: provenance.RuntimeProfile{Exclusive: summary, Inclusive: summary},
		})
	}
	for i := range 3 * 2000 {
		call(&b.Functions[odd+i%2000], 1+i%odd)
	}
	for i := range 200 {
		b.Counters = append(b.Counters, provenance.CounterStats{Name: fmt.Sprintf("counter %d", i), Stats: summary})
	}
	return b
}
