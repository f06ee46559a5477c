package simulate

import (
	"math/rand/v2"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

// rankState is the state of a rank between two waits.
type rankState struct {
	clock int64 // its time
	clean int64 // its time without troubles
	// Separate random numbers of the program, its troubles and the counters of the node,
	// so that a trouble changes only the calls that it affects.
	base, extra, node rand.PCG
	blame, culprit    int32 // the trouble and the rank that delayed it; blame -1: none
	bytes             int64 // of the current message
	correlation       uint64
	pc, depth, waits  int32
}

// late blames the delay of the rank on its own trouble, unless that is -1.
func (w *walker) late(trouble int32) {
	if trouble >= 0 {
		w.st.blame, w.st.culprit = trouble, int32(w.rank)
	}
}

// frame is an open call.
type frame struct {
	o          *op
	own, clean int64 // length of a part of its own time
	lastOwn    int64 // length of the last part
	lastClean  int64
	left       int64 // remaining parts
}

// walker runs the operations of one rank. Without an output it computes when the rank
// arrives at each wait; with one it repeats that with the known waits, and emits events.
type walker struct {
	e               *engine
	rank            int
	st              rankState
	vars            []int64
	frames          []frame
	notes           []note     // of frames; only with an output
	hits            []hit      // of a call without a frame; only with an output
	rng, trng, nrng *rand.Rand // of st.base, st.extra and st.node
	iteration       int
	resume          bool // the current wait is over
	out             *output
	lane            *lane
	thread          int
}

func newWalker(e *engine) *walker {
	w := &walker{e: e}
	w.rng, w.trng, w.nrng = rand.New(&w.st.base), rand.New(&w.st.extra), rand.New(&w.st.node)
	return w
}

// run runs ops from pc until it must wait for others or reaches the end, and returns the
// new pc.
func (w *walker) run(ops []op, pc int) int {
	for ; pc < len(ops); pc++ {
		o := &ops[pc]
		if o.skip > 0 && !w.due(o) {
			pc += o.skip - 1
			continue
		}
		switch o.code {
		case opOpen:
			w.event(trace.Enter, o.fn)
		case opClose:
			w.event(trace.Exit, o.fn)
		case opLeaf, opSend:
			w.leaf(o)
		case opEnter:
			w.begin(o)
		case opPart:
			w.part()
		case opExit:
			for _, i := range o.excess {
				w.repeat(ops[pc-o.calls:pc], i)
			}
			for i := range o.rare {
				w.add(&o.rare[i])
			}
			w.end()
		case opExchange, opCollective:
			if w.out == nil && !w.resume {
				return pc
			}
			w.resume = false
			w.await(o)
		case opThreads:
			w.runThreads(o)
		case opLaunch:
			w.launch(o)
		case opDeviceSync:
			w.deviceSync(o)
		case opPublish:
			w.publish(o)
		case opAwait:
			w.awaitProgram(o)
		}
	}
	return pc
}

// due reports whether an operation that runs in some iterations or on some ranks only runs now.
func (w *walker) due(o *op) bool {
	if o.ranks != nil && (w.rank < o.ranks[0] || w.rank >= o.ranks[1]) {
		return false
	}
	if o.every <= 1 && o.part == nil {
		return true
	}
	return w.iteration >= 0 && (o.every <= 1 || w.iteration%o.every == 0) &&
		(o.part == nil || o.part[0] <= w.iteration && w.iteration < o.part[1])
}

// event emits an entry or exit, and returns its row.
func (w *walker) event(kind trace.Kind, fn trace.FuncID) uint32 {
	if w.out == nil {
		return 0
	}
	return w.lane.function(kind, fn, w.st.clock)
}

// inside returns the time of an event inside a call that starts now: after its entry, if
// the call takes any time, because another call may end at that time.
func (w *walker) inside(own int64) int64 { return w.st.clock + min(1, own) }

// enter emits the entry of a function and its counters. own is the least duration of the
// call.
func (w *walker) enter(o *op, own int64) uint32 {
	row := w.event(trace.Enter, o.fn)
	for i := range o.counters {
		c := &o.counters[i]
		if v := c.value.Draw(w.rng, w.st.bytes); w.out != nil {
			w.lane.count(c.id, uint64(v), w.inside(own))
		}
	}
	return row
}

// drawTime draws a function's own time, with and without troubles, and returns the trouble
// to blame for a longer time. It sets hits to the effects of troubles.
func (w *walker) drawTime(o *op, hits *[]hit) (own, clean int64, blame int32) {
	if o.message != nil {
		w.st.bytes = o.message.Draw(w.rng, 0)
	}
	clean = max(o.least, o.time.Draw(w.rng, w.st.bytes))
	if o.spread > 0 {
		clean = max(o.least, scenario.Bounded(float64(clean)*(1+o.spread*w.e.unevenness[w.rank])))
	}
	own, blame = clean, -1
	*hits = (*hits)[:0]
	for _, i := range o.troubles {
		t := w.e.p.troubles[i]
		if !t.ranks[w.rank] {
			continue
		}
		if t.Kind == scenario.RareCall { // which makes the call
			w.addHit(hits, i, own)
			continue
		}
		v, ok := t.apply(own, w.st.clock, w.st.bytes, &w.vars[i], w.trng)
		if !ok {
			continue
		}
		if v = max(o.least, v); v > own {
			blame = i
		}
		w.addHit(hits, i, v-own)
		own = v
	}
	if own <= clean {
		blame = -1
	}
	return own, clean, blame
}

// repeat runs the calls of the current function again, if the trouble strikes, so that
// their number grows by its factor. They are not part of the program without troubles,
// and the function has spent its own time.
func (w *walker) repeat(calls []op, trouble int32) {
	t := w.e.p.troubles[trouble]
	if !t.ranks[w.rank] || t.strength(w.st.clock) == 0 || w.trng.Float64() >= t.Chance || t.silent {
		return
	}
	f := &w.frames[w.st.depth-1]
	*f = frame{o: f.o}
	before, rng := w.st, w.rng
	w.rng = w.trng
	for range scenario.Bounded(t.Factor) - 1 {
		w.run(calls, 0)
	}
	w.rng = rng
	w.st.clean, w.st.bytes = before.clean, before.bytes
	w.late(trouble)
	w.addHit(w.hitsAt(w.st.depth-1), trouble, w.st.clock-before.clock)
}

// add runs additional calls of the current function, if the trouble strikes. They are not part of the program without troubles.
func (w *walker) add(added *rare) {
	t, used := w.e.p.troubles[added.trouble], &w.vars[added.trouble]
	if !t.ranks[w.rank] || t.strength(w.st.clock) == 0 || t.Count > 0 && *used >= int64(t.Count) || w.trng.Float64() >= t.Chance {
		return
	}
	*used++
	if t.silent {
		return
	}
	before, rng := w.st, w.rng
	w.rng = w.trng
	w.run(added.calls, 0)
	w.rng = rng
	w.st.clean, w.st.bytes = before.clean, before.bytes
	w.late(added.trouble)
}

// pass advances the clocks by own time, and adds OS noise.
func (w *walker) pass(own, clean int64, hits *[]hit) {
	now := w.st.clock
	w.st.clock += own
	w.st.clean += clean
	for _, i := range w.e.p.noise {
		t := w.e.p.troubles[i]
		if !t.ranks[w.rank] {
			continue
		}
		for range t.interruptions(now, own, &w.vars[i], w.trng) {
			injected := t.extra.Draw(w.trng, 0)
			if t.silent {
				continue
			}
			w.st.clock += injected
			w.addHit(hits, i, injected)
			w.late(i)
		}
	}
}

// leaf runs a call without calls.
func (w *walker) leaf(o *op) {
	own, clean, blame := w.drawTime(o, &w.hits)
	w.late(blame)
	entry := w.st.clock
	row := w.enter(o, own)
	switch o.code {
	case opSend:
		w.send(o, w.inside(own))
	case opLaunch, opKernel:
		if w.out != nil {
			w.lane.count(w.e.p.correlation, w.st.correlation, w.inside(own))
		}
	}
	if o.code == opKernel { // the GPU has no OS noise
		w.st.clock += own
		w.st.clean += clean
	} else {
		w.pass(own, clean, &w.hits)
	}
	w.event(trace.Exit, o.fn)
	w.record(o, row, entry, w.st.bytes, w.hits)
}

// hitsAt returns the hits of the call at that depth.
func (w *walker) hitsAt(depth int32) *[]hit {
	if w.out == nil {
		return &w.hits
	}
	return &w.notes[depth].hits
}

func (w *walker) begin(o *op) {
	depth := w.st.depth
	own, clean, blame := w.drawTime(o, w.hitsAt(depth))
	w.late(blame)
	w.st.depth++
	f := &w.frames[depth]
	*f = frame{o: o, own: own / o.parts, clean: clean / o.parts, left: o.parts}
	f.lastOwn, f.lastClean = own-f.own*(o.parts-1), clean-f.clean*(o.parts-1)
	entry, row := w.st.clock, w.enter(o, f.own)
	if w.out != nil {
		n := &w.notes[depth]
		*n = note{entry: entry, bytes: w.st.bytes, row: row, hits: n.hits}
	}
}

func (w *walker) part() {
	f := &w.frames[w.st.depth-1]
	own, clean := f.own, f.clean
	if f.left--; f.left == 0 {
		own, clean = f.lastOwn, f.lastClean
	}
	w.pass(own, clean, w.hitsAt(w.st.depth-1))
}

func (w *walker) end() {
	w.st.depth--
	o := w.frames[w.st.depth].o
	w.event(trace.Exit, o.fn)
	if w.out == nil {
		return
	}
	n := &w.notes[w.st.depth]
	w.waited(o, n.row, n.entry, n.excess, n.blame, &n.hits)
	w.record(o, n.row, n.entry, n.bytes, n.hits)
}

// neighbor returns the rank at a distance, with wraparound.
func (e *engine) neighbor(rank, distance int) int {
	n := (rank + distance) % e.p.Ranks
	if n < 0 {
		n += e.p.Ranks
	}
	return n
}

// send sends the current message to a neighbor.
func (w *walker) send(o *op, at int64) {
	if w.out == nil {
		*w.e.message(int(w.st.waits), len(o.wait.neighbors), o.slot, w.rank) = message{
			at: at, clean: w.st.clean + 1, bytes: w.st.bytes, blame: w.st.blame, culprit: w.st.culprit,
		}
		return
	}
	w.lane.message(trace.Send, w.e.neighbor(w.rank, o.wait.neighbors[o.slot]), o.slot, uint64(w.st.bytes), at)
}

// await waits for other ranks, by the outcome computed before.
func (w *walker) await(o *op) {
	w.waitUntil(o, w.e.outcomes[int(w.st.waits)*w.e.p.Ranks+w.rank])
	w.st.waits++
}

// waitUntil runs a call that waits until r and then takes its own time.
func (w *walker) waitUntil(o *op, r outcome) {
	own, clean, blame := int64(waitOverhead), int64(waitOverhead), int32(-1)
	w.hits = w.hits[:0]
	if o.code != opExchange {
		own, clean, blame = w.drawTime(o, &w.hits)
	}
	entry := w.st.clock
	row := w.enter(o, r.end+own-entry)
	if w.out != nil && o.code == opExchange {
		w.receive(o)
	}
	excess := (r.end - w.st.clock) - (r.clean - w.st.clean)
	if r.end > w.st.clock {
		w.st.blame, w.st.culprit = r.blame, r.culprit
	}
	w.late(blame)
	w.st.clock, w.st.clean = r.end+own, r.clean+clean
	if w.st.clock <= w.st.clean {
		w.st.blame = -1
	}
	w.event(trace.Exit, o.fn)
	w.waited(o, row, entry, excess, r, &w.hits)
	w.record(o, row, entry, w.st.bytes, w.hits)
}

// receive emits the messages of the neighbors in the order of arrival.
func (w *walker) receive(o *op) {
	n := len(o.wait.neighbors)
	w.out.arrivals = w.out.arrivals[:0]
	for slot, distance := range o.wait.neighbors {
		from := w.e.neighbor(w.rank, -distance)
		m := w.e.message(int(w.st.waits), n, slot, from)
		a := arrival{at: max(w.inside(waitOverhead), w.e.arrivalTime(m)), from: from, tag: slot, bytes: m.bytes}
		w.out.arrivals = append(w.out.arrivals, a)
	}
	w.out.received(w.lane)
}

// runThreads runs the same operations on each thread, and waits for the last.
func (w *walker) runThreads(o *op) {
	from, last := w.st, w.st
	var first rankState // of thread 0 at its end
	for t := range o.threads {
		w.st.clock, w.st.clean, w.st.blame, w.st.culprit = from.clock, from.clean, from.blame, from.culprit
		w.onThread(t)
		w.run(o.sub, 0)
		if t == 0 {
			first = w.st
		}
		if w.st.clock > last.clock {
			last.clock, last.blame, last.culprit = w.st.clock, w.st.blame, w.st.culprit
		}
		last.clean = max(last.clean, w.st.clean)
	}
	w.onThread(0)
	w.st.clock, w.st.clean, w.st.blame, w.st.culprit = last.clock, last.clean, last.blame, last.culprit
	if w.out != nil {
		n := &w.notes[w.st.depth-1]
		n.excess = (last.clock - first.clock) - (last.clean - first.clean)
		n.blame = outcome{blame: last.blame, culprit: last.culprit}
	}
}

// onThread switches to a thread.
func (w *walker) onThread(t int) {
	w.thread = t
	if w.out != nil {
		w.lane = w.out.lane(t)
	}
}

func (w *walker) publish(o *op) {
	w.leaf(o)
	if w.out != nil || w.iteration < 0 {
		return
	}
	i := w.inStep()
	for len(w.e.published) <= i {
		w.e.published = append(w.e.published, outcome{blame: -1})
	}
	p := &w.e.published[i]
	if w.st.clock > p.end {
		p.end, p.blame, p.culprit = w.st.clock, w.st.blame, w.st.culprit
	}
	p.clean = max(p.clean, w.st.clean)
}

// inStep returns the index of the iteration in the step, or a negative number outside.
func (w *walker) inStep() int { return w.iteration - w.e.step*w.e.scenario.Iterations }

func (w *walker) awaitProgram(o *op) {
	r := outcome{end: w.st.clock, clean: w.st.clean, blame: -1}
	from := w.e.others[o.wait.from]
	if i := w.inStep(); w.iteration >= 0 && i < len(from.published) {
		p := from.published[i]
		if p.end > r.end {
			r.end, r.blame, r.culprit = p.end, p.blame, p.culprit
		}
		r.clean = max(r.clean, p.clean)
	}
	w.waitUntil(o, r)
}

// sample reads the counters of the node that are due.
func (w *walker) sample() {
	p := w.e.p
	next := w.vars[len(p.troubles)+3*p.streams:]
	for i := range p.state {
		c := &p.state[i]
		if w.st.clock < next[i] {
			continue
		}
		next[i] = w.st.clock + c.every
		v := float64(c.value.Draw(w.nrng, 0))
		for _, t := range c.troubles {
			if t := p.troubles[t]; t.ranks[w.rank] {
				v += (t.Reading - v) * t.strength(w.st.clock)
			}
		}
		if w.out != nil {
			w.lane.count(c.id, uint64(max(v, 0)), w.st.clock)
		}
	}
}
