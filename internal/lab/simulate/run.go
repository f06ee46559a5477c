// Package simulate runs scenarios: parallel programs that do not exist, whose
// ranks compute, send messages, wait for each other, use threads and GPUs, and
// in which trouble is planted. It gives the steps that TAU would have traced,
// and the truth about them: which calls a trouble struck, and which had to wait
// because of it. It finds the latter by running each rank a second time, without
// any trouble, on a clock of its own.
//
// The same scenario gives the same steps. What is held in memory is what ranks
// know of each other in one step, and the events of one step of those ranks
// whose Streams have not been released.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// Run is a scenario at work.
type Run struct {
	scenario *scenario.Scenario
	engines  []*engine
	streams  []*Stream
	mu       sync.RWMutex // held while steps are taken; alone, while the next is computed
	step     int          // that can be taken; -1: none yet
}

// New returns a Run of a valid scenario.
func New(s *scenario.Scenario) *Run {
	start := s.Start.UnixMicro()
	run := &Run{scenario: s, step: -1}
	all := make([]string, len(s.Programs))
	for i := range s.Programs {
		all[i] = s.Programs[i].Name
	}
	for i := range s.Programs {
		troubles := make([]*trouble, len(s.Troubles))
		for j := range s.Troubles {
			if _, of := s.Find(&s.Troubles[j]); of == i {
				troubles[j] = newTrouble(s, &s.Troubles[j], start)
			}
		}
		e := newEngine(s, compile(s, i, all, troubles), start)
		run.engines = append(run.engines, e)
	}
	for _, e := range run.engines {
		e.others = run.engines
		names := e.p.names()
		for r := range e.p.Ranks {
			run.streams = append(run.streams, &Stream{run: run, e: e, rank: r, names: names})
		}
	}
	return run
}

// names returns the names of a program's trace.
func (p *program) names() *tau.Names {
	gpus := make(map[trace.Rank]map[trace.Thread]trace.GPU)
	for r := range p.Ranks {
		for s := range p.streams {
			if s == 0 {
				gpus[trace.Rank(r)] = make(map[trace.Thread]trace.GPU)
			}
			gpus[trace.Rank(r)][trace.Thread(p.streamThread(s))] = p.gpu(s)
		}
	}
	n := tau.NewNames(p.Name, p.funcs, p.counters, gpus)
	return &n
}

func (p *program) gpu(stream int) trace.GPU {
	return trace.GPU{Device: "0", Context: "1", Stream: strconv.Itoa(stream)}
}

// Streams returns the ranks of all programs, in order.
func (r *Run) Streams() []*Stream { return r.streams }

// Troubles returns what is planted.
func (r *Run) Troubles() []*truth.Trouble {
	var all []*truth.Trouble
	for i := range r.scenario.Troubles {
		for _, e := range r.engines {
			if t := e.p.troubles[i]; t != nil {
				all = append(all, t.truth(e.p))
			}
		}
	}
	return all
}

// Advance computes the next step of all ranks, which Streams then give; false:
// there are no more.
func (r *Run) Advance() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.advance()
}

func (r *Run) advance() bool {
	if r.step+1 >= r.scenario.Steps {
		return false
	}
	r.step++
	for _, e := range r.engines {
		e.advance()
	}
	return true
}

// Stream is the trace of one rank.
type Stream struct {
	run   *Run
	e     *engine
	rank  int
	names *tau.Names
	next  int // step that Next gives
	end   int64
	w     *walker
	out   output
	vars  []int64
	step  tau.Step
}

// Program is the number of the program.
func (s *Stream) Program() trace.Program { return trace.Program(s.e.p.index) }

// ProgramName is the name of the program.
func (s *Stream) ProgramName() string { return s.e.p.Name }

// Ranks is how many ranks the program has.
func (s *Stream) Ranks() int { return s.e.p.Ranks }

// Rank is the rank.
func (s *Stream) Rank() trace.Rank { return trace.Rank(s.rank) }

// Host is where the rank runs.
func (s *Stream) Host() string { return s.e.p.Host(s.rank) }

// Names returns the names of functions and counters. They are complete from the
// beginning, and the same for all ranks of a program.
func (s *Stream) Names() *tau.Names { return s.names }

// errApart is what a stream returns that was left behind.
var errApart = errors.New("the ranks of a simulation are read side by side, step by step: this one was left behind")

