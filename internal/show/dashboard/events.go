package dashboard

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"sort"

	"github.com/chimbuko/chimbuko/internal/store/query"
)

// listed is an event of a list.
type listed struct {
	place
	text json.RawMessage
}

// events is a page of events, as chimbuko anomalies lists them. Who follows next
// sees each event once that is there all the time, also while others are stored
// or withdrawn.
func (s *server) events(ctx context.Context, q *asked) (any, error) {
	filter, limit, text := q.p.filter(), q.p.limit(100, maxRows), q.p.text("cursor")
	hash := filterHash(q.Run.ID, filter)
	var after *cursor
	if text != "" {
		var err error
		if after, err = parseCursor(text, hash); err != nil {
			q.p.fail("cursor", "%w", err)
		}
	}
	if limit == 0 {
		q.p.fail("limit", "a page has at least one event")
	}
	if err := q.p.done(); err != nil {
		return nil, err
	}
	if after != nil {
		q.Begin = after.Begin
	}
	page, offset, err := q.page(ctx, filter, after, limit)
	if err != nil {
		return nil, err
	}
	l := list{Rows: []json.RawMessage{}}
	for _, e := range page[:min(limit, len(page))] {
		l.Rows = append(l.Rows, e.text)
	}
	if len(page) > limit {
		next := &cursor{place: page[limit-1].place, Offset: min(offset+limit, math.MaxInt32), Begin: q.Begin, Filter: hash}
		l.Next = next.String()
	}
	return l, nil
}

// page returns the events after a cursor, nil for the begin: limit+1 of them
// unless the list ends. offset is how many are before them. The store counts rows
// only, so events that came or went since shift the place where the page begins,
// and it must be found anew.
func (q *asked) page(ctx context.Context, f query.Filter, after *cursor, limit int) (page []listed, offset int, err error) {
	if after == nil {
		page, err = q.fetch(ctx, f, 0, limit+1)
		return page, 0, err
	}
	offset = after.Offset
	for range maxTries {
		before := min(offset, 1) // the event before the page is read, too
		all, err := q.fetch(ctx, f, offset-before, before+limit+1)
		if err != nil {
			return nil, 0, err
		}
		fits := len(all) >= before && (before == 0 || all[0].compare(after.place) <= 0)
		if fits && (len(all) == before || all[before].compare(after.place) > 0) {
			return all[before:], offset, nil
		}
		if offset, err = q.locate(ctx, f, after); err != nil {
			return nil, 0, err
		}
	}
	return nil, 0, &problem{http.StatusServiceUnavailable, "events come and go faster than they can be listed", "try again in a moment"}
}

// maxTries is how often the begin of a page is looked for.
const maxTries = 5

// locate counts the events that are not after a cursor.
func (q *asked) locate(ctx context.Context, f query.Filter, after *cursor) (int, error) {
	var err error
	past := func(i int) bool { // whether the event i is after the cursor, or the list ends before
		var one []listed
		if err == nil {
			one, err = q.fetch(ctx, f, i, 1)
		}
		return len(one) == 0 || one[0].compare(after.place) > 0
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

// fetch reads some events of the list.
func (q *asked) fetch(ctx context.Context, f query.Filter, offset, limit int) (all []listed, err error) {
	f.Offset, f.Limit = offset, limit
	rows, err := q.Executions(ctx, f)
	if err != nil {
		return nil, err
	}
	size := 0
	for row, err := range rows.All {
		if err != nil {
			return nil, err
		}
		text, err := object(rows.Columns, row)
		if size += len(text); err == nil && size > maxAnswer {
			err = errTooLarge
		}
		if err != nil {
			_ = rows.Close() // err says more
			return nil, err
		}
		all = append(all, listed{placeOf(rows.Columns, row, f.Order, q.Begin), text})
	}
	return all, nil
}
