package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/provdb/duckstore"
	"github.com/chimbuko/chimbuko/internal/provenance"
	"github.com/chimbuko/chimbuko/internal/question"
	"github.com/chimbuko/chimbuko/internal/recordfile"
	"github.com/chimbuko/chimbuko/internal/trace"
)

func newEvalCmd(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "eval RUN TRUTH...",
		Short: "compare the anomalies of an analysed run with planted ones",
		Long: `Compare the anomalies of an analysed run with those that were planted in the
program, and count how many were found, and how many other calls were flagged.
RUN is a run directory or a store. A TRUTH is a file, a directory (all files named
truth.* in it are read) or a pattern. Each line of such a file is one anomaly:

  RANK ITERATION FUNCTION ENTRY_US EXIT_US INJECTED_US
  TRUTH kind=host_sleep func=NAME start_us=US end_us=US [rank=RANK]
  TRUTH kind=gpu_slow kernel=NAME launch_us=US [rank=RANK]

Blank lines and those that begin with # say nothing. A flagged call accounts for
at most one planted anomaly, the closest in time. Withdrawn flags do not count.
Recall is 1 where nothing was planted, and precision is 1 where nothing was
flagged.`,
		Example: `  chimbuko eval run-directory truth.0 truth.1
  chimbuko eval run-directory trace-directory
  chimbuko eval --json run-directory 'truth.*' | jq .recall`,
		Args: args(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			return runEval(cmd.Context(), env, paths[0], paths[1:], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON for programs instead of a table for people")
	return cmd
}

// evalResult is how well a run did.
type evalResult struct {
	Planted         int          `json:"planted"`
	Found           int          `json:"found"`
	Missed          int          `json:"missed"`
	Flagged         int          `json:"flagged"`
	Other           int          `json:"other"` // flagged, but not planted
	Recall          float64      `json:"recall"`
	Precision       float64      `json:"precision"`
	OtherPerMillion float64      `json:"other_per_million_calls"`
	MissedList      []missedInfo `json:"missed_list"`
}

type missedInfo struct {
	Rank     trace.Rank   `json:"rank"`
	Function string       `json:"function"`
	Entry    trace.Micros `json:"entry_us"`
	Injected trace.Micros `json:"injected_us"` // 0 where the truth does not tell
}

func runEval(ctx context.Context, env *Env, run string, truth []string, asJSON bool) error {
	planted, err := readTruth(truth)
	if err != nil {
		return err
	}
	calls, flags, err := readRun(ctx, run, planted)
	if err != nil {
		return err
	}
	if calls == 0 && flags.n > 0 {
		return fmt.Errorf("%s: %d calls are flagged, but totals.calls in run.json is 0", run, flags.n)
	}
	result := evaluate(planted, flags, calls)
	return env.show(asJSON, result, func(w io.Writer) {
		printEval(w, result)
	})
}

func printEval(w io.Writer, r *evalResult) {
	ratio := func(value float64, of int) string {
		if of == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f %%", 100*value)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "FOUND/PLANTED\tOTHER FLAGS\tPER MILLION CALLS\tPRECISION\tRECALL\t")
	fmt.Fprintf(t, "%d/%d\t%s\t%.1f\t%s\t%s\t\n", r.Found, r.Planted, grouped(int64(r.Other)), r.OtherPerMillion,
		ratio(r.Precision, r.Flagged), ratio(r.Recall, r.Planted))
	_ = t.Flush() // errors stick to w
	if len(r.MissedList) > 0 {
		fmt.Fprintln(w)
	}
	for _, m := range r.MissedList {
		injected := "a slow kernel"
		if m.Injected > 0 {
			injected = grouped(int64(m.Injected)) + " us injected"
		}
		fmt.Fprintf(w, "missed: rank %d  %d.%06d  %s  %s\n", m.Rank, m.Entry/1e6, m.Entry%1e6, m.Function, injected)
	}
}

// Times of truth and trace differ, as one is taken inside the function and the
// other around it.
const (
	evalSlack   trace.Micros = 100     // between the two, if nothing comes between
	evalNear    trace.Micros = 1_000   // if something does
	evalPending trace.Micros = 200_000 // from the launch of a kernel to its start, if streams are busy
)

// place is what a planted anomaly and a flag must have in common.
type place struct {
	rank     trace.Rank
	function string // without arguments and location
}

// plainName is the name of a function without arguments and location, as in
// `apply_source() [{heat2d.cpp} {47,0}]`.
func plainName(function string) string {
	if i := strings.IndexAny(function, "( ["); i >= 0 {
		return function[:i]
	}
	return function
}

// plantedCall is an anomaly that is known to be in the trace.
type plantedCall struct {
	rank     trace.Rank
	function string
	entry    trace.Micros // of a kernel: its launch
	exit     trace.Micros
	injected trace.Micros
	kernel   bool
}

func (p *plantedCall) place() place { return place{p.rank, plainName(p.function)} }

// flaggedCall is what is kept of a record.
type flaggedCall struct {
	entry, exit trace.Micros
	kernel      bool // may be one by its name
	launched    bool // by the call below
	launch      provenance.StackEntry
}

// flags are the flagged calls of a run, of which only those are kept that are
// where something was planted.
type flags struct {
	n  int
	at map[place][]flaggedCall
}

// distance tells whether a flag can be that of a planted anomaly, and how far
// apart in time they are.
func (p *plantedCall) distance(f *flaggedCall) (trace.Micros, bool) {
	away := func(t trace.Micros) trace.Micros { return max(t-p.entry, p.entry-t) }
	switch {
	case !p.kernel:
		covers := f.entry <= p.entry+evalSlack && p.exit <= f.exit+evalSlack
		overlaps := f.entry <= p.exit && p.entry <= f.exit
		return away(f.entry), covers || overlaps && away(f.entry) < max(evalNear, p.injected/2)
	case !f.kernel:
		return 0, false
	case f.launched:
		running := f.launch.Exit == 0 || p.entry-evalNear <= f.launch.Exit
		return away(f.launch.Entry), f.launch.Entry <= p.entry+evalSlack && running
	}
	return away(f.entry), p.entry-evalNear <= f.entry && f.entry <= p.entry+evalPending
}

// evaluate gives each planted anomaly the closest flag that can be its own.
func evaluate(planted []plantedCall, flags *flags, calls float64) *evalResult {
	type pair struct {
		distance      trace.Micros
		planted, flag int
	}
	var pairs []pair
	for i := range planted {
		for j := range flags.at[planted[i].place()] {
			if d, ok := planted[i].distance(&flags.at[planted[i].place()][j]); ok {
				pairs = append(pairs, pair{d, i, j})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.planted, b.planted), cmp.Compare(a.flag, b.flag))
	})
	type flagID struct {
		place
		index int
	}
	found, used := make(map[int]bool), make(map[flagID]bool)
	for _, p := range pairs {
		id := flagID{planted[p.planted].place(), p.flag}
		if !found[p.planted] && !used[id] {
			found[p.planted], used[id] = true, true
		}
	}
	r := &evalResult{
		Planted: len(planted), Found: len(found), Missed: len(planted) - len(found),
		Flagged: flags.n, Other: flags.n - len(found),
		Recall: 1, Precision: 1, MissedList: []missedInfo{},
	}
	if r.Planted > 0 {
		r.Recall = float64(r.Found) / float64(r.Planted)
	}
	if r.Flagged > 0 {
		r.Precision = float64(r.Found) / float64(r.Flagged)
	}
	if calls > 0 {
		r.OtherPerMillion = 1e6 * float64(r.Other) / calls
	}
	for i, p := range planted {
		if !found[i] {
			r.MissedList = append(r.MissedList, missedInfo{p.rank, p.function, p.entry, p.injected})
		}
	}
	slices.SortStableFunc(r.MissedList, func(a, b missedInfo) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Entry, b.Entry))
	})
	return r
}

