package findings

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Keys returns names of findings that stay the same while their numbers change. A key depends on program, function, call path,
// kind and cause, and for interference and slow peers on the place, but not on the number of anomalies or on whether they
// recur.
func Keys(findings []provenance.Finding) []string {
	keys := make([]string, len(findings))
	byNumber := make(map[int]string)
	for _, caused := range []bool{false, true} {
		for i := range findings {
			x := &findings[i]
			if (x.Cause > 0) != caused {
				continue
			}
			place := fmt.Sprint(x.Hosts)
			if len(x.Ranks) == 1 {
				place = fmt.Sprint(x.Ranks)
			}
			kind := x.Kind
			switch {
			case kind == provenance.RecurringMode: // an outlier may become one while the run continues
				kind = provenance.Outlier
			case kind != provenance.Interference && !x.OfPeers():
				place = ""
			}
			h := sha256.New()
			withdrawn, victim := x.Status == provenance.Withdrawn, x.Role == provenance.Victim
			parts := []any{x.PID, x.Func, x.Path, kind, place, withdrawn, victim, byNumber[x.Cause]}
			if kind == provenance.Interference { // one place may have several forms
				parts = append(parts, x.Form)
			}
			if kind == provenance.Waiting && x.Role == provenance.Culprit { // unlike waits of unknown cause
				parts = append(parts, x.Role)
			}
			for _, part := range parts {
				fmt.Fprintf(h, "%v\x00", part)
			}
			keys[i] = hex.EncodeToString(h.Sum(nil)[:8])
			if !caused {
				byNumber[x.Number] = keys[i]
			}
		}
	}
	return keys
}
