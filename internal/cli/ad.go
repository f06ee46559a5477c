package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/source/sst"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// adFlags are the flags of `ad`.
type adFlags struct {
	detectFlags
	busFlags
	dir      string
	run      string
	node     string
	rank     int
	override int
	traces   int
	linger   time.Duration
	idle     time.Duration
	poll     time.Duration
	exchange time.Duration
	outbox   int64
	spool    string
	giveUp   time.Duration
	told     bool
	asJSON   bool
	streamFlags
}

func (a *adFlags) register(f *pflag.FlagSet) {
	a.detectFlags.register(f)
	a.busFlags.register(f)
	f.StringVar(&a.dir, "run-dir", "chimbuko-run", "directory of the run that chimbuko serve writes; it need not be there yet")
	f.StringVar(&a.run, "name", "", "name of the run, as given to chimbuko serve; by default what the run directory tells, else its name")
	f.StringVar(&a.node, "node", "", "name of this analyzer, another for each; by default made of the host and the traces")
	f.IntVar(&a.rank, "rank", -1, "leave out what is not of this rank")
	f.IntVar(&a.override, "override-rank", -1, "take all as of this rank, whatever the trace says")
	f.IntVar(&a.traces, "traces", 0, "how many traces there will be; 0 is those that come until all have ended and no new one came for --linger")
	f.DurationVar(&a.linger, "linger", 3*time.Second, "how long to wait for further traces when all have ended")
	f.DurationVar(&a.idle, "idle", 0, "how long a trace may have nothing new before it is taken as ended; 0 is for ever")
	f.DurationVar(&a.poll, "poll", 20*time.Millisecond, "how often to look for new steps when there is none")
	f.DurationVar(&a.exchange, "exchange", time.Second, "time between exchanges with the parameter server")
	f.Int64Var(&a.outbox, "outbox", 64, "megabytes of records that may wait to be sent; what finds no room is sent with the review")
	f.StringVar(&a.spool, "spool", "", "directory for what is kept until the end; by default a new one for temporary files")
	f.DurationVar(&a.giveUp, "give-up", 0, "how long to wait for the services when all traces have ended, before ending with an error and unreviewed; 0 is for ever")
	f.BoolVar(&a.told, "until-told", false, "traces may come until the process that holds this one says that the program has ended")
	_ = f.MarkHidden("until-told") // only for processes that this program starts
	f.BoolVar(&a.asJSON, "json", false, "print the summary as JSON")
	f.StringVar(&a.engine, "engine", engineAuto, "how the program hands over its traces: bp (datasets), sst (live streams), or auto: by the names, .bp or .sst")
	a.streamFlags.register(f)
	f.Int64Var(&a.queue, "stream-queue", sst.Default().Queue>>20, "megabytes of each live stream that are held ahead of the analysis; further steps stay in the program")
}

// check says what is wrong with the flags, and fills in what was left out.
func (a *adFlags) check(patterns []string) error {
	var errs []error
	if a.rank >= 0 && a.override >= 0 {
		errs = append(errs, errors.New("give --rank or --override-rank, not both"))
	}
	for name, d := range map[string]time.Duration{"poll": a.poll, "exchange": a.exchange} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("--%s %v is not positive", name, d))
		}
	}
	if a.linger < 0 || a.idle < 0 || a.giveUp < 0 || a.traces < 0 || a.outbox < 1 {
		errs = append(errs, errors.New("--linger, --idle, --give-up and --traces cannot be negative, and --outbox must be positive"))
	}
	errs = append(errs, a.streamFlags.check())
	services, err := rundir.ReadServices(a.dir)
	if err != nil || a.url != "" {
		services = &rundir.Services{Run: (&keeperFlags{out: a.dir}).runName()}
	}
	a.run = cmp.Or(a.run, services.Run)
	if a.node == "" {
		a.node = a.defaultNode(patterns)
	}
	return errors.Join(errs...)
}

// defaultNode names the analyzer by its host and its traces, so that it is the
// same when it is started again.
func (a *adFlags) defaultNode(patterns []string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	h := fnv.New32a()
	for _, p := range slices.Sorted(slices.Values(patterns)) {
		if abs, err := filepath.Abs(p); err == nil {
			p = abs
		}
		fmt.Fprintf(h, "%s\n", p)
	}
	fmt.Fprintf(h, "%d %d", a.rank, a.override)
	return fmt.Sprintf("%s-%08x", host, h.Sum32())
}

func newADCmd(env *Env) *cobra.Command {
	var flags adFlags
	cmd := &cobra.Command{
		Use:   "ad TRACE...",
		Short: "analyze traces while they are written, together with other analyzers",
		Long: `Analyze the traces of one or many ranks while the program writes them. A TRACE is
a dataset, a directory (all .bp that appear in it are read) or a pattern; none of
them need be there yet. What is learned is shared with all other analyzers through
the parameter server of chimbuko serve, and what is flagged goes to its database.

Where TAU streams its trace (TAU_ADIOS2_ENGINE=SST), a TRACE is the contact file
of the stream, X.bp.sst, or a directory or pattern of such; with --engine sst also
X.bp. Start the analyzer before the program, which waits for it.

The analyzer never waits for the services: while they are away it judges by what
it knows, gathers what it learns, and says so. When all traces have ended, and
those of all other analyzers, everything kept is judged once more with all that is
known. An analyzer that was killed is started again with the same command: it
reads its traces from the beginning, and nothing is counted or stored twice. A live
stream cannot be read again: what the program sent is gone, and it goes on with the
steps that are still to come.`,
		Example: `  chimbuko serve --out run &
  chimbuko ad --run-dir run 'traces/tau-metrics-*.bp' --traces 4
  chimbuko ad --run-dir run --engine sst traces/ --traces 4
  chimbuko ad --nats tls://services:4222 --nats-creds job.creds --name job42 traces/`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, patterns []string) error {
			if _, err := flags.load(cmd.Flags(), env); err != nil {
				return usageError{err}
			}
			cfg, err := flags.configure(1, modelFlags{})
			if err := errors.Join(err, flags.check(patterns)); err != nil {
				return usageError{err}
			}
			return runAD(cmd.Context(), env, &flags, cfg, patterns, commandOf(cmd, patterns))
		},
	}
	flags.register(cmd.Flags())
	return cmd
}

