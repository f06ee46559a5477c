package executions

import (
	"context"
	"math"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Times is a range of durations in microseconds, both inclusive. If Last is 0, there is no range.
type Times struct{ First, Last float64 }

// Filter selects executions. The zero value of a field does not filter.
type Filter struct {
	Normal    bool      // typical executions instead of anomalies
	Function  string    // pattern
	One       *Function `json:"-"` // only this function
	Kinds     []string  // any of them
	Host      string
	Ranks     []trace.Range // any of them
	Steps     *trace.Range
	Since     *time.Duration // since the start of the run; selects executions that end at or after it
	Until     *time.Duration // selects executions that begin at or before it
	Severity  time.Duration  // lower bound
	Took      *Times         // exclusive time
	Lost      time.Duration
	Score     float64
	Withdrawn bool // include withdrawn anomalies
	Program   *trace.Program
	Order     string // severity, lost, score or time
	Limit     int
	Offset    int
}

// anomalyOrders are the orders of lists of executions. Their last columns make them total, so
// that pages do not overlap.
var anomalyOrders = map[string]Order{
	"severity": listOrder(Severity, true), "lost": listOrder(Lost, true), "score": listOrder(Score, true), "time": listOrder(Entry, false),
}

func listOrder(by Column, descending bool) Order {
	return Order{{by, descending}, {Column: Program}, {Column: Rank}, {Column: eventStep}, {Column: eventRow}, {Column: eventText}}
}

// kinds are the kinds of anomalies.
var kinds = func() map[string]string {
	all := make(map[string]string)
	for _, k := range provenance.AnomalyKinds() {
		all[string(k)] = string(k)
	}
	return all
}()

// Executions returns the executions that a filter selects.
func (a *Reader) Executions(ctx context.Context, f Filter) (*provdb.Rows, error) {
	by, err := Choose("order", f.Order, anomalyOrders)
	if err != nil {
		return nil, err
	}
	if err := f.Check(); err != nil {
		return nil, err
	}
	where, err := f.Condition(ctx, a)
	if err != nil {
		return nil, err
	}
	collection := Typical
	if !f.Normal {
		collection = Anomalous.Is()
	}
	where = AllOf(collection, where)
	source := a.source()
	if a.Run.State.Open() { // a copy may be older than the store
		source = stored{a}
	}
	return a.InMicros(source.page(ctx, where, by, f.Offset, f.Limit, a))
}

// page returns rows like those of anomalies.sql.
func (x *Columns) page(_ context.Context, where Condition, by Order, offset, limit int, run *Reader) (*provdb.Rows, error) {
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return &provdb.Rows{
		Columns: []provdb.Column{
			{Name: "event_id", Type: provdb.Text},
			{Name: "at_s", Type: provdb.Float},
			{Name: "exclusive_us", Type: provdb.Int},
			{Name: "inclusive_us", Type: provdb.Int},
			{Name: "lost_us", Type: provdb.Int},
			{Name: "severity", Type: provdb.Float},
			{Name: "score", Type: provdb.Float},
			{Name: "kind", Type: provdb.Text},
			{Name: "status", Type: provdb.Text},
			{Name: "io_step", Type: provdb.Int},
			{Name: "program", Type: provdb.Int},
			{Name: "rank", Type: provdb.Int},
			{Name: "thread", Type: provdb.Int},
			{Name: "host", Type: provdb.Text},
			{Name: "function", Type: provdb.Text},
		},
		All: func(yield func([]any, error) bool) {
			for _, row := range x.first(where, by, offset, limit) {
				e := x.execution(row)
				if !yield([]any{
					e.Event, run.Unit.Seconds(e.Entry - run.Begin), int64(e.Exclusive), x.total[row], int64(e.Lost), x.severity[row], x.score[row],
					orNull(x.kinds[x.kind[row]]), orNull(e.Status), e.Step, int64(e.Program), int64(e.Rank), e.Thread, e.Host, e.Function,
				}, nil) {
					return
				}
			}
		},
		Close: func() error { return nil },
	}, nil
}

// MaxFunctions is the number of functions that a condition lists by number.
const MaxFunctions = 200

// Check returns an error if a kind is unknown.
func (f *Filter) Check() error {
	for _, kind := range f.Kinds {
		if _, err := Choose("kind", kind, kinds); err != nil {
			return err
		}
	}
	return nil
}

// ofFunctions selects functions by a pattern. It looks up their numbers first, because a database estimates the number of
// rows better with them.
func (a *Reader) ofFunctions(ctx context.Context, pattern string) (Condition, error) {
	matches, err := ReadAll[FunctionID](ctx, a, text("func_numbers"), Like(pattern), int64(MaxFunctions+1))
	if err != nil {
		return Condition{}, err
	}
	if len(matches) > MaxFunctions {
		return Name.Like(pattern), nil
	}
	return FunctionNumber.In(anys(matches)...), nil
}

// anys returns a list of values of any type.
func anys[T any](list []T) (values []any) {
	for _, v := range list {
		values = append(values, v)
	}
	return values
}

// Condition returns the condition of the filter.
func (f *Filter) Condition(ctx context.Context, a *Reader) (Condition, error) {
	var list []Condition
	add := func(isSet bool, c func() Condition) {
		if isSet {
			list = append(list, c())
		}
	}
	if f.Function != "" {
		c, err := a.ofFunctions(ctx, f.Function)
		if err != nil {
			return c, err
		}
		list = append(list, c)
	}
	add(len(f.Kinds) > 0, func() Condition { return Kind.In(anys(f.Kinds)...) })
	add(f.Host != "", func() Condition { return Host.Like(f.Host) })
	add(len(f.Ranks) == 1, func() Condition { return Rank.Between(f.Ranks[0].First, f.Ranks[0].Last) })
	add(len(f.Ranks) > 1, func() Condition {
		var ranges []Condition
		for _, r := range f.Ranks {
			ranges = append(ranges, Rank.Between(r.First, r.Last))
		}
		return AnyOf(ranges...)
	})
	add(f.Steps != nil, func() Condition { return Step.Between(f.Steps.First, f.Steps.Last) })
	add(f.Since != nil, func() Condition { return Exit.AtLeast(int64(a.Begin + a.Unit.Ticks(*f.Since))) })
	add(f.Until != nil, func() Condition { return Entry.AtMost(int64(a.Begin + a.Unit.Ticks(*f.Until))) })
	add(f.Severity > 0, func() Condition { return Severity.AtLeast(float64(a.Unit.Ticks(f.Severity))) })
	add(f.Took != nil, func() Condition {
		last := int64(math.MaxInt64)
		if f.Took.Last > 0 {
			last = int64(a.Unit.FromMicros(f.Took.Last))
		}
		return Exclusive.Between(int64(a.Unit.FromMicros(f.Took.First)), last)
	})
	add(f.Lost > 0, func() Condition { return Lost.AtLeast(int64(a.Unit.Ticks(f.Lost))) })
	add(f.Score > 0, func() Condition { return Score.AtLeast(f.Score) })
	add(!f.Withdrawn && !f.Normal, func() Condition { return Flagged })
	add(f.Program != nil, func() Condition { return Program.In(int64(*f.Program)) })
	add(f.One != nil, func() Condition { return OfFunction(f.One) })
	return AllOf(list...), nil
}
