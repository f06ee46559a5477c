package output_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/output"
)

func TestFindingsDescribeWhatDiffers(t *testing.T) {
	all := []provenance.Finding{
		{Number: 1, Kind: provenance.RecurringMode, Status: provenance.Confirmed, Summary: "1 % are slow"},
		{Number: 2, Kind: provenance.LastingChange, Status: provenance.Confirmed, Ranks: []trace.Rank{3}, Summary: "Rank 3 was slow"},
	}
	l := output.FindingList{All: all, Listed: all, Differs: []string{"All ran  on node1"}}
	var b strings.Builder
	if err := l.Answer().Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"1 % are slow", "All ran on node1", "Rank 3 was slow"} {
		if !strings.Contains(b.String(), words) {
			t.Errorf("%q is not in the list\n%s", words, b.String())
		}
	}
	text, err := json.Marshal(l.Answer().JSON)
	if err != nil || strings.Count(string(text), `"differs":"All ran on node1"`) != 1 || strings.Count(string(text), "differs") != 1 {
		t.Errorf("the list for programs is %s (%v)", text, err)
	}
}

func TestCostliestNotesAreShown(t *testing.T) {
	var all []provenance.Finding
	for i, summary := range []string{"first", "second", "third", "fourth"} {
		all = append(all, provenance.Finding{
			Number: i + 1, Kind: provenance.RecurringMode, Status: provenance.Confirmed, Severity: provenance.Note, Share: 0.4 - 0.1*float64(i),
			Summary: summary,
		})
	}
	l := output.FindingList{All: all, Listed: all}
	var b strings.Builder
	if err := l.Answer().Text(&b); err != nil {
		t.Fatal(err)
	}
	const want = `No findings.

4 notes about normal behavior, 100.0 % of the time (--notes lists them)
  first: 40.0 % of the time
  second: 30.0 % of the time
  third: 20.0 % of the time
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestEvidenceStatesWhenItIsInvalid(t *testing.T) {
	for words, x := range map[string]provenance.Finding{
		"these ranks had other work than the rest": {Kind: provenance.LastingChange, Ranks: []trace.Rank{3}},
		"the program's work changed":               {Kind: provenance.LastingChange},
	} {
		var b strings.Builder
		if err := (&output.Evidence{Finding: &x}).Answer().Text(&b); err != nil || !strings.Contains(b.String(), words) {
			t.Errorf("%v, want %q in\n%s", err, words, b.String())
		}
	}
}

func TestEvidenceNamesThreadsAndLateParty(t *testing.T) {
	e := &output.Evidence{
		Finding:  &provenance.Finding{Number: 1, Kind: provenance.Outlier, Form: provenance.Rare, Late: provenance.LateDevice, Calls: 2, Actual: 7},
		Examples: []*provenance.Record{{EventID: "2:0:1", RID: 2, TID: 5}, {EventID: "2:0:2", RID: 2, TID: 6}},
		Threads:  map[trace.RankKey]map[trace.Thread]string{{Rank: 2}: {5: "stream 7"}},
	}
	a := e.Answer()
	var b strings.Builder
	if err := a.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^  calls       2, typically 7 us$`, `(?m)^  late        the device`, `(?m)^2:0:1 +2 +stream 7 +`, `(?m)^2:0:2 +2 +6 +`,
	} {
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
	text, err := json.Marshal(a.JSON)
	if err != nil || !strings.Contains(string(text), `"late":"device"`) || strings.Count(string(text), `"thread_name":"stream 7"`) != 1 {
		t.Errorf("%v: got %s", err, text)
	}
}

func TestEvidenceStatesWhichCallsAreFlagged(t *testing.T) {
	f := func(second provenance.Record, want string) {
		t.Helper()
		first := provenance.Record{Func: "solve", AlgoParams: json.RawMessage(
			`{"histogram":{"Histogram Bin Counts":[5,5],"Histogram Bin Edges":[0,10,20]},"normal":[[1,20]]}`)}
		e := &output.Evidence{
			Finding: &provenance.Finding{Number: 1, Kind: provenance.Outlier}, Examples: []*provenance.Record{&first, &second},
		}
		var b strings.Builder
		if err := e.Answer().Text(&b); err != nil || !strings.Contains(b.String(), "\n"+want+"\n") {
			t.Errorf("%v, want %q in\n%s", err, want, b.String())
		}
	}
	f(provenance.Record{Func: "solve"}, "Calls above 20 us are flagged.")
	f(provenance.Record{Func: "send"}, "Calls of solve above 20 us are flagged.")
	for _, why := range []string{
		"took 9 us, not rare, but it made other ranks wait or waited for an anomaly",
		"took 9 us, not rare, but it explains waits of other ranks", // version 1.0
	} {
		f(provenance.Record{Func: "send", Why: why},
			"Calls of solve above 20 us are flagged, and shorter ones that made other ranks wait or waited for an anomaly.")
	}
}
