package recordfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

type (
	funcStats    = provenance.FuncStats
	counterStats = provenance.CounterStats
	adModel      = provenance.ADModel
	pathStats    = provenance.PathStats
	metrics      = provenance.AnomalyMetrics
	profile      = provenance.RuntimeProfile
)

var summaryFields = newFields("statistics",
	field[stats.Summary]{name: "accumulate", set: float(func(s *stats.Summary) *float64 { return &s.Accumulate })},
	field[stats.Summary]{name: "count", set: float(func(s *stats.Summary) *float64 { return &s.Count }), needed: true},
	field[stats.Summary]{name: "kurtosis", set: float(func(s *stats.Summary) *float64 { return &s.Kurtosis })},
	field[stats.Summary]{name: "maximum", set: float(func(s *stats.Summary) *float64 { return &s.Maximum })},
	field[stats.Summary]{name: "mean", set: float(func(s *stats.Summary) *float64 { return &s.Mean })},
	field[stats.Summary]{name: "minimum", set: float(func(s *stats.Summary) *float64 { return &s.Minimum })},
	field[stats.Summary]{name: "skewness", set: float(func(s *stats.Summary) *float64 { return &s.Skewness })},
	field[stats.Summary]{name: "stddev", set: float(func(s *stats.Summary) *float64 { return &s.Stddev })},
)

var metricsFields = newFields("anomaly_metrics",
	field[metrics]{name: "anomaly_count", set: summary(func(m *metrics) *stats.Summary { return &m.Count }), needed: true},
	field[metrics]{name: "first_io_step", set: integer(func(m *metrics) *int64 { return &m.FirstStep })},
	field[metrics]{name: "last_io_step", set: integer(func(m *metrics) *int64 { return &m.LastStep })},
	field[metrics]{name: "max_timestamp", set: instant(func(m *metrics) *trace.Micros { return &m.Last })},
	field[metrics]{name: "min_timestamp", set: instant(func(m *metrics) *trace.Micros { return &m.First })},
	field[metrics]{name: "score", set: summary(func(m *metrics) *stats.Summary { return &m.Score })},
	field[metrics]{name: "severity", set: summary(func(m *metrics) *stats.Summary { return &m.Severity })},
)

var profileFields = newFields("runtime_profile",
	field[profile]{name: "exclusive_runtime", set: summary(func(p *profile) *stats.Summary { return &p.Exclusive })},
	field[profile]{name: "inclusive_runtime", set: summary(func(p *profile) *stats.Summary { return &p.Inclusive })},
)

var funcStatsFields = newFields("func_stats",
	field[funcStats]{name: "anomaly_metrics", set: setMetrics},
	field[funcStats]{name: "app", set: integer(func(f *funcStats) *trace.Program { return &f.App })},
	field[funcStats]{name: "fid", set: integer(func(f *funcStats) *int { return &f.FID }), needed: true},
	field[funcStats]{name: "fname", set: text(func(f *funcStats) *string { return &f.Name }), needed: true},
	field[funcStats]{name: "runtime_profile", set: object(profileFields, func(f *funcStats, p profile) { f.RuntimeProfile = p })},
)

var counterStatsFields = newFields("counter_stats",
	field[counterStats]{name: "app", set: integer(func(c *counterStats) *trace.Program { return &c.App })},
	field[counterStats]{name: "counter", set: text(func(c *counterStats) *string { return &c.Name }), needed: true},
	field[counterStats]{name: "stats", set: summary(func(c *counterStats) *stats.Summary { return &c.Stats })},
)

var adModelFields = newFields("ad_model",
	field[adModel]{name: "fid", set: integer(func(m *adModel) *int { return &m.FID }), needed: true},
	field[adModel]{name: "func_name", set: text(func(m *adModel) *string { return &m.Name }), needed: true},
	field[adModel]{name: "model", set: func(d *decoder, m *adModel, v value) (err error) { m.Model, err = d.model(v); return err }},
	field[adModel]{name: "pid", set: integer(func(m *adModel) *trace.Program { return &m.PID })},
)

