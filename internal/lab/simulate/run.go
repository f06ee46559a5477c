// Package simulate runs scenarios: simulated parallel programs whose ranks compute, send
// messages, wait for each other, use threads and GPUs, and have planted troubles. It
// produces the steps that TAU would trace, and the truth about them: the calls that a
// trouble affected, and those that waited because of it. It finds the latter with a
// second clock for each rank, which runs without troubles.
//
// The same scenario gives the same steps. Memory holds the waits of one step, and the
// events of one step of the ranks whose Streams have not been released.
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
)

// Run is a running scenario.
type Run struct {
	scenario *scenario.Scenario
	engines  []*engine
	streams  []*Stream
	mu       sync.RWMutex // read-locked to emit steps, locked to compute the next
	step     int          // the current one; -1 before the first
}

// New returns a Run of a valid scenario.
func New(s *scenario.Scenario) *Run { return newRun(s, -1) }

// newRun returns a Run in which a trouble has no effect, unless the index is -1. All random
// numbers of the others are the same.
func newRun(s *scenario.Scenario, silent int) *Run {
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
				troubles[j].silent = j == silent
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
func (p *program) names() *trace.Names {
	gpus := make(map[trace.Rank]map[trace.Thread]trace.GPU)
	for r := range p.Ranks {
		for s := range p.streams {
			if s == 0 {
				gpus[trace.Rank(r)] = make(map[trace.Thread]trace.GPU)
			}
			gpus[trace.Rank(r)][trace.Thread(p.streamThread(s))] = p.gpu(s)
		}
	}
	return new(trace.NewNames(p.Name, p.funcs, p.counters, gpus))
}

func (p *program) gpu(stream int) trace.GPU {
	return trace.GPU{Device: "0", Context: "1", Stream: strconv.Itoa(stream)}
}

// Streams returns the ranks of all programs, in order.
func (r *Run) Streams() []*Stream { return r.streams }

// Troubles returns the planted troubles. To measure the time that they cost it runs the
// scenario with all, and without each, unless that is very long.
func (r *Run) Troubles() []*truth.Trouble {
	var all []*truth.Trouble
	if len(r.scenario.Troubles) == 0 {
		return nil
	}
	short := r.scenario.Ranks()*r.scenario.Steps <= maxRehearsed
	rehearsal, end := New(r.scenario), trace.Ticks(0)
	if short {
		end = rehearsal.rehearse() // the engines count the lost time
	}
	for i := range r.scenario.Troubles {
		for _, e := range rehearsal.engines {
			if t := e.p.troubles[i]; t != nil {
				line := t.truth(e.p)
				if short {
					line.Lost = trace.Ticks(e.lost[i])
					line.Saved = new(end - newRun(r.scenario, i).rehearse())
				}
				all = append(all, line)
			}
		}
	}
	return all
}

// rehearse runs all steps without events, and returns the end of the run.
func (r *Run) rehearse() (end trace.Ticks) {
	for r.Advance() {
		continue
	}
	for _, s := range r.streams {
		end = max(end, trace.Ticks(s.ends()))
	}
	return end
}

// Advance computes the next step of all ranks, which Streams then return. It returns
// false after the last.
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
	names *trace.Names
	next  int // step that Next returns
	end   int64
	w     *walker
	out   output
	vars  []int64
	step  trace.Step
}

// Program returns the index of the program.
func (s *Stream) Program() trace.Program { return trace.Program(s.e.p.index) }

// ProgramName returns the name of the program.
func (s *Stream) ProgramName() string { return s.e.p.Name }

// Ranks returns the number of ranks of the program.
func (s *Stream) Ranks() int { return s.e.p.Ranks }

// Rank returns the rank.
func (s *Stream) Rank() trace.Rank { return trace.Rank(s.rank) }

// Host returns the host of the rank.
func (s *Stream) Host() string { return s.e.p.Host(s.rank) }

// Names returns the names of functions and counters. They are complete from the start,
// and the same for all ranks of a program.
func (s *Stream) Names() *trace.Names { return s.names }

// errSkipped is the error of a stream that missed a step.
var errSkipped = errors.New("the step was skipped (read the streams of a simulation step by step)")

// Next returns the next step, valid until the next call, or io.EOF. Streams may be read
// concurrently, but all must read a step before any reads the next.
func (s *Stream) Next(ctx context.Context) (*trace.Step, error) {
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
		return nil, fmt.Errorf("%s, rank %d, step %d: %w", s.e.p.Name, s.rank, s.next, errSkipped)
	}
	s.next++
	return s.emit(), nil
}

// Truth returns the calls of the last step that troubles affected. It is valid as long
// as the step.
func (s *Stream) Truth() []truth.Call { return s.out.calls }

// End returns the time at which the last step of Next ended on the rank.
func (s *Stream) End() trace.Ticks { return trace.Ticks(s.end) }

// ends returns the time at which the last computed step ends on the rank.
func (s *Stream) ends() int64 { return s.e.ranks[s.rank].clock }

// Release frees the memory of the last step, which becomes invalid.
func (s *Stream) Release() {
	s.w, s.vars, s.out, s.step = nil, nil, output{}, trace.Step{}
}

// emit runs the step of the rank again, with events.
func (s *Stream) emit() *trace.Step {
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

// fill makes a step of the output.
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

// metadata adds the metadata that TAU writes in the first step.
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
