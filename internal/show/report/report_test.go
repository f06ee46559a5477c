package report_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/heatmap"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
	"github.com/chimbuko/chimbuko/internal/show/report"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// hostile are names that try to break a page.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</style></svg><script>`, `{{.Run}}`, `' onload='alert(1)`,
	"javascript:alert(1)",
	"]]>&amp;<!--", "\u202e\u2028", "a\nb\tc", strings.Repeat("λ", 3000),
}

// fakeSource answers with fixed values.
type fakeSource struct {
	overview api.Overview
	findings api.FindingList
	heat     api.Heatmap
	ranks    api.RankTable
	funcs    api.FunctionTable
	evidence api.Evidence
	fail     error // of all but the overview
}

func (a *fakeSource) Overview(context.Context, string, insight.OverviewParams) (*api.Overview, error) {
	return &a.overview, nil
}

func (a *fakeSource) Findings(context.Context, string) (*api.FindingList, error) {
	return &a.findings, a.fail
}

func (a *fakeSource) Heatmap(context.Context, string, heatmap.Params) (*api.Heatmap, error) {
	return &a.heat, a.fail
}

func (a *fakeSource) Ranks(context.Context, string, ranks.Params) (*api.RankTable, error) {
	return &a.ranks, a.fail
}

func (a *fakeSource) Functions(context.Context, string, query.FunctionTable) (*api.FunctionTable, error) {
	return &a.funcs, a.fail
}

func (a *fakeSource) Evidence(context.Context, string, insight.EventParams) (*api.Evidence, error) {
	e := a.evidence
	return &e, a.fail
}

