package cli_test

import (
	"strings"
	"testing"
)

func TestStreamFlagsAreChecked(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		r := run(t, append([]string{"ad", "x.bp.sst"}, args...)...)
		if r.code != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: got exit code %d and %q, want 2 and %q", args, r.code, r.stderr, want)
		}
	}
	f(`unknown --engine "hdf5" (want auto, bp, sst)`, "--engine", "hdf5")
	f("--connect-timeout cannot be negative", "--connect-timeout", "-1s")
	f("--stream-queue must be positive", "--stream-queue", "0")
}