// traceFinder finds the traces of an analyzer, which may appear at any time.
type traceFinder struct {
	flags    *adFlags
	patterns []string
	now      func() time.Time
	over     func() bool                                                   // whether who writes them has ended; nil: that is told by nobody
	told     func(paths *[]string)                                         // of all traces when there are new ones
	open     func(path string) func(*tally.Tally) (analyzer.Reader, error) // a stream

	streams []string // all that were found: a contact file goes with its stream
	found   int
	latest  time.Time // when the last one appeared
}

// find returns the traces that are there, and whether no others will come.
func (t *traceFinder) find() ([]analyzer.Input, bool, error) {
	var paths []string
	open := false // whether more can come
	for _, p := range t.patterns {
		some, more, err := tracesOf(p, t.flags.engine)
		if err != nil {
			return nil, false, err
		}
		paths, open = append(paths, some...), open || more
	}
	paths = append(paths, t.streams...)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	inputs, _, err := t.flags.inputsOf(paths)
	if err != nil {
		return nil, false, err
	}
	t.streams = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !isStream(p) })
	for i := range inputs {
		if isStream(inputs[i].Path) {
			inputs[i].Open = t.open(inputs[i].Path)
		}
		switch {
		case t.flags.rank >= 0:
			inputs[i].Rank, inputs[i].Ranks = trace.Rank(t.flags.rank), tau.VerifyRank
		case t.flags.override >= 0:
			inputs[i].Rank, inputs[i].Ranks = trace.Rank(t.flags.override), tau.OverrideRank
		}
	}
	if len(inputs) != t.found {
		t.found, t.latest = len(inputs), t.now()
		t.told(&paths)
	}
	switch {
	case t.over != nil && t.over():
		return inputs, true, nil
	case t.flags.traces > 0:
		return inputs, len(inputs) >= t.flags.traces, nil
	case t.flags.told:
		return inputs, false, nil
	case !open:
		return inputs, true, nil
	}
	return inputs, len(inputs) > 0 && t.now().Sub(t.latest) >= t.flags.linger, nil
}

// tracesOf returns the datasets and contact files that a pattern stands for at
// the moment, and whether others can come.
func tracesOf(pattern, engine string) (paths []string, more bool, err error) {
	var wanted []string // ends of names
	if engine != engineSST {
		wanted = append(wanted, ".bp")
	}
	if engine != engineBP {
		wanted = append(wanted, streamSuffix)
	}
	globs := []string{pattern}
	switch {
	case strings.ContainsAny(pattern, "*?["):
		if engine == engineSST && !isStream(pattern) {
			globs = append(globs, pattern+streamSuffix)
		}
	case isStream(pattern) && engine != engineBP:
		return []string{pattern}, false, nil
	case strings.HasSuffix(filepath.Clean(pattern), ".bp"):
		if engine == engineSST {
			return []string{filepath.Clean(pattern) + streamSuffix}, false, nil
		}
		return []string{pattern}, false, nil
	default:
		globs = nil
		for _, end := range wanted {
			globs = append(globs, filepath.Join(rundir.EscapeGlob(pattern), "*"+end))
		}
	}
	for _, g := range globs {
		some, err := filepath.Glob(g)
		if err != nil {
			return nil, true, err
		}
		paths = append(paths, some...)
	}
	return slices.DeleteFunc(paths, func(p string) bool {
		return !slices.ContainsFunc(wanted, func(end string) bool { return strings.HasSuffix(p, end) })
	}), true, nil
}

// adSummary is what `ad` prints at the end.
type adSummary struct {
	Node    string  `json:"node"`
	Reading float64 `json:"reading_seconds"` // until all traces had ended
	Seconds float64 `json:"seconds"`
	provdb.Totals
	Confirmed int64        `json:"confirmed"`
	Promoted  int64        `json:"promoted"`
	Withdrawn int64        `json:"withdrawn"`
	Records   int64        `json:"records_sent"`
	Deferred  int64        `json:"records_deferred"`
	Notes     []tally.Note `json:"notes"`
	Broken    []string     `json:"broken,omitempty"`
}

func (s *adSummary) print(w io.Writer) {
	fmt.Fprintf(w, "%s events, %s calls on %d ranks, read in %.2f s; %s anomalies (%s confirmed, %s promoted, %s withdrawn), %s records sent\n",
		grouped(s.Events), grouped(s.Calls), s.Ranks, s.Reading, grouped(s.Anomalies), grouped(s.Confirmed), grouped(s.Promoted), grouped(s.Withdrawn), grouped(s.Records))
	for _, n := range s.Notes {
		fmt.Fprintf(w, "%s: %s %s\n", n.Severity, grouped(n.Count), n.Sentence)
	}
}

// newLog returns a log for people on w.
func newLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// orForever bounds ctx by d, if there is a bound.
func orForever(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}
