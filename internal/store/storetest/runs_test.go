package storetest

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

var runTests = []test{
	{"runs are separate", func(f *fixture) {
		other := f.createRun("other")
		a, b := full(8, 1), full(6, 2)
		f.writeTo(f.run, a)
		f.writeTo(other, b)
		f.wantBatch(f.run, a)
		f.wantBatch(other, b)
		f.writeTo(other, full(8, 1)) // replaces nothing in the other run
		f.wantBatch(f.run, a)
	}},
	{"DeleteRun removes all of a run and nothing else", func(f *fixture) {
		other := f.createRun("other")
		f.writeTo(f.run, full(8, 1))
		f.writeTo(other, full(8, 1))
		if err := f.store.DeleteRun(f.Context(), f.run); err != nil {
			f.Fatal(err)
		}
		for table, n := range f.counts(f.run) {
			if n != 0 {
				f.Errorf("%d rows of the run are left in %s", n, table)
			}
		}
		f.wantBatch(f.run, &provdb.Batch{})
		f.wantBatch(other, full(8, 1))
		f.wantError(provdb.ErrNotFound, f.store.Write(f.Context(), f.run, full(1, 1)))
		f.wantError(provdb.ErrNotFound, f.store.DeleteRun(f.Context(), f.run))
		again := f.createRun("run") // the name can be reused
		f.writeTo(again, full(4, 5))
		f.wantBatch(again, full(4, 5))
		f.wantBatch(other, full(8, 1))
	}},
	{"names of runs are unique", func(f *fixture) {
		_, err := f.store.CreateRun(f.Context(), provdb.Run{Name: "run", State: provdb.Running, Started: started})
		f.wantError(provdb.ErrRunExists, err)
		f.want([][]any{{int64(1)}}, "SELECT count(*) FROM runs")
		id := f.createRun("it's a \"run\" \\ 😀")
		f.want([][]any{{"it's a \"run\" \\ 😀"}}, "SELECT name FROM runs WHERE run = $1", int64(id))
	}},
	{"missing runs are not found", func(f *fixture) {
		none := f.run + 1000
		f.wantError(provdb.ErrNotFound, f.store.UpdateRun(f.Context(),
			provdb.Run{ID: none, Name: "none", State: provdb.Failed, Started: started}))
		f.wantError(provdb.ErrNotFound, f.store.DeleteRun(f.Context(), none))
		f.wantError(provdb.ErrNotFound, f.store.Write(f.Context(), none, full(1, 1)))
		f.want([][]any{{int64(1)}}, "SELECT count(*) FROM runs")
		f.want([][]any{{int64(0)}}, "SELECT count(*) FROM functions")
	}},
	{"a run begins, is updated and ends", lifeCycle},
	{"withdrawing an anomaly changes its explanation", withdraws},
	{"sums exist from the end of a run until the next write", sums},
}

// sums compares stored sums with those of all records.
func sums(f *fixture) {
	const columns = "pid, fn, path, rid, kind, hostname, anomalies, lost_us, anomalous_us, severity, score, first_us, last_us"
	read := func(from string) [][]any {
		return f.query("SELECT "+columns+" FROM "+from+" WHERE run = $1 ORDER BY pid, fn, path, rid, kind", int64(f.run))
	}
	none := func(when string) {
		f.Helper()
		if n := len(read("rollups")); n != 0 {
			f.Errorf("got %d sums %s", n, when)
		}
	}
	run := provdb.Run{ID: f.run, Name: "run", State: provdb.Running, Started: started}
	f.write(&provdb.Batch{Anomalies: Records(3000, 1)})
	f.update(run)
	none("of a running run")
	for _, state := range []provdb.State{provdb.Finished, provdb.Failed} {
		run.State = state
		f.update(run)
		f.update(run) // a second time
		made := read("rollups")
		if live := read("live_rollups"); len(live) == 0 || !reflect.DeepEqual(made, live) {
			f.Errorf("%s: got %d sums, want %d", state, len(made), len(live))
		}
	}
	n, lost := make(map[string]int64), make(map[string]int64)
	for _, r := range Records(3000, 1) {
		if r.Status != provenance.Withdrawn {
			n[string(r.Kind)]++
			lost[string(r.Kind)] += int64(r.LostTime)
		}
	}
	var want [][]any
	for _, kind := range slices.Sorted(maps.Keys(n)) {
		want = append(want, []any{kind, n[kind], lost[kind]})
	}
	f.want(want, "SELECT kind, sum(anomalies)::BIGINT, sum(lost_us)::BIGINT FROM rollups WHERE run = $1 GROUP BY kind ORDER BY kind",
		int64(f.run))
	f.write(&provdb.Batch{Anomalies: Records(1, 2)})
	none("after another write")
}

