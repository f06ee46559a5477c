// Package insight answers queries about runs: overviews, findings, evidence, heatmaps, functions,
// flame graphs, explanations. It reads a store and the state of the pipeline, caches shared data,
// and bounds concurrent queries. It does not depend on HTTP: dashboard, report and terminal call
// it.
package insight

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/memo"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Source provides the data of an Insight. It must be safe for concurrent use.
type Source interface {
	// Status returns the present state of the pipeline. It should return within a second,
	// because every page, scrape and stream waits for it. Neither side may change the
	// returned value.
	Status(ctx context.Context) (*api.Status, error)
	// Reader returns the store, or nil while this process has none. It is called for each
	// query.
	Reader() provdb.Reader
}

// Config is the configuration of an Insight. Defaults are in parentheses.
type Config struct {
	Source   Source
	Run      string // name of the run that Status describes
	Place    string // directory, file or address of the runs in command lines, without secrets; may be empty
	Host     string // name of the machine that serves the page; may be empty
	Build    string // version of this program; may be empty
	Labels   Labels // of findings; nil: none
	ReadOnly bool   // labels cannot be set

	Timeout    time.Duration // of one query (30 s)
	MaxQueries int           // concurrent queries; others wait (4)
	SQLMemory  int64         // bytes that a statement of a user may use (the default of the store)
}

// Insight answers queries about runs. It is safe for concurrent use.
type Insight struct {
	Config
	slots chan struct{} // one for each running query

	begins     startTimes
	queries    memo.Memo[*query.Queries]
	runs       memo.Memo[*runData]
	conclusion memo.Memo[*conclusion]
	caches     memo.Memo[executions.Source]
	details    memo.Memo[*query.Details]
	tops       memo.Memo[[]json.RawMessage]
	lost       memo.Memo[map[ranks.LostKey]trace.Ticks]
}

// New returns an Insight. The configuration must have a source.
func New(cfg Config) *Insight {
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.MaxQueries = cmp.Or(cfg.MaxQueries, 4)
	return &Insight{
		Config: cfg, slots: make(chan struct{}, cfg.MaxQueries),
		queries: memo.Memo[*query.Queries]{Size: maxRuns}, runs: memo.Memo[*runData]{Size: maxRuns, ServeStale: true},
		conclusion: memo.Memo[*conclusion]{Size: maxRuns, ServeStale: true},
		caches:     memo.Memo[executions.Source]{Size: maxCaches, ServeStale: true},
		details:    memo.Memo[*query.Details]{Size: maxCaches, ServeStale: true},
		tops:       memo.Memo[[]json.RawMessage]{Size: maxTops, ServeStale: true},
		lost:       memo.Memo[map[ranks.LostKey]trace.Ticks]{Size: maxCaches, ServeStale: true},
	}
}

// Status returns the present state of the pipeline.
func (in *Insight) Status(ctx context.Context) (*api.Status, error) { return in.Source.Status(ctx) }

// AsProblem returns err as a Problem. Errors of the store keep their text.
func AsProblem(err error) *api.Problem {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return p
	}
	text := err.Error()
	if _, ok := errors.AsType[*executions.ChoiceError](err); ok {
		return &api.Problem{Status: api.Invalid, Message: text}
	}
	if _, ok := errors.AsType[*contrast.TermError](err); ok {
		return &api.Problem{Status: api.Invalid, Message: text, Hint: "docs/dashboard.md lists the fields"}
	}
	for _, k := range []struct {
		err    error
		status int
		hint   string
	}{
		{provdb.ErrNotFound, api.NotFound, ""},
		{provdb.ErrReadOnly, api.Forbidden, "send one SELECT; docs/sql.md lists the tables"},
		{provdb.ErrClosed, api.Unavailable, "the process is ending; open the run directory instead"},
		{provdb.ErrBusy, api.Unavailable, "try again in a moment"},
		{provdb.ErrLimit, api.TooLarge, ""},
		{provdb.ErrInUse, api.Unavailable, "try again in a moment"},
		{context.DeadlineExceeded, api.TimedOut, "request fewer rows, one rank or a shorter time"},
		{context.Canceled, api.Unavailable, "the query was canceled"},
	} {
		if errors.Is(err, k.err) {
			return &api.Problem{Status: k.status, Message: text, Hint: k.hint}
		}
	}
	return &api.Problem{Status: api.Internal, Message: text}
}

// runQuery is a query about a run.
type runQuery struct {
	*query.Queries
	data *runData // set by withData and inMemory
}

