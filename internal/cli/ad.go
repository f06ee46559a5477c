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
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
	"github.com/chimbuko/chimbuko/internal/online/service"
	"github.com/chimbuko/chimbuko/internal/online/supervise"
	"github.com/chimbuko/chimbuko/internal/source/sst"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// adFlags are the flags of `ad`.
type adFlags struct {
	detectFlags
	service.AnalyzerConfig
	asJSON bool
}

func (a *adFlags) register(f *pflag.FlagSet) {
	a.detectFlags.register(f)
	registerBus(f, &a.Bus)
	f.StringVar(&a.Dir, "run-dir", "chimbuko-run", "directory of the run that chimbuko serve writes; it need not be there yet")
	f.StringVar(&a.Run, "name", "", "name of the run, as given to chimbuko serve; by default what the run directory tells, else its name")
	f.StringVar(&a.Node, "node", "", "name of this analyzer, another for each; by default made of the host and the traces")
	f.IntVar(&a.Rank, "rank", -1, "leave out what is not of this rank")
	f.IntVar(&a.OverrideRank, "override-rank", -1, "take all as of this rank, whatever the trace says")
	f.IntVar(&a.Traces, "traces", 0, "how many traces there will be; 0 is those that come until all have ended and no new one came for "+
		"--linger")
	f.DurationVar(&a.Linger, "linger", 3*time.Second, "how long to wait for further traces when all have ended")
	f.DurationVar(&a.Idle, "idle", 0, "how long a trace may have nothing new before it is taken as ended; 0 is for ever")
	f.DurationVar(&a.Poll, "poll", 20*time.Millisecond, "how often to look for new steps when there is none")
	f.DurationVar(&a.Exchange, "exchange", time.Second, "time between exchanges with the parameter server")
	f.Int64Var(&a.Outbox, "outbox", 64, "megabytes of records that may wait to be sent; what finds no room is sent with the review")
	f.StringVar(&a.Spool, "spool", "", "directory for what is kept until the end; by default a new one for temporary files")
	f.DurationVar(&a.GiveUp, "give-up", 0, "how long to wait for the services when all traces have ended, before ending with an error "+
		"and unreviewed; 0 is for ever")
	f.BoolVar(&a.UntilTold, "until-told", false, "traces may come until the process that holds this one says that the program has ended")
	_ = f.MarkHidden("until-told") // only for processes that this program starts
	f.BoolVar(&a.asJSON, "json", false, "print the summary as JSON")
	f.StringVar(&a.Engine, "engine", service.EngineAuto, "how the program hands over its traces: bp (datasets), sst (live streams), or "+
		"auto: by the names, .bp or .sst")
	registerConnect(f, &a.ConnectTimeout)
	f.Int64Var(&a.StreamQueue, "stream-queue", sst.Default().Queue>>20,
		"megabytes of each live stream that are held ahead of the analysis; further steps stay in the program")
}

// check says what is wrong with the flags, and fills in what was left out.
func (a *adFlags) check(patterns []string) error {
	var errs []error
	if a.Rank >= 0 && a.OverrideRank >= 0 {
		errs = append(errs, errors.New("give --rank or --override-rank, not both"))
	}
	for name, d := range map[string]time.Duration{"poll": a.Poll, "exchange": a.Exchange} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("--%s %v is not positive", name, d))
		}
	}
	if a.Linger < 0 || a.Idle < 0 || a.GiveUp < 0 || a.Traces < 0 || a.Outbox < 1 {
		errs = append(errs, errors.New("--linger, --idle, --give-up and --traces cannot be negative, and --outbox must be positive"))
	}
	if a.Engine != service.EngineAuto && a.Engine != service.EngineBP && a.Engine != service.EngineSST {
		errs = append(errs, fmt.Errorf("unknown --engine %q (want %s, %s or %s)", a.Engine, service.EngineAuto, service.EngineBP,
			service.EngineSST))
	}
	if a.ConnectTimeout < 0 || a.StreamQueue < 1 {
		errs = append(errs, errors.New("--connect-timeout cannot be negative, and --stream-queue must be positive"))
	}
	services, err := rundir.ReadServices(a.Dir)
	if err != nil || a.Bus.URL != "" {
		services = &rundir.Services{Run: (&keeperFlags{out: a.Dir}).runName()}
	}
	a.Run = cmp.Or(a.Run, services.Run)
	if a.Node == "" {
		a.Node = a.defaultNode(patterns)
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
	fmt.Fprintf(h, "%d %d", a.Rank, a.OverrideRank)
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
those of all other analyzers, everything kept is judged again with all that is
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
			flags.Analysis, flags.Patterns, flags.Command = cfg, patterns, commandOf(cmd, patterns)
			return runAD(cmd.Context(), env, &flags)
		},
	}
	flags.register(cmd.Flags())
	return cmd
}

