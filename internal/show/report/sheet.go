package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// sheet is the data of the template.
type sheet struct {
	*Report

	SoFar     bool // the run continues
	Figures   []figure
	Strip     *strip
	Heats     []heat
	Rows      []findingRow
	RankRows  []rankRow        // the costliest
	Efficient []api.Efficiency // of programs in the entire run
	Programs  bool             // several
	More      int64            // findings that are not listed
	Listed    int64            // findings
	Withdrawn int64
	Events    []event
}

// figure is a key figure with an explanation.
type figure struct{ Name, Value, Explain string }

// findingRow is a row of the table of findings.
type findingRow struct {
	api.Finding

	Since, Until string
	Spark        string // points of a line, 100 wide and 20 tall
	HasEvidence  bool
}

// rankRow is a row of the table of ranks.
type rankRow struct {
	api.RankRow

	Times, When string // ratio to peers, and when it is high
}

// event is an execution with its charts.
type event struct {
	*api.Evidence

	Finding  *api.Finding
	At       string
	Timeline *timeline
	Twin     *timeline
	TwinAt   string
	Model    *histogram
	Messages []message // the first of AllMsgs
	AllMsgs  int
	Counters []api.Counter
	State    []api.Field
}

// message is a message around the execution.
type message struct {
	Kind    string
	Partner int64
	Bytes   string
	Tag     int64
	At      string
}

// Bounds of lists of an execution.
const (
	maxMessages = 12
	maxCounters = 20
	maxState    = 40
)

func newSheet(r *Report) *sheet {
	o := r.Overview
	s := &sheet{Report: r, SoFar: o.Live, Figures: figuresOf(o), Strip: newStrip(&o.Strip, o.Length)}
	for _, h := range []struct {
		heat         *api.Heatmap
		title, about string
	}{
		{r.Own, "Own slowness (causes)", "Time that ranks lost, except by waiting for others."},
		{r.Lost, "All lost time (causes and waits)", "Time that ranks lost, including waits for others."},
	} {
		if h.heat != nil && len(h.heat.Rows) > 0 {
			s.Heats = append(s.Heats, newHeat(h.heat, h.title, h.about, o.Length))
		}
	}
	s.addRanks(r.Ranks, o.Length)
	shown := make(map[int]bool)
	byNumber := make(map[int]*api.Finding)
	for i := range o.Findings {
		byNumber[o.Findings[i].Number] = &o.Findings[i]
	}
	for _, e := range r.Evidence {
		shown[e.Finding] = true
		s.Events = append(s.Events, newEvent(e, byNumber[e.Finding], o.Length))
	}
	listed, withdrawn := int64(0), int64(0)
	for i := range r.Findings.Rows {
		x := r.Findings.Rows[i]
		switch {
		case x.Status == string(provenance.Withdrawn):
			withdrawn++
			continue
		case !x.Listed:
			continue
		}
		if listed++; listed > maxFindings {
			continue
		}
		s.Rows = append(s.Rows, findingRow{
			Finding: x, Since: text.Clock(x.From, o.Length), Until: untilText(&x, o.Length), Spark: sparkline(x.OverTime),
			HasEvidence: shown[x.Number],
		})
	}
	s.Listed, s.Withdrawn = listed+r.Findings.Total-int64(len(r.Findings.Rows)), withdrawn
	s.More = s.Listed - int64(len(s.Rows))
	return s
}

// untilText returns the end of a finding.
func untilText(x *api.Finding, length float64) string {
	if x.To == nil {
		return "ongoing"
	}
	return text.Clock(*x.To, length)
}

// addRanks adds the efficiency and the costliest ranks.
func (s *sheet) addRanks(t *api.RankTable, length float64) {
	for _, e := range t.Efficiency {
		if e.Entire {
			s.Efficient = append(s.Efficient, e)
		}
	}
	s.Programs = len(s.Efficient) > 1
	ratio := func(r *api.RankRow) float64 {
		if r.Ratio == nil {
			return 0
		}
		return *r.Ratio
	}
	rows := slices.SortedStableFunc(slices.Values(t.Rows), func(a, b api.RankRow) int {
		return cmp.Or(cmp.Compare(b.Saved, a.Saved), cmp.Compare(ratio(&b), ratio(&a)))
	})
	for i := range rows {
		r := &rows[i]
		if len(s.RankRows) == maxRanks || len(t.Windows) == 0 {
			break
		}
		row := rankRow{RankRow: *r, Times: "–"}
		if r.Ratio != nil {
			row.Times = fmt.Sprintf("%.2f ×", *r.Ratio)
		}
		if r.Missing == r.Ranks {
			row.Times = "no data"
		}
		if row.When = r.Pattern; r.From != nil && r.Pattern != string(provenance.Always) {
			row.When = "since " + text.Clock(*r.From, length)
			if r.To != nil {
				row.When = text.Clock(*r.From, length) + " to " + text.Clock(*r.To, length)
			}
		}
		s.RankRows = append(s.RankRows, row)
	}
}

