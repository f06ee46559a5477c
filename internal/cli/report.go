package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/show/report"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
)

func newReportCmd(env *Env) *cobra.Command {
	var run, file string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "Write a run into one HTML file",
		Long: `Write the page of a run into one HTML file, for a ticket or a paper: the verdict, all findings,
the evidence for the worst ten with timelines and models, and charts. The file needs neither
network nor scripts, prints well, and takes at most a few megabytes. The report of a run that
has not ended shows its current state.

RUN is a run directory, a provenance.duckdb file, postgres://user@server/database, or
the address of a page.`,
		Example: `  chimbuko report run -o report.html
  chimbuko report run -o - > report.html
  chimbuko report postgres://user@server/chimbuko --run monday -o monday.html`,
		Args: usage.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, errTimeout)
			defer cancel()
			err := writeReport(ctx, env, args[0], run, file)
			if errors.Is(context.Cause(ctx), errTimeout) {
				err = fmt.Errorf("no report within %v (raise --timeout): %w", timeout, err)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVarP(&file, "output", "o", "report.html", "file to write; - for standard output")
	registerRun(f, &run)
	f.DurationVar(&timeout, "timeout", 5*time.Minute, "time limit")
	return cmd
}

func writeReport(ctx context.Context, env *Env, where, run, file string) (err error) {
	from, err := viewer.Connect(ctx, where, run, env.Version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	r, err := report.Gather(ctx, from, from.Run)
	if err != nil {
		return err
	}
	r.Made, r.Version = time.Now(), env.Version
	if file == "-" {
		return r.Write(env.Stdout)
	}
	if err := output.WriteFile(file, r.Write); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	for _, missing := range r.Missing {
		fmt.Fprintf(env.Stderr, "chimbuko: %s\n", missing)
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: %s\n%s: %s of HTML; open it in a browser\n", r.Overview.Run, r.Overview.Verdict.Sentence,
		filepath.Clean(file), text.Bytes(info.Size()))
	return err
}
