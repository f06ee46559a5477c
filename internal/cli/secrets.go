package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Secrets in URLs: a password, up to the last @ as it may hold any sign; a token in
// place of a user of NATS; a setting of PostgreSQL.
var (
	urlPassword = regexp.MustCompile(`(://[^:@/\s,]*):[^,\s]*@`)
	urlToken    = regexp.MustCompile(`\b((?:nats|tls)://)[^@/\s,]*@`)
	urlSetting  = regexp.MustCompile(`(?i)([?&])password=[^&\s]*&?`)
)

// withoutSecrets is a text that may be shown and kept: passwords and tokens are taken
// out of all URLs in it.
func withoutSecrets(text string) string {
	text = urlPassword.ReplaceAllString(text, "$1@")
	text = urlToken.ReplaceAllString(text, "$1")
	return urlSetting.ReplaceAllString(text, "$1")
}

func holdsSecret(text string) bool { return withoutSecrets(text) != text }

// warnOfSecrets says that everybody on this machine can read what is on the command
// line, if there is a secret on it.
func warnOfSecrets(env *Env, cmd *cobra.Command, args []string) {
	warn := func(where, text string) {
		if !holdsSecret(text) {
			return
		}
		instead := "a password file (~/.pgpass, PGPASSFILE)"
		if strings.Contains(text, "nats://") || strings.Contains(text, "tls://") {
			instead = "--nats-token-file or --nats-creds"
		}
		if strings.HasPrefix(where, "--") {
			instead += ", or the environment variable " + envName(where[2:])
		}
		fmt.Fprintf(env.Stderr, "chimbuko: others on this machine can see the password in %s, as ps shows it: use %s\n", where, instead)
	}
	cmd.Flags().Visit(func(f *pflag.Flag) { warn("--"+f.Name, f.Value.String()) })
	for _, a := range args {
		warn(withoutSecrets(a), a)
	}
}
