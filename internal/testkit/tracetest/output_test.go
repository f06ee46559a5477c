package tracetest_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestProgressIsRecognized(t *testing.T) {
	for _, line := range []string{
		"reading:  73 %, 598,472 events, 0.1 million/s, 1,064 flagged, 2s left",
		"reading, pass 2 of 3:   0 %, 0 events, 0.0 million/s, 0 flagged",
		"reviewing and storing records: 100 %, 7 of 7, 0s left", "closing the store", "finding the causes of 1,064 anomalies, for 1m5s",
		"storing profiles, models and findings, for 5s",
	} {
		if got := tracetest.WithoutProgress("a\n" + line + "\nb\n"); got != "a\nb\n" {
			t.Errorf("got %q", got)
		}
	}
}
