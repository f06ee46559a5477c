package node

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLogsAreFollowedTogether: the ranks of logs are known only when all are there.
func TestLogsAreFollowedTogether(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, rank int) {
		t.Helper()
		text := fmt.Sprintf(`{"header":{"id":"0xa","rank":%d,"n_ranks":3},"metadata":{"dump_timestamp_us":1700000000000000,"hostname":"n","pid":1},`+
			`"coll_perf":{"coll":"AllReduce","coll_sn":1,"coll_msg_size_bytes":8,"coll_exec_time_us":9}}`+"\n", rank)
		if rank < 0 {
			text = "starting\n"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Unix(1_700_000_000, 0)
	f := &traceFinder{
		cfg: &Config{
			Patterns: []string{dir, filepath.Join(dir, "late.log")}, Engine: EngineAuto, Rank: -1, OverrideRank: -1, UntilNotified: true,
			Linger: 3 * time.Second, Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		},
		now: func() time.Time { return now }, onFound: func(*[]string) {},
	}
	find := func(want string) {
		t.Helper()
		inputs, complete, err := f.find()
		var got []string
		for _, in := range inputs {
			text := filepath.Base(in.Path)
			if in.Steps != nil {
				text += fmt.Sprint(" of rank ", in.Collectives.Rank)
			}
			got = append(got, text)
		}
		if strings.Join(got, ", ") != want || complete || err != nil {
			t.Errorf("got %q, %v, %v, want %s", got, complete, err, want)
		}
		now = now.Add(2 * time.Second)
	}
	write("n-pid1.log", 2)
	write("train.log", -1)
	find("")
	write("n-pid2.log", 1)
	find("")
	find("")
	find("n-pid1.log of rank 2, n-pid2.log of rank 1")
	write("late.log", 0)
	find("late.log of rank 0, n-pid1.log of rank 2, n-pid2.log of rank 1")
}
