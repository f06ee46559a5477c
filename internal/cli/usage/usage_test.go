package usage_test

import (
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
)

func root() *cobra.Command {
	none := func(*cobra.Command, []string) error { return nil }
	r := &cobra.Command{Use: "chimbuko", RunE: func(cmd *cobra.Command, given []string) error {
		if len(given) > 0 {
			return usage.Unknown(cmd, given[0])
		}
		return nil
	}, Args: cobra.ArbitraryArgs, SilenceErrors: true, SilenceUsage: true}
	r.SetFlagErrorFunc(usage.FlagError)
	findings := &cobra.Command{Use: "findings RUN [NUMBER]", Args: usage.Args(cobra.RangeArgs(1, 2)), RunE: none}
	findings.Flags().String("format", "", "")
	findings.Flags().String("for", "", "")
	findings.Flags().Int("limit", 0, "")
	findings.Flags().Bool("formal", false, "")
	_ = findings.Flags().MarkHidden("formal")
	trace := &cobra.Command{Use: "trace", Args: cobra.ArbitraryArgs, RunE: r.RunE}
	trace.AddCommand(&cobra.Command{Use: "dump PATH", Args: usage.Args(cobra.ExactArgs(1)), RunE: none},
		&cobra.Command{Use: "info PATH...", Args: usage.Args(cobra.MinimumNArgs(1)), RunE: none})
	r.AddCommand(findings, trace, &cobra.Command{Use: "event RUN ID", Args: usage.Args(cobra.ExactArgs(2)), RunE: none},
		&cobra.Command{Use: "version", Args: usage.Args(cobra.NoArgs), RunE: none},
		&cobra.Command{Use: "analyze TRACE...", Args: usage.Args(cobra.MinimumNArgs(1)), RunE: none})
	return r
}

func TestMistakesNameWhatIsExpected(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		r := root()
		r.SetArgs(args)
		err := r.ExecuteContext(t.Context())
		if _, ok := errors.AsType[usage.Error](err); !ok || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", args, err, want)
		}
	}
	f(`unknown command "findngs" for "chimbuko" (did you mean chimbuko findings?)`, "findngs", "run")
	f(`unknown command "analyse" for "chimbuko" (did you mean chimbuko analyze?)`, "analyse")
	f(`unknown command "find" for "chimbuko" (did you mean chimbuko findings?)`, "find")
	f(`unknown command "evnet" for "chimbuko" (did you mean chimbuko event?)`, "evnet")
	f(`unknown command "xyzzy" for "chimbuko"`, "xyzzy")
	f(`unknown command "show" for "chimbuko trace" (want dump or info)`, "trace", "show")
	f(`unknown flag: --frmat (did you mean --format?)`, "findings", "--frmat", "json", "run")
	f(`unknown flag: --fo (did you mean --for or --format?)`, "findings", "--fo", "json", "run")
	f(`unknown flag: --color`, "findings", "--color", "run")
	f(`chimbuko findings: RUN is missing (usage: chimbuko findings RUN [NUMBER])`, "findings")
	f(`chimbuko findings: unexpected argument "c" (usage: chimbuko findings RUN [NUMBER])`, "findings", "a", "b", "c")
	f(`chimbuko event: RUN and ID are missing (usage: chimbuko event RUN ID)`, "event")
	f(`chimbuko event: ID is missing (usage: chimbuko event RUN ID)`, "event", "run")
	f(`chimbuko analyze: TRACE is missing (usage: chimbuko analyze TRACE...)`, "analyze")
	f(`chimbuko version: unexpected argument "x" (usage: chimbuko version)`, "version", "x")
}

func TestDistanceCountsEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"analyse", "analyze", 1}, {"käse", "kase", 1}, {"top", "stop", 1}, {"abcd", "badc", 2}} {
		if got := usage.Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) is %d, want %d", c.a, c.b, got, c.want)
		}
		if got := usage.Distance(c.b, c.a); got != c.want {
			t.Errorf("Distance(%q, %q) is %d, want %d", c.b, c.a, got, c.want)
		}
	}
}
