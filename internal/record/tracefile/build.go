package tracefile

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// maxTime returns the last time whose nanoseconds fit into 63 bits, less a tick for the end of a message.
func maxTime(unit trace.Unit) trace.Ticks { return trace.Ticks(math.MaxInt64/unit.Nanos() - 1) }

// builder builds the model of a record.
type builder struct {
	model
	calls    calls
	r        *provenance.Record
	launch   *provenance.GPUParent // nil: none
	thread   *track                // of the record
	subject  *call                 // of the record
	ranks    map[trace.Rank]*track
	partners map[trace.Rank]*track // threads with the other ends of messages
	flows    uint64                // number of flows
}

func newModel(r *provenance.Record) (*model, error) {
	launch, why, err := launchOf(r.GPUParent)
	if err != nil {
		return nil, err
	}
	if err := checkTimes(r, launch); err != nil {
		return nil, err
	}
	b := builder{
		model: model{unit: r.Unit},
		r:     r, launch: launch, calls: calls{byID: map[string]*call{}},
		ranks: map[trace.Rank]*track{}, partners: map[trace.Rank]*track{},
	}
	b.thread = b.addTrack(threadTrack, b.process(r.RID), threadName(r))
	b.addCalls()
	b.describeSubject(why)
	launching := b.addLaunch()
	if err := b.addMessages(); err != nil {
		return nil, err
	}
	if launching != b.thread {
		b.draw(b.calls.of(launching))
	}
	b.draw(b.calls.of(b.thread))
	b.addCounters()
	b.finish()
	return &b.model, nil
}

// launchOf returns the launch of a kernel, or the reason why it is missing.
func launchOf(parent any) (launch *provenance.GPUParent, why string, err error) {
	switch p := parent.(type) {
	case nil:
		return nil, "", nil
	case string:
		return nil, p, nil
	case provenance.GPUParent:
		return &p, "", nil
	default:
		return nil, "", fmt.Errorf("gpu_parent is a %T", parent)
	}
}

func checkTimes(r *provenance.Record, launch *provenance.GPUParent) error {
	var err error
	check := func(what string, times ...trace.Ticks) {
		for _, t := range times {
			if err == nil && (t < 0 || t > maxTime(r.Unit)) {
				err = fmt.Errorf("%s: time %d is out of range", what, t)
			}
		}
	}
	check("execution", r.Entry, r.Exit)
	stack := r.CallStack
	if launch != nil {
		stack = slices.Concat(stack, launch.CallStack)
	}
	for _, e := range stack {
		check("call "+e.EventID, e.Entry, e.Exit)
	}
	for _, e := range r.EventWindow.Execs {
		check("call "+e.EventID, e.Entry, e.Exit)
	}
	for _, e := range r.EventWindow.Comms {
		check("message", e.Timestamp)
	}
	for _, e := range r.CounterEvents {
		check("counter "+e.Name, e.Timestamp)
	}
	if r.NodeState != nil {
		check("state of the node", r.NodeState.Timestamp)
	}
	return err
}

// process returns the process of a rank. Only the host of the record's own rank is known.
func (b *builder) process(rank trace.Rank) *track {
	if b.ranks[rank] == nil {
		name := fmt.Sprintf("program %d rank %d", b.r.PID, rank)
		if rank == b.r.RID && b.r.Hostname != "" && b.r.Hostname != "Unknown" {
			name += " (host " + b.r.Hostname + ")"
		}
		b.ranks[rank] = b.addTrack(processTrack, nil, name)
	}
	return b.ranks[rank]
}

// threadName returns the name of the record's thread.
func threadName(r *provenance.Record) string {
	l := r.GPULocation
	if l == nil {
		return fmt.Sprintf("thread %d", r.TID)
	}
	part := func(what string, n uint64) string {
		if n == math.MaxUint64 { // unknown
			return ""
		}
		return fmt.Sprintf(" %s %d", what, n)
	}
	return fmt.Sprintf("GPU%s%s%s (thread %d)", part("device", l.Device), part("context", l.Context), part("stream", l.Stream), r.TID)
}

// addCalls adds the calls of the stack that are not in the window, the calls of the window,
// and the record's own call if it is in neither.
func (b *builder) addCalls() {
	r := b.r
	for i := range r.EventWindow.Execs {
		e := &r.EventWindow.Execs[i]
		b.addCall(b.thread, &e.StackEntry, e.ParentID)
	}
	window := b.calls.list
	b.addStack(b.thread, r.CallStack)
	b.calls.list = slices.Concat(b.calls.list[len(window):], window)
	b.subject = b.calls.add(call{
		thread: b.thread, id: r.EventID, name: r.Func, fid: r.FID, entry: r.Entry, exit: r.Exit,
		anomaly: r.Status == provenance.Confirmed || r.Status == provenance.Promoted,
	})
}

// addStack adds the calls of a stack, beginning with the outermost.
func (b *builder) addStack(thread *track, stack []provenance.StackEntry) {
	parent := ""
	for _, e := range slices.Backward(stack) {
		b.addCall(thread, &e, parent)
		parent = e.EventID
	}
}

func (b *builder) addCall(thread *track, e *provenance.StackEntry, parent string) {
	b.calls.add(call{
		thread: thread, id: e.EventID, parent: parent, name: provenance.CallName(e.Func, e.EventID), fid: e.FID, anomaly: e.IsAnomaly,
		entry: e.Entry, exit: e.Exit,
	})
}

// micros returns a duration of a record in microseconds: a whole number if that is its unit.
func micros(r *provenance.Record, t trace.Ticks) any {
	if r.Unit.Canonical() == 0 {
		return int64(t)
	}
	return r.Unit.Micros(t)
}

