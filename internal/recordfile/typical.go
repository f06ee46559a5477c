package recordfile

import (
	"encoding/json"

	"github.com/chimbuko/chimbuko/internal/trace"
)

// lostTime is how much longer than is typical an execution took that the model in
// params judged. It is 0 where the model does not tell.
func lostTime(time trace.Micros, params json.RawMessage) (lost trace.Micros, ok bool) {
	if len(params) == 0 {
		return 0, false
	}
	usual, ok := typical(value{text: params})
	if !ok {
		return 0, false
	}
	const most = 1 << 62 // what is more cannot be a time
	return max(0, time-trace.Micros(min(max(usual, 0), most))), true
}

// model is what a model tells of how long executions take.
type model struct {
	Count, Mean float64
	Histogram   *histogram
}

// histogram is one of both layouts: a list of edges, one more than bins, or the
// first edge and a width.
type histogram struct {
	Counts       []float64
	Edges        []float64
	First, Width float64
	Min, Max     float64
}

// typical is the median of a model's histogram, or the mean of its statistics.
func typical(params value) (float64, bool) {
	var m model
	if err := m.read(params); err != nil {
		return 0, false
	}
	if m.Histogram == nil {
		return m.Mean, m.Count > 0
	}
	return m.Histogram.median()
}

// read takes what it knows and passes over the rest.
func (m *model) read(params value) (err error) {
	if !params.isObject() {
		return params.wrong("%s is no object", params.excerpt())
	}
	for name, v := range params.members() {
		switch string(name.text) {
		case `"count"`:
			m.Count, err = v.float()
		case `"mean"`:
			m.Mean, err = v.float()
		case `"histogram"`:
			m.Histogram = new(histogram)
			err = m.Histogram.read(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *histogram) read(v value) (err error) {
	if !v.isObject() {
		return v.wrong("%s is no object", v.excerpt())
	}
	for name, v := range v.members() {
		switch string(name.text) {
		case `"Histogram Bin Counts"`, `"Bin Counts"`:
			h.Counts, err = floats(v)
		case `"Histogram Bin Edges"`:
			h.Edges, err = floats(v)
		case `"First edge"`:
			h.First, err = v.float()
		case `"Bin width"`:
			h.Width, err = v.float()
		case `"Min"`:
			h.Min, err = v.float()
		case `"Max"`:
			h.Max, err = v.float()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func floats(v value) (all []float64, err error) {
	if !v.isArray() {
		return nil, v.wrong("%s is no array", v.excerpt())
	}
	for v := range v.elements() {
		f, err := v.float()
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// median is where half of the counts lie below, if those of a bin are spread
// evenly over it; a bin of width 1 stands for the number that it begins with.
func (h *histogram) median() (float64, bool) {
	if h.Edges != nil && len(h.Edges) != len(h.Counts)+1 {
		return 0, false
	}
	total := 0.0
	for _, n := range h.Counts {
		if n < 0 {
			return 0, false
		}
		total += n
	}
	sum := 0.0
	for i, n := range h.Counts {
		if n == 0 || sum+n < total/2 {
			sum += n
			continue
		}
		share := (total/2 - sum) / n
		if h.Edges == nil {
			return min(max(h.First+(float64(i)+share)*h.Width, h.Min), h.Max), true
		}
		low, width := h.Edges[i], h.Edges[i+1]-h.Edges[i]
		if width == 1 {
			return low, true
		}
		return low + width*share, true
	}
	return 0, false
}
