package quality

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestFiguresFollowFromCounts(t *testing.T) {
	r := &Result{
		Data: "x", Detector: outlier.HBOS, Runs: 2, Calls: 2100, Normal: 2000, Planted: 40, Found: 30, Other: 10, Withdrawn: 1,
		Delays: []float64{3, 1, math.Inf(1), 2}, FirstFlags: 1, FirstCalls: 50, Late: &LateCounts{Found: 3, Missed: 1, Other: 4},
		Findings: &FindingCounts{
			Runs: 2, Lost: 1000, Covered: 750, Troubles: 4, Named: 3, Others: 3, OthersShare: 0.5, Recorded: 2000, Unexplained: 1,
			Stops: 8, StopsFound: 6, StopsNamed: 4,
		},
	}
	want := map[string]float64{
		"precision": 0.75, "recall": 0.75, "f1": 0.75, "per_million": 5000, "withdrawn": 500, "troubles": 0.75,
		"after": 2.5, "first_step": 0.02, "late_recall": 0.75, "late_other": 2,
		"covered": 0.75, "named": 0.75, "outside": 1.5, "outside_share": 0.25, "stops_found": 0.75, "stops_named": 0.5, "unexplained": 500,
	}
	for i := range figures {
		f := &figures[i]
		if got, ok := f.of(r); !ok || got != want[f.name] {
			t.Errorf("%s: got %v, %v, want %v", f.name, got, ok, want[f.name])
		}
		if got, ok := f.of(&Result{Data: "x", Runs: 1, Other: -1, Withdrawn: -1, Normal: 5}); ok {
			t.Errorf("%s: got %v of a result without figures", f.name, got)
		}
	}
	cells := row(r)
	if got, want := strings.Join(cells, " "), "x hbos 30/40 75.0 75.0 75.0 5000 500 3/4 2.500 1/50 3/1/4"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMedianDelayMayBeUndefined(t *testing.T) {
	f := func(want string, after ...float64) {
		t.Helper()
		i := slices.IndexFunc(columns, func(c column) bool { return c.head == "after" })
		if got := columns[i].cell(&Result{Delays: after}); got != want {
			t.Errorf("%v: got %q, want %q", after, got, want)
		}
	}
	never := math.Inf(1)
	f("")
	f("1.000", 1)
	f("1.500", 2, 1)
	f("2.000", never, 1, 2)
	f("never", never, 1)
	f("never", never)
}

func TestPercentagesAreNotRoundedUp(t *testing.T) {
	f := func(found, planted int, want string) {
		t.Helper()
		if got := percent((*Result).recall)(&Result{Found: found, Planted: planted}); got != want {
			t.Errorf("%d of %d: got %s, want %s", found, planted, got, want)
		}
	}
	f(9999, 10000, "99.9")
	f(3, 3, "100.0")
	f(29, 100, "29.0")
	f(0, 3, "0.0")
}

// The figures of the original are those of the sources that original.csv names.
func TestOriginalFigures(t *testing.T) {
	f := func(data string, detector outlier.Algorithm, calls int64, want string) {
		t.Helper()
		r := &Result{Data: data, Detector: detector, Calls: calls, FirstCalls: 100}
		o := originalOf(r)
		if o == nil {
			t.Fatalf("%s, %s: no figures of the original", data, detector)
		}
		var cells []string
		for _, c := range columns {
			cells = append(cells, c.cell(&o.Result))
		}
		if got := strings.Join(cells, "|"); got != want {
			t.Errorf("%s, %s:\n got %s\nwant %s", data, detector, got, want)
		}
	}
	f("normal", outlier.HBOS, 0, "84/107|69.4|78.5|73.6|1860||||35/200|47/13/0")
	f("bimodal-few", outlier.COPOD, 0, "0/11|0.0|0.0|0.0|128708||||20/20|0/5/30")
	f("repeated", outlier.HBOS, 0, "1/42||2.3|||||||")
	f("heat2d-BP5", outlier.HBOS, 504_344, "97/98|6.1|98.9|11.5|2939||||194/100|")
	if originalOf(&Result{Data: "clean", Detector: outlier.HBOS}) != nil {
		t.Error("clean has figures of the original")
	}
}

func TestFloorsHaveSlack(t *testing.T) {
	f := func(name string, want string, values ...float64) {
		t.Helper()
		i := slices.IndexFunc(figures, func(f figure) bool { return f.name == name })
		fig := figures[i]
		var group []*Result
		for range values {
			group = append(group, new(Result))
		}
		fig.of = func(r *Result) (float64, bool) {
			v := values[slices.Index(group, r)]
			return v, v >= 0
		}
		if got := fig.boundOf(group); got != want {
			t.Errorf("%s of %v: got %q, want %q", name, values, got, want)
		}
	}
	f("recall", "0.94", 1, 0.95)
	f("recall", "0.99", 1)
	f("recall", "", 0.95, 0.3) // too bad to be claimed
	f("recall", "", 0.95, -1)  // unknown
	f("per_million", "1", 0)
	f("per_million", "111", 10, 100)
	f("first_step", "0", 0)
	f("first_step", "0.0011", 0.001)
	f("troubles", "1", 1)
	f("after", "", math.Inf(1))
}

func TestFloorsReportMissedBounds(t *testing.T) {
	good := &Result{Data: "x", Detector: outlier.HBOS, Runs: 1, Calls: 10_010, Normal: 10_000, Planted: 10, Found: 10, FirstCalls: 100}
	floors := Claims{claimKey{"x", outlier.HBOS}: {"recall": 0.95, "per_million": 50, "after": 1}}
	err := floors.Below(good)
	if err == nil || !strings.Contains(err.Error(), "after is unknown") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want that after is unknown", err)
	}
	delete(floors[claimKey{"x", outlier.HBOS}], "after")
	if err := floors.Below(good); err != nil {
		t.Error(err)
	}
	bad := *good
	bad.Found, bad.Other = 9, 1
	err = floors.Below(&bad)
	if want := "x, hbos: recall is 0.9, want at least 0.95\nx, hbos: per_million is 100, want at most 50"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	bad.Data = "y"
	if err := floors.Below(&bad); err == nil {
		t.Error("nothing is wrong with a data set that has no floors")
	}
}

