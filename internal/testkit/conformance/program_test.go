package conformance

import (
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

// event is the beginning or the end of a call, or a message, of a thread.
type event struct {
	kind    trace.Kind
	at      int64  // nanoseconds
	name    string // of a call
	partner trace.Rank
	tag     int32
	bytes   uint64
}

// lane is a thread of a rank.
type lane struct {
	rank   trace.Rank
	thread trace.Thread
}

// program is what a parallel program did.
type program struct {
	hosts map[trace.Rank]string
	lanes map[lane][]event
}

// sorted returns the lanes in order.
func (p *program) sorted() []lane {
	return slices.SortedFunc(maps.Keys(p.lanes), func(a, b lane) int {
		if a.rank != b.rank {
			return int(a.rank - b.rank)
		}
		return int(a.thread) - int(b.thread)
	})
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

// read reads the traces in a directory as `chimbuko analyze` does.
func read(t *testing.T, dir string) *program {
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
		for {
			step, err := steps.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			p.add(step, steps.Names(), traces.Unit)
		}
		for _, note := range count.Notes() {
			t.Errorf("%s: %+v", in.Path, note)
		}
	}
	return p
}

// open opens a trace.
func open(in analyzer.Input, count *tally.Tally) (analyzer.Steps, error) {
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
				continue
			}
			p.lanes[l] = append(p.lanes[l], x)
		}
	}
}