// describeSubject adds the data of the record to its own call, and a mark at its beginning.
// noLaunch is the reason why a kernel has no launch.
func (b *builder) describeSubject(noLaunch string) {
	r, c := b.r, b.subject
	c.details = []arg{
		{"exclusive_us", micros(r, r.RuntimeExclusive)},
		{"score", r.OutlierScore},
		{"severity", r.Unit.MicrosOf(r.OutlierSeverity)},
		{"io_step", int64(r.IOStep)},
	}
	if r.LostTime != 0 {
		c.details = append(c.details, arg{"lost_time_us", micros(r, r.LostTime)})
	}
	for _, a := range []arg{{"kind", string(r.Kind)}, {"status", string(r.Status)}, {"why", r.Why}} {
		if a.value != "" {
			c.details = append(c.details, a)
		}
	}
	if noLaunch != "" {
		c.details = append(c.details, arg{"gpu_parent", noLaunch})
	}
	name, category := "normal execution", "execution"
	switch {
	case c.anomaly:
		name, category = "anomaly", "anomaly"
	case r.Status == provenance.Withdrawn:
		name = "withdrawn anomaly"
	}
	c.marks = append(c.marks, event{
		kind: instant, track: c.thread, time: c.entry, order: inRecord, name: name, categories: []string{category},
		args: append([]arg{{"event_id", c.id}}, c.details...),
	})
}

// addLaunch adds the stack of the launch, with an arrow from it to the kernel. It returns the
// thread of the launch, or of the record without a launch.
func (b *builder) addLaunch() *track {
	if b.launch == nil || len(b.launch.CallStack) == 0 {
		return b.thread
	}
	thread := b.thread
	if b.launch.TID != b.r.TID {
		thread = b.addTrack(threadTrack, b.process(b.r.RID), fmt.Sprintf("thread %d", b.launch.TID))
	}
	b.addStack(thread, b.launch.CallStack)
	if from := b.calls.byID[b.launch.EventID]; from != nil && from != b.subject {
		out, in := b.arrow("launch")
		from.flows = append(from.flows, out)
		b.subject.flows = append(b.subject.flows, in)
	}
	return thread
}

// arrow returns the two ends of a new arrow.
func (b *builder) arrow(name string) (out, in flow) {
	b.flows++
	return flow{b.flows, name, true}, flow{b.flows, name, false}
}

// addMessages adds messages to their calls, or to the thread if the call is unknown, with
// arrows from and to other ranks.
func (b *builder) addMessages() error {
	comms := slices.Clone(b.r.EventWindow.Comms)
	slices.SortStableFunc(comms, func(x, y provenance.CommEntry) int { return cmp.Compare(x.Timestamp, y.Timestamp) })
	for i := range comms {
		e := &comms[i]
		var args []arg
		if e.Bytes != nil {
			args = append(args, arg{"bytes", *e.Bytes})
		}
		args = append(args, arg{"tag", int64(e.Tag)}, arg{"src", int64(e.Source)}, arg{"tar", int64(e.Target)}, arg{"execdata_key", e.Exec})
		here := event{kind: instant, track: b.thread, time: e.Timestamp, order: inRecord, categories: []string{"message"}, args: args}
		there := event{
			kind: begin, time: e.Timestamp, span: 1, categories: here.categories,
			args: append(slices.Clip(args), arg{"time", "unknown"}),
		}
		out, in := b.arrow("message")
		switch e.Type {
		case "SEND":
			here.name, here.flows = fmt.Sprintf("send to rank %d", e.Target), []flow{out}
			there.track, there.order = b.partner(e.Target), partnerReceives
			there.name, there.flows = fmt.Sprintf("receive from rank %d", b.r.RID), []flow{in}
		case "RECV":
			here.name, here.flows = fmt.Sprintf("receive from rank %d", e.Source), []flow{in}
			there.track, there.order = b.partner(e.Source), partnerSends
			there.name, there.flows = fmt.Sprintf("send to rank %d", b.r.RID), []flow{out}
		default:
			return fmt.Errorf("message of type %q", e.Type)
		}
		b.add(there)
		b.add(event{kind: end, track: there.track, time: there.time + there.span, order: partnerEnds})
		if c := b.calls.byID[e.Exec]; c != nil {
			c.marks = append(c.marks, here)
		} else {
			b.add(here)
		}
	}
	return nil
}

// partner returns the thread of the other ends of messages with a rank.
func (b *builder) partner(rank trace.Rank) *track {
	if b.partners[rank] == nil {
		b.partners[rank] = b.addTrack(threadTrack, b.process(rank), fmt.Sprintf("messages with rank %d", b.r.RID))
	}
	return b.partners[rank]
}

// addCounters adds the counters of the execution to its thread, and the state of the node to
// its process.
func (b *builder) addCounters() {
	byName := map[string]*track{}
	for i := range b.r.CounterEvents {
		e := &b.r.CounterEvents[i]
		if byName[e.Name] == nil {
			byName[e.Name] = b.addTrack(counterTrack, b.thread, e.Name)
		}
		b.count(byName[e.Name], e.Timestamp, e.Value)
	}
	state := b.r.NodeState
	if state == nil {
		return
	}
	group := b.addTrack(groupTrack, b.process(b.r.RID), "state of the node")
	clear(byName)
	for _, e := range state.Data {
		if byName[e.Field] == nil {
			byName[e.Field] = b.addTrack(counterTrack, group, e.Field)
		}
		b.count(byName[e.Field], state.Timestamp, e.Value)
	}
}

func (b *builder) count(t *track, time trace.Ticks, value uint64) {
	b.add(event{kind: count, track: t, time: time, order: inRecord, value: value})
}
