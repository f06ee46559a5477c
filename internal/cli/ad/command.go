package ad

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/cli/option"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// notRepeated lists the flags of an analyzer that are set again when it restarts.
var notRepeated = []string{
	"config", "json", "node", "run-dir", "name", "spool", "traces", "linger", "idle", "give-up",
	"nats", "nats-token-file", "nats-creds", "nats-ca", "nats-cert", "nats-key",
}

// commandOf returns the command that starts an analyzer again later, with its settings from all sources and its traces.
func commandOf(cmd *cobra.Command, patterns []string) *protocol.Command {
	c := new(protocol.Command)
	c.Host, _ = os.Hostname()   // for display only
	c.Directory, _ = os.Getwd() // if it fails, patterns remain relative
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Hidden || slices.Contains(notRepeated, f.Name) { // hidden flags are those of supervised processes
			return
		}
		c.Args = append(c.Args, option.Args(f)...)
	})
	for _, p := range patterns {
		if !filepath.IsAbs(p) && c.Directory != "" {
			p = filepath.Join(runfiles.EscapeGlob(c.Directory), p)
		}
		c.Args = append(c.Args, p)
	}
	return c
}
