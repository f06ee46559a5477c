package doctor

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
)

// New returns the command. It prints to w, and returns usage.ErrReported if a check fails.
func New(version string, w io.Writer) *cobra.Command {
	var services []string
	format := "table"
	cmd := &cobra.Command{
		Use:   "doctor [DIR]",
		Short: "Check whether this machine can record traces and run the services",
		Long: `Check TAU and its settings for ADIOS2 (the variables TAU_ADIOS2_… of the shell), memory,
limits, the disk of DIR (space, locks, speed), the clock, and ports, and print what to change.
DIR is the directory for runs, the current directory by default. The exit code is 1 if a check
fails.`,
		Example: `  chimbuko doctor
  chimbuko doctor /scratch/me --listen 0.0.0.0:4222`,
		Args: usage.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if format != "table" && format != "json" {
				return usage.Errorf("unknown format %q (want table or json)", format)
			}
			o := System(cmd.Context())
			o.Version, o.Services = version, services
			if len(args) > 0 {
				o.Dir = args[0]
			}
			checks := Examine(&o)
			if format == "json" {
				err = json.NewEncoder(w).Encode(checks)
			} else {
				err = Print(w, checks)
			}
			if err == nil && Worst(checks) == Failure {
				err = usage.ErrReported
			}
			return err
		},
	}
	cmd.Flags().StringArrayVar(&services, "listen", nil, "address that a service will listen on; repeatable")
	cmd.Flags().StringVar(&format, "format", format, "format of the answer: table or json")
	return cmd
}
