package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// runs lists the runs of the store, as chimbuko runs does, and tells which one is
// watched. Without a store that is the only one.
func (s *server) runs(r *http.Request) (any, error) {
	if err := newParams(r).done(); err != nil {
		return nil, err
	}
	answer := struct {
		Rows    []json.RawMessage `json:"rows"`
		Watched string            `json:"watched"`
	}{[]json.RawMessage{}, s.Run}
	reader := s.Source.Reader()
	if reader == nil {
		return answer, nil
	}
	ctx, done, err := s.slot(r.Context())
	if err != nil {
		return nil, err
	}
	defer done()
	answer.Rows, err = objects(reader.Query(ctx, statement("runs"), nil))
	return answer, err
}

// oneRun is a run with its settings and totals.
func (s *server) oneRun(ctx context.Context, q *asked) (any, error) {
	if err := q.p.done(); err != nil {
		return nil, err
	}
	rows, err := objects(q.Query(ctx, statement("runs"), q.Run.Name))
	if err != nil || len(rows) != 1 {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	info := q.Run.Info
	if info == nil {
		info = json.RawMessage("null")
	}
	return json.RawMessage(strings.TrimSuffix(string(rows[0]), "}") + `,"info":` + string(info) + "}"), nil
}

// How much a snapshot shows, unless the client says how much.
const (
	snapshotTop    = 10
	snapshotNewest = 20
)

// snapshot is what one page needs: the state of the pipeline if the run is the
// watched one, what lost most, and the newest anomalies. What the store cannot
// answer now is left out, with the reason as Problem.
type snapshot struct {
	Status  *api.Status       `json:"status,omitempty"`
	Top     []json.RawMessage `json:"top,omitzero"`
	Newest  []json.RawMessage `json:"newest,omitzero"`
	Problem *problem          `json:"problem,omitempty"`
}

func (s *server) snapshotAnswer(r *http.Request) (any, error) {
	p := newParams(r)
	top, newest := int(p.integer("top", snapshotTop, 0, maxRows)), int(p.integer("newest", snapshotNewest, 0, maxRows))
	if err := p.done(); err != nil {
		return nil, err
	}
	return s.snapshot(r.Context(), r.PathValue("run"), top, newest)
}

// snapshot fails if neither the source nor the store knows of the run.
func (s *server) snapshot(ctx context.Context, run string, top, newest int) (*snapshot, error) {
	answer := new(snapshot)
	var err error
	if run == s.Run {
		if answer.Status, err = s.Source.Status(ctx); err != nil {
			return nil, err
		}
	}
	err = s.fill(ctx, run, answer, top, newest)
	if err != nil && answer.Status == nil {
		return nil, err
	}
	if err != nil {
		answer.Problem = asProblem(err)
	}
	return answer, nil
}

// fill adds what the store knows.
func (s *server) fill(ctx context.Context, run string, answer *snapshot, top, newest int) error {
	ctx, done, err := s.slot(ctx)
	if err != nil {
		return err
	}
	defer done()
	a, err := s.asker(ctx, run)
	if err != nil {
		return err
	}
	body, err := s.remember(&a.Run, fmt.Sprintf("snapshot %d %d", top, newest), func() (any, error) {
		var of snapshot
		var err error
		if of.Top, err = objects(a.Top(ctx, query.Top{By: "function", Order: "lost", Limit: top})); err != nil {
			return nil, err
		}
		of.Newest, err = newestOf(ctx, a, newest)
		return of, err
	})
	if err != nil {
		return err
	}
	return json.Unmarshal(body, answer)
}

// newestOf are the anomalies that were entered last, the newest first.
func newestOf(ctx context.Context, a *query.Asker, n int) ([]json.RawMessage, error) {
	rows, err := a.Query(ctx, statement("newest"), int32(a.Run.ID), int64(n))
	if err != nil {
		return nil, err
	}
	found, err := rows.Collect()
	if err != nil || len(found) == 0 || found[0][0] == nil {
		return []json.RawMessage{}, err
	}
	since := trace.Micros(found[0][0].(int64)) - a.Begin
	// Several may have been entered at the same time as the first of them.
	all, err := objects(a.Executions(ctx, query.Filter{Since: &since, Order: "time", Limit: n + maxRows}))
	if err != nil {
		return nil, err
	}
	all = all[max(0, len(all)-n):]
	slices.Reverse(all)
	return all, nil
}

// event is one record as it is stored.
func (s *server) event(ctx context.Context, q *asked) (any, error) {
	program := q.p.program()
	if err := q.p.done(); err != nil {
		return nil, err
	}
	e, err := q.record(ctx, program)
	if err != nil {
		return nil, err
	}
	return e.Document, nil
}
