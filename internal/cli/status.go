package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/cli/option"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/online/node"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// statusFlags are the flags of status.
type statusFlags struct {
	watch, asJSON, all bool
	every              time.Duration
}

func newStatusCmd(env *Env) *cobra.Command {
	var flags statusFlags
	cmd := &cobra.Command{
		Use:   "status RUN",
		Short: "Show the state of a live run",
		Long: `Show the state of the services and analyzers of a run: the step that each rank has reached,
how far analyzers are behind, rates, data waiting to be sent or stored, repairs, losses and
problems, and the address of the page. RUN is the directory of chimbuko serve, or the
address that it printed.`,
		Example: `  chimbuko status run
  chimbuko status run --watch
  chimbuko status 'http://127.0.0.1:40123/?token=…' --json`,
		Args: usage.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.every <= 0 {
				return usage.Errorf("--every %v is not positive", flags.every)
			}
			for first := true; ; first = false {
				ended, err := flags.show(cmd, env, args[0], first)
				if err != nil || ended || wait.Sleep(cmd.Context(), flags.every) != nil {
					return err
				}
			}
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&flags.watch, "watch", "w", false, "repeat the output until the run ends")
	f.DurationVar(&flags.every, "every", time.Second, "interval of --watch")
	f.BoolVar(&flags.all, "all", false, "all ranks instead of the worst")
	f.BoolVar(&flags.asJSON, "json", false, "output as JSON")
	return cmd
}

// show prints the status once. It returns true if there is nothing more to show.
func (s *statusFlags) show(cmd *cobra.Command, env *Env, where string, first bool) (ended bool, err error) {
	st, err := viewer.StatusAt(cmd.Context(), where)
	if err != nil && !first { // the services have ended, or will be restarted
		return s.unreachable(env, where, err)
	}
	if err != nil {
		return true, err
	}
	if s.watch && !s.asJSON && output.IsTerminal(env.Stdout) {
		fmt.Fprint(env.Stdout, "\x1b[H\x1b[2J")
	}
	err = env.show(s.asJSON, st, func(w io.Writer) {
		output.Status(w, st, s.all)
		if services, err := runfiles.ReadServices(where); err == nil && services.Web != "" {
			fmt.Fprintf(w, "page: %s\n", viewer.WithToken(services.Web, services.Secret))
		}
	})
	return !s.watch || st.Run.State == api.Finished, err
}

// unreachable reports whether a run has ended whose services answered before and now fail. If it has not ended, its services
// may be restarted.
func (s *statusFlags) unreachable(env *Env, where string, cause error) (ended bool, err error) {
	info, err := runfiles.ReadInfo(where)
	switch {
	case errors.Is(err, fs.ErrNotExist): // where is an address
		return true, cause
	case err != nil:
		return true, errors.Join(cause, err)
	case info.State.Open():
		fmt.Fprintf(env.Stderr, "chimbuko: %v\n", cause)
		return false, nil
	}
	if !s.asJSON {
		fmt.Fprintf(env.Stdout, "%s: %s (show the results with chimbuko top %s)\n", info.Name, info.State, where)
	}
	return true, nil
}

func newStopCmd(env *Env) *cobra.Command {
	var flags node.Bus
	var name string
	cmd := &cobra.Command{
		Use:   "stop RUN",
		Short: "End a live run early",
		Long: `End a live run before its traces end: analyzers stop reading, all records are reviewed with
the final model, and the results of all ranks are stored. Analyzers that do not answer
within 15 seconds are skipped. RUN is the directory of chimbuko serve. As with serve, the
address of an external NATS server may come from CHIMBUKO_* variables or from the file that
CHIMBUKO_CONFIG names.`,
		Example: `  chimbuko stop run
  chimbuko stop run --nats-creds job.creds`,
		Args: usage.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := applySettings(cmd.Flags(), "", env.Environ); err != nil {
				return usage.Error{Err: err}
			}
			s, err := runfiles.ReadServices(args[0])
			if err != nil && flags.URL == "" {
				return fmt.Errorf("stop %s: no services found: %w", args[0], err)
			}
			if s == nil {
				s = &runfiles.Services{Run: name}
			}
			if err := flags.Stop(cmd.Context(), s); err != nil {
				return err
			}
			fmt.Fprintf(env.Stderr, "chimbuko: run %q is ending; chimbuko status %s --watch shows the progress\n", s.Run, args[0])
			return nil
		},
	}
	option.RegisterBus(cmd.Flags(), &flags)
	cmd.Flags().StringVar(&name, "name", "", "name of the run, with --nats")
	return cmd
}
