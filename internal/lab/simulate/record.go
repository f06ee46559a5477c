package simulate

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
)

// note is the data of an open call for the truth.
type note struct {
	entry, bytes int64
	row          uint32
	hits         []hit
	excess       int64   // additional wait for its threads
	blame        outcome // trouble and rank of that wait
}

// hit is the time that a trouble added to a call.
type hit struct {
	trouble int32
	added   int64
}

// addHit adds the effect of a trouble on a call. Without an output it counts the lost
// time instead.
func (w *walker) addHit(hits *[]hit, trouble int32, added int64) {
	if w.out == nil {
		w.e.lost[trouble] += added
		return
	}
	for i := range *hits {
		if h := &(*hits)[i]; h.trouble == trouble {
			h.added += added
			return
		}
	}
	*hits = append(*hits, hit{trouble, added})
}

// record adds a call to the truth for each trouble that changed it. bytes is the size of
// the message that its usual time depends on.
func (w *walker) record(o *op, row uint32, entry, bytes int64, hits []hit) {
	if w.out == nil {
		return
	}
	s := w.e.scenario
	for _, h := range hits {
		t := w.e.p.troubles[h.trouble]
		if h.added == 0 || t.isLasting() {
			continue
		}
		var usual float64
		if o.usual != nil {
			usual = o.usual.Typical(float64(bytes))
		}
		notable := t.Value != nil ||
			float64(h.added) >= s.NotableMicros && float64(h.added) >= s.NotableShare*usual
		if notable || t.Each() { // the line of the trouble covers the others
			w.out.call(w, o.fn, row, entry, h, truth.Cause).Minor = !notable
		}
	}
}

// waited adds a call to the truth that waited longer because of a trouble. If the trouble
// is in the call itself, it adds a hit instead.
func (w *walker) waited(o *op, row uint32, entry, excess int64, r outcome, hits *[]hit) {
	if r.blame < 0 || w.out == nil && !r.direct || float64(excess) < max(2, w.e.scenario.NotableMicros/20) {
		return
	}
	h := hit{r.blame, excess}
	if r.direct || slices.ContainsFunc(*hits, func(of hit) bool { return of.trouble == h.trouble }) {
		w.addHit(hits, h.trouble, h.added)
		return
	}
	c := w.out.call(w, o.fn, row, entry, h, truth.Victim)
	if w.e.p.troubles[h.trouble] != nil { // the culprit is a rank of the same program
		c.Culprit = new(trace.Rank(r.culprit))
	}
}
