// Package insight answers questions about runs: overviews, issues, evidence, heatmaps,
// functions, flame graphs, explanations. It asks a store and the state of the pipeline, caches
// what many callers need, and bounds how many questions are asked at once. It knows nothing of
// HTTP: dashboard, report and terminal call it.
package insight

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/show/memo"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Source is where an Insight gets what it tells. Several goroutines call it.
type Source interface {
	// Status is the state of the pipeline now. It should answer within a second:
	// every page, scrape and stream waits for it. The caller does not change it,
	// and the source must not once it is handed over.
	Status(ctx context.Context) (*api.Status, error)
	// Reader is the store, asked for anew for each question; nil while this
	// process has none.
	Reader() provdb.Reader
}

// Config says what an Insight is about. Zero values of limits mean the default in
// brackets.
type Config struct {
	Source   Source
	Run      string // name of the run that Status is about
	Place    string // of the runs, as commands name it: a directory, a file or an address without secrets; empty: not known
	Labels   Labels // what people say of issues; nil: there are no labels
	ReadOnly bool   // labels are shown, but cannot be set

	// Cache makes the database into which a run is copied, so that queries over many executions
	// are fast; nil: the store answers them.
	Cache func(ctx context.Context) (provdb.Cache, error)

	Timeout   time.Duration // of one question to the store [30 s]
	Questions int           // asked of the store at once; others wait [4]
}

// Insight answers questions about runs. It caches what many callers need; several
// goroutines may use it. New makes one.
type Insight struct {
	Config
	slots chan struct{} // one for each question that is being asked

	begins    begins
	askers    memo.Memo[*query.Asker]
	runsKnown memo.Memo[*known]
	found     memo.Memo[*findings]
	caches    memo.Memo[provdb.Reader]
	details   memo.Memo[*query.Details]
	tops      memo.Memo[[]json.RawMessage]
}

// New returns an Insight. The configuration must have a source.
func New(cfg Config) *Insight {
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.Questions = cmp.Or(cfg.Questions, 4)
	return &Insight{
		Config: cfg, slots: make(chan struct{}, cfg.Questions),
		askers: memo.Memo[*query.Asker]{Most: maxKnown}, runsKnown: memo.Memo[*known]{Most: maxKnown},
		found:  memo.Memo[*findings]{Most: maxKnown, Old: true},
		caches: memo.Memo[provdb.Reader]{Most: maxCaches, Old: true}, details: memo.Memo[*query.Details]{Most: maxCaches, Old: true},
		tops: memo.Memo[[]json.RawMessage]{Most: maxTops, Old: true},
	}
}

// AsProblem returns err as a Problem. Errors of the store keep their text: who may ask may
// know it.
func AsProblem(err error) *api.Problem {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return p
	}
	text := err.Error()
	if _, ok := errors.AsType[*query.ChoiceError](err); ok {
		return &api.Problem{Kind: api.Invalid, Message: text}
	}
	if _, ok := errors.AsType[*contrast.TermError](err); ok {
		return &api.Problem{Kind: api.Invalid, Message: text, Hint: "docs/dashboard.md tells what can be narrowed and grouped"}
	}
	for _, k := range []struct {
		err  error
		kind api.ProblemKind
		hint string
	}{
		{provdb.ErrNotFound, api.NotFound, ""},
		{provdb.ErrReadOnly, api.Forbidden, "ask with one SELECT; docs/sql.md lists the tables"},
		{provdb.ErrClosed, api.Unavailable, "the process is ending; ask the run directory instead"},
		{provdb.ErrInUse, api.Unavailable, "try again in a moment"},
		{context.DeadlineExceeded, api.TimedOut, "ask for less: fewer rows, one rank, a shorter time"},
		{context.Canceled, api.Unavailable, "the question was given up"},
	} {
		if errors.Is(err, k.err) {
			return &api.Problem{Kind: k.kind, Message: text, Hint: k.hint}
		}
	}
	return &api.Problem{Message: text}
}