// runAD runs an analyzer.
func runAD(ctx context.Context, env *Env, flags *adFlags) error {
	cfg, progress := &flags.AnalyzerConfig, &adProgress{w: env.Stderr, terminal: isTerminal(env.Stderr)}
	cfg.Log, cfg.Progress = newLog(env.Stderr), progress
	cfg.Inputs = func(paths []string) ([]analyzer.Input, error) {
		inputs, _, err := flags.inputsOf(paths)
		return inputs, err
	}
	if env.leash != nil {
		cfg.ProgramEnded = programEnded(env.leash)
	}
	res, err := service.Analyze(ctx, cfg)
	progress.Clear()
	switch {
	case errors.Is(err, paramclient.ErrReviewed):
		fmt.Fprintln(env.Stderr, "chimbuko: what this analyzer had found before it was started again is stored; nothing is left to do")
		return nil
	case errors.Is(err, service.ErrStreamsInterrupted):
		fmt.Fprintln(env.Stderr, "chimbuko: interrupted before the review; live streams cannot be read again: the same command goes on with "+
			"the steps "+
			"that are still to come, and chimbuko stop ends the run with what is known")
		return errReported
	case errors.Is(err, service.ErrInterrupted):
		fmt.Fprintln(env.Stderr, "chimbuko: interrupted before the review; the same command reads the traces again, and nothing counts twice")
		return errReported
	case err != nil:
		return err
	}
	sum := newADSummary(cfg.Node, res)
	err = env.show(flags.asJSON, sum, sum.print)
	for _, b := range sum.Broken {
		fmt.Fprintf(env.Stderr, "chimbuko: %s\n", b)
		if env.leash == nil { // else the whole run reports it
			err = errors.Join(err, errReported)
		}
	}
	return err
}

// programEnded returns a function that reports whether the process that holds this one has
// said that the program ended.
func programEnded(leash *supervise.Leash) func() bool {
	ended := new(atomic.Bool)
	go func() {
		for line := range leash.Lines() {
			if line == supervise.ProgramEnded {
				ended.Store(true)
			}
		}
	}()
	return ended.Load
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

func newADSummary(name string, res *service.AnalyzerResult) *adSummary {
	sum := &adSummary{
		Node: name, Reading: res.Reading.Seconds(), Seconds: res.Took.Seconds(),
		Totals:    provdb.Totals{Totals: res.Totals, Functions: len(res.Functions), Anomalies: res.Review.Anomalies},
		Confirmed: res.Review.Confirmed, Promoted: res.Review.Promoted, Withdrawn: res.Review.Withdrawn,
		Records: res.Sent, Deferred: res.Deferred, Notes: res.Tally.Notes(),
	}
	for _, b := range res.Broken {
		sum.Broken = append(sum.Broken, b.Error())
	}
	return sum
}

func (s *adSummary) print(w io.Writer) {
	fmt.Fprintf(w, "%s events, %s calls on %d ranks, read in %.2f s; %s anomalies (%s confirmed, %s promoted, %s withdrawn), %s records "+
		"sent\n",
		grouped(s.Events), grouped(s.Calls), s.Ranks, s.Reading, grouped(s.Anomalies), grouped(s.Confirmed), grouped(s.Promoted),
		grouped(s.Withdrawn), grouped(s.Records))
	for _, n := range s.Notes {
		fmt.Fprintf(w, "%s: %s %s\n", n.Severity, grouped(n.Count), n.Sentence)
	}
}

// newLog returns a log for people on w.
func newLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo}))
}
