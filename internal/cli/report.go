package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/show/report"
)

func newReportCmd(env *Env) *cobra.Command {
	var run, output string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "write a run into one file of HTML, for a ticket or a paper",
		Long: `Write what the page shows of a run into one file of HTML: the verdict, all issues,
the evidence of the worst ten with timelines and models, and charts. The file needs
neither a network nor scripts, prints well and is at most a few megabytes large.
Of a run that goes on it tells what is known so far.

RUN is a run directory, a provenance.duckdb file, postgres://user@server/database, or
the address of a page.`,
		Example: `  chimbuko report run -o report.html
  chimbuko report run -o - > report.html
  chimbuko report postgres://user@server/chimbuko --run monday -o monday.html`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, errTooLong)
			defer cancel()
			err := writeReport(ctx, env, given[0], run, output)
			if errors.Is(context.Cause(ctx), errTooLong) {
				err = fmt.Errorf("no report within %v; give more with --timeout: %w", timeout, err)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVarP(&output, "output", "o", "report.html", "file that is written; - is standard output")
	f.StringVar(&run, "run", "", "name of the run, where the store holds several; by default the latest")
	f.DurationVar(&timeout, "timeout", 5*time.Minute, "give up after this time")
	return cmd
}

func writeReport(ctx context.Context, env *Env, where, run, output string) (err error) {
	from, err := openPage(ctx, env, where, run)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	r, err := report.Gather(ctx, from, from.run)
	if err != nil {
		return err
	}
	r.Made, r.Version = time.Now(), env.Version
	if output == "-" {
		return r.Write(env.Stdout)
	}
	if err := createFile(output, r.Write); err != nil {
		return err
	}
	info, err := os.Stat(output)
	if err != nil {
		return err
	}
	for _, missing := range r.Missing {
		fmt.Fprintf(env.Stderr, "chimbuko: %s\n", missing)
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: %s\n%s: %s of HTML; open it in a browser\n", r.Overview.Run, r.Overview.Verdict.Sentence,
		filepath.Clean(output), sizeText(info.Size()))
	return err
}
