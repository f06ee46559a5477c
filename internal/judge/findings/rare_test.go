package findings_test

import (
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestRareCallsByDesignAreNotes(t *testing.T) {
	type call struct {
		rank int
		at   float64 // seconds
	}
	f := func(what string, noted bool, words string, calls ...call) {
		t.Helper()
		s := newScene(3, "work 4000 1000000", "rare 10 1000000")
		for _, c := range calls {
			s.slow("rare", c.rank, trace.Ticks(c.at*second), 50_000)
			s.Anomalies[len(s.Anomalies)-1].Kind = provenance.RarelyCalled
		}
		got := s.conclude().Findings
		if len(got) != 1 || got[0].Kind != "outlier" || got[0].Form != "rare" || got[0].Noted() != noted || got[0].Listed() == noted ||
			!strings.HasSuffix(got[0].Summary, "it is rarely called"+words) {
			t.Errorf("%s: got %+v", what, got)
		}
	}
	f("on one rank", false, "", call{1, 2}, call{1, 3}, call{1, 7})
	f("on two of three ranks", false, "", call{0, 2}, call{1, 2.1}, call{0, 7}, call{1, 7.1})
	f("on all ranks at different times", false, "", call{0, 2}, call{1, 4}, call{2, 7})
	f("more often on one rank", false, "", call{0, 2}, call{1, 2}, call{2, 2}, call{0, 7})
	f("on all ranks at once", true, ", by all ranks at once", call{0, 2}, call{1, 2.1}, call{2, 1.9})
	f("perhaps periodic", false, "", call{1, 1}, call{1, 4}, call{1, 7})
	f("periodic", true, ", every 2.03 s", call{1, 1}, call{1, 3}, call{1, 5}, call{1, 7.1})
}
