package recordfile

import (
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Global reads the collections over all ranks. dir is the directory of a run, one with a
// directory global, or one with the files: func_stats.json, counter_stats.json,
// ad_model.json, path_stats.json, rank_loads.json, efficiency.json, slow_peers.json,
// gpu_times.json, collectives.json and clocks.json. The original names two of them
// global_func_stats.json and global_counter_stats.json, and does not write the last seven. The
// list of a missing file is empty; the comparison of peers and the breakdown are nil if none of
// their files has data. If files are damaged, Global returns what it could
// read, and errors that name them. Notes may be nil.
func Global(ctx context.Context, dir string, notes *Notes) (*provenance.Collections, error) {
	if runfiles.Name(dir) == "records" {
		dir = filepath.Join(dir, "..")
	}
	d := &decoder{notes: notes}
	all := &provenance.Collections{
		FuncStats: []provenance.FuncStats{}, CounterStats: []provenance.CounterStats{}, ADModels: []provenance.ADModel{},
		PathStats: []provenance.PathStats{},
	}
	if _, err := os.Stat(dir); err != nil {
		return all, err
	}
	var peers provenance.Peers
	var activities []activityDocument
	var times provenance.Breakdown
	err := errors.Join(
		readAll(ctx, d, dir, "func_stats", &all.FuncStats, nil),
		readAll(ctx, d, dir, "counter_stats", &all.CounterStats, nil),
		readAll(ctx, d, dir, "ad_model", &all.ADModels, nil),
		readAll(ctx, d, dir, "path_stats", &all.PathStats, isNextPath),
		readAll(ctx, d, dir, "rank_loads", &peers.Loads, nil),
		readAll(ctx, d, dir, "efficiency", &peers.Efficiency, nil),
		readAll(ctx, d, dir, "slow_peers", &peers.Slow, nil),
		readAll(ctx, d, dir, "activity", &activities, nil),
		readAll(ctx, d, dir, "gpu_times", &times.Times, nil),
		readAll(ctx, d, dir, "collectives", &times.Collectives, nil),
		readAll(ctx, d, dir, "clocks", &times.Clocks, nil),
	)
	if times.Len() > 0 {
		all.Breakdown = &times
	}
	if len(peers.Loads)+len(peers.Efficiency)+len(peers.Slow) > 0 {
		all.Peers = &peers
		if len(activities) > 0 {
			var invalid error
			peers.Activity, invalid = base64.StdEncoding.DecodeString(activities[0].Packed)
			err = errors.Join(err, invalid)
		}
	}
	return all, err
}

// activityDocument has the activities of ranks.
type activityDocument struct {
	Packed string `json:"packed"` // as encoded by activity.Sketch, as Base64
}

// isNextPath reports whether a call path can follow others.
func isNextPath(before []provenance.PathStats, p *provenance.PathStats) bool {
	return p.Node == len(before)+1 && p.Parent >= 0 && p.Parent < p.Node && p.Calls >= 0 && p.Exclusive >= 0 &&
		(p.Parent == 0 || before[p.Parent-1].PID == p.PID)
}

// readAll reads a collection from the first file that exists. fits, if not nil, reports
// whether a document can follow the documents before it.
func readAll[T any](ctx context.Context, d *decoder, dir, collection string, into *[]T, fits func(before []T, next *T) bool) error {
	s := schemaOf(collection, reflect.TypeFor[T]())
	places := []string{filepath.Join("global", collection), collection, "global_" + collection}
	for _, place := range places {
		path := filepath.Join(dir, place+".json")
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return d.readFile(ctx, path, func(v value) error {
			var t T
			if _, err := s.read(d, v, &t); err != nil {
				return err
			}
			if fits != nil && !fits(*into, &t) {
				return v.wrong("it does not follow the %d before it", len(*into))
			}
			*into = append(*into, t)
			return nil
		})
	}
	return nil
}