// written returns the report of a source.
func written(t *testing.T, a *fakeSource) string {
	t.Helper()
	r, err := report.Gather(t.Context(), a, "monday")
	if err != nil {
		t.Fatal(err)
	}
	r.Made, r.Version = time.Unix(1_700_000_000, 0), "test"
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// full returns a source with that name everywhere.
func full(name string) *fakeSource {
	rank, mean, calls := int64(1), 7.5, int64(100)
	low, high := 10.0, 20.0
	finding := api.Finding{
		Key: "k", Number: 1, Function: name, Path: name, Kind: "slow", Listed: true, Calls: 3, LostOwn: 2000, LostWaits: 3000, Lost: 5000, Ranks: []int64{0, 1, 2, 5},
		Hosts: []string{name}, RankCount: 4, HostCount: 9,
		WorstRank: &rank, From: 1, Last: 2, Trend: name, OverTime: []int64{0, 3, 1}, Example: "0:1:2", Status: "confirmed",
		Summary: name + " is slow",
		Label:   &api.Label{State: "open", Note: name},
	}
	other := finding
	other.Number, other.Kind, other.Cause, other.Example = 2, name, 1, ""
	lanes := []api.Lane{{Name: name, Calls: []api.LaneCall{
		{Function: name, Depth: 0, Enter: -1e6, Exit: 1e6, Open: true, Group: "user"},
		{Event: "0:1:2", Function: name, Depth: 1, Exit: 500, Self: true, Anomaly: true, Group: "mpi"},
		{Function: name, Depth: 1, Enter: 500, Exit: 600, Group: name},
	}}, {Name: name, Calls: []api.LaneCall{{Function: name, Enter: 100, Exit: 300, Group: "gpu"}}}}
	arrows := []api.Arrow{
		{Kind: "send", ToLane: -1, From: 10, Partner: 3, Bytes: new(uint64(99))},
		{Kind: "receive", FromLane: -1, To: 40, Partner: 4},
		{Kind: "launch", ToLane: 1, From: 20, To: 100},
	}
	return &fakeSource{
		overview: api.Overview{
			Run: name, State: api.Finished, Length: 10, Verdict: api.Verdict{Level: api.LevelBad, Sentence: name + " cost much"},
			Notices: []api.Notice{{Level: api.LevelWatch, Sentence: name}}, Figures: api.Figures{Lost: 5000, Calls: &calls, Victims: 1, Ranks: 3},
			Findings: []api.Finding{finding},
			Strip:    api.Strip{To: 10, Series: []api.Layer{{Kind: "slow", Lost: []float64{0, 50, 3}}, {Kind: name, Lost: []float64{1, 0, 0}}}},
		},
		findings: api.FindingList{Rows: []api.Finding{finding, other}, Total: 70},
		heat: api.Heatmap{
			To: 10, Columns: 3, Metric: "own", Rows: []api.HeatRow{
				{Host: name, Lost: 5, Anomalies: 1, Ranks: 1},
				{Host: "b", FirstRank: 1, LastRank: 2, Ranks: 2, Silent: true},
			},
			Cells: []api.HeatCell{{Row: 0, Column: 1, Value: 5}, {Row: 7, Column: 1, Value: 5}}, Max: 5,
		},
		ranks: api.RankTable{
			Windows: []api.RankWindow{{To: 10}}, Total: 3, Efficiency: []api.Efficiency{{Entire: true, Parallel: 0.73, LoadBalance: 0.8}},
			Rows: []api.RankRow{
				{Place: name, Host: name, Ranks: 1, Ratio: &mean},
				{Place: "gone", Ranks: 1, Missing: 1},
				{Place: "slow " + name, Host: name, Ranks: 1, Saved: 9, Share: 0.14, Pattern: "since", From: &low, Lost: &mean, Finding: 4},
			},
		},
		funcs: api.FunctionTable{Rows: []api.FunctionRow{{Function: name, Calls: &calls, Exclusive: &mean, Lost: 5000}}, Total: 40},
		evidence: api.Evidence{
			Event: name, Function: name, Host: name, Kind: "slow", Status: name, Sentence: name, Why: name, Exclusive: 500, Inclusive: 500,
			Judged: 500, Lost: 480,
			Path: []string{name, name}, Lanes: lanes, Arrows: arrows, Roles: api.Roles{Sentence: name}, GPU: &api.GPU{Parent: name, Problem: name},
			Model: &api.Model{
				Algorithm: name, Edges: []float64{0, 10, 20}, Counts: []int64{5, 90}, Samples: 95,
				Typical: &api.Range{Low: &low, High: &high}, Threshold: &api.Range{High: &high},
			},
			Twin:     &api.Twin{Event: name, Exclusive: 15, Lanes: lanes, Arrows: arrows},
			Counters: []api.Counter{{Name: name, Value: 3, Mean: &mean}}, State: []api.Field{{Name: name, Value: name}},
			Metadata: []api.Field{{Name: name, Value: name}},
		},
	}
}

func TestReportIsComplete(t *testing.T) {
	text := written(t, full("solve"))
	for _, part := range []string{
		"solve cost much", `class="level bad">Bad<`, "Own slowness (causes)", "All lost time (causes and waits)", "Lost time over the run",
		"1. solve is slow<",
		"Why it was flagged:", "Timeline around it", "A typical execution", "How long the function usually takes", "Call stack", "Messages",
		"State of the node", "Counters",
		"The worst 2 of 70 findings", "because of 1", "0-2,5", "and 8 more", "functions that lost most", `aria-label="Histogram of 95 calls`,
		"this one 500 us", "Parallel efficiency 73.0 %", "1.00 s, ongoing",
		`<td class="number">2.00 ms</td><td class="number">3.00 ms</td><td class="number">5.00 ms</td>`, "slow solve", "since 10.00 s", "14.0 %", "7.50 ×", "no data", "All ranks",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the report has no %q", part)
		}
	}
	if strings.Contains(text, "so far") {
		t.Error("a finished run is reported as running")
	}
}

func TestReportOfRunningRun(t *testing.T) {
	a := full("solve")
	a.overview.Live, a.overview.State = true, api.Running
	if text := written(t, a); !strings.Contains(text, "results so far") || !strings.Contains(text, "is running") {
		t.Errorf("the report does not state that the run continues:\n%.2000s", text)
	}
}

func TestReportWithoutAnomalies(t *testing.T) {
	a := &fakeSource{overview: api.Overview{
		Run: "monday", State: api.Finished,
		Verdict: api.Verdict{Level: api.LevelGood, Sentence: "0 anomalies in 5 calls"},
	}}
	text := written(t, a)
	for _, part := range []string{"0 anomalies in 5 calls", "Nothing was lost.", "No findings.", "No functions are stored yet."} {
		if !strings.Contains(text, part) {
			t.Errorf("the report has no %q", part)
		}
	}
	if strings.Contains(text, `id="evidence"`) {
		t.Error("a section for no evidence")
	}
}

