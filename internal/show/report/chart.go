package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// width is the width of all charts, in units of the SVG viewBox.
const width = 1000

// tick is a label of an axis.
type tick struct {
	X, Y float64
	Text string
}

// Anchor returns the text anchor that keeps the label inside the picture.
func (t tick) Anchor() string {
	switch {
	case t.X > width-30:
		return "end"
	case t.X < 20:
		return "start"
	}
	return "middle"
}

// round drops invisible digits of a coordinate.
func round(x float64) float64 { return math.Round(x*10) / 10 }

// path draws boxes as one SVG path, which is shorter than one element per box.
type path struct{ b strings.Builder }

func (p *path) box(x, y, w, h float64) {
	number := func(v float64) string { return strconv.FormatFloat(round(v), 'f', -1, 64) }
	p.b.WriteString("M" + number(x) + " " + number(y) + "h" + number(w) + "v" + number(h) + "h" + number(-w) + "z")
}

// strip is the chart of lost time by kind.
type strip struct {
	Layers []stripLayer
	Ticks  []tick
	Left   float64
	Top    string // largest value of the scale
	Label  string
}

// stripLayer is one kind.
type stripLayer struct{ Kind, Class, Path, Total string }

// Sizes of the strip.
const (
	stripLeft   = 70
	stripHeight = 120
)

// newStrip lays out lost time by kind. It returns nil if no time was lost.
func newStrip(s *api.Strip, length float64) *strip {
	columns := 0
	for _, l := range s.Series {
		columns = max(columns, len(l.Lost))
	}
	sums := make([]float64, columns)
	for _, l := range s.Series {
		for c, v := range l.Lost {
			sums[c] += v
		}
	}
	var most float64
	worst := 0
	for c, v := range sums {
		if v > most {
			most, worst = v, c
		}
	}
	if most == 0 {
		return nil
	}
	v := &strip{Left: stripLeft, Top: text.Duration(most), Ticks: timeTicks(s.From, s.To, length, stripLeft, stripHeight+16)}
	wide := float64(width-stripLeft) / float64(columns)
	under := make([]float64, columns)
	var names []string
	for _, l := range s.Series {
		var p path
		var total float64
		for c, lost := range l.Lost {
			if lost <= 0 {
				continue
			}
			total += lost
			h := lost / most * stripHeight
			p.box(stripLeft+float64(c)*wide, stripHeight-under[c]-h, wide+0.3, h)
			under[c] += h
		}
		if total > 0 {
			v.Layers = append(v.Layers, stripLayer{kindWords(l.Kind), kindClass(l.Kind), p.b.String(), text.Duration(total)})
			names = append(names, kindWords(l.Kind)+" "+text.Duration(total))
		}
	}
	at := s.From + (s.To-s.From)*(float64(worst)+0.5)/float64(columns)
	v.Label = fmt.Sprintf("Lost time over the run, stacked by kind: %s. Most was lost around %s.", strings.Join(names, ", "),
		text.Clock(at, length))
	return v
}

// timeTicks returns round times below a chart.
func timeTicks(from, to, length, left, y float64) (list []tick) {
	size := to - from
	if !(size > 0) {
		return nil
	}
	step := niceStep(size/6, length >= 60)
	for t := math.Ceil(from/step-1e-9) * step; t <= to+step*1e-9; t += step {
		list = append(list, tick{round(left + (t-from)/size*(width-left)), y, text.Clock(max(0, t), length)})
	}
	return list
}

// niceStep returns the smallest round number that is not smaller, in seconds of a clock if
// clock is set.
func niceStep(least float64, clock bool) float64 {
	if clock && least > 1 {
		for _, s := range []float64{2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600} {
			if s >= least {
				return s
			}
		}
	}
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= least {
			return m * power
		}
	}
	return 10 * power
}

// sparkline returns the points of a line, 100 wide and 20 tall, or "" for too few values.
func sparkline(values []int64) string {
	if len(values) < 2 || slices.Max(values) <= 0 {
		return ""
	}
	most := slices.Max(values)
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = fmt.Sprintf("%g,%g", round(100*float64(i)/float64(len(values)-1)), round(19-18*float64(v)/float64(most)))
	}
	return strings.Join(parts, " ")
}

