package cursor_test

import (
	"math"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/cursor"
)

// FuzzCursor checks that accepted cursors are within bounds and encode to themselves.
func FuzzCursor(f *testing.F) {
	f.Add((&cursor.Cursor{Place: cursor.Place{Value: 1.5, Rank: 3, ID: "3:1:7"}, Offset: 10, Begin: 1_700_000_000_000_000, Filter: "x"}).String())
	f.Add((&cursor.Cursor{Place: cursor.Place{Value: -1e300, Program: 1, Rank: 3, ID: "odd"}, Offset: 1, Filter: "x"}).String())
	f.Add("e30")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := cursor.Parse(text, "x")
		if err != nil {
			return
		}
		if c.Offset < 1 || c.Offset > math.MaxInt32 {
			t.Errorf("offset %d", c.Offset)
		}
		again, err := cursor.Parse(c.String(), "x")
		if err != nil || *again != *c || c.Compare(again.Place) != 0 {
			t.Errorf("%+v reads back as %+v, %v", c, again, err)
		}
	})
}
