package otf2

import (
	"fmt"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Locations returns the numbers of locations by "rank:thread".
func (a *Archive) Locations() map[string]string {
	all := make(map[string]string, len(a.places))
	for i := range a.places {
		p := &a.places[i]
		all[fmt.Sprint(p.rank, ":", p.thread)] = strconv.FormatUint(p.id, 10)
	}
	return all
}

// Time returns a time of the archive's clock in the unit of the archive.
func (a *Archive) Time(ticks uint64) trace.Ticks { return a.ticks(ticks) }
