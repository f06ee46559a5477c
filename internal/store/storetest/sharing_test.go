package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
)

var sharingTests = []test{
	{"a model is stored once for all its records", func(f *fixture) {
		all := Records(300, 1)
		used := make(map[int]bool)
		for i, r := range all {
			used[r.FID] = true
			r.AlgoParams = append(json.RawMessage(" \n"), r.AlgoParams...) // the same model with other spaces
			if i%2 == 0 {
				r.AlgoParams = r.AlgoParams[2:]
			}
		}
		f.write(records(all[:100]...))
		f.write(records(all[100:]...))
		f.want([][]any{{int64(len(used))}}, "SELECT count(*) FROM models WHERE run = $1", int64(f.run))
	}},
	{"each version of a model is stored", func(f *fixture) {
		all := Records(6, 1)
		for i, r := range all {
			r.FID, r.Func = 1, "f"
			r.AlgoParams = json.RawMessage(fmt.Sprintf(`{"count": %d}`, i/2))
		}
		f.write(records(all...))
		f.want([][]any{{int64(3), int64(3)}}, "SELECT count(*), max(model) FROM models WHERE run = $1", int64(f.run))
		f.wantDocs(f.run, "anomalies", toAny(all)...)
	}},
	{"ranks of a host share the state of its node", func(f *fixture) {
		all := Records(16, 1) // two hosts, four records with a state
		f.write(records(all...))
		f.want([][]any{{int64(2)}}, "SELECT count(*) FROM samples WHERE run = $1", int64(f.run))
	}},
	{"concurrent writers store all records", severalWriters},
	{"concurrent writers of the same batch store it once", func(f *fixture) {
		var writers sync.WaitGroup
		for range 8 {
			writers.Go(func() {
				if err := f.store.Write(f.Context(), f.run, full(8, 3)); err != nil {
					f.Error(err)
				}
			})
		}
		writers.Wait()
		f.wantBatch(f.run, full(8, 3))
	}},
}

func toAny[T any](list []T) []any {
	all := make([]any, len(list))
	for i := range list {
		all[i] = list[i]
	}
	return all
}

func severalWriters(f *fixture) {
	const goroutines, batches, size = 8, 3, 4
	all := Records(goroutines*batches*size, 4)
	var writers sync.WaitGroup
	for g := range goroutines {
		writers.Go(func() {
			for b := range batches {
				at := (b*goroutines + g) * size
				if err := f.store.Write(f.Context(), f.run, records(all[at:at+size]...)); err != nil {
					f.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if f.Failed() {
		return
	}
	f.wantDocs(f.run, "anomalies", toAny(all)...)
	names, models := make(map[string]bool), make(map[string]bool)
	for _, r := range all {
		models[r.Func] = true
		for _, e := range r.CallStack {
			names[e.Func] = true
		}
		for _, e := range r.EventWindow.Execs {
			names[e.Func] = true
		}
	}
	var want [][]any
	for range names {
		want = append(want, []any{int64(len(want) + 1)})
	}
	f.want(want, "SELECT fn FROM functions WHERE run = $1 ORDER BY fn", int64(f.run)) // 1, 2, 3 …
	f.want([][]any{{int64(len(names))}}, "SELECT count(DISTINCT name) FROM functions WHERE run = $1", int64(f.run))
	f.want([][]any{{int64(len(models))}}, "SELECT count(*) FROM models WHERE run = $1", int64(f.run))
	f.want([][]any{}, "SELECT path FROM paths WHERE run = $1 GROUP BY path HAVING count(*) > 1", int64(f.run))
}