// Problemf returns a problem with a formatted message.
func Problemf(kind api.ProblemKind, hint, format string, args ...any) error {
	return &api.Problem{Kind: kind, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// asked is what a question to the store is about.
type asked struct {
	*query.Asker
	known *known // of questions that are informed
}

// ask asks the store about a run, in its turn. Only so many questions are asked at once,
// and each only for so long.
func ask[T any](ctx context.Context, in *Insight, run string, f func(ctx context.Context, q *asked) (T, error)) (none T, err error) {
	limited, done, err := in.Slot(ctx)
	if err != nil {
		return none, err
	}
	defer done()
	a, err := in.asker(limited, run)
	if err != nil {
		return none, err
	}
	a.Memory = in.caches.AtHand(runKey(&a.Run))
	v, err := f(limited, &asked{Asker: a})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return none, fmt.Errorf("no answer within %v: %w", in.Timeout, context.DeadlineExceeded)
	}
	return v, err
}

// informed is ask for what needs to know of the run as a whole.
func informed[T any](ctx context.Context, in *Insight, run string, f func(ctx context.Context, q *asked) (T, error)) (none T, err error) {
	k, err := in.known(ctx, run)
	if err != nil {
		return none, err
	}
	return askKnowing(ctx, in, run, k, f)
}

// cached is informed for queries that wait until the run is in memory. The wait precedes the
// slot of the query, since the copy needs a slot as well.
func cached[T any](ctx context.Context, in *Insight, run string, f func(ctx context.Context, q *asked) (T, error)) (none T, err error) {
	k, err := in.knownWith(ctx, run, in.caches.Get)
	if err != nil {
		return none, err
	}
	return askKnowing(ctx, in, run, k, f)
}

func askKnowing[T any](ctx context.Context, in *Insight, run string, k *known, f func(ctx context.Context, q *asked) (T, error)) (T,
	error,
) {
	return ask(ctx, in, run, func(ctx context.Context, q *asked) (T, error) {
		q.known, q.Begin, q.Memory = k, k.begin, k.memory
		return f(ctx, q)
	})
}

// Slot waits until a question may be asked. The context bounds its time; done
// must be called when it is answered.
func (in *Insight) Slot(ctx context.Context) (_ context.Context, done func(), err error) {
	return in.slotFor(ctx, in.Timeout)
}

// slotFor is slot for a question that may take some other time.
func (in *Insight) slotFor(ctx context.Context, timeout time.Duration) (_ context.Context, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	select {
	case in.slots <- struct{}{}:
		return ctx, func() { <-in.slots; cancel() }, nil
	case <-ctx.Done():
		cancel()
		return nil, nil, Problemf(api.Unavailable, "try again in a moment", "%d other questions are being answered", cap(in.slots))
	}
}

// askerBy finds a run. The metadata of finished runs is cached.
func (in *Insight) askerBy(ctx context.Context, r provdb.Reader, name string) (*query.Asker, error) {
	run, err := query.Find(ctx, r, name)
	if err != nil {
		return nil, err
	}
	key := runKey(run)
	if a := in.askers.AtHand(key); a != nil {
		return a.By(r), nil
	}
	if run.State.Open() {
		return query.Of(ctx, r, *run)
	}
	a, err := in.askers.Get(ctx, key, func(ctx context.Context) (*query.Asker, bool, error) {
		ctx, cancel := context.WithTimeout(ctx, in.Timeout)
		defer cancel()
		a, err := query.Of(ctx, r, *run)
		return a, true, err
	})
	if err != nil {
		return nil, err
	}
	return a.By(r), nil // which may be changed
}

// asker finds a run in the store.
func (in *Insight) asker(ctx context.Context, run string) (*query.Asker, error) {
	r := in.Source.Reader()
	if r == nil {
		return nil, Problemf(api.Unavailable, "ask the process that stores the records",
			"this process has no store, so nothing is known of single events and functions")
	}
	a, err := in.askerBy(ctx, r, run)
	if errors.Is(err, provdb.ErrNotFound) && run == in.Run {
		return nil, Problemf(api.NotFound, "try again when the first records are written", "nothing of run %q is stored yet", run)
	}
	if err != nil || !a.Guessed {
		return a, err
	}
	return a, in.begins.correct(ctx, a)
}

// Version names what the store holds of a run: answers that depend on nothing else stay the
// same while it does. It is empty while the run goes on.
func (in *Insight) Version(ctx context.Context, run string) (string, error) {
	return ask(ctx, in, run, func(_ context.Context, q *asked) (string, error) {
		if q.Run.State == provdb.Finished || q.Run.State == provdb.Failed {
			return fmt.Sprintf("%d %d", q.Run.ID, q.Run.Finished.UnixNano()), nil
		}
		return "", nil
	})
}
