package cli

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// anomalyFlags choose executions.
type anomalyFlags struct {
	function, host, ranks, steps string
	kinds                        []string
	since, until, severity, lost string
	score                        float64
	normal, withdrawn            bool
	order                        string
	limit, offset                int
}

func (a *anomalyFlags) register(f *pflag.FlagSet) {
	f.StringVar(&a.function, "func", "", "pattern of function names, with * and ?")
	f.StringSliceVar(&a.kinds, "kind", nil, "kinds: slow, fast, comm-wait or gpu; several with commas")
	f.StringVar(&a.host, "host", "", "pattern of host names")
	f.StringVar(&a.ranks, "rank", "", "ranks, as in 0,4-7")
	f.StringVar(&a.steps, "step", "", "I/O steps from:to, both included; one side may be left out")
	f.StringVar(&a.since, "since", "", "entered at or after this time since the begin of the run: 90s, 1.5m, or seconds")
	f.StringVar(&a.until, "until", "", "entered at or before this time")
	f.StringVar(&a.severity, "min-severity", "", "at least this exclusive time: 20ms, or microseconds")
	f.StringVar(&a.lost, "min-lost", "", "at least this lost time")
	f.Float64Var(&a.score, "min-score", 0, "at least this score")
	f.BoolVar(&a.normal, "normal", false, "list the typical executions that were kept instead of anomalies")
	f.BoolVar(&a.withdrawn, "withdrawn", false, "list also what was flagged during the run and withdrawn at its end")
	f.StringVar(&a.order, "order", "severity", "what comes first: most severity, lost or score, or the earliest time")
	f.IntVar(&a.limit, "limit", 20, "rows of the answer")
	f.IntVar(&a.offset, "offset", 0, "rows to leave out first, for the next page")
}

// filter turns the flags into a filter.
func (a *anomalyFlags) filter() (query.Filter, error) {
	f := query.Filter{
		Normal: a.normal, Function: a.function, Kinds: a.kinds, Host: a.host, Score: a.score, Withdrawn: a.withdrawn,
		Order: a.order, Limit: a.limit, Offset: a.offset,
	}
	if a.limit < 0 || a.offset < 0 {
		return f, usagef("limit and offset cannot be negative")
	}
	var err error
	if f.Ranks, err = parseRanks(a.ranks); err != nil {
		return f, err
	}
	if f.Steps, err = parseSteps(a.steps); err != nil {
		return f, err
	}
	for _, d := range []struct {
		name, text string
		unit       time.Duration // of a bare number
		set        func(trace.Micros)
	}{
		{"since", a.since, time.Second, func(t trace.Micros) { f.Since = &t }},
		{"until", a.until, time.Second, func(t trace.Micros) { f.Until = &t }},
		{"min-severity", a.severity, time.Microsecond, func(t trace.Micros) { f.Severity = float64(t) }},
		{"min-lost", a.lost, time.Microsecond, func(t trace.Micros) { f.Lost = t }},
	} {
		if d.text == "" {
			continue
		}
		t, err := parseTime(d.text, d.unit)
		if err != nil {
			return f, usagef("--%s: %w", d.name, err)
		}
		d.set(t)
	}
	return f, nil
}

// parseTime reads 20ms, or a number of units.
func parseTime(text string, unit time.Duration) (trace.Micros, error) {
	const most = 1 << 53 // microseconds: beyond, a float64 is not exact
	if n, err := strconv.ParseFloat(strings.TrimPrefix(text, "+"), 64); err == nil {
		if n = math.Round(n * float64(unit) / float64(time.Microsecond)); math.Abs(n) <= most {
			return trace.Micros(n), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no time such as 90s, 20ms or a number", text)
	}
	return trace.Micros(d.Microseconds()), nil
}

// parseRanks reads 0,4-7.
func parseRanks(text string) (ranges []query.Range, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		r := query.Range{}
		var errFirst, errLast error
		r.First, errFirst = strconv.ParseInt(first, 10, 32)
		r.Last, errLast = strconv.ParseInt(last, 10, 32)
		if errFirst != nil || errLast != nil || r.Last < r.First {
			return nil, usagef("--rank: %q is no rank and no range such as 4-7", part)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// parseSteps reads from:to.
func parseSteps(text string) (*query.Range, error) {
	if text == "" {
		return nil, nil
	}
	first, last, isRange := strings.Cut(text, ":")
	if !isRange {
		last = first
	}
	r := query.Range{First: 0, Last: math.MaxInt32}
	var err error
	if first != "" {
		r.First, err = strconv.ParseInt(first, 10, 32)
	}
	if err == nil && last != "" {
		r.Last, err = strconv.ParseInt(last, 10, 32)
	}
	if err != nil || r.Last < r.First {
		return nil, usagef("--step: %q is no step and no range such as 10:20", text)
	}
	return &r, nil
}

func newAnomaliesCmd(env *Env) *cobra.Command {
	var q questionFlags
	var flags anomalyFlags
	cmd := &cobra.Command{
		Use:   "anomalies RUN",
		Short: "list anomalies, filtered and ordered",
		Long: `List the anomalies of a run. Without filters these are the most severe ones.
chimbuko event RUN ID explains one of them.` + whereHelp,
		Example: `  chimbuko anomalies run --func 'MPI_*' --rank 0-3 --min-severity 10ms
  chimbuko anomalies run --kind slow,gpu --order lost
  chimbuko anomalies run --since 60s --until 90s --order time --limit 100
  chimbuko anomalies run --host 'nid0012*' --format csv > anomalies.csv`,
		Args: args(cobra.ExactArgs(1)),
	}
	flags.register(cmd.Flags())
	return newQuestionCmd(env, cmd, &q, func(ctx context.Context, a *query.Asker, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		filter.Program = q.only()
		rows, err := a.Executions(ctx, filter)
		return q.answer(ctx, env, rows, err)
	})
}
