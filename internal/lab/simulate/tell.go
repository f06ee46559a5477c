package simulate

import "slices"

// note is what is told of a function that is being executed.
type note struct {
	entry, bytes int64
	row          uint32
	hits         []hit
	excess       int64   // by which it waits longer for its threads
	blame        outcome // because of which trouble and rank
}

// hit is how much longer a call is because of a trouble.
type hit struct {
	trouble int32
	added   int64
}

// struck adds what a trouble added to a call.
func (w *walker) struck(hits *[]hit, trouble int32, added int64) {
	if w.out == nil {
		return // no one wants to know
	}
	for i := range *hits {
		if h := &(*hits)[i]; h.trouble == trouble {
			h.added += added
			return
		}
	}
	*hits = append(*hits, hit{trouble, added})
}

// tell notes a call that troubles struck, and what they added to it. bytes are
// those of the message that its usual time depends on.
func (w *walker) tell(o *op, row uint32, entry, bytes int64, hits []hit) {
	if w.out == nil {
		return
	}
	s := w.e.scenario
	for _, h := range hits {
		t := w.e.p.troubles[h.trouble]
		if h.added == 0 || t.lasting() {
			continue
		}
		var usual float64
		if o.usual != nil {
			usual = o.usual.Typical(float64(bytes))
		}
		notable := t.Value != nil ||
			float64(h.added) >= s.NotableMicros && float64(h.added) >= s.NotableShare*usual
		if notable || t.Each() { // otherwise it is part of what the trouble's own line says
			w.out.planted(w, o.fn, row, entry, h, notable)
		}
	}
}

// waited notes a call that waited longer because of a trouble, if that is so.
// Where the trouble is in the call itself, it joins its hits.
func (w *walker) waited(o *op, row uint32, entry, excess int64, r outcome, hits *[]hit) {
	if w.out == nil || r.blame < 0 || float64(excess) < max(2, w.e.scenario.NotableMicros/20) {
		return
	}
	h := hit{r.blame, excess}
	if r.direct || slices.ContainsFunc(*hits, func(of hit) bool { return of.trouble == h.trouble }) {
		w.struck(hits, h.trouble, h.added)
		return
	}
	w.out.suffered(w, o.fn, row, entry, h, r.culprit)
}