func withdraws(f *fixture) {
	all := Records(4, 1)
	for i, r := range all {
		r.Status = provenance.Provisional
		r.Why = "took 5 ms; " + r.Status.Words()
		if i == 3 { // as in older records
			r.Kind, r.Why = "", ""
		}
	}
	all[2].Status, all[2].Why = provenance.Confirmed, "took 6 ms; "+provenance.Provisional.Words()
	f.write(records(all...))
	f.wantDocs(f.run, "anomalies", all[0], all[1], all[2], all[3])
	f.update(provdb.Run{ID: f.run, Name: "run", State: provdb.Finished, Started: started})
	for _, r := range []*provenance.Record{all[0], all[1], all[3]} {
		r.Status = provenance.Withdrawn
		if r.Why != "" {
			r.Why = "took 5 ms; " + r.Status.Words()
		}
	}
	f.wantDocs(f.run, "anomalies", all[0], all[1], all[2], all[3])
}

func lifeCycle(f *fixture) {
	const sql = "SELECT name, state, started, finished, info FROM runs WHERE run = $1"
	f.want([][]any{{"run", "running", started, nil, nil}}, sql, int64(f.run))
	// UpdateRun does not rename.
	later, finished := started.Add(time.Second), started.Add(time.Hour+123*time.Microsecond)
	run := provdb.Run{ID: f.run, Name: "renamed", State: provdb.Running, Started: later, Info: json.RawMessage(`{"settings":{"window":5}}`)}
	f.update(run)
	f.want([][]any{{"run", "running", later}}, "SELECT name, state, started FROM runs WHERE run = $1", int64(f.run))
	run.State, run.Started, run.Finished = provdb.Finished, started.In(time.FixedZone("east", 3600)),
		finished.In(time.FixedZone("west", -7200))
	run.Info = json.RawMessage(`{"anomalies": 18446744073709551615, "name": "it's",
		"large": 123456789012345678901234567890, "list": [1, null]}`)
	f.update(run)
	row := f.query(sql, int64(f.run))[0]
	if row[1] != "finished" || !row[2].(time.Time).Equal(started) || !row[3].(time.Time).Equal(finished) {
		f.Errorf("got %v, want finished, %v, %v", row[:4], started, finished)
	}
	if d := difference("", decode(f, row[4].(json.RawMessage)), decode(f, run.Info)); d != "" {
		f.Errorf("info%s", d)
	}
	run.State, run.Info, run.Finished = provdb.Failed, nil, time.Time{}
	f.update(run)
	f.want([][]any{{"run", "failed", started, nil, nil}}, sql, int64(f.run))
	f.write(full(3, 1)) // after the end of the run
	f.wantBatch(f.run, full(3, 1))
	id, err := f.store.CreateRun(f.Context(), provdb.Run{
		Name: "imported", State: provdb.Finished, Started: started, Finished: finished,
		Info: json.RawMessage(`1`),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.want([][]any{{"imported", "finished", started, finished, json.RawMessage("1")}}, sql, int64(id))
}

func (f *fixture) update(run provdb.Run) {
	f.Helper()
	if err := f.store.UpdateRun(f.Context(), run); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) wantError(want, got error) {
	f.Helper()
	if !errors.Is(got, want) {
		f.Errorf("got error %v, want %v", got, want)
	}
}
