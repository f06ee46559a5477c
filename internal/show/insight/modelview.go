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

// pageModel is a model as the page shows it; nil if nothing is known.
func (k *known) pageModel(params json.RawMessage) *api.Model {
	t := typical.Read(params)
	if t == nil {
		return nil
	}
	_, samples, _ := t.Typical()
	p := &api.Model{
		Algorithm: k.algorithm(t), Edges: append([]float64{}, t.Edges...), Counts: make([]int64, 0, len(t.Counts)), Normal: []api.Range{},
		Samples: int64(samples), Typical: t.Main().Range(), Warming: samples < float64(sureTimes*k.info.minSamples()),
	}
	for _, n := range t.Counts {
		p.Counts = append(p.Counts, int64(n))
	}
	if t.Modal {
		for _, s := range t.Usual {
			p.Normal = append(p.Normal, *s.Range())
		}
	}
	p.Threshold = k.threshold(t)
	return p
}

// algorithm names the detector: by the model, or where several make such models, by the
// settings of the run.
func (k *known) algorithm(t *typical.Times) string {
	switch {
	case t.Modal:
		return string(outlier.Modal)
	case t.Moments != nil:
		return string(outlier.SSTD)
	}
	if name := k.info.Settings["algorithm"]; name == string(outlier.HBOS) || name == string(outlier.COPOD) {
		return name
	}
	return "histogram"
}

// threshold is outside of what times are flagged, where the model tells.
func (k *known) threshold(t *typical.Times) *api.Range {
	switch k.algorithm(t) {
	case string(outlier.Modal):
		r := &api.Range{High: &t.Usual[len(t.Usual)-1].High}
		if low := t.Usual[0].Low; low > 0 {
			r.Low = &low
		}
		return r
	case string(outlier.SSTD):
		sigma, err := strconv.ParseFloat(k.info.Settings["sigma"], 64)
		if err != nil || sigma <= 0 {
			sigma = outlier.Default().Sigma
		}
		low, high := *t.Moments.Mean-float64(sigma*t.Moments.Stddev), *t.Moments.Mean+float64(sigma*t.Moments.Stddev)
		r := &api.Range{High: &high}
		if low > 0 {
			r.Low = &low
		}
		return r
	case string(outlier.HBOS):
		return t.Common()
	}
	return nil
}

// judged is the time that an execution was judged by.
func (k *known) judged(r *provenance.Record) float64 {
	if k.info.Settings["statistic"] == "inclusive" {
		return float64(r.RuntimeTotal)
	}
	return float64(r.RuntimeExclusive)
}

// sentence tells what happened in an execution.
func (k *known) sentence(r *provenance.Record) string {
	v := k.judged(r)
	words := fmt.Sprintf("%s %s on rank %d", text.ShortName(r.Func), text.Duration(v), r.RID)
	if r.Hostname != "" && r.Hostname != "Unknown" {
		words += " (" + text.OneLine(r.Hostname) + ")"
	}
	t := typical.Read(r.AlgoParams)
	if t == nil {
		return words
	}
	return words + ", typical " + t.UsualText() + t.RareText(v)
}