func figuresOf(o *api.Overview) []figure {
	f := &o.Figures
	var list []figure
	add := func(name, value, explain string) { list = append(list, figure{name, value, explain}) }
	lost := text.Duration(float64(f.Lost))
	if f.LostPercent != nil {
		lost = text.Percent(*f.LostPercent)
	}
	add("lost", lost, fmt.Sprintf("of core time: %s, or %.3g core-hours", text.Duration(float64(f.Lost)), f.CoreHoursLost))
	provisional := ""
	if f.Provisional {
		provisional = "; provisional until the review at the end of the run"
	}
	add("anomalies", text.Int(f.Anomalies), "executions that took an unusual time"+provisional)
	add("findings", text.Int(f.Findings), fmt.Sprintf("that cost more than 0.01 %%; %s cost less, %s muted or expected",
		text.Int(f.FindingsMinor), text.Int(f.FindingsMuted)))
	hosts := "on unknown hosts"
	if f.Hosts > 0 {
		hosts = "on " + text.Count(f.Hosts, "host")
	}
	add("ranks", text.Int(f.Ranks), hosts)
	add("length", text.Clock(o.Length, o.Length), "of the analyzed part of the run")
	if f.Calls != nil {
		add("calls judged", text.About(*f.Calls), text.Int(*f.Calls)+" calls of "+text.Int(f.Functions)+" functions")
	}
	if f.Events != nil {
		add("events read", text.About(*f.Events), text.Int(*f.Events)+" events of the traces")
	}
	if f.Reduction != nil {
		add("reduction", text.Int(int64(*f.Reduction))+" ×", fmt.Sprintf("calls per stored execution, of which there are %s", text.Int(f.Kept)))
	}
	if f.Dropped != nil {
		add("dropped", text.Int(*f.Dropped), "messages that were discarded")
	}
	return list
}

func newEvent(e *api.Evidence, finding *api.Finding, length float64) event {
	v := event{Evidence: e, Finding: finding, At: text.Clock(e.At, length), Model: newHistogram(e.Model, float64(e.Judged))}
	span := spanOf(e.Lanes)
	if e.Twin != nil { // on the same scale
		span = span.and(spanOf(e.Twin.Lanes))
		v.Twin = newTimeline(e.Twin.Lanes, e.Twin.Arrows, span, "A typical execution of the same function")
		v.TwinAt = text.Clock(e.Twin.At, length)
	}
	v.Timeline = newTimeline(e.Lanes, e.Arrows, span, "The execution and its surroundings")
	for _, a := range e.Arrows {
		if a.Kind == "launch" {
			continue
		}
		if v.AllMsgs++; v.AllMsgs > maxMessages {
			continue
		}
		at := a.From
		if a.Kind == "receive" {
			at = a.To
		}
		v.Messages = append(v.Messages, message{a.Kind, a.Partner, sizeText(a.Bytes), a.Tag, text.Offset(at)})
	}
	v.Counters = e.Counters[:min(len(e.Counters), maxCounters)]
	v.State = e.State[:min(len(e.State), maxState)]
	return v
}

// Title returns the title of the file.
func (s *sheet) Title() string { return "Chimbuko: " + text.OneLine(s.Overview.Run) }

// When returns the time of the report.
func (s *sheet) When() string { return s.Made.UTC().Format("2 January 2006, 15:04 UTC") }

// Began returns the start of the run, or "".
func (s *sheet) Began() string {
	if s.Overview.Began.IsZero() {
		return ""
	}
	return s.Overview.Began.UTC().Format(time.DateTime + " UTC")
}

// Ordered returns the functions of the call path.
func (v *event) Ordered() []string {
	names := make([]string, 0, len(v.Path))
	for _, f := range v.Path {
		names = append(names, strings.ToValidUTF8(f, "�"))
	}
	return names
}