func TestReportListsMissingParts(t *testing.T) {
	a := full("solve")
	a.fail = errors.New("the disk is full")
	text := written(t, a)
	for _, part := range []string{"The findings", "The heatmap", "The functions", "The evidence of finding 1"} {
		if !strings.Contains(text, part+": the disk is full") {
			t.Errorf("the report does not list %q as missing", part)
		}
	}
}

func TestReportEscapesNames(t *testing.T) {
	for _, name := range hostile {
		text := written(t, full(name))
		wellFormed(t, text)
		for _, bad := range []string{"<script", "<img", " onerror=", " onload=", `href="javascript`} {
			if strings.Contains(unquoted(text), bad) {
				t.Errorf("%.40q: %s is in the report", name, bad)
			}
		}
	}
}

// unquoted returns the tags of a document without values of attributes.
func unquoted(text string) string {
	tags := regexp.MustCompile(`<[^>]*>`).FindAllString(text, -1)
	return regexp.MustCompile(`"[^"]*"`).ReplaceAllString(strings.Join(tags, "\n"), `""`)
}

func TestReportIsSelfContained(t *testing.T) {
	text := written(t, full("solve"))
	for _, m := range regexp.MustCompile(`(?:href|src|url)\s*[=(]\s*"?([^")\s>]*)`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "#") && m[1] != "data:," {
			t.Errorf("%s leads elsewhere", m[0])
		}
	}
	ids := make(map[string]bool)
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if ids[m[1]] {
			t.Errorf("duplicate id %s", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if !ids[m[1]] {
			t.Errorf("#%s leads nowhere", m[1])
		}
	}
}

func TestReportSizeIsBounded(t *testing.T) {
	a := full("solve")
	lane := &a.evidence.Lanes[0]
	for i := range 200_000 {
		lane.Calls = append(lane.Calls, api.LaneCall{
			Function: "solve_many_things", Depth: 1 + i%40, Enter: float64(i % 700),
			Exit: float64(i%700) + 3, Group: "io",
		})
	}
	for i := range 50_000 {
		a.evidence.Arrows = append(a.evidence.Arrows, api.Arrow{Kind: "send", ToLane: -1, From: float64(i), Partner: 1})
		a.evidence.Counters = append(a.evidence.Counters, api.Counter{Name: "x"})
		a.evidence.State = append(a.evidence.State, api.Field{Name: "x"})
		a.findings.Rows = append(a.findings.Rows, a.findings.Rows[0])
	}
	a.evidence.Twin.Lanes = a.evidence.Lanes
	for len(a.overview.Findings) < 10 {
		a.overview.Findings = append(a.overview.Findings, a.overview.Findings[0])
	}
	a.heat.Rows, a.heat.Columns = nil, 160
	for r := range 64 {
		a.heat.Rows = append(a.heat.Rows, api.HeatRow{Host: fmt.Sprint(r)})
		for c := range 160 {
			a.heat.Cells = append(a.heat.Cells, api.HeatCell{Row: r, Column: c, Value: float64(1 + r*c)})
		}
	}
	if n := len(written(t, a)); n > 4<<20 {
		t.Errorf("the report has %d bytes", n)
	}
}

// wellFormed reads the document as XML, with the elements that HTML does not close.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	text = regexp.MustCompile(`<(meta|link)([^>]*)>`).ReplaceAllString(strings.TrimPrefix(text, "<!doctype html>"), "<$1$2/>")
	d := xml.NewDecoder(strings.NewReader(text))
	d.Entity = xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			line, column := d.InputPos()
			t.Fatalf("not well-formed at line %d, column %d: %v", line, column, err)
		}
	}
}

func TestReportIsWellFormed(t *testing.T) { wellFormed(t, written(t, full("solve<int>(a && b)"))) }

func FuzzNamesInReports(f *testing.F) {
	for _, name := range hostile {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		// HTML allows control characters, XML does not.
		name = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || r == 0xfffe || r == 0xffff {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(name, "�"))
		wellFormed(t, written(t, full(name)))
	})
}
