package conformance

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/inputs"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/inspect"
	"github.com/chimbuko/chimbuko/internal/source/profile"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// event is the beginning or the end of a call, a message, or the number of a launch, of a thread.
type event struct {
	kind    trace.Kind
	at      int64  // nanoseconds
	name    string // of a call
	partner trace.Rank
	tag     int32
	bytes   uint64 // of a message, or the number of a launch
}

// lane is a thread of a rank.
type lane struct {
	rank   trace.Rank
	thread trace.Thread
}

func compareLanes(a, b lane) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.thread, b.thread))
}

// program is what a parallel program did.
type program struct {
	hosts map[trace.Rank]string
	lanes map[lane][]event
}

// sorted returns the lanes in order.
func (p *program) sorted() []lane {
	return slices.SortedFunc(maps.Keys(p.lanes), compareLanes)
}

// ranks returns the ranks in order.
func (p *program) ranks() []trace.Rank { return slices.Sorted(maps.Keys(p.hosts)) }

// only returns the program without other kinds of events.
func (p *program) only(kinds ...trace.Kind) *program {
	q := &program{hosts: p.hosts, lanes: make(map[lane][]event)}
	for l, events := range p.lanes {
		for _, e := range events {
			if slices.Contains(kinds, e.kind) {
				q.lanes[l] = append(q.lanes[l], e)
			}
		}
	}
	return q
}

// numberedAs returns the program with the threads numbered as in another: those with the same events are the same.
func (p *program) numberedAs(other *program) *program {
	q := &program{hosts: p.hosts, lanes: make(map[lane][]event)}
	for l, events := range p.lanes {
		to := l
		for o, theirs := range other.lanes {
			if o.rank == l.rank && slices.Equal(theirs, events) {
				to = o
			}
		}
		q.lanes[to] = events
	}
	return q
}

// sinceBoot returns the program with times since the first event of each host.
func (p *program) sinceBoot() *program {
	first := make(map[string]int64)
	for l, events := range p.lanes {
		if at, ok := first[p.hosts[l.rank]]; !ok || events[0].at < at {
			first[p.hosts[l.rank]] = events[0].at
		}
	}
	q := &program{hosts: p.hosts, lanes: make(map[lane][]event)}
	for l, events := range p.lanes {
		events = slices.Clone(events)
		for i := range events {
			events[i].at -= first[p.hosts[l.rank]]
		}
		q.lanes[l] = events
	}
	return q
}

// read reads the traces in a directory as `chimbuko analyze` does. They are of a format, or nil for TAU's.
func read(t *testing.T, dir string, f *format) *program {
	t.Helper()
	paths, err := inspect.Expand(dir)
	if err != nil {
		t.Fatal(err)
	}
	traces, err := inputs.Open(t.Context(), paths, inputs.Config{RankPattern: profile.DefaultRankPattern.String(), Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer traces.Close()
	p := &program{hosts: make(map[trace.Rank]string), lanes: make(map[lane][]event)}
	for _, in := range traces.Inputs {
		var count tally.Tally
		steps, err := open(in, &count)
		if err != nil {
			t.Fatal(err)
		}
		for last := -1; ; {
			step, err := steps.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			check(t, step, last)
			last = step.Index
			p.add(step, steps.Names(), traces.Unit)
		}
		for _, note := range count.Notes() {
			if f == nil || !slices.ContainsFunc(f.notes, func(k tally.Kind) bool { return k.Name() == note.Name }) {
				t.Errorf("%s: %+v", in.Path, note)
			}
		}
	}
	return p
}

// check checks what trace.Steps promises of a step, given the number of the one before.
func check(t *testing.T, step *trace.Step, last int) {
	t.Helper()
	if step.Index <= last {
		t.Errorf("step %d after step %d", step.Index, last)
	}
	counts := make(map[trace.Kind]int)
	for i, b := range step.Batches {
		if i > 0 && compareLanes(lane{step.Batches[i-1].Rank, step.Batches[i-1].Thread}, lane{b.Rank, b.Thread}) >= 0 {
			t.Errorf("step %d: thread %d of rank %d is not in order", step.Index, b.Thread, b.Rank)
		}
		for j, e := range b.Events {
			counts[e.Kind]++
			if j > 0 && e.Time < b.Events[j-1].Time {
				t.Errorf("step %d, thread %d of rank %d: event %d is before the last", step.Index, b.Thread, b.Rank, j)
			}
		}
	}
	if step.Funcs != counts[trace.Enter]+counts[trace.Exit] || step.Comms != counts[trace.Send]+counts[trace.Recv] ||
		step.Counters != counts[trace.Count] {
		t.Errorf("step %d: %d, %d and %d events, but it has %v", step.Index, step.Funcs, step.Comms, step.Counters, counts)
	}
}

// open opens a trace.
func open(in analyzer.Input, count *tally.Tally) (trace.Steps, error) {
	if in.Steps != nil {
		return in.Steps(count)
	}
	opt := bp.Default()
	opt.Tally = count
	r, err := bp.Open(in.Path, opt)
	if err != nil {
		return nil, err
	}
	return dataset{tau.NewReader(r, tau.Config{}, count)}, nil
}

// dataset is a trace that TAU wrote.
type dataset struct{ *tau.Reader }

func (d dataset) Names() *trace.Names { return &d.Reader.Names }

// launchCounter is the counter whose value a kernel shares with the call that launched it.
const launchCounter = "Correlation ID"

// add adds the events of a step.
func (p *program) add(step *trace.Step, names *trace.Names, unit trace.Unit) {
	for _, m := range step.Metadata {
		if m.Key == "Hostname" {
			p.hosts[m.Rank] = m.Value
		}
	}
	for _, b := range step.Batches {
		if _, ok := p.hosts[b.Rank]; !ok {
			p.hosts[b.Rank] = ""
		}
		l := lane{b.Rank, b.Thread}
		for i := range b.Events {
			e := &b.Events[i]
			x := event{kind: e.Kind, at: int64(e.Time) * unit.Nanos()}
			switch e.Kind {
			case trace.Enter, trace.Exit:
				x.name, _ = names.Func(b.Rank, e.Func())
			case trace.Send, trace.Recv:
				x.partner, x.tag, x.bytes = e.Partner(), e.Tag, e.Value
			default:
				name, _ := names.Counter(b.Rank, e.Counter())
				if name != launchCounter {
					continue
				}
				x.bytes = e.Value
			}
			p.lanes[l] = append(p.lanes[l], x)
		}
	}
}
