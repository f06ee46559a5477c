// Package cursor marks the end of a page of a list of events, so that the next page begins there even if the list has
// changed.
package cursor

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Place is the position of an event in an ordered list.
type Place struct {
	Value   float64 `json:"v"` // value that orders the list
	Program int64   `json:"p"`
	Rank    int64   `json:"r"`
	ID      string  `json:"e"`
}

// Cursor is the end of a page: its last event, and the number of events up to it when the
// page was read. It is opaque to clients.
type Cursor struct {
	Place
	Offset int         `json:"o"`
	Begin  trace.Ticks `json:"b"` // of the run for the first page; it may change while the run continues
	Filter string      `json:"f"` // hash of the filter of the list
}

// maxBegin bounds the start of a run in ticks.
const maxBegin = 1 << 62

// maxCursor bounds cursors; those of this package are shorter.
const maxCursor = 8 << 10

func (c *Cursor) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // all numbers are finite
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// Parse decodes the cursor of a list with this filter hash.
func Parse(text, filter string) (*Cursor, error) {
	if len(text) > maxCursor {
		return nil, errors.New("too long")
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	c := new(Cursor)
	if err == nil {
		err = json.Unmarshal(raw, c)
	}
	switch {
	case err != nil || c.Offset < 1 || c.Offset > math.MaxInt32 || c.Begin > maxBegin || c.Begin < -maxBegin:
		return nil, errors.New("not a value of next")
	case c.Filter != filter:
		return nil, errors.New("from another list (keep all parameters but limit)")
	}
	return c, nil
}

// Hash identifies a list. It does not depend on the limit.
func Hash(run provdb.RunID, f executions.Filter) string {
	f.Limit, f.Offset = 0, 0
	text, err := json.Marshal(f)
	if err != nil {
		panic(err) // all numbers are finite
	}
	sum := sha256.Sum256(fmt.Appendf(text, "%d", run))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// orderColumns are the columns by which events are ordered.
var orderColumns = map[string]string{"severity": "severity", "lost": "lost_us", "score": "score", "time": "at_s"}

// At returns the place of a row.
func At(columns []provdb.Column, row []any, order string, unit trace.Unit, begin trace.Ticks) (p Place) {
	values := make(map[string]any, len(columns))
	for i, c := range columns {
		values[c.Name] = row[i]
	}
	p.Program, _ = values["program"].(int64)
	p.Rank, _ = values["rank"].(int64)
	p.ID, _ = values["event_id"].(string)
	switch v := values[orderColumns[order]].(type) {
	case float64:
		p.Value = v
	case int64:
		p.Value = float64(v)
	}
	if order == "time" { // ascending, unlike the others
		if p.Value = -math.Round(p.Value * unit.PerSecond()); unit.Canonical() == 0 {
			p.Value -= float64(begin) // it has too many digits otherwise
		}
	}
	return p
}

// Compare orders events like the store: descending by value, then by the parts of their
// names.
func (p Place) Compare(o Place) int {
	pStep, pRow, pText := p.parts()
	oStep, oRow, oText := o.parts()
	return cmp.Or(cmp.Compare(o.Value, p.Value), cmp.Compare(p.Program, o.Program), cmp.Compare(p.Rank, o.Rank),
		cmp.Compare(pStep, oStep), cmp.Compare(pRow, oRow), strings.Compare(pText, oText))
}

// parts returns step and row of the id, or -1 and an id of another form.
func (p Place) parts() (step, row int64, text string) {
	parts := strings.Split(p.ID, ":")
	if len(parts) == 3 && parts[0] == strconv.FormatInt(p.Rank, 10) {
		step, err1 := strconv.ParseInt(parts[1], 10, 32)
		row, err2 := strconv.ParseInt(parts[2], 10, 64)
		if err1 == nil && err2 == nil && p.ID == fmt.Sprintf("%d:%d:%d", p.Rank, step, row) {
			return step, row, ""
		}
	}
	return -1, -1, p.ID
}
