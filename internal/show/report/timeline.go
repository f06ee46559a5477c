package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// span is a time range, in microseconds since the entry of the execution.
type span struct{ from, to float64 }

func (s span) and(o span) span { return span{min(s.from, o.from), max(s.to, o.to)} }

// spanOf returns the visible range: the execution and its surroundings up to 0.6 of its length.
// With all of its callers the execution would be too small to see.
func spanOf(lanes []api.Lane) span {
	s := span{0, 1}
	for _, l := range lanes {
		for i := range l.Calls {
			if c := &l.Calls[i]; c.Self {
				s = s.and(span{c.Enter, c.Exit})
			}
		}
	}
	room := (s.to - s.from) * 0.6
	return span{s.from - room, s.to + room}
}

// timeline is calls over time by depth.
type timeline struct {
	Lanes  []lane
	Arrows []line
	Ticks  []tick
	Height float64
	Label  string
	Left   float64 // of the picture, after the names of lanes
	Begin  float64 // entry of the execution
}

// lane is a thread with its calls.
type lane struct {
	Name   string
	Y      float64
	Boxes  []box
	Folded string // what is left out
}

// box is a call.
type box struct {
	X, Y, W, H  float64
	Class, Text string
	Title       string
	Self        bool // the execution itself
}

// line is a message or a launch.
type line struct {
	X1, Y1, X2, Y2 float64
	Kind, Title    string
}

// Sizes and bounds of timelines.
const (
	timelineLeft = 150
	rowTall      = 18
	maxDepths    = 12
	maxBoxes     = 250
	maxLanes     = 6
	maxArrows    = 60
)

// newTimeline lays out lanes. It returns nil without lanes.
func newTimeline(lanes []api.Lane, arrows []api.Arrow, s span, what string) *timeline {
	if len(lanes) == 0 || !(s.to > s.from) {
		return nil
	}
	v := &timeline{Left: timelineLeft}
	x := func(t float64) float64 {
		return timelineLeft + (min(max(t, s.from), s.to)-s.from)/(s.to-s.from)*(width-timelineLeft)
	}
	v.Begin = round(x(0))
	tops, deepest := make([]float64, len(lanes)), make([]float64, len(lanes))
	drawn := 0
	for i := range lanes[:min(len(lanes), maxLanes)] {
		l, rows, n := newLane(&lanes[i], s, x, v.Height)
		v.Lanes, tops[i] = append(v.Lanes, l), v.Height
		deepest[i] = v.Height + rows*rowTall
		v.Height = deepest[i] + 10
		drawn += n
	}
	for _, a := range arrows {
		if len(v.Arrows) == maxArrows {
			break
		}
		v.addArrow(a, s, x, tops, deepest)
	}
	v.Ticks = v.timeTicks(s, x)
	v.Label = fmt.Sprintf("%s: %d calls on %d threads from %s to %s after its entry.",
		what, drawn, len(v.Lanes), text.Offset(s.from), text.Offset(s.to))
	return v
}

// newLane lays out the calls of a lane in the span.
func newLane(from *api.Lane, s span, x func(float64) float64, top float64) (l lane, rows float64, drawn int) {
	l = lane{Name: text.Shorten(text.OneLine(from.Name), 24), Y: top}
	var seen []*api.LaneCall
	deepest := 0
	for i := range from.Calls {
		if c := &from.Calls[i]; c.Exit >= s.from && c.Enter <= s.to {
			seen = append(seen, c)
			deepest = max(deepest, c.Depth)
		}
	}
	hidden := max(0, selfDepth(seen, deepest)-(maxDepths-4))
	// If there are too many, the longest are drawn.
	slices.SortStableFunc(seen, func(a, b *api.LaneCall) int {
		return cmp.Or(cmp.Compare(priority(b), priority(a)), cmp.Compare(b.Exit-b.Enter, a.Exit-a.Enter))
	})
	for _, c := range seen {
		row := c.Depth - hidden
		if row < 0 || row >= maxDepths {
			continue
		}
		left, right := x(c.Enter), x(c.Exit)
		if len(l.Boxes) == maxBoxes || right-left < 0.4 && !c.Self && !c.Anomaly {
			continue
		}
		l.Boxes = append(l.Boxes, newBox(c, left, right, top+float64(row)*rowTall))
		rows = max(rows, float64(row+1))
	}
	slices.SortStableFunc(l.Boxes, func(a, b box) int { return cmp.Or(cmp.Compare(a.Y, b.Y), cmp.Compare(a.X, b.X)) })
	if hidden > 0 {
		l.Folded = fmt.Sprintf("%d callers above", hidden)
	}
	return l, max(rows, 1), len(l.Boxes)
}

