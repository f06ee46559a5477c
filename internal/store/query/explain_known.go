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
)

// known asks for all that is known of the executions, and of all calls.
func (a *Asker) known(ctx context.Context, s *sampling) error {
	if err := a.whereAndHowLong(ctx, s); err != nil {
		return err
	}
	if err := a.bulk().each(ctx, text("explain_last_step"), func(row []any) { s.lastStep = whole[int64](row[0]) }); err != nil {
		return err
	}
	list := slices.Concat(s.closely(s.typical), s.closely(s.others), s.closely(s.selected))
	if err := a.lookInto(ctx, s, list, contrast.FieldBytes, contrast.FieldCounter, contrast.FieldState); err != nil {
		return err
	}
	return errors.Join(a.statesBeside(ctx, s), a.pathsOf(ctx, s), a.placesOf(ctx, s))
}

// lookInto reads what fields of some kinds need of executions: their messages, counters
// or states of nodes, each once. Each kind fills in fields of its own.
func (a *Asker) lookInto(ctx context.Context, s *sampling, list []*sampled, kinds ...contrast.FieldKind) error {
	if s.read == nil {
		s.read = make(map[contrast.FieldKind]map[string]bool)
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, kind := range kinds {
		if kind == contrast.FieldLink || kind == contrast.FieldPartner {
			kind = contrast.FieldBytes // they are of the same message
		}
		if s.read[kind] == nil {
			s.read[kind] = make(map[string]bool)
		}
		byKey := make(map[string]*sampled)
		for _, x := range list {
			if key := x.key(); !s.read[kind][key] {
				s.read[kind][key], byKey[key] = true, x
			}
		}
		unknown := s.details.fill(byKey, kind)
		where, args := named(unknown)
		switch kind {
		case contrast.FieldBytes:
			g.Go(func() error { return a.messagesOf(ctx, unknown, where, args) })
		case contrast.FieldCounter:
			g.Go(func() error { return a.countersOf(ctx, unknown, where, args) })
		case contrast.FieldState:
			g.Go(func() error { return a.statesOf(ctx, unknown, where, args) })
		}
	}
	return g.Wait()
}

// whereAndHowLong asks for the ranks and the length of the run, if the caller did not know.
func (a *Asker) whereAndHowLong(ctx context.Context, s *sampling) (err error) {
	if s.q.Ranks == nil {
		if s.q.Ranks, err = a.Ranks(ctx, maxRanks); err != nil {
			return err
		}
	}
	s.hosts = make(map[Process]string)
	for _, r := range s.q.Ranks {
		s.hosts[r.Process] = r.Host
	}
	if s.q.Extent <= 0 {
		kept, err := a.Kept(ctx, 0)
		if err != nil {
			return err
		}
		s.q.Extent = max(1, trace.Micros(kept.Longest), kept.End-a.Begin)
	}
	return nil
}

// maxRanks bounds the ranks that are asked for.
const maxRanks = 1_000_000

// named is a condition on executions by the numbers of their ids: a database looks into few
// others then. Those whose ids are of another form are left out: of them nothing more is
// known. It is empty if there are none.
func named(byKey map[string]*sampled) (where string, args []any) {
	var numbers [3]map[int64]bool
	for i := range numbers {
		numbers[i] = make(map[int64]bool)
	}
	for _, x := range byKey {
		if n, ok := eventNumbers(x.event); ok {
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

// eachOf calls f for each row of a statement about executions.
func (a *Asker) eachOf(ctx context.Context, name, where string, args []any, f func(row []any)) error {
	if where == "" {
		return nil
	}
	return a.each(ctx, strings.ReplaceAll(text(name), "/*events*/", where), f, args...)
}

func rowKey(row []any) string {
	return eventName(whole[int64](row[0]), word[string](row[1]))
}

// messagesOf finds the message that tells most of each execution.
func (a *Asker) messagesOf(ctx context.Context, byKey map[string]*sampled, where string, args []any) error {
	rank := make(map[string][4]int64) // how good the message is: own, received, its time or nearness; and whose it is
	return a.eachOf(ctx, "explain_messages", where, args, func(row []any) {
		key := rowKey(row)
		x := byKey[key]
		if x == nil {
			return
		}
		sent, at, own := row[2] == true, whole[trace.Micros](row[6]), row[7] == true
		m := &message{own: own, partner: whole[int64](row[3])}
		m.bytes, _ = row[5].(float64)
		good := [4]int64{0, 0, -int64(max(x.entry-at, at-x.exit, 0))}
		if own {
			good = [4]int64{1, 1, int64(at)}
		}
		if sent {
			m.partner = whole[int64](row[4])
			good[1] = 0
		}
		good[3] = m.partner
		old, ok := rank[key]
		if !ok || slices.Compare(good[:], old[:]) > 0 {
			rank[key] = good
			x.message = m
		}
	})
}

func (a *Asker) countersOf(ctx context.Context, byKey map[string]*sampled, where string, args []any) error {
	return a.eachOf(ctx, "explain_counters", where, args, func(row []any) {
		x := byKey[rowKey(row)]
		if x == nil {
			return
		}
		if x.counters == nil {
			x.counters = make(map[string]float64)
		}
		x.counters[word[string](row[2])], _ = row[3].(float64)
	})
}

// statesOf reads the states of nodes.
func (a *Asker) statesOf(ctx context.Context, byKey map[string]*sampled, where string, args []any) error {
	return a.eachOf(ctx, "explain_states", where, args, func(row []any) {
		x := byKey[eventName(whole[int64](row[0]), word[string](row[2]))]
		if x == nil {
			return
		}
		if x.states == nil {
			x.states = make(map[string]float64)
		}
		x.stateRead = row[3]
		x.states[word[string](row[4])], _ = row[5].(float64)
	})
}

// statesBeside reads, if there are any states of nodes, also those of executions of
// other functions, as a node has its state whatever runs; and what all readings were.
func (a *Asker) statesBeside(ctx context.Context, s *sampling) (err error) {
	lists := [][]*sampled{s.selected, s.typical, s.others}
	if !slices.ContainsFunc(slices.Concat(lists...), func(x *sampled) bool { return x.states != nil }) {
		return nil
	}
	c := &conditions{args: []any{int32(a.Run.ID), nil, int64(maxStates)}}
	s.q.leaveOut(c, a.Begin)
	if first := s.details.first(maxStates); len(s.q.Without) == 0 && first != nil {
		s.anywhere = first
	} else if s.anywhere, err = a.executions(ctx, c.sql.String(), c.args); err != nil {
		return err
	}
	if err := a.lookInto(ctx, s, s.anywhere, contrast.FieldState); err != nil {
		return err
	}
	s.anywhere = slices.DeleteFunc(s.anywhere, func(x *sampled) bool { return s.q.without(x, s) })
	for _, list := range append(lists, s.anywhere) {
		for _, x := range list {
			if x.states != nil {
				x.stateUnit = s.unit(x, x.stateRead)
			}
		}
	}
	s.readings = make(map[string]contrast.Moments)
	return a.each(ctx, text("explain_readings"), func(row []any) {
		if whole[trace.Program](row[0]) != s.selected[0].program {
			return
		}
		var m contrast.Moments
		m.Mean, _ = row[2].(float64)
		m.Deviation, _ = row[3].(float64)
		m.Count, _ = row[4].(float64)
		s.readings[word[string](row[1])] = m
	})
}

// pathsOf reads how often functions of the selection were called in which way.
func (a *Asker) pathsOf(ctx context.Context, s *sampling) error {
	s.pathNames, s.pathCalls = make(map[[2]int64]string), make(map[[2]int64]float64)
	a = a.bulk()
	err := a.each(ctx, text("explain_paths"), func(row []any) {
		key := [2]int64{whole[int64](row[0]), whole[int64](row[1])}
		s.pathNames[key] = word[string](row[3])
		s.pathCalls[key] = float64(whole[int64](row[4]))
	}, s.functionKeys())
	if err != nil {
		return err
	}
	var missing []string
	for _, list := range [][]*sampled{s.selected, s.typical, s.others} {
		for _, x := range list {
			key := [2]int64{int64(x.program), x.path}
			if _, ok := s.pathNames[key]; !ok {
				s.pathNames[key] = ""
				missing = append(missing, fmt.Sprintf("%d/%d", x.program, x.path))
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return a.each(ctx, text("explain_path_names"), func(row []any) {
		s.pathNames[[2]int64{whole[int64](row[0]), whole[int64](row[1])}] = word[string](row[2])
	}, strings.Join(missing, ","))
}

// devicesOf reads which devices and streams there are.
func (a *Asker) devicesOf(ctx context.Context, s *sampling) error {
	s.devices = make(map[device][2]string)
	return a.bulk().each(ctx, text("explain_devices"), func(row []any) {
		key := device{whole[trace.Program](row[0]), whole[trace.Rank](row[1]), whole[int64](row[2])}
		d := s.devices[key]
		if row[3] == "CUDA Stream" {
			d[1] = word[string](row[4])
		} else {
			d[0] = word[string](row[4])
		}
		s.devices[key] = d
	})
}

// placesOf reads which devices and threads there are.
func (a *Asker) placesOf(ctx context.Context, s *sampling) error {
	if err := a.devicesOf(ctx, s); err != nil {
		return err
	}
	return a.bulk().each(ctx, text("explain_threads"), func(row []any) {
		if whole[trace.Program](row[0]) == s.selected[0].program {
			s.threads = append(s.threads, whole[int64](row[1]))
		}
	})
}