func TestFloorsRoundTrip(t *testing.T) {
	defer func(text []byte) { floorsText = text }(floorsText)
	floorsText = []byte(strings.Join(floorHead(), ",") + "\n")
	r := &Result{Data: "x", Detector: outlier.HBOS, Runs: 1, Calls: 1010, Normal: 1000, Planted: 10, Found: 10, FirstCalls: 100}
	write := func(results ...*Result) string {
		t.Helper()
		var text bytes.Buffer
		if err := WriteFloors(&text, results); err != nil {
			t.Fatal(err)
		}
		floorsText = text.Bytes()
		return text.String()
	}
	text := write(r, r)
	floors, err := Floors()
	if err != nil {
		t.Fatal(err)
	}
	if bounds := floors[claimKey{"x", outlier.HBOS}]; len(floors) != 1 || bounds["recall"] != 0.99 || bounds["per_million"] != 1 {
		t.Errorf("%s\ngot %v", text, floors)
	}
	other := *r
	other.Detector = outlier.SSTD
	if both := write(&other); !strings.HasPrefix(both, text) || both == text || write(r) != both {
		t.Errorf("lines without results are not kept: %s", both)
	}
	if err := floors.Below(r); err != nil {
		t.Error(err)
	}
}

func TestTableIsAligned(t *testing.T) {
	r := &Result{Data: "normal", Detector: outlier.HBOS, Runs: 1, Calls: 1010, Normal: 1000, Planted: 10, Found: 10, FirstCalls: 100}
	var page bytes.Buffer
	found := &FindingResult{Data: "normal", Report: FindingCounts{
		Runs: 2, Lost: 1000, Covered: 999, Troubles: 4, Named: 3, Others: 3, OthersShare: 0.005, Recorded: 2000, Unexplained: 1,
		Stops: 8, StopsFound: 6, StopsNamed: 4,
	}}
	if err := WriteMarkdown(&page, []*Result{r, {Data: "heat2d-large-BP5", Detector: outlier.SSTD, Runs: 1}},
		[]*FindingResult{found}, nil, []string{"gpu-BP5"}); err != nil {
		t.Fatal(err)
	}
	var tables [][]int // widths of their lines
	inTable := false
	for line := range strings.Lines(page.String()) {
		isRow := strings.HasPrefix(line, "|")
		if isRow && !inTable {
			tables = append(tables, nil)
		}
		if inTable = isRow; isRow {
			last := &tables[len(tables)-1]
			*last = append(*last, len([]rune(line)))
		}
	}
	ragged := slices.ContainsFunc(tables, func(width []int) bool { return slices.Min(width) != slices.Max(width) })
	if len(tables) != 3 || len(tables[0]) != 4 || len(tables[2]) != 4 || ragged {
		t.Errorf("lines of the tables are %v characters wide:\n%s", tables, page.String())
	}
	for _, want := range []string{"10/10 (84/107)", "(236/323*)", "\\* The original with", "archives were missing: gpu-BP5.", "covered in each data set: **1 of 1 data sets**"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in\n%s", want, page.String())
		}
	}
}

