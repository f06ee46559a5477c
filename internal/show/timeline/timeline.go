// Package timeline builds the timeline of all ranks of a run from their activities. It is pure.
package timeline

import (
	"encoding/base64"
	"math"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Params select a part of the timeline.
type Params struct {
	From, To *time.Duration // since the start of the run; nil: all
	Rows     int            // at most
	Selects  func(trace.RankKey) bool
}

// Share is the greatest share of a cell.
const Share = 31

// Empty returns the timeline of a run whose activities are unknown.
func Empty() *api.Timeline {
	t := &api.Timeline{Rows: []api.TimelineRow{}, Messages: []api.MessageMatrix{}}
	for c := range activity.Classes {
		t.Classes = append(t.Classes, activity.Class(c).String())
	}
	return t
}

// Of returns a part of the timeline of a run that began at begin. hosts may lack ranks.
func Of(s *activity.Sketch, unit trace.Unit, begin trace.Ticks, hosts map[trace.RankKey]string, p Params) *api.Timeline {
	t := Empty()
	first, last := s.Span()
	b := &builder{sketch: s, unit: unit, first: int64(first) >> s.Shift(), last: int64(last) >> s.Shift()}
	if p.From != nil {
		b.first = max(b.first, int64(begin+unit.Ticks(*p.From))>>s.Shift())
	}
	if p.To != nil {
		b.last = min(b.last, int64(begin+unit.Ticks(*p.To)-1)>>s.Shift())
	}
	if t.Recorded = !s.Empty(); !t.Recorded || b.last < b.first {
		return t
	}
	t.Columns = int(b.last - b.first + 1)
	t.From = unit.Seconds(trace.Ticks(b.first<<s.Shift()) - begin)
	t.To = unit.Seconds(trace.Ticks((b.last+1)<<s.Shift()) - begin)
	var ranks []trace.RankKey
	programs := 0
	for _, key := range s.Ranks() {
		if !p.Selects(key) {
			continue
		}
		if ranks = append(ranks, key); len(ranks) == 1 || ranks[len(ranks)-2].Program != key.Program {
			programs++
		}
	}
	t.Ranks = len(ranks)
	perRow := (len(ranks) + p.Rows - 1) / max(p.Rows, 1)
	if perRow > 1 && p.Rows > programs { // each program begins a row
		perRow = (len(ranks) + p.Rows - programs - 1) / (p.Rows - programs)
	}
	b.sums = make([][activity.Classes]uint64, t.Columns)
	for len(ranks) > 0 {
		n := 1
		for n < min(perRow, len(ranks)) && ranks[n].Program == ranks[0].Program {
			n++
		}
		t.Rows = append(t.Rows, b.row(ranks[:n], hosts))
		ranks = ranks[n:]
	}
	t.Cells = base64.StdEncoding.EncodeToString(b.cells)
	t.Messages = messages(s, t.Messages)
	return t
}

// builder is the state of Of.
type builder struct {
	sketch      *activity.Sketch
	unit        trace.Unit
	first, last int64 // bins
	sums        [][activity.Classes]uint64
	cells       []byte
	scratch     []activity.Cell
}

// row sums up neighboring ranks and appends their cells.
func (b *builder) row(ranks []trace.RankKey, hosts map[trace.RankKey]string) api.TimelineRow {
	clear(b.sums)
	for _, key := range ranks {
		b.add(key)
	}
	row := api.TimelineRow{
		Program: int64(ranks[0].Program), FirstRank: int64(ranks[0].Rank), LastRank: int64(ranks[len(ranks)-1].Rank), Host: hosts[ranks[0]],
		Times: make([]float64, activity.Classes),
	}
	for i := range b.sums {
		b.cells = append(b.cells, dominant(&b.sums[i]))
		for c, ticks := range b.sums[i] {
			row.Times[c] += b.unit.Micros(trace.Ticks(ticks))
		}
	}
	return row
}

// add adds the activities of a rank. It is idle while it has no call between its first and last activity.
func (b *builder) add(key trace.RankKey) {
	b.scratch = b.sketch.Cells(b.scratch[:0], key)
	all := b.scratch
	width := uint64(1) << b.sketch.Shift()
	for bin, i := int64(0), 0; i < len(all); bin++ {
		if i == 0 {
			bin = all[0].Bin
		}
		inner := bin > all[0].Bin && bin < all[len(all)-1].Bin
		busy := uint64(0)
		visible := bin >= b.first && bin <= b.last
		for ; i < len(all) && all[i].Bin == bin; i++ {
			busy += all[i].Ticks
			if visible {
				b.sums[bin-b.first][all[i].Class] += all[i].Ticks
			}
		}
		if visible && inner && busy < width {
			b.sums[bin-b.first][activity.Idle] += width - busy
		}
	}
}

// dominant returns the class with the most time and its share.
func dominant(sums *[activity.Classes]uint64) byte {
	best, total := activity.None, uint64(0)
	for c := activity.None + 1; int(c) < activity.Classes; c++ {
		total += sums[c]
		if sums[c] > sums[best] {
			best = c
		}
	}
	if total == 0 {
		return 0
	}
	return byte(best) | byte(math.Round(float64(sums[best])/float64(total)*Share))<<3
}

func messages(s *activity.Sketch, all []api.MessageMatrix) []api.MessageMatrix {
	last := trace.Program(math.MaxUint32)
	for _, key := range s.Ranks() {
		if key.Program == last {
			continue
		}
		last = key.Program
		pairs, group := s.Messages(key.Program)
		if len(pairs) == 0 {
			continue
		}
		m := api.MessageMatrix{Program: int64(key.Program), Group: int64(group), Pairs: make([]api.MessageTotal, 0, len(pairs))}
		for _, p := range pairs {
			m.Pairs = append(m.Pairs, api.MessageTotal{From: int64(p.From), To: int64(p.To), Messages: int64(p.Messages), Bytes: int64(p.Bytes)})
		}
		all = append(all, m)
	}
	return all
}
