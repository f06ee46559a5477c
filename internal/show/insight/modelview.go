package insight

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/typical"
)

// pageModel returns a model for the page, or nil.
func (d *runData) pageModel(params json.RawMessage) *api.Model {
	t := typical.Read(params)
	if t == nil {
		return nil
	}
	_, samples, _ := t.Typical()
	p := &api.Model{
		Algorithm: d.algorithm(t), Edges: append([]float64{}, t.Edges...), Counts: make([]int64, 0, len(t.Counts)), Normal: []api.Range{},
		Samples: int64(samples), Typical: t.Main().Range(), Warming: samples < float64(certainFactor*minSamples(d.info)),
	}
	for _, n := range t.Counts {
		p.Counts = append(p.Counts, int64(n))
	}
	if t.Limits {
		for _, s := range t.Usual {
			p.Normal = append(p.Normal, *s.Range())
		}
	}
	p.Threshold = d.threshold(t)
	return p
}

// algorithm names the detector by the form of the model or, if that is ambiguous, by the
// settings of the run.
func (d *runData) algorithm(t *typical.Times) string {
	switch {
	case t.Limits:
		return string(outlier.Tail)
	case t.Moments != nil:
		return string(outlier.SSTD)
	}
	if name := d.info.Settings["algorithm"]; name == string(outlier.HBOS) || name == string(outlier.COPOD) {
		return name
	}
	return "histogram"
}

// threshold returns the range outside of which times are flagged, if the model has one.
func (d *runData) threshold(t *typical.Times) *api.Range {
	var low, high float64
	switch d.algorithm(t) {
	case string(outlier.Tail):
		low, high = t.Usual[0].Low, t.Usual[len(t.Usual)-1].High
	case string(outlier.SSTD):
		sigma, err := strconv.ParseFloat(d.info.Settings["sigma"], 64)
		if err != nil || sigma <= 0 {
			sigma = outlier.Default().Sigma
		}
		low, high = *t.Moments.Mean-float64(sigma*t.Moments.Stddev), *t.Moments.Mean+float64(sigma*t.Moments.Stddev)
	case string(outlier.HBOS):
		return t.Common()
	default:
		return nil
	}
	r := &api.Range{High: &high}
	if low > 0 {
		r.Low = &low
	}
	return r
}

// judgedTime returns the time by which an execution was judged, in microseconds.
func (d *runData) judgedTime(r *provenance.Record) float64 {
	if d.info.Settings["statistic"] == "inclusive" {
		return d.micros(r.RuntimeTotal)
	}
	return d.micros(r.RuntimeExclusive)
}

// sentence describes an execution.
func (d *runData) sentence(r *provenance.Record) string {
	v := d.judgedTime(r)
	took := text.Duration(v)
	if own, all := text.Duration(d.micros(r.RuntimeExclusive)), text.Duration(d.micros(r.RuntimeTotal)); own != all {
		took = fmt.Sprintf("%s own time (%s with callees)", own, all)
	}
	words := fmt.Sprintf("%s %s on rank %d", text.ShortName(r.Func), took, r.RID)
	if host := text.Host(r.Hostname); host != "" {
		words += " (" + text.OneLine(host) + ")"
	}
	t := typical.Read(r.AlgoParams)
	switch {
	case r.Kind == provenance.RarelyCalled:
		return words + ", rarely called"
	case t == nil:
		return words
	}
	return words + ", typical " + t.UsualText() + t.RareText(v)
}
