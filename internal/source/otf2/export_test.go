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

// Numbers reads compressed numbers from b, with the given bytes of memory after it. It returns them as the fast and the general way
// read them, each with positions and errors.
func Numbers(b []byte, spare int, big bool) (fast, general string) {
	read := func(number func(*cursor) uint64) string {
		c := &cursor{data: append(make([]byte, 0, len(b)+spare), b...), end: len(b), big: big}
		var all []byte
		for c.more() {
			all = fmt.Appendf(all, "%d until %d, ", number(c), c.pos)
		}
		return fmt.Sprint(string(all), c.err)
	}
	return read((*cursor).number), read((*cursor).anyNumber)
}
