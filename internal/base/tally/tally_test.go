package tally_test

import (
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
)

func TestNamesAndSentencesAreUnique(t *testing.T) {
	names, sentences := make(map[string]bool), make(map[string]bool)
	for k := range tally.NumKinds {
		name, sentence := k.Name(), k.Sentence()
		if name == "" || strings.ContainsAny(name, " _") || names[name] {
			t.Errorf("count %d is called %q", k, name)
		}
		if len(strings.Fields(sentence)) < 5 || sentences[sentence] || strings.HasSuffix(sentence, ".") {
			t.Errorf("%s is explained by %q", name, sentence)
		}
		names[name], sentences[sentence] = true, true
	}
}

func TestMerge(t *testing.T) {
	var a, b tally.Tally
	a.Add(tally.OutOfOrder, 2)
	b.Add(tally.OutOfOrder, 3)
	b.Add(tally.ExitLost, 1)
	a.Merge(&b)
	a.Merge(nil)
	if a.Count(tally.OutOfOrder) != 5 || a.Count(tally.ExitLost) != 1 || b.Count(tally.OutOfOrder) != 3 {
		t.Errorf("got %v and %v", a, b)
	}
	seen := 0
	for kind, n := range a.All() {
		seen++
		if n != a.Count(kind) || n == 0 {
			t.Errorf("%s is %d", kind.Name(), n)
		}
	}
	if seen != 2 {
		t.Errorf("%d counts are not zero, want 2", seen)
	}
}

func TestNilTally(t *testing.T) {
	var none *tally.Tally
	none.Add(tally.OutOfOrder, 1)
	none.Merge(new(tally.Tally))
	for range none.All() {
		t.Error("something was remembered")
	}
	if none.Count(tally.OutOfOrder) != 0 {
		t.Error("something was counted")
	}
}
