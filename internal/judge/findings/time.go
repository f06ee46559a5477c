package findings

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// parts is the number of parts of the run by which a finding counts its anomalies.
const parts = 20

// Slow executions are a burst if nearly all of them are in sequences of at least burstLength on a thread, with gaps of at most
// burstGap of the duration of the run, and no sequence lasts longer than burstSpan of it.
const (
	burstLength = 5
	burstShare  = 0.9
	burstGap    = 0.01
	burstSpan   = 0.1
)

// A finding with at least trendLeast anomalies has a trend if one half of the run has at least trendTimes as many as the other.
const (
	trendLeast = 5
	trendTimes = 2
)

// part returns the part of the run that includes a time.
func (c *conclusion) part(at trace.Ticks) int { return c.partOf(at, parts) }

// partOf returns which of n equal parts of the run includes a time.
func (c *conclusion) partOf(at trace.Ticks, n int) int { return partOf(at, c.begin, c.end, n) }

// partOf returns which of n equal parts from begin to end includes a time.
func partOf(at, begin, end trace.Ticks, n int) int {
	if end <= begin {
		return 0
	}
	return min(n-1, max(0, int(float64(at-begin)/float64(end-begin)*float64(n))))
}

func trendOf(counts []int64) provenance.Trend {
	var first, second int64
	for i, n := range counts {
		if i < len(counts)/2 {
			first += n
		} else {
			second += n
		}
	}
	switch {
	case first+second < trendLeast:
		return ""
	case second >= trendTimes*first:
		return provenance.More
	case first >= trendTimes*second:
		return provenance.Fewer
	}
	return provenance.Steady
}

// threadKey identifies a thread of a program.
type threadKey struct {
	rank   trace.Rank
	thread trace.Thread
}

// isBurst reports whether the members of a group, which are in order of entry, form bursts.
func (c *conclusion) isBurst(g *group) bool {
	type row struct {
		n           int
		first, last trace.Ticks
	}
	span := float64(c.end - c.begin)
	in := 0
	end := func(r *row) {
		if r.n >= burstLength && float64(r.last-r.first) <= burstSpan*span {
			in += r.n
		}
	}
	rows := make(map[threadKey]*row)
	for _, i := range g.members {
		a := &g.all[i]
		t := threadKey{a.Rank, a.Thread}
		r := rows[t]
		if r == nil {
			r = new(row)
			rows[t] = r
		}
		if r.n > 0 && float64(a.Entry-r.last) > burstGap*span {
			end(r)
			r.n = 0
		}
		if r.n == 0 {
			r.first, r.last = a.Entry, a.Exit
		}
		r.n++
		r.last = max(r.last, a.Exit)
	}
	for _, r := range rows {
		end(r)
	}
	return float64(in) >= burstShare*float64(len(g.members))
}