func selfDepth(calls []*api.LaneCall, otherwise int) int {
	for _, c := range calls {
		if c.Self {
			return c.Depth
		}
	}
	return otherwise
}

// priority orders the execution before other anomalies before other calls.
func priority(c *api.LaneCall) int {
	switch {
	case c.Self:
		return 2
	case c.Anomaly:
		return 1
	}
	return 0
}

func newBox(c *api.LaneCall, left, right, y float64) box {
	class := "g-" + c.Group
	if !slices.Contains([]string{"mpi", "gpu", "io", "user"}, c.Group) {
		class = "g-user"
	}
	if c.Anomaly {
		class += " odd"
	}
	if c.Self {
		class += " self"
	}
	took := text.Duration(c.Exit - c.Enter)
	if c.Open {
		class += " torn"
		took = "still open"
	}
	b := box{X: round(left), Y: y, W: round(max(right-left, 0.8)), H: rowTall - 2, Class: class, Self: c.Self}
	name := text.ShortName(c.Function)
	b.Title = fmt.Sprintf("%s, %s, entered %s", name, took, text.Offset(c.Enter))
	if letters := int((right - left - 6) / 6.6); letters >= 4 {
		b.Text = text.Shorten(name, letters)
	}
	return b
}

// addArrow adds a message or launch.
func (v *timeline) addArrow(a api.Arrow, s span, x func(float64) float64, tops, deepest []float64) {
	at := func(i int) bool { return i >= 0 && i < len(v.Lanes) }
	in := func(t float64) bool { return t >= s.from && t <= s.to }
	l := line{Kind: a.Kind}
	switch {
	case at(a.FromLane) && at(a.ToLane) && (in(a.From) || in(a.To)):
		l.X1, l.X2, l.Y1, l.Y2 = x(a.From), x(a.To), deepest[a.FromLane]-2, tops[a.ToLane]
		if a.FromLane > a.ToLane {
			l.Y1, l.Y2 = tops[a.FromLane], deepest[a.ToLane]-2
		}
		l.Title = "launch"
	case at(a.FromLane) && in(a.From): // to another rank
		l.X1, l.X2, l.Y1, l.Y2 = x(a.From), x(a.From), deepest[a.FromLane]-2, deepest[a.FromLane]+7
		l.Title = fmt.Sprintf("sent %s bytes to rank %d", sizeText(a.Bytes), a.Partner)
	case at(a.ToLane) && in(a.To):
		l.X1, l.X2, l.Y1, l.Y2 = x(a.To), x(a.To), deepest[a.ToLane]+7, deepest[a.ToLane]-2
		l.Title = fmt.Sprintf("received %s bytes from rank %d", sizeText(a.Bytes), a.Partner)
	default:
		return
	}
	l.X1, l.X2, l.Y1, l.Y2 = round(l.X1), round(l.X2), round(l.Y1), round(l.Y2)
	v.Arrows = append(v.Arrows, l)
}

// sizeText formats the number of bytes of a message.
func sizeText(n *uint64) string {
	if n == nil {
		return "unknown"
	}
	return text.Int(*n)
}

// timeTicks returns round times since the entry.
func (v *timeline) timeTicks(s span, x func(float64) float64) (list []tick) {
	step := max(1, niceStep((s.to-s.from)/6, false))
	for t := math.Ceil(s.from/step-1e-9) * step; t <= s.to; t += step {
		list = append(list, tick{round(x(t)), v.Height + 8, strings.Replace(text.Offset(t), ".00 ", " ", 1)})
	}
	return list
}
