package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/chimbuko/chimbuko/internal/online/service"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/viewer"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

func newStatusCmd(env *Env) *cobra.Command {
	var watch, asJSON, all bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "status RUN",
		Short: "show how a run that goes on fares: ranks, lag, rates, health",
		Long: `Show how the services and analyzers of a run fare: how far each rank is read, how
far behind an analyzer is, rates, what waits to be sent or stored, what was
repaired or lost, what is wrong, and where the page of the run is. RUN is the directory
of chimbuko serve, or the address that it printed.`,
		Example: `  chimbuko status run
  chimbuko status run --watch
  chimbuko status 'http://127.0.0.1:40123/?token=…' --json`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if every <= 0 {
				return usagef("--every %v is not positive", every)
			}
			for seen := false; ; seen = true {
				st, err := fetchStatus(cmd.Context(), given[0])
				if err != nil && seen { // the services ended, or will be started again
					err = watchOn(env, given[0], err, asJSON)
				}
				if errors.Is(err, errEnded) {
					return nil
				}
				if err != nil {
					return err
				}
				if st == nil {
					if sleep(cmd.Context(), every) != nil {
						return nil
					}
					continue
				}
				if watch && !asJSON && isTerminal(env.Stdout) {
					fmt.Fprint(env.Stdout, "\x1b[H\x1b[2J")
				}
				if err := env.show(asJSON, st, func(w io.Writer) { printStatus(w, st, all); printPage(w, given[0]) }); err != nil || !watch {
					return err
				}
				if st.Run.State == api.Finished {
					return nil
				}
				if sleep(cmd.Context(), every) != nil {
					return nil
				}
			}
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&watch, "watch", "w", false, "show it again and again until the run ends")
	f.DurationVar(&every, "every", time.Second, "time between two looks with --watch")
	f.BoolVar(&all, "all", false, "show all ranks, not only the worst")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// errEnded says that there is nothing more to watch.
var errEnded = errors.New("the run has ended")

// watchOn says whether to go on when the services of a run, which were there,
// do not answer: errEnded if the run has ended, nil if they can be started again.
func watchOn(env *Env, where string, why error, asJSON bool) error {
	info, err := rundir.ReadInfo(where)
	if errors.Is(err, fs.ErrNotExist) {
		return why // nothing but an address is known
	}
	if err != nil {
		return errors.Join(why, err)
	}
	if info.State.Open() {
		fmt.Fprintf(env.Stderr, "chimbuko: %v\n", why)
		return nil
	}
	if !asJSON {
		fmt.Fprintf(env.Stdout, "%s: %s; chimbuko top %s asks it\n", info.Name, info.State, where)
	}
	return errEnded
}

// fetchStatus asks the services of a run directory, or at an address.
func fetchStatus(ctx context.Context, where string) (*api.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	address, token, client := where, "", new(http.Client)
	if _, err := os.Stat(where); err == nil {
		s, err := rundir.ReadServices(where)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s: no services were started for this run; chimbuko top %s asks a run that has ended", where, where)
		}
		if err != nil {
			return nil, err
		}
		if s.Web == "" {
			return nil, fmt.Errorf("%s: no process of the run has the role web", where)
		}
		address, token = s.Web, s.Secret
		if client, err = viewer.Client(s.CA); err != nil {
			return nil, err
		}
	}
	st, err := dashboard.Fetch(ctx, client, address, token)
	if err != nil {
		return nil, fmt.Errorf("%w; if the run has ended ask it with chimbuko top %s", err, where)
	}
	return st, nil
}

// worstRanks is how many ranks are shown.
const worstRanks = 20