// Next returns the next step, valid until the next call, or io.EOF. Streams may
// be read at the same time, but none gets to the next step before all have had
// this one.
func (s *Stream) Next(ctx context.Context) (*tau.Step, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.next >= s.run.scenario.Steps {
		return nil, io.EOF
	}
	s.run.mu.RLock()
	for s.next > s.run.step {
		s.run.mu.RUnlock()
		s.run.mu.Lock()
		if s.next > s.run.step {
			s.run.advance()
		}
		s.run.mu.Unlock()
		s.run.mu.RLock()
	}
	defer s.run.mu.RUnlock()
	if s.next < s.run.step {
		return nil, fmt.Errorf("%s, rank %d, step %d: %w", s.e.p.Name, s.rank, s.next, errApart)
	}
	s.next++
	return s.emit(), nil
}

// Truth returns the calls of the last step that troubles touched. It is valid
// as long as the step.
func (s *Stream) Truth() []truth.Call { return s.out.calls }

// End is when the step that Next gave last ended for the rank.
func (s *Stream) End() trace.Micros { return trace.Micros(s.end) }

// ends is when the step that was computed last ends for the rank.
func (s *Stream) ends() int64 { return s.e.ranks[s.rank].clock }

// Release gives the memory of the last step back, which becomes invalid.
func (s *Stream) Release() {
	s.w, s.vars, s.out, s.step = nil, nil, output{}, tau.Step{}
}

// emit has the rank do the step again, with events.
func (s *Stream) emit() *tau.Step {
	e := s.e
	if s.w == nil {
		s.w = newWalker(e)
		s.w.frames, s.w.notes = make([]frame, e.p.depth), make([]note, e.p.depth)
		s.vars = make([]int64, e.width)
	}
	s.out.reset()
	copy(s.vars, e.vars0[s.rank*e.width:])
	w := s.w
	w.rank, w.st, w.vars, w.out = s.rank, e.ranks0[s.rank], s.vars, &s.out
	w.onThread(0)
	e.lists(e.step, func(ops []op, iteration int) {
		w.iteration = iteration
		w.run(ops, 0)
		if iteration >= 0 {
			w.sample()
		}
	})
	s.end = w.st.clock
	s.fill(e.step)
	return &s.step
}

// fill makes a step of what was put out.
func (s *Stream) fill(index int) {
	o := &s.out
	funcs, comms, counters := o.number(trace.EventID{Rank: s.Rank(), Step: index})
	s.step.Index, s.step.Funcs, s.step.Comms, s.step.Counters = index, int(funcs), int(comms), int(counters)
	s.step.Batches, s.step.Metadata = s.step.Batches[:0], s.step.Metadata[:0]
	readings := s.step.Readings[:0]
	for t := range o.lanes {
		events := o.lanes[t].events
		if len(events) == 0 {
			continue
		}
		batch := trace.Batch{Program: s.Program(), Rank: s.Rank(), Thread: trace.Thread(t), Events: events}
		s.step.Batches = append(s.step.Batches, batch)
		if o.lanes[t].counters == 0 {
			continue
		}
		if len(readings) < cap(readings) {
			readings = readings[:len(readings)+1]
			batch.Events = readings[len(readings)-1].Events[:0]
		} else {
			readings = append(readings, trace.Batch{})
			batch.Events = nil
		}
		for i := range events {
			if events[i].Kind == trace.Count {
				batch.Events = append(batch.Events, events[i])
			}
		}
		readings[len(readings)-1] = batch
	}
	s.step.Readings = readings
	if index == 0 {
		s.metadata()
	}
}

// metadata are the facts that TAU tells in the first step.
func (s *Stream) metadata() {
	add := func(thread int, key, value string) {
		s.step.Metadata = append(s.step.Metadata, trace.Metadata{
			Program: s.Program(), Rank: s.Rank(), Thread: trace.Thread(thread), Key: key, Value: value,
		})
	}
	add(0, hostnameKey, s.Host())
	add(0, executableKey, s.e.p.Name)
	for i := range s.e.p.streams {
		gpu, t := s.e.p.gpu(i), s.e.p.streamThread(i)
		add(t, deviceKey, gpu.Device)
		add(t, contextKey, gpu.Context)
		add(t, streamKey, gpu.Stream)
	}
}