// read calls f with a run in a slot.
func read[T any](ctx context.Context, in *Insight, run string, f func(ctx context.Context, q *runQuery) (T, error)) (none T, err error) {
	limited, done, err := in.slot(ctx, in.Timeout)
	if err != nil {
		return none, err
	}
	defer done()
	a, err := in.queriesOf(limited, run)
	if err != nil {
		return none, err
	}
	a.Memory = in.caches.Peek(runKey(&a.Run))
	v, err := f(limited, &runQuery{Queries: a})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return none, fmt.Errorf("no answer within %v: %w", in.Timeout, context.DeadlineExceeded)
	}
	return v, err
}

// withData is read for queries that need the data of the run. While a large run is being
// copied into memory the store answers.
func withData[T any](ctx context.Context, in *Insight, run string, f func(ctx context.Context, q *runQuery) (T, error)) (T, error) {
	return readWith(ctx, in, run, in.caches.TryGet, f)
}

// inMemory is withData for queries that wait until the run is in memory.
func inMemory[T any](ctx context.Context, in *Insight, run string, f func(ctx context.Context, q *runQuery) (T, error)) (T, error) {
	return readWith(ctx, in, run, in.caches.Get, f)
}

// readWith reads the data before it takes a slot, since that needs slots as well.
func readWith[T any](ctx context.Context, in *Insight, run string, get getCopy,
	f func(ctx context.Context, q *runQuery) (T, error),
) (none T, err error) {
	d, err := in.data(ctx, run, get)
	if err != nil {
		return none, err
	}
	return read(ctx, in, run, func(ctx context.Context, q *runQuery) (T, error) {
		q.data, q.Begin, q.Memory = d, d.begin, d.memory
		return f(ctx, q)
	})
}

// InSlot calls f when a query may run. The context of f bounds the query.
func InSlot[T any](ctx context.Context, in *Insight, f func(ctx context.Context) (T, error)) (none T, err error) {
	ctx, done, err := in.slot(ctx, in.Timeout)
	if err != nil {
		return none, err
	}
	defer done()
	return f(ctx)
}

// slot waits for a slot for a query. The returned context bounds the query, and done frees
// the slot.
func (in *Insight) slot(ctx context.Context, timeout time.Duration) (_ context.Context, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	select {
	case in.slots <- struct{}{}:
		return ctx, func() { <-in.slots; cancel() }, nil
	case <-ctx.Done():
		cancel()
		return nil, nil, api.Problemf(api.Unavailable, "try again in a moment", "%d other queries are running", cap(in.slots))
	}
}

// queriesBy finds a run of a store. It caches the metadata of finished runs.
func (in *Insight) queriesBy(ctx context.Context, r provdb.Reader, name string) (*query.Queries, error) {
	run, err := query.Find(ctx, r, name)
	if err != nil {
		return nil, err
	}
	key := runKey(run)
	if a := in.queries.Peek(key); a != nil {
		return a.WithReader(r), nil
	}
	if run.State.Open() {
		return query.Of(ctx, r, *run)
	}
	a, err := in.queries.Get(ctx, key, func(ctx context.Context) (*query.Queries, bool, error) {
		ctx, cancel := context.WithTimeout(ctx, in.Timeout)
		defer cancel()
		a, err := query.Of(ctx, r, *run)
		return a, true, err
	})
	if err != nil {
		return nil, err
	}
	return a.WithReader(r), nil // callers may change the copy
}

// queriesOf finds a run in the store.
func (in *Insight) queriesOf(ctx context.Context, run string) (*query.Queries, error) {
	r := in.Source.Reader()
	if r == nil {
		return nil, api.Problemf(api.Unavailable, "query the process that stores the records",
			"this process has no store")
	}
	a, err := in.queriesBy(ctx, r, run)
	if errors.Is(err, provdb.ErrNotFound) && run == in.Run {
		return nil, api.Problemf(api.NotFound, "try again when the first records are written", "nothing of run %q is stored yet", run)
	}
	if err != nil || !a.BeginEstimated {
		return a, err
	}
	return a, in.begins.correct(ctx, a)
}

// Version identifies the stored data of a run, for caches of answers. It is empty while the
// run continues.
func (in *Insight) Version(ctx context.Context, run string) (string, error) {
	return read(ctx, in, run, func(_ context.Context, q *runQuery) (string, error) {
		if q.Run.State == provdb.Finished || q.Run.State == provdb.Failed {
			return fmt.Sprintf("%d %d", q.Run.ID, q.Run.Finished.UnixNano()), nil
		}
		return "", nil
	})
}
