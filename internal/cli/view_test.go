package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func TestFilesAndNullDevicesAreNotInteractive(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close() //nolint:errcheck // nothing is in it
	for _, env := range []*Env{
		{Stdin: strings.NewReader(""), Stdout: null},
		{Stdin: null, Stdout: null},
		{Stdin: null, Stdout: new(bytes.Buffer)},
	} {
		if env.isInteractive() {
			t.Errorf("%+v is a terminal", env)
		}
	}
}

func TestDescribeRun(t *testing.T) {
	f := func(info *provdb.Info, stopped bool, parts ...string) {
		t.Helper()
		text := describeRun(info, "run", stopped)
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%q is missing in %q", part, text)
			}
		}
	}
	f(&provdb.Info{State: provdb.Finished, Totals: provdb.Totals{Totals: summary.Totals{Events: 700, Calls: 300, Ranks: 2}, Anomalies: 5}},
		false,
		"finished, with 5 anomalies in 300 calls on 2 ranks")
	f(&provdb.Info{State: provdb.Failed, Error: "the disk is full"}, false, "failed: the disk is full")
	f(&provdb.Info{State: provdb.Running}, true, "incomplete", "chimbuko analyze --out run --force")
	f(&provdb.Info{State: provdb.Running, Online: true}, true, "incomplete", "chimbuko finish run")
}
