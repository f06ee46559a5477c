package simulate

import (
	"math/rand/v2"

	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

// engine runs a program. It computes each step twice: first for all ranks together, from
// one wait to the next, to find when each rank arrives; then for each rank separately,
// with events. So it keeps only the waits of one step.
type engine struct {
	scenario *scenario.Scenario
	p        *program
	others   []*engine // all programs, this one included
	ranks    []rankState
	vars     []int64 // width values for each rank: uses of troubles, GPU streams, counters
	width    int
	frames   []frame // depth frames for each rank
	w        *walker
	links    *rand.Rand
	lost     []int64 // time that each trouble has added

	unevenness []float64 // of each rank: from 0, the fastest, to 1

	// Of the current step.
	step     int
	ranks0   []rankState // at its start
	vars0    []int64
	outcomes []outcome // of each wait for each rank
	messages []message // of each exchange: by neighbor, then by sender
	firsts   []int     // index of the first message of each wait

	published []outcome // in each iteration of the step
}

// outcome is the end of a rank's wait for others.
type outcome struct {
	end, clean     int64
	blame, culprit int32 // the trouble and the rank that delayed it; blame -1: none
	direct         bool  // the trouble delayed the message itself
}

// message is a sent message.
type message struct {
	at, clean      int64
	bytes          int64
	extra          int64 // by which a slow link delays it
	blame, culprit int32
	link           int32 // that trouble, if extra > 0
}

func newEngine(s *scenario.Scenario, p *program, start int64) *engine {
	e := &engine{
		scenario: s, p: p, step: -1,
		ranks: make([]rankState, p.Ranks), width: len(p.troubles) + 3*p.streams + len(p.state),
	}
	e.vars, e.lost = make([]int64, p.Ranks*e.width), make([]int64, len(p.troubles))
	e.frames = make([]frame, p.Ranks*p.depth)
	e.ranks0, e.vars0 = make([]rankState, len(e.ranks)), make([]int64, len(e.vars))
	for r := range e.ranks {
		st := &e.ranks[r]
		number := uint64(p.index)<<32 | uint64(r)
		st.base, st.extra = *rand.NewPCG(s.Seed, number<<1), *rand.NewPCG(s.Seed, number<<1|1)
		st.node = *rand.NewPCG(s.Seed, 1<<62|number)
		st.clock = start + int64(st.base.Uint64()%startSpread)
		st.clean, st.blame = st.clock, -1
		e.unevenness = append(e.unevenness, rand.New(rand.NewPCG(s.Seed, 1<<61|number)).Float64())
	}
	e.links = rand.New(rand.NewPCG(s.Seed, ^uint64(p.index)))
	e.w = newWalker(e)
	return e
}

// lists calls do with the operations of a step and their iteration, -1 outside the body.
func (e *engine) lists(step int, do func(ops []op, iteration int)) {
	if step == 0 {
		do(e.p.setup, -1)
	}
	for i := range e.scenario.Iterations {
		do(e.p.body, step*e.scenario.Iterations+i)
	}
	if step == e.scenario.Steps-1 {
		do(e.p.finish, -1)
	}
}

// advance computes the next step.
func (e *engine) advance() {
	e.step++
	for r := range e.ranks {
		e.ranks[r].waits = 0
	}
	copy(e.ranks0, e.ranks)
	copy(e.vars0, e.vars)
	e.outcomes, e.messages, e.firsts = e.outcomes[:0], e.messages[:0], e.firsts[:0]
	e.published = e.published[:0]
	e.lists(e.step, e.runTogether)
}

// runTogether runs a list on all ranks.
func (e *engine) runTogether(ops []op, iteration int) {
	for r := range e.ranks {
		e.ranks[r].pc = 0
	}
	resume := false
	for {
		at := 0
		for r := range e.ranks {
			w := e.w
			w.rank, w.st, w.iteration, w.resume = r, e.ranks[r], iteration, resume
			w.vars, w.frames = e.vars[r*e.width:(r+1)*e.width], e.frames[r*e.p.depth:(r+1)*e.p.depth]
			at = w.run(ops, int(w.st.pc))
			if at == len(ops) && iteration >= 0 {
				w.sample()
			}
			w.st.pc = int32(at)
			e.ranks[r] = w.st
		}
		if at == len(ops) {
			return
		}
		e.resolve(&ops[at])
		resume = true
	}
}

// message returns a message of a wait, by its slot and sender.
func (e *engine) message(wait, neighbors, slot, sender int) *message {
	for len(e.firsts) <= wait {
		e.firsts = append(e.firsts, len(e.messages))
	}
	first, n := e.firsts[wait], e.p.Ranks
	for len(e.messages) < first+neighbors*n {
		e.messages = append(e.messages, message{})
	}
	return &e.messages[first+slot*n+sender]
}

// arrivalTime returns the arrival time of a message.
func (e *engine) arrivalTime(m *message) int64 {
	return m.at + e.travelTime(m) + m.extra
}

func (e *engine) travelTime(m *message) int64 {
	return e.p.latency + int64(min(float64(m.bytes)/e.p.Bandwidth, scenario.Longest))
}

// resolve computes the outcome of a wait that all ranks have reached.
func (e *engine) resolve(o *op) {
	wait := len(e.outcomes) / e.p.Ranks
	if o.code == opCollective {
		e.gather(o.wait.group)
		return
	}
	n := len(o.wait.neighbors)
	e.delay(o.wait, wait)
	for r := range e.ranks {
		st := &e.ranks[r]
		out := outcome{end: st.clock, clean: st.clean, blame: st.blame, culprit: st.culprit}
		for slot, distance := range o.wait.neighbors {
			from := e.neighbor(r, -distance)
			m := e.message(wait, n, slot, from)
			if at := e.arrivalTime(m); at > out.end {
				out.end, out.blame, out.culprit = at, m.blame, m.culprit
				if out.direct = m.extra > 0; out.direct {
					out.blame, out.culprit = m.link, int32(from)
				}
			}
			out.clean = max(out.clean, m.clean+e.travelTime(m))
		}
		e.outcomes = append(e.outcomes, out)
	}
}

// delay adds the delays of slow links to the messages of an exchange.
func (e *engine) delay(w *wait, number int) {
	for _, i := range e.p.links {
		t := e.p.troubles[i]
		for slot, distance := range w.neighbors {
			for _, from := range t.Link {
				to := t.Link[0] + t.Link[1] - from
				if e.neighbor(from, distance) != to {
					continue
				}
				m := e.message(number, len(w.neighbors), slot, from)
				if t.strength(m.at) == 0 {
					continue
				}
				if extra := t.extra.Draw(e.links, m.bytes); !t.silent {
					m.extra += extra
					m.link = i
				}
			}
		}
	}
}

// gather makes the ranks of each group wait for the last one.
func (e *engine) gather(group int) {
	for first := 0; first < len(e.ranks); first += group {
		of := e.ranks[first:min(first+group, len(e.ranks))]
		last, clean := 0, of[0].clean
		for r := range of {
			if of[r].clock > of[last].clock {
				last = r
			}
			clean = max(clean, of[r].clean)
		}
		out := outcome{end: of[last].clock, clean: clean, blame: of[last].blame, culprit: of[last].culprit}
		for range of {
			e.outcomes = append(e.outcomes, out)
		}
	}
}