func TestFindingsOfHalvesAreShownApart(t *testing.T) {
	r := &FindingResult{Data: "x"}
	one := FindingCounts{
		Runs: 1, Lost: 1000, Covered: 999, Troubles: 2, Named: 1, Others: 1, OthersShare: 0.0025, Notes: 1, NotesShare: 0.0125,
		Lists: []string{"a"},
	}
	for i := range 10 {
		c := one
		if i == 3 {
			c.Lists = []string{"b"}
		}
		r.add(&c, i%2 == 0)
	}
	got := strings.Join(findingRow(r), " | ")
	if want := "x | 99.9 | 5/10 | 1 (0.25 %), notes 1 (1.2 %) | 99.9 | 5/10 | 1 (0.25 %), notes 1 (1.2 %) | – | – | 9/10"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	stops := FindingCounts{Runs: 1, Stops: 15, StopsFound: 14, StopsNamed: 12, Recorded: 1_000_000, Unexplained: 29}
	got = strings.Join(findingRow(&FindingResult{Data: "y", Fit: stops}), " | ")
	if want := "y | – | – | 0 | – | – | – | 14/12/15 | 29 | –"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestListHasKindPlaceAndFunctionOfListedFindings(t *testing.T) {
	f := provenance.Finding{Kind: provenance.Outlier, Func: "f", Ranks: []trace.Rank{3}, Hosts: []string{"n1"}, Share: 0.1, Status: provenance.Confirmed}
	minor, wide := f, f
	minor.Share = 0
	wide.Ranks = []trace.Rank{3, 4}
	if got, want := listOf([]provenance.Finding{f, minor, wide, f}), "0 outlier n1 f\n0 outlier rank 3 f"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCallWithVictimIsCulprit(t *testing.T) {
	links := NewLinks([]provenance.Link{
		{PID: 1, EventID: "0:0:1", Finding: 3, Role: provenance.Victim, Culprit: "1:0:1", CulpritPID: 1},
		{PID: 1, EventID: "1:0:1", Finding: 2},
		{PID: 1, EventID: "2:0:1", Finding: 2, Role: provenance.Culprit},
	})
	f := func(program trace.Program, event string, finding int, culprit bool) {
		t.Helper()
		flag := truth.Flag{Program: program, Event: event, Induced: true}
		if links.Set(&flag); flag.Finding != finding || flag.Culprit != culprit || flag.Induced == culprit {
			t.Errorf("%s: got %+v", event, flag)
		}
	}
	f(1, "0:0:1", 3, false)
	f(1, "1:0:1", 2, true)
	f(1, "2:0:1", 2, true)
	f(0, "2:0:1", 0, false)
}