// heat is a heatmap.
type heat struct {
	Title, About, Label string
	Height              float64
	Left, Wide          float64
	Cells               []heatLevel
	Silent              string // path of rows without data
	Hosts               []tick
	Lines               []float64 // between hosts
	Ticks               []tick
	Max                 string
	Worst               []heatWorst
}

// heatLevel are all cells of one color.
type heatLevel struct {
	Level int
	Path  string
}

// heatWorst is a row of the text below a heatmap.
type heatWorst struct {
	Ranks, Host, Lost, Anomalies string
}

const (
	heatLeft   = 130
	heatLevels = 10
	maxWorst   = 8
)

// newHeat lays out a heatmap with logarithmic colors, like the page.
func newHeat(h *api.Heatmap, title, about string, length float64) heat {
	rowHeight := min(18, max(4, 360/float64(len(h.Rows))))
	v := heat{
		Title: title, About: about, Left: heatLeft, Wide: width - heatLeft, Height: round(rowHeight * float64(len(h.Rows))),
		Max: text.Duration(h.Max),
	}
	wide := float64(width-heatLeft) / float64(max(1, h.Columns))
	paths := make([]path, heatLevels)
	for _, c := range h.Cells {
		if c.Row < 0 || c.Row >= len(h.Rows) {
			continue
		}
		share := shareOf(c.Value, max(h.Max, c.Value))
		level := min(heatLevels-1, int(share*heatLevels))
		paths[level].box(heatLeft+float64(c.Column)*wide, float64(c.Row)*rowHeight, wide+0.3, rowHeight)
	}
	for i := range paths {
		if d := paths[i].b.String(); d != "" {
			v.Cells = append(v.Cells, heatLevel{i, d})
		}
	}
	v.labels(h, rowHeight)
	v.Ticks = timeTicks(h.From, h.To, length, heatLeft, v.Height+16)
	v.worst(h)
	v.Label = fmt.Sprintf("Heatmap of %d rows of ranks over %s. %s", len(h.Rows), text.Clock(h.To, length), v.worstWords())
	return v
}

// shareOf returns the place of a value on a scale of four powers of ten, from 0 to 1, like the
// page.
func shareOf(value, most float64) float64 {
	return max(0, 1+math.Log10(value/most)/4)
}

// labels puts the names of hosts at their first rows, where there is room.
func (v *heat) labels(h *api.Heatmap, rowHeight float64) {
	var silent path
	last := math.Inf(-1)
	for i := range h.Rows {
		row := &h.Rows[i]
		y := float64(i) * rowHeight
		if row.Silent {
			silent.box(heatLeft, y, width-heatLeft, rowHeight)
		}
		first := i == 0 || h.Rows[i-1].Host != row.Host || h.Rows[i-1].Program != row.Program
		if first && i > 0 {
			v.Lines = append(v.Lines, round(y))
		}
		if first && y-last >= 13 {
			v.Hosts = append(v.Hosts, tick{heatLeft - 8, round(y + min(rowHeight, 18)/2 + 4), text.Shorten(text.OneLine(row.Host), 18)})
			last = y
		}
	}
	v.Silent = silent.b.String()
}

// worst lists the rows that lost most.
func (v *heat) worst(h *api.Heatmap) {
	rows := make([]*api.HeatRow, 0, len(h.Rows))
	for i := range h.Rows {
		if h.Rows[i].Lost > 0 {
			rows = append(rows, &h.Rows[i])
		}
	}
	slices.SortStableFunc(rows, func(a, b *api.HeatRow) int { return cmp.Compare(b.Lost, a.Lost) })
	for _, r := range rows[:min(len(rows), maxWorst)] {
		name := strconv.FormatInt(r.FirstRank, 10)
		if r.Ranks > 1 {
			name = fmt.Sprintf("%d–%d (%d)", r.FirstRank, r.LastRank, r.Ranks)
		}
		v.Worst = append(v.Worst, heatWorst{name, text.OneLine(r.Host), text.Duration(float64(r.Lost)), text.Count(r.Anomalies, "anomaly")})
	}
}

func (v *heat) worstWords() string {
	if len(v.Worst) == 0 {
		return "No time was lost."
	}
	w := v.Worst[0]
	place := w.Ranks
	if w.Host != "" {
		place += " on " + w.Host
	}
	return fmt.Sprintf("Rank %s lost most: %s.", place, w.Lost)
}
