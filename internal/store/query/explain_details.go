package query

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// readFields reads the values of all fields for the samples and for all calls.
func (a *Queries) readFields(ctx context.Context, s *sampling) error {
	if err := a.readRanksAndExtent(ctx, s.q); err != nil {
		return err
	}
	if err := a.readStepsAndThreads(ctx, s); err != nil {
		return err
	}
	list := slices.Concat(s.toExamine(s.typical), s.toExamine(s.others), s.toExamine(s.selected))
	if err := a.examine(ctx, s, list, contrast.FieldBytes, contrast.FieldCounter, contrast.FieldState); err != nil {
		return err
	}
	return errors.Join(a.readOtherStates(ctx, s), a.pathsOf(ctx, s), a.devicesOf(ctx, s))
}

// examine reads the messages, counters or node states of executions that fields of some kinds
// need, unless they were read before. Kinds are read concurrently: each sets different fields.
func (a *Queries) examine(ctx context.Context, s *sampling, list []*sampled, kinds ...contrast.FieldKind) error {
	if s.read == nil {
		s.read = make(map[contrast.FieldKind]map[trace.EventKey]bool)
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, kind := range kinds {
		if kind == contrast.FieldLink || kind == contrast.FieldPartner {
			kind = contrast.FieldBytes // read with the same message
		}
		if s.read[kind] == nil {
			s.read[kind] = make(map[trace.EventKey]bool)
		}
		byKey := make(map[trace.EventKey]*sampled)
		for _, x := range list {
			if key := x.key(); !s.read[kind][key] {
				s.read[kind][key], byKey[key] = true, x
			}
		}
		missing := s.details.fill(byKey, kind)
		where, args := eventCondition(missing)
		switch kind {
		case contrast.FieldBytes:
			g.Go(func() error { return a.messagesOf(ctx, missing, where, args) })
		case contrast.FieldCounter:
			g.Go(func() error { return a.countersOf(ctx, missing, where, args) })
		case contrast.FieldState:
			g.Go(func() error { return a.statesOf(ctx, missing, where, args) })
		}
	}
	return g.Wait()
}

// readRanksAndExtent reads the ranks and the duration of the run unless the selection contains them.
func (a *Queries) readRanksAndExtent(ctx context.Context, q *Selection) (err error) {
	if q.Ranks == nil {
		if q.Ranks, err = a.Ranks(ctx, maxRanks); err != nil {
			return err
		}
	}
	if q.Extent <= 0 {
		counts, err := a.Counts(ctx, 0)
		if err != nil {
			return err
		}
		q.Extent = max(1, trace.Ticks(counts.Longest), counts.End-a.Begin)
	}
	return nil
}

// maxRanks bounds the ranks of an explanation.
const maxRanks = 1_000_000

// eventCondition returns a condition that includes the executions and few others, by the numbers
// in their ids. It skips ids of another form, which have no details in the store, and is empty if
// none is left.
func eventCondition(byKey map[trace.EventKey]*sampled) (where string, args []any) {
	var numbers [3]map[int64]bool
	for i := range numbers {
		numbers[i] = make(map[int64]bool)
	}
	for _, x := range byKey {
		if n, ok := trace.EventNumbers(x.Event); ok {
			for i := range n {
				numbers[i][n[i]] = true
			}
		}
	}
	if len(numbers[0]) == 0 {
		return "", nil
	}
	var parts []string
	for i, column := range []string{"rid", "ev_step", "ev_row"} {
		var marks []string
		for _, n := range slices.Sorted(maps.Keys(numbers[i])) {
			args = append(args, n)
			marks = append(marks, fmt.Sprintf("$%d", len(args)+1))
		}
		parts = append(parts, column+" IN ("+strings.Join(marks, ", ")+")")
	}
	return strings.Join(parts, " AND "), args
}

// readDetail calls f for each row of the named statement for the executions of a condition.
func readDetail[T any](ctx context.Context, a *Queries, name, where string, args []any, f func(row *T)) error {
	if where == "" {
		return nil
	}
	return executions.ReadEach(ctx, a, strings.ReplaceAll(text(name), "/*events*/", where), f, args...)
}

// messagesOf reads the most informative message of each execution, and the size of the most
// informative one whose size is known; that of another call does not count if the execution
// has messages.
func (a *Queries) messagesOf(ctx context.Context, byKey map[trace.EventKey]*sampled, where string, args []any) error {
	type row struct {
		trace.EventKey `sql:"pid,event_id"`
		Sent           bool        `sql:"sent"`
		Source         int64       `sql:"src"`
		Target         int64       `sql:"tar"`
		Bytes          *float64    `sql:"bytes"`
		At             trace.Ticks `sql:"timestamp"`
		Own            bool        `sql:"own"`
	}
	type priority = [4]int64 // of a message: own, received, time or nearness, partner
	best, sized := make(map[trace.EventKey]priority), make(map[trace.EventKey]priority)
	err := readDetail(ctx, a, "explain_messages", where, args, func(r *row) {
		key := r.EventKey
		x := byKey[key]
		if x == nil {
			return
		}
		partner := r.Source
		p := priority{0, 0, -int64(max(x.Entry-r.At, r.At-x.Exit, 0))}
		if r.Own {
			p = priority{1, 1, int64(r.At)}
		}
		if r.Sent {
			partner = r.Target
			p[1] = 0
		}
		p[3] = partner
		if x.message == nil {
			x.message = new(message)
		}
		if old, ok := best[key]; !ok || slices.Compare(p[:], old[:]) > 0 {
			best[key] = p
			x.message.partner, x.message.own = partner, r.Own
		}
		if old, ok := sized[key]; r.Bytes != nil && (!ok || slices.Compare(p[:], old[:]) > 0) {
			sized[key] = p
			x.message.bytes = r.Bytes
		}
	})
	for key, p := range best {
		if sized[key][0] != p[0] {
			byKey[key].message.bytes = nil
		}
	}
	return err
}

func (a *Queries) countersOf(ctx context.Context, byKey map[trace.EventKey]*sampled, where string, args []any) error {
	type row struct {
		trace.EventKey `sql:"pid,event_id"`
		Name           string  `sql:"counter_name"`
		Value          float64 `sql:"counter_value"`
	}
	return readDetail(ctx, a, "explain_counters", where, args, func(r *row) {
		x := byKey[r.EventKey]
		if x == nil {
			return
		}
		if x.counters == nil {
			x.counters = make(map[string]float64)
		}
		x.counters[r.Name] = r.Value
	})
}

func (a *Queries) statesOf(ctx context.Context, byKey map[trace.EventKey]*sampled, where string, args []any) error {
	type row struct {
		trace.EventKey `sql:"pid,event_id"`
		At             any     `sql:"timestamp"`
		Name           string  `sql:"field"`
		Value          float64 `sql:"value"`
	}
	return readDetail(ctx, a, "explain_states", where, args, func(r *row) {
		x := byKey[r.EventKey]
		if x == nil {
			return
		}
		if x.states == nil {
			x.states = make(map[string]float64)
		}
		x.stateRead = r.At
		x.states[r.Name] = r.Value
	})
}

// readOtherStates adds, if the samples have node states, those of executions of any function to
// the baseline, because node states do not depend on the function, and the moments of all readings.
func (a *Queries) readOtherStates(ctx context.Context, s *sampling) (err error) {
	lists := [][]*sampled{s.selected, s.typical, s.others}
	if !slices.ContainsFunc(slices.Concat(lists...), func(x *sampled) bool { return x.states != nil }) {
		return nil
	}
	if first := s.details.first(maxStates); len(s.q.Without) == 0 && first != nil {
		s.anywhere = first
	} else {
		where := append(a.withoutConditions(s.q), executions.AnyOf(executions.Typical, executions.Flagged))
		if s.anywhere, err = a.sample(ctx, executions.AllOf(where...), maxStates); err != nil {
			return err
		}
	}
	if err := a.examine(ctx, s, s.anywhere, contrast.FieldState); err != nil {
		return err
	}
	s.anywhere = slices.DeleteFunc(s.anywhere, func(x *sampled) bool { return s.q.excludes(x, s) })
	for _, list := range append(lists, s.anywhere) {
		for _, x := range list {
			if x.states != nil {
				x.stateUnit = s.unit(x, x.stateRead)
			}
		}
	}
	s.readings = make(map[string]contrast.Moments)
	type row struct {
		Program   trace.Program `sql:"app"`
		Name      string        `sql:"counter"`
		Mean      float64       `sql:"mean"`
		Deviation float64       `sql:"stddev"`
		Count     float64       `sql:"count"`
	}
	return executions.ReadEach(ctx, a, text("explain_readings"), func(r *row) {
		if r.Program == s.selected[0].Program {
			s.readings[r.Name] = contrast.Moments{Mean: r.Mean, Deviation: r.Deviation, Count: r.Count}
		}
	})
}

// pathsOf reads the names and the numbers of calls of the call paths of the selected functions.
func (a *Queries) pathsOf(ctx context.Context, s *sampling) error {
	s.pathNames, s.pathCalls = make(map[executions.PathID]string), make(map[executions.PathID]float64)
	ids := s.functionIDs()
	if tables := a.Tables(); tables != nil {
		for id, p := range tables.Paths {
			s.pathNames[id] = p.Name
			if p.Calls > 0 && slices.Contains(ids, executions.FunctionID{Program: id.Program, Number: p.Number}) {
				s.pathCalls[id] = p.Calls
			}
		}
		return nil
	}
	type row struct {
		executions.PathID
		Name  string  `sql:"call_path"`
		Calls float64 `sql:"calls"`
	}
	err := executions.ReadEach(ctx, a, text("explain_paths"), func(r *row) {
		s.pathNames[r.PathID], s.pathCalls[r.PathID] = r.Name, r.Calls
	}, executions.IDList(ids))
	if err != nil {
		return err
	}
	var missing []string
	for _, list := range [][]*sampled{s.selected, s.typical, s.others} {
		for _, x := range list {
			key := x.PathID()
			if _, ok := s.pathNames[key]; !ok {
				s.pathNames[key] = ""
				missing = append(missing, fmt.Sprintf("%d/%d", x.Program, x.Path))
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	type pathName struct {
		executions.PathID
		Name string `sql:"call_path"`
	}
	return executions.ReadEach(ctx, a, text("explain_path_names"), func(r *pathName) { s.pathNames[r.PathID] = r.Name },
		strings.Join(missing, ","))
}

// devicesOf reads the device and the stream of each GPU thread.
func (a *Queries) devicesOf(ctx context.Context, s *sampling) (err error) {
	s.devices = make(map[device][2]string)
	var facts []executions.Fact
	if tables := a.Tables(); tables != nil {
		facts = tables.Facts
	} else if facts, err = executions.ReadAll[executions.Fact](ctx, a, text("explain_devices")); err != nil {
		return err
	}
	for _, f := range facts {
		key := device{f.Program, f.Rank, f.Thread}
		d := s.devices[key]
		switch f.Name {
		case "CUDA Stream":
			d[1] = f.Value
		case "CUDA Device":
			d[0] = f.Value
		default:
			continue
		}
		s.devices[key] = d
	}
	return nil
}

// readStepsAndThreads reads the last step of the run and the threads on CPUs.
func (a *Queries) readStepsAndThreads(ctx context.Context, s *sampling) error {
	program := s.selected[0].Program
	if tables := a.Tables(); tables != nil {
		s.lastStep, s.threads = tables.LastStep, tables.Threads[program]
		return nil
	}
	type row struct {
		Program trace.Program `sql:"pid"`
		Thread  int64         `sql:"tid"`
		OnGPU   bool          `sql:"is_gpu_event"`
		Step    int64         `sql:"step"`
	}
	return executions.ReadEach(ctx, a, text("explain_threads"), func(r *row) {
		s.lastStep = max(s.lastStep, r.Step)
		if r.Program == program && !r.OnGPU {
			s.threads = append(s.threads, r.Thread)
		}
	})
}