// readRun returns how many calls of a run were analysed and which were flagged.
func readRun(ctx context.Context, run string, planted []plantedCall) (calls float64, found *flags, err error) {
	found = &flags{at: make(map[place][]flaggedCall)}
	for i := range planted {
		found.at[planted[i].place()] = nil
	}
	if onlyFiles(run) {
		info, err := os.ReadFile(filepath.Join(run, "run.json"))
		if err != nil {
			return 0, nil, fmt.Errorf("%s is not the directory of an analysed run: %w", run, err)
		}
		if calls, err = callsIn(info); err != nil {
			return 0, nil, fmt.Errorf("%s: %w", filepath.Join(run, "run.json"), err)
		}
		for step, err := range recordfile.Steps(ctx, run, nil) {
			if err != nil {
				return 0, nil, err
			}
			for _, r := range step.Anomalies {
				if err := found.add(r); err != nil {
					return 0, nil, fmt.Errorf("%s: event %s: %w", run, r.EventID, err)
				}
			}
		}
		return calls, found, nil
	}
	where, err := findStore(run)
	if err != nil {
		return 0, nil, err
	}
	r, closeStore, err := where.open(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	a, err := question.New(ctx, r, where.run)
	if err != nil {
		return 0, nil, err
	}
	if calls, err = callsIn(a.Run.Info); err != nil {
		return 0, nil, fmt.Errorf("%s: run %s: %w", run, a.Run.Name, err)
	}
	for doc, err := range a.Documents(ctx, "anomalies") {
		var r provenance.Record
		if err == nil {
			err = json.Unmarshal(doc, &r)
		}
		if err == nil {
			err = found.add(&r)
		}
		if err != nil {
			return 0, nil, fmt.Errorf("%s: event %s: %w", run, r.EventID, err)
		}
	}
	return calls, found, nil
}

// onlyFiles reports whether a run has records as files and no database.
func onlyFiles(run string) bool {
	_, errFiles := os.Stat(filepath.Join(run, "records"))
	_, errStore := os.Stat(filepath.Join(run, duckstore.FileName))
	return errFiles == nil && errStore != nil
}

// callsIn returns how many calls were analysed, from the text of run.json.
func callsIn(text []byte) (float64, error) {
	var info struct {
		Totals struct {
			Calls *float64 `json:"calls"`
		} `json:"totals"`
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &info); err != nil {
			return 0, err
		}
	}
	switch {
	case info.Totals.Calls == nil:
		return 0, errors.New("no totals.calls, the number of calls that were analysed")
	case *info.Totals.Calls < 0:
		return 0, fmt.Errorf("totals.calls is %v", *info.Totals.Calls)
	}
	return *info.Totals.Calls, nil
}

func (f *flags) add(r *provenance.Record) error {
	switch r.Status {
	case "", provenance.Confirmed, provenance.Promoted:
		f.n++
	case provenance.Withdrawn:
		return nil
	default:
		return fmt.Errorf("status %q is none of confirmed, promoted, withdrawn", r.Status)
	}
	at := place{r.RID, plainName(r.Func)}
	calls, ok := f.at[at]
	if !ok {
		return nil
	}
	arguments := r.Func[len(at.function):]
	call := flaggedCall{entry: r.Entry, exit: r.Exit, kernel: arguments == "" || arguments[0] == '('}
	if p, ok := r.GPUParent.(provenance.GPUParent); ok && len(p.CallStack) > 0 {
		call.launched, call.launch = true, p.CallStack[0]
	}
	f.at[at] = append(calls, call)
	return nil
}
