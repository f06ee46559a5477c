package insight

import (
	"context"
	"encoding/json"
	"math"
	"sort"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/cursor"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// listRow is an event of a list.
type listRow struct {
	cursor.Place
	text json.RawMessage
}

// EventsParams select a page of executions.
type EventsParams struct {
	Filter executions.Filter
	Limit  int
	Cursor string // Next of the previous page; empty: the first page
}

// Events returns a page of executions. Following Next yields each execution that exists
// throughout exactly once, while others are stored or withdrawn.
func (in *Insight) Events(ctx context.Context, run string, of EventsParams) (*api.List, error) {
	return read(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.List, error) { return q.events(ctx, of) })
}

func (q *runQuery) events(ctx context.Context, of EventsParams) (*api.List, error) {
	hash := cursor.Hash(q.Run.ID, of.Filter)
	var after *cursor.Cursor
	if of.Cursor != "" {
		var err error
		if after, err = cursor.Parse(of.Cursor, hash); err != nil {
			return nil, api.Problemf(api.Invalid, api.ParamsHint, "parameter cursor: %v", err)
		}
		q.Begin = after.Begin
	}
	page, offset, err := q.page(ctx, of.Filter, after, of.Limit)
	if err != nil {
		return nil, err
	}
	l := &api.List{Rows: []json.RawMessage{}}
	for _, e := range page[:min(of.Limit, len(page))] {
		l.Rows = append(l.Rows, e.text)
	}
	if len(page) > of.Limit {
		next := &cursor.Cursor{Place: page[of.Limit-1].Place, Offset: min(offset+of.Limit, math.MaxInt32), Begin: q.Begin, Filter: hash}
		l.Next = next.String()
	}
	return l, nil
}

// page returns up to limit+1 events after a cursor, or from the start if that is nil, and
// their offset. The store only counts rows, so the offset must be searched again if events
// before it were added or removed.
func (q *runQuery) page(ctx context.Context, f executions.Filter, after *cursor.Cursor, limit int) (page []listRow, offset int, err error) {
	if after == nil {
		page, err = q.fetch(ctx, f, 0, limit+1)
		return page, 0, err
	}
	offset = after.Offset
	for range maxTries {
		before := min(offset, 1) // also read the event before the page
		all, err := q.fetch(ctx, f, offset-before, before+limit+1)
		if err != nil {
			return nil, 0, err
		}
		fits := len(all) >= before && (before == 0 || all[0].Compare(after.Place) <= 0)
		if fits && (len(all) == before || all[before].Compare(after.Place) > 0) {
			return all[before:], offset, nil
		}
		if offset, err = q.locate(ctx, f, after); err != nil {
			return nil, 0, err
		}
	}
	return nil, 0, api.Problemf(api.Unavailable, "try again in a moment", "the list changes too fast")
}

// maxTries bounds the searches for the start of a page.
const maxTries = 5

// locate counts the events up to a cursor.
func (q *runQuery) locate(ctx context.Context, f executions.Filter, after *cursor.Cursor) (int, error) {
	var err error
	past := func(i int) bool { // event i is after the cursor or the end of the list
		var one []listRow
		if err == nil {
			one, err = q.fetch(ctx, f, i, 1)
		}
		return len(one) == 0 || one[0].Compare(after.Place) > 0
	}
	low, high := after.Offset, after.Offset
	for step := 1; low > 0 && past(low-1); step *= 4 {
		low = max(0, low-step)
	}
	for step := 1; !past(high); step *= 4 {
		low, high = high, high+step
	}
	n := low + sort.Search(high-low, func(i int) bool { return past(low + i) })
	return n, err
}

// fetch reads events of the list.
func (q *runQuery) fetch(ctx context.Context, f executions.Filter, offset, limit int) ([]listRow, error) {
	f.Offset, f.Limit = offset, limit
	rows, err := q.Executions(ctx, f)
	return encodeRows(rows, err, func(row []any, object json.RawMessage) listRow {
		return listRow{cursor.At(rows.Columns, row, f.Order, q.Unit, q.Begin), object}
	})
}

// ExecutionsPDB returns records for the dashboard of the original Chimbuko.
func (in *Insight) ExecutionsPDB(ctx context.Context, run string, of query.ExecutionsPDB) ([]json.RawMessage, error) {
	return read(ctx, in, run, func(ctx context.Context, q *runQuery) ([]json.RawMessage, error) {
		rows, size := []json.RawMessage{}, 0
		for doc, err := range q.ExecutionsPDB(ctx, of) {
			if err != nil {
				return nil, err
			}
			if size += len(doc); size > maxAnswer {
				return nil, api.Problemf(api.TooLarge, "request fewer steps, or one rank", "the answer has more than %d bytes", maxAnswer)
			}
			rows = append(rows, doc)
		}
		return rows, nil
	})
}
