// Package ad is the command that analyzes traces while they are being written. It needs no store and no page, so a separate
// program can consist of it.
package ad

import (
	"bufio"
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
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/cli/option"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/inputs"
	"github.com/chimbuko/chimbuko/internal/online/node"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/source/sst"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Env is the environment of the command.
type Env struct {
	Stdout, Stderr io.Writer
	Settings       option.Settings
	Leash          func() <-chan string // returns the lines of the process that controls this one, or nil; nil for never
}

// flags are the flags of the command.
type flags struct {
	option.Detect
	node.Config
	asJSON bool
}

func (a *flags) register(f *pflag.FlagSet) {
	a.Register(f)
	option.RegisterBus(f, &a.Bus)
	f.StringVar(&a.Dir, "run-dir", "chimbuko-run", "run directory of chimbuko serve; it may not exist yet")
	f.StringVar(&a.Run, "name", "", "name of the run, as given to chimbuko serve; by default the name in the run directory, or else the "+
		"name of the directory")
	f.StringVar(&a.Node, "node", "", "unique name of this analyzer; by default derived from the host and the traces")
	f.IntVar(&a.Rank, "rank", -1, "only rank to analyze; -1 for all")
	f.IntVar(&a.OverrideRank, "override-rank", -1, "rank of all events, instead of the one in the trace; -1 for none")
	f.IntVar(&a.Traces, "traces", 0, "number of traces; 0 for all that appear until all have ended and no new one appears for --linger")
	f.DurationVar(&a.Linger, "linger", 3*time.Second, "time to wait for further traces after all have ended")
	f.DurationVar(&a.Idle, "idle", 0, "time without new data after which a trace counts as ended; 0 for never")
	f.DurationVar(&a.Poll, "poll", 20*time.Millisecond, "interval between checks for new steps; up to five times as long while there are none")
	f.DurationVar(&a.Exchange, "exchange", time.Second, "interval of exchanges with the parameter server")
	f.Int64Var(&a.Outbox, "outbox", 64, "megabytes of records that may wait to be sent; others are sent with the review")
	f.StringVar(&a.Spool, "spool", "", "directory for records until the review; a new temporary one by default")
	f.DurationVar(&a.GiveUp, "give-up", 0, "time to wait for the services after all traces have ended, before failing without a review; "+
		"0 to wait forever")
	f.BoolVar(&a.UntilNotified, "until-notified", false, "traces may appear until the parent process reports the end of the program")
	_ = f.MarkHidden("until-notified") // only for processes that this program starts
	f.BoolVar(&a.asJSON, "json", false, "summary as JSON")
	f.StringVar(&a.Engine, "engine", node.EngineAuto, "transport of the traces: bp (datasets), sst (live streams), or auto (by the "+
		"names, .bp or .sst)")
	option.RegisterConnect(f, &a.ConnectTimeout)
	f.Int64Var(&a.StreamQueue, "stream-queue", sst.Default().Queue>>20,
		"megabytes of each live stream buffered before the analysis; further steps stay in the program")
}

// check returns all mistakes in the flags as one error, and sets defaults.
func (a *flags) check(patterns []string) error {
	var bad usage.Errors
	bad.AddIf(a.Rank >= 0 && a.OverrideRank >= 0, "give --rank or --override-rank, not both")
	bad.AddIf(a.Poll <= 0, "--poll %v is not positive", a.Poll)
	bad.AddIf(a.Exchange <= 0, "--exchange %v is not positive", a.Exchange)
	bad.AddIf(a.Linger < 0 || a.Idle < 0 || a.GiveUp < 0 || a.Traces < 0 || a.Outbox < 1,
		"--linger, --idle, --give-up and --traces cannot be negative, and --outbox must be positive")
	engines := []string{node.EngineAuto, node.EngineBP, node.EngineSST}
	bad.AddIf(!slices.Contains(engines, a.Engine), "unknown --engine %q (want %s)", a.Engine, strings.Join(engines, ", "))
	bad.AddIf(a.ConnectTimeout < 0 || a.StreamQueue < 1, "--connect-timeout cannot be negative, and --stream-queue must be positive")
	services, err := runfiles.ReadServices(a.Dir)
	if err != nil || a.Bus.URL != "" {
		services = &runfiles.Services{Run: runfiles.Name(a.Dir)}
	}
	a.Run = cmp.Or(a.Run, services.Run)
	if a.Node == "" {
		a.Node = a.defaultNode(patterns)
	}
	return bad.Err()
}

// defaultNode returns a name made of the host and the traces, the same after a restart.
func (a *flags) defaultNode(patterns []string) string {
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

// New returns the command.
func New(env *Env) *cobra.Command {
	var flags flags
	cmd := &cobra.Command{
		Use:   "ad TRACE...",
		Short: "Analyze traces while they are written",
		Long: `Analyze the traces of one or many ranks while the program writes them. A TRACE is a dataset,
a log of NCCL Inspector, a directory or a pattern. Of a directory, all .bp and .log that
appear in it are read. The traces need not exist yet.

Analyzers share their models through the parameter server of chimbuko serve, and send
anomalies to its database.

If TAU streams its trace (TAU_ADIOS2_ENGINE=SST), a TRACE is the contact file of the
stream, X.bp.sst, or a directory or pattern of such files. With --engine sst, it may also
be X.bp. Start the analyzer before the program, because the program waits for it.

Logs of NCCL Inspector have no end mark. With --idle, a log ends after that long without new
data. Ranks can be determined only from all logs of a job together, so one analyzer should
read them all. It begins when no new log has appeared for --linger.

Traces may be of several programs of a workflow, which are recognized by name as in
chimbuko analyze. A program whose first trace appears later gets the next number. Use
--program if several analyzers read different programs.

The analyzer never waits for the services: without a connection, it reports that and
continues with its own models. After the traces of all analyzers have ended, all records
are reviewed with the final model. After a crash, start the analyzer again with the same
command. It reads its traces from the beginning, and nothing is counted or stored twice. A
live stream cannot be read again, so the analyzer continues with the next steps.`,
		Example: `  chimbuko serve --out run &
  chimbuko ad --run-dir run 'traces/tau-metrics-*.bp' --traces 4
  chimbuko ad --run-dir run --engine sst traces/ --traces 4
  chimbuko ad --run-dir run nccl-inspector-4711/ --idle 5m
  chimbuko ad --nats tls://services:4222 --nats-creds job.creds --name job42 traces/`,
		Args: usage.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, patterns []string) error {
			if _, err := flags.Load(cmd.Flags(), env.Settings); err != nil {
				return usage.Error{Err: err}
			}
			cfg, err := flags.Configure(1, nil)
			if err := errors.Join(err, flags.check(patterns)); err != nil {
				return usage.Error{Err: err}
			}
			flags.Analysis, flags.Patterns, flags.Command = cfg, patterns, commandOf(cmd, patterns)
			return run(cmd.Context(), env, &flags)
		},
	}
	flags.register(cmd.Flags())
	return cmd
}

// run runs an analyzer.
func run(ctx context.Context, env *Env, flags *flags) error {
	cfg, progress := &flags.Config, output.NewAnalyzer(env.Stderr)
	cfg.Log, cfg.Progress = NewLog(env.Stderr), progress
	if len(flags.Programs) > 0 {
		cfg.Inputs = func(paths []string) ([]analyzer.Input, error) {
			all, _, err := inputs.WithPrograms(paths, flags.Programs)
			return all, err
		}
	}
	var leash <-chan string
	if env.Leash != nil {
		leash = env.Leash()
	}
	if leash != nil {
		cfg.ProgramEnded = programEnded(leash)
	}
	res, err := node.Analyze(ctx, cfg)
	progress.Clear()
	switch {
	case errors.Is(err, paramclient.ErrReviewed):
		fmt.Fprintln(env.Stderr, "chimbuko: the records of this analyzer were stored before its restart; nothing is left to do")
		return nil
	case errors.Is(err, node.ErrStreamsInterrupted):
		fmt.Fprintln(env.Stderr, "chimbuko: interrupted before the review; live streams cannot be read again: the same command continues "+
			"with the steps that follow, and chimbuko stop ends the run")
		return usage.ErrReported
	case errors.Is(err, node.ErrInterrupted):
		fmt.Fprintln(env.Stderr, "chimbuko: interrupted before the review; the same command reads the traces again, and nothing is counted twice")
		return usage.ErrReported
	case err != nil:
		return err
	}
	sum := &output.AnalyzerSummary{
		Node: cfg.Node, Reading: res.ReadingTime.Seconds(), Seconds: res.TotalTime.Seconds(),
		Totals:    provdb.Totals{Totals: res.Totals, Functions: len(res.Functions), Anomalies: res.Review.Anomalies},
		Confirmed: res.Review.Confirmed, Promoted: res.Review.Promoted, Withdrawn: res.Review.Withdrawn,
		Records: res.Sent, Deferred: res.Deferred, Notes: res.Tally.Notes(),
	}
	for _, b := range res.Broken {
		sum.Broken = append(sum.Broken, b.Error())
	}
	if flags.asJSON {
		err = output.WriteJSON(env.Stdout, sum)
	} else {
		out := bufio.NewWriter(env.Stdout)
		sum.Write(out)
		err = out.Flush()
	}
	for _, b := range sum.Broken {
		fmt.Fprintf(env.Stderr, "chimbuko: %s\n", b)
		if leash == nil { // otherwise the parent process reports it
			err = errors.Join(err, usage.ErrReported)
		}
	}
	return err
}

// programEnded returns a function that reports whether the parent process has reported the
// end of the program.
func programEnded(leash <-chan string) func() bool {
	ended := new(atomic.Bool)
	go func() {
		for line := range leash {
			if line == node.ProgramEnded {
				ended.Store(true)
			}
		}
	}()
	return ended.Load
}

// NewLog returns a log of text lines on w.
func NewLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo}))
}
