package question

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/contrast"
	"github.com/chimbuko/chimbuko/internal/trace"
)

// known asks for all that is known of the executions, and of all calls.
func (a *Asker) known(ctx context.Context, s *sampling) (err error) {
	if s.q.Ranks == nil {
		if s.q.Ranks, err = a.Ranks(ctx, maxRanks); err != nil {
			return err
		}
	}
	if s.q.Extent <= 0 {
		kept, err := a.Kept(ctx, 0)
		if err != nil {
			return err
		}
		s.q.Extent = max(1, trace.Micros(kept.Longest), kept.End-a.Begin)
	}
	if x := a.InMemory; x != nil {
		s.lastStep, s.threads = x.lastStep, x.onHosts[s.selected[0].program]
	} else if err := a.each(ctx, text("explain_last_step"), func(row []any) { s.lastStep = whole[int64](row[0]) }); err != nil {
		return err
	}
	byKey := make(map[string]*sampled)
	for _, list := range [][]*sampled{s.typical, s.others, s.selected} {
		for _, x := range closely(list) {
			byKey[x.key()] = x
		}
	}
	return errors.Join(a.messagesOf(ctx, byKey), a.countersOf(ctx, byKey), a.statesOf(ctx, s, byKey), a.pathsOf(ctx, s), a.placesOf(ctx, s))
}

// maxRanks bounds the ranks that are asked for.
const maxRanks = 1_000_000

// eachOf calls f for each row of a statement about executions. They are named one by one:
// a database looks into no other then. Those whose ids are of another form are left out:
// of them nothing more is known.
func (a *Asker) eachOf(ctx context.Context, name string, byKey map[string]*sampled, f func(row []any)) error {
	ids := make(map[string]bool)
	for _, x := range byKey {
		if _, ok := eventNumbers(x.event); ok {
			ids[x.event] = true
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var marks []string
	var args []any
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		args = append(args, id)
		marks = append(marks, fmt.Sprintf("$%d", len(args)+1))
	}
	return a.each(ctx, strings.ReplaceAll(text(name), "/*events*/", strings.Join(marks, ", ")), f, args...)
}

func rowKey(row []any) string {
	return fmt.Sprintf("%d/%s", whole[int64](row[0]), word[string](row[1]))
}

// messagesOf finds the message that tells most of each execution.
func (a *Asker) messagesOf(ctx context.Context, byKey map[string]*sampled) error {
	rank := make(map[string][4]int64) // how good the message is: own, received, its time or nearness; and whose it is
	return a.eachOf(ctx, "explain_messages", byKey, func(row []any) {
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

func (a *Asker) countersOf(ctx context.Context, byKey map[string]*sampled) error {
	return a.eachOf(ctx, "explain_counters", byKey, func(row []any) {
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

// statesOf reads the states of nodes; if there are any, also those of executions of
// other functions, as a node has its state whatever runs.
func (a *Asker) statesOf(ctx context.Context, s *sampling, byKey map[string]*sampled) error {
	read := func(byKey map[string]*sampled) (n int, err error) {
		err = a.eachOf(ctx, "explain_states", byKey, func(row []any) {
			x := byKey[fmt.Sprintf("%d/%s", whole[int64](row[0]), word[string](row[2]))]
			if x == nil {
				return
			}
			if x.states == nil {
				x.states = make(map[string]float64)
			}
			n++
			x.stateUnit = s.unit(x, row[3])
			x.states[word[string](row[4])], _ = row[5].(float64)
		})
		return n, err
	}
	if n, err := read(byKey); err != nil || n == 0 {
		return err
	}
	var err error
	if a.InMemory != nil {
		s.anywhere = a.InMemory.anyOf(maxStates)
	} else if s.anywhere, err = a.executions(ctx, "", []any{int32(a.Run.ID), nil, int64(maxStates)}); err != nil {
		return err
	}
	others := make(map[string]*sampled)
	for _, x := range s.anywhere {
		if byKey[x.key()] == nil {
			others[x.key()] = x
		}
	}
	if _, err := read(others); err != nil {
		return err
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

// placesOf reads which devices and threads there are.
func (a *Asker) placesOf(ctx context.Context, s *sampling) error {
	s.devices = make(map[device][2]string)
	err := a.each(ctx, text("explain_devices"), func(row []any) {
		key := device{whole[trace.Program](row[0]), whole[trace.Rank](row[1]), whole[int64](row[2])}
		d := s.devices[key]
		if row[3] == "CUDA Stream" {
			d[1] = word[string](row[4])
		} else {
			d[0] = word[string](row[4])
		}
		s.devices[key] = d
	})
	if err != nil || a.InMemory != nil {
		return err
	}
	return a.each(ctx, text("explain_threads"), func(row []any) {
		if whole[trace.Program](row[0]) == s.selected[0].program {
			s.threads = append(s.threads, whole[int64](row[1]))
		}
	})
}
