package cli_test

import (
	"strings"
	"testing"
)

func TestViewOfPacketsRejectsConflictingFlags(t *testing.T) {
	empty := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"view"}, "want RUN, --replay DIR or --receive"},
		{[]string{"view", "run", "--receive"}, "packets are shown without a run"},
		{[]string{"view", "--replay", empty, "--receive"}, "exclude each other"},
		{[]string{"view", "--receive", "--run", "x"}, "packets have none"},
		{[]string{"view", "--receive", "--speed", "2"}, "--speed needs --replay"},
		{[]string{"view", "--replay", empty, "--speed", "-1"}, "--speed must be"},
		{[]string{"view", "--replay", empty}, "has no pserver_output_stats_*.json"},
		{[]string{"view", "--replay", empty + "/nowhere"}, "no such file"},
	} {
		r := run(t, c.args...)
		if r.code == 0 || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%v: %d, %s; want %q", c.args, r.code, r.stderr, c.want)
		}
	}
}
