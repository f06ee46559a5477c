package option

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/base/settings"
)

// WarnOfSecrets warns on stderr about secrets on the command line, which all users of this machine can read.
func WarnOfSecrets(stderr io.Writer, cmd *cobra.Command, args []string) {
	warn := func(where, text string) {
		if redact.URLs(text) == text {
			return
		}
		instead := "a password file (~/.pgpass, PGPASSFILE)"
		if strings.Contains(text, "nats://") || strings.Contains(text, "tls://") {
			instead = "--nats-token-file or --nats-creds"
		}
		if strings.HasPrefix(where, "--") {
			instead += ", or the environment variable " + settings.EnvName(where[2:])
		}
		fmt.Fprintf(stderr, "chimbuko: other users of this machine can see the password in %s (use %s instead)\n", where, instead)
	}
	cmd.Flags().Visit(func(f *pflag.Flag) { warn("--"+f.Name, f.Value.String()) })
	for _, a := range args {
		warn(redact.URLs(a), a)
	}
}
