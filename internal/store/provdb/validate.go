package provdb

import (
	"errors"
	"fmt"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Validate returns an error if the batch has values that no store can hold: NaN, infinite numbers,
// or programs beyond the range of the tables.
func (b *Batch) Validate() error {
	for _, records := range [][]*provenance.Record{b.Anomalies, b.Typical} {
		for _, r := range records {
			if err := errors.Join(checkProgram(r.PID), checkNumbers(r.OutlierScore, r.OutlierSeverity)); err != nil {
				return fmt.Errorf("record %s: %w", r.EventID, err)
			}
		}
	}
	for i := range b.Functions {
		f := &b.Functions[i]
		all := []*stats.Summary{&f.RuntimeProfile.Exclusive, &f.RuntimeProfile.Inclusive}
		if m := f.AnomalyMetrics; m != nil {
			all = append(all, &m.Count, &m.Score, &m.Severity)
		}
		if err := errors.Join(checkProgram(f.App), checkSummaries(all...)); err != nil {
			return fmt.Errorf("function %q: %w", f.Name, err)
		}
	}
	for i := range b.Counters {
		c := &b.Counters[i]
		if err := errors.Join(checkProgram(c.App), checkSummaries(&c.Stats)); err != nil {
			return fmt.Errorf("counter %q: %w", c.Name, err)
		}
	}
	if err := checkPaths(b.Paths); err != nil {
		return err
	}
	for i := range b.Findings {
		x := &b.Findings[i]
		if err := errors.Join(checkProgram(x.PID), checkNumbers(x.Expected, x.Actual, x.From, x.Share, x.Confidence)); err != nil {
			return fmt.Errorf("finding %d: %w", x.Number, err)
		}
	}
	for i := range b.Links {
		if err := errors.Join(checkProgram(b.Links[i].PID), checkProgram(b.Links[i].CulpritPID)); err != nil {
			return fmt.Errorf("link of %s: %w", b.Links[i].EventID, err)
		}
	}
	return errors.Join(checkPeers(b.Peers), checkBreakdown(b.Breakdown))
}

func checkProgram(p trace.Program) error {
	if p > math.MaxInt32 {
		return fmt.Errorf("program %d is larger than %d", p, math.MaxInt32)
	}
	return nil
}

func checkSummaries(all ...*stats.Summary) error {
	for _, s := range all {
		if err := checkNumbers(s.Accumulate, s.Count, s.Kurtosis, s.Maximum, s.Mean, s.Minimum, s.Skewness, s.Stddev); err != nil {
			return err
		}
	}
	return nil
}

func checkNumbers(all ...float64) error {
	for _, x := range all {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%v cannot be stored", x)
		}
	}
	return nil
}