var pathStatsFields = newFields("path_stats",
	field[pathStats]{name: "calls", set: integer(func(p *pathStats) *int64 { return &p.Calls }), needed: true},
	field[pathStats]{name: "exclusive_us", set: integer(func(p *pathStats) *trace.Micros { return &p.Exclusive }), needed: true},
	field[pathStats]{name: "fid", set: integer(func(p *pathStats) *int { return &p.FID }), needed: true},
	field[pathStats]{name: "func", set: name(func(p *pathStats) *string { return &p.Func }), needed: true},
	field[pathStats]{name: "node", set: integer(func(p *pathStats) *int { return &p.Node }), needed: true},
	field[pathStats]{name: "parent", set: integer(func(p *pathStats) *int { return &p.Parent }), needed: true},
	field[pathStats]{name: "pid", set: integer(func(p *pathStats) *trace.Program { return &p.PID })},
)

// summary sets statistics. The original writes no sum where it did not need one,
// and odd extremes where there is no value.
func summary[T any](at func(*T) *stats.Summary) setter[T] {
	return object(summaryFields, func(into *T, s stats.Summary) {
		switch {
		case s.Count == 0:
			s = stats.Summary{}
		case s.Accumulate == 0:
			s.Accumulate = s.Mean * s.Count
		}
		*at(into) = s
	})
}

// setMetrics sets the metrics of a function, but not those of no anomaly, which
// the original writes after it removed them all.
func setMetrics(d *decoder, f *funcStats, v value) error {
	m := new(metrics)
	if _, err := metricsFields.read(d, v, m); err != nil {
		return err
	}
	f.AnomalyMetrics = m
	if m.Count.Count == 0 {
		f.AnomalyMetrics = nil
		d.notes.Add(noteNoAnomaly, 1)
	}
	return nil
}

// Global reads what is known over all ranks. dir is the directory of a run, one
// that has such a directory named global, or one with the files themselves:
// func_stats.json, counter_stats.json, ad_model.json and path_stats.json, of which the
// original calls two global_func_stats.json and global_counter_stats.json, and does not
// have the last. Where a file is not there its list is empty. With errors, which name the files, it returns what
// could be read. Notes may be nil.
func Global(ctx context.Context, dir string, notes *Notes) (*provenance.Collections, error) {
	if base(dir) == "records" {
		dir = filepath.Join(dir, "..")
	}
	d := &decoder{notes: notes}
	all := &provenance.Collections{FuncStats: []funcStats{}, CounterStats: []counterStats{}, ADModels: []adModel{}, PathStats: []pathStats{}}
	if _, err := os.Stat(dir); err != nil {
		return all, err
	}
	return all, errors.Join(
		readAll(ctx, d, dir, "func_stats", funcStatsFields, &all.FuncStats, nil),
		readAll(ctx, d, dir, "counter_stats", counterStatsFields, &all.CounterStats, nil),
		readAll(ctx, d, dir, "ad_model", adModelFields, &all.ADModels, nil),
		readAll(ctx, d, dir, "path_stats", pathStatsFields, &all.PathStats, isNextPath),
	)
}

// isNextPath reports whether a call path can follow on others.
func isNextPath(before []pathStats, p *pathStats) bool {
	return p.Node == len(before)+1 && p.Parent >= 0 && p.Parent < p.Node && p.Calls >= 0 && p.Exclusive >= 0 &&
		(p.Parent == 0 || before[p.Parent-1].PID == p.PID)
}

// readAll reads a collection from the first place where it is. fits, if it is not nil,
// says whether a document can follow on those before it.
func readAll[T any](ctx context.Context, d *decoder, dir, collection string, f *fields[T], into *[]T,
	fits func(before []T, next *T) bool,
) error {
	places := []string{filepath.Join("global", collection), collection, "global_" + collection}
	for _, place := range places {
		path := filepath.Join(dir, place+".json")
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return d.readFile(ctx, path, func(v value) error {
			var t T
			if _, err := f.read(d, v, &t); err != nil {
				return err
			}
			if fits != nil && !fits(*into, &t) {
				return v.wrong("it does not follow on the %d before it", len(*into))
			}
			*into = append(*into, t)
			return nil
		})
	}
	return nil
}
