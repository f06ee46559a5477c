package evaluate

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestAllStatusesButWithdrawnCount(t *testing.T) {
	f := func(status provenance.Status, want int) {
		t.Helper()
		flags := new(truth.Truth).Matcher()
		if err := (&matcher{Matcher: flags}).addFlag(&provenance.Record{Status: status}); err != nil || flags.Flags() != want {
			t.Errorf("%q: got %d flags and %v, want %d", status, flags.Flags(), err, want)
		}
	}
	f("", 1)
	f(provenance.Confirmed, 1)
	f(provenance.Promoted, 1)
	f(provenance.Provisional, 1)
	f(provenance.Withdrawn, 0)
	if err := (&matcher{Matcher: new(truth.Truth).Matcher()}).addFlag(&provenance.Record{Status: "perhaps"}); err == nil {
		t.Error("an unknown status is accepted")
	}
}
