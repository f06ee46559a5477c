package output_test

import (
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
		{Number: 3, Kind: provenance.RecurringMode, Status: provenance.Provisional, Summary: "2 % are slow"},
	}
	l := output.FindingList{All: all, Listed: all, Differs: func(x *provenance.Finding) (string, error) {
		return "All ran on node" + string(rune('0'+x.Number)), nil
	}}
	var b strings.Builder
	if err := l.Answer().Text(&b); err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]bool{
		"1 % are slow": true, "All ran on node1": true, "Rank 3 was slow": true, "All ran on node2": false, "2 % are slow": true, "node3": false,
	} {
		if strings.Contains(b.String(), words) != want {
			t.Errorf("%q is in the list: %v, want %v\n%s", words, !want, want, b.String())
		}
	}
}

func TestEvidenceSaysWhenItIsWrong(t *testing.T) {
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
