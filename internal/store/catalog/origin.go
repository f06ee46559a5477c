package catalog

import (
	"strings"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Origin is the ID of a record. Stores keep the IDs of its context relative to it.
type Origin struct {
	Step int32 // -1 if the ID is not rank:step:row
	Row  int64

	r      *provenance.Record
	prefix string // of the ID, without the row
}

// NewOrigin returns the origin of a record. It returns false if the ID of the record is not rank:step:row.
func NewOrigin(r *provenance.Record) (o Origin, ok bool) {
	o.r = r
	if o.Step, o.Row, ok = ParseID(r.EventID, r.RID); !ok {
		o.Step, o.Row = -1, -1
		return o, false
	}
	o.prefix = r.EventID[:strings.LastIndexByte(r.EventID, ':')+1]
	return o, true
}

// Relative returns the step and the row of an ID relative to those of the origin, and false if it is not an ID of the
// record's rank. Most IDs differ only in the row.
func (o *Origin) Relative(id string) (step, row int64, ok bool) {
	digits, same := strings.CutPrefix(id, o.prefix)
	if !same || o.prefix == "" || digits == "" || len(digits) > 9 || digits[0] == '0' && digits != "0" {
		return o.parse(id)
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return o.parse(id)
		}
		row = 10*row + int64(digits[i]-'0')
	}
	return 0, row - o.Row, true
}

func (o *Origin) parse(id string) (step, row int64, ok bool) {
	s, row, ok := ParseID(id, o.r.RID)
	return int64(s) - int64(o.Step), row - o.Row, ok
}