func printStatus(w io.Writer, st *api.Status, all bool) {
	t := st.Totals
	expected := ""
	if t.RanksExpected > 0 {
		expected = fmt.Sprintf(" of %d", t.RanksExpected)
	}
	fmt.Fprintf(w, "%s: %s, %s since it was started\n", st.Run.Name, st.Run.State, st.Run.Now.Sub(st.Run.Started).Round(time.Second))
	fmt.Fprintf(w, "%d%s ranks, %d ended; %s steps, %s events, %s calls of %d functions; %s flagged, %s records stored\n\n", t.Ranks,
		expected, t.RanksEnded,
		grouped(t.Steps), grouped(t.Events), grouped(t.Calls), t.Functions, grouped(t.Anomalies), grouped(t.RecordsStored))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(st.Nodes) > 0 {
		fmt.Fprintln(tw, "ANALYZER\tSTATE\tRANKS\tSTEPS\tBEHIND\tEVENTS/S\tOUTBOX\tDEFERRED\tEXCHANGE\tMEMORY\tHEARD")
	}
	for i := range st.Nodes {
		n := &st.Nodes[i]
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\t%.1f s\t%s\t%s\t%d\t%s\t%s\t%s ago\n", n.Name, n.State, n.Ranks, grouped(n.StepsRead), n.Behind,
			grouped(int64(n.EventsPerSecond)),
			sizeText(n.OutboxBytes), n.Drops, microsText(n.Exchange.Last*1e6), sizeText(n.RSS),
			st.Run.Now.Sub(n.LastHeard).Round(100*time.Millisecond))
	}
	_ = tw.Flush() // errors stick to w
	printRanks(w, st, all)
	for i := range st.Shards {
		s := &st.Shards[i]
		fmt.Fprintf(w, "parameters %s: %s exchanges (%.0f/s, %s repeated, %s refused), p99 %s, %d models, version %d\n", s.Name,
			grouped(s.Exchanges), s.ExchangesPerSecond,
			grouped(s.Repeated), grouped(s.Refused), microsText(s.Latency.P99*1e6), s.Models, s.Version)
	}
	if s := st.Store; s != nil {
		fmt.Fprintf(w, "store (%s): %s records (%.0f/s), %d messages wait (%s)\n", s.Kind, grouped(s.Records), s.RecordsPerSecond,
			s.PendingMessages, sizeText(s.PendingBytes))
	}
	if s := st.Sender; s != nil {
		fmt.Fprintf(w, "statistics: %d packets sent, %d wait, %d retries\n", s.Sent, s.Pending, s.Retries)
	}
	for i := range st.Nodes {
		for _, t := range st.Nodes[i].Tallies {
			fmt.Fprintf(w, "%s: %s: %s %s\n", st.Nodes[i].Name, t.Severity, grouped(t.Count), t.Sentence)
		}
	}
	for _, h := range st.Health {
		if !h.OK {
			fmt.Fprintf(w, "%s: %s: %s\n", h.Severity, h.Part, h.Sentence)
		}
	}
}

// printPage tells where the page of a run directory is.
func printPage(w io.Writer, where string) {
	if s, err := rundir.ReadServices(where); err == nil && s.Web != "" {
		fmt.Fprintf(w, "page: %s\n", viewer.WithToken(s.Web, s.Secret))
	}
}

// worst orders ranks by how far behind they are and how much was flagged.
func worst(ranks []api.Rank) []api.Rank {
	ranks = slices.Clone(ranks)
	slices.SortStableFunc(ranks, func(a, b api.Rank) int {
		return cmp.Or(cmp.Compare(b.Behind, a.Behind), cmp.Compare(b.Anomalies, a.Anomalies))
	})
	return ranks
}

// printRanks shows the ranks that are furthest behind or flagged most.
func printRanks(w io.Writer, st *api.Status, all bool) {
	ranks := worst(st.Ranks)
	if !all && len(ranks) > worstRanks {
		ranks = ranks[:worstRanks]
	}
	if len(ranks) == 0 {
		return
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "RANK\tHOST\tSTEP\tBEHIND\tFLAGGED\tSTATE")
	for _, r := range ranks {
		state := "reading"
		if r.Ended {
			state = "ended"
		}
		fmt.Fprintf(tw, "%d:%d\t%s\t%d\t%.1f s\t%s\t%s\n", r.Program, r.Rank, r.Host, r.Step, r.Behind, grouped(r.Anomalies), state)
	}
	_ = tw.Flush() // errors stick to w
	if left := len(st.Ranks) - len(ranks); left > 0 {
		fmt.Fprintf(w, "… and %d more (--all)\n", left)
	}
	fmt.Fprintln(w)
}

func newStopCmd(env *Env) *cobra.Command {
	var flags service.Bus
	var name string
	cmd := &cobra.Command{
		Use:   "stop RUN",
		Short: "end a run that goes on with what is known: analyzers review, all is stored",
		Long: `End a run before its traces end: analyzers take their traces as ended, everything
that was kept is judged again, and what is known over all ranks is stored.
Analyzers that say nothing are not waited for longer than 15 seconds. RUN is the
directory of chimbuko serve. CHIMBUKO_* variables, and the file that CHIMBUKO_CONFIG
names, say how to reach a NATS of others, as for serve.`,
		Example: `  chimbuko stop run
  chimbuko stop run --nats-creds job.creds`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if _, err := applySettings(cmd.Flags(), "", env.Environ); err != nil { // those by which serve reached NATS
				return usageError{err}
			}
			s, err := rundir.ReadServices(given[0])
			if err != nil && flags.URL == "" {
				return fmt.Errorf("no services are known for this run: %w", err)
			}
			if s == nil {
				s = &rundir.Services{Run: name}
			}
			if err := flags.Stop(cmd.Context(), s); err != nil {
				return err
			}
			fmt.Fprintf(env.Stderr, "chimbuko: run %q is ending; chimbuko status %s --watch shows how far it is\n", s.Run, given[0])
			return nil
		},
	}
	registerBus(cmd.Flags(), &flags)
	cmd.Flags().StringVar(&name, "name", "", "name of the run, with --nats")
	return cmd
}
