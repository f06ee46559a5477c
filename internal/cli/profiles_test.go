package cli_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestStallsOfATrainingJobAreFound expects the stalls that were planted in the recorded profiles, by rank and step, and few
// other findings. The kernel of three of them runs in no other step.
func TestStallsOfATrainingJobAreFound(t *testing.T) {
	tracetest.SkipShort(t, "analyzes or compares large runs")
	dir := filepath.Join(t.TempDir(), "run")
	prepare(t, "analyze", tracetest.Kineto(t, "transformer4-stalls"), "--out", dir)
	all := queryJSON(t, "findings", dir)
	places := func(function string) (found []string) {
		for _, row := range all {
			if !strings.Contains(row["function"].(string), function) {
				continue
			}
			for _, id := range row["examples"].([]any) {
				place := id.(string)
				found = append(found, place[:strings.LastIndexByte(place, ':')])
			}
		}
		slices.Sort(found)
		return found
	}
	for function, want := range map[string][]string{
		"optimizer":   {"0:20", "0:26", "0:27", "3:16", "3:24"},
		"dataloader":  {"0:30", "2:29", "3:22", "3:28"},
		"spin_kernel": {"1:15", "1:25", "3:23"},
	} {
		if got := places(function); !slices.Equal(got, want) {
			t.Errorf("%s: got stalls of rank:step %v, want %v", function, got, want)
		}
	}
	if len(all) > 6 {
		t.Errorf("%d findings, want at most 3 others", len(all))
	}
}

// TestSlowWorkersAndLongStages expects one slow worker in two jobs, and none in a job whose last stage is long by design: there
// a note names the stage. The run of straggler-AR takes 1.97 times as long as without its slow worker.
func TestSlowWorkersAndLongStages(t *testing.T) {
	tracetest.SkipShort(t, "analyzes or compares large runs")
	for name, want := range map[string]struct {
		severity, function string
		ranks              []any
		least, most        float64 // share of the lost time
	}{
		"straggler-AR":   {"alarm", "backward-compute [PP rank 0]", []any{0.}, 0.4, 0.55},
		"straggler-ST":   {"info", "backward-compute [PP rank 3]", []any{6., 7.}, 0.1, 0.2},
		"resnet4-always": {"alarm", "optimizer", []any{1.}, 0.1, 0.2},
	} {
		dir := filepath.Join(t.TempDir(), name)
		prepare(t, "analyze", tracetest.Kineto(t, name), "--out", dir)
		var slow []map[string]any
		for _, row := range queryJSON(t, "findings", dir, "--notes") {
			if row["kind"] == "slow-peer" {
				slow = append(slow, row)
			}
		}
		if len(slow) != 1 {
			t.Errorf("%s: got %d slow peers, want one: %v", name, len(slow), slow)
			continue
		}
		x := slow[0]
		if x["severity"] != want.severity || x["function"] != want.function || !slices.Equal(x["ranks"].([]any), want.ranks) {
			t.Errorf("%s: got %v of %v, ranks %v", name, x["severity"], x["function"], x["ranks"])
		}
		if summary := x["summary"].(string); name == "straggler-ST" && !strings.HasPrefix(summary, "Pipeline stage 3 (ranks 6-7) takes ") {
			t.Errorf("%s: %s", name, summary)
		}
		if share := x["share"].(float64); share < want.least || share > want.most {
			t.Errorf("%s: %.3f of the time is lost, want %.2f to %.2f", name, share, want.least, want.most)
		}
	}
}

// TestExtraWorkOfARank expects that rank 2 does extra work from step 18 on: about 2 ms of a step, and more because the four
// ranks share a GPU. No other finding is about the kernel.
func TestExtraWorkOfARank(t *testing.T) {
	tracetest.SkipShort(t, "analyzes or compares large runs")
	traces := tracetest.Kineto(t, "transformer4-straggler")
	dir := filepath.Join(t.TempDir(), "run")
	prepare(t, "analyze", traces, "--out", dir)
	const kernel = "cutlass_80_simt_sgemm_256x128_8x4_nn_align1::Params) [grid 128×1×1, block 256×1×1]"
	for i, row := range queryJSON(t, "findings", dir) {
		if strings.Contains(row["function"].(string), kernel) != (i == 0) {
			t.Errorf("finding %d is about %v", i+1, row["function"])
		}
		if i > 0 {
			continue
		}
		if row["kind"] != "excess-work" || row["form"] != "lasting" || !slices.Equal(row["ranks"].([]any), []any{2.}) || row["calls"] != 108. {
			t.Errorf("got %v, %v of ranks %v with %v calls", row["kind"], row["form"], row["ranks"], row["calls"])
		}
		if lost := row["lost_own_us"].(float64); lost < 2000*18 || lost > 2000*18*2.1 {
			t.Errorf("got %v us of extra work", lost)
		}
		const truth, step = 0.706, 0.040 // seconds until the first launch, and of a step
		if from := row["from_s"].(float64); math.Abs(from-truth) > step {
			t.Errorf("since %.3f s, want %.3f s", from, truth)
		}
		if words := row["summary"].(string); !regexp.MustCompile(`about step 1[789]: .* that its 3 peers do not make; .* a step`).MatchString(words) {
			t.Errorf("got %s", words)
		}
	}
	text := must(t, "findings", dir, "1")
	for _, want := range []string{"Functions that it calls more often than its 3 peers", "CALLS OF A PEER", "Time divided by that without extra work"} {
		if !strings.Contains(text, want) {
			t.Errorf("the evidence does not contain %q", want)
		}
	}
}

func TestProfilesNeedRanksOfTheirOwn(t *testing.T) {
	event := `{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"f","pid":9,"tid":9,"ts":1,"dur":1}]}`
	traces := t.TempDir()
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(traces, name), []byte(event), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refuse := func(want string, args ...string) {
		t.Helper()
		r := run(t, append([]string{"analyze", traces, "--out", filepath.Join(t.TempDir(), "run")}, args...)...)
		if r.code == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: got exit code %d and %q, want %q", args, r.code, r.stderr, want)
		}
	}
	write("worker1.json")
	must(t, "analyze", traces, "--out", filepath.Join(t.TempDir(), "one"))
	write("worker2.json")
	refuse("neither the trace nor its name contains the rank (with --rank-pattern REGEXP")
	refuse("is not a regular expression with a group", "--rank-pattern", "worker[0-9]")
	must(t, "analyze", traces, "--out", filepath.Join(t.TempDir(), "two"), "--rank-pattern", "worker([0-9]+)")
}

// TestClocksOfRanksThatShareAFile analyzes two ranks in one file, of which the second has a clock that is 5 ms ahead.
func TestClocksOfRanksThatShareAFile(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	var b strings.Builder
	for rank := range 2 {
		fmt.Fprintf(&b, `{"distributedInfo":{"rank":%d,"world_size":2,"pg_config":[{"pg_name":"0","pg_size":2,"ranks":[0,1]}]},"traceEvents":[{}`, rank)
		for step := range 40 {
			at := 1e9 + 10_000*step + 5_000*rank // µs
			fmt.Fprintf(&b, `,{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":9,"tid":9,"ts":%d,"dur":9000}`, step, at)
			fmt.Fprintf(&b, `,{"ph":"X","cat":"cpu_op","name":"work","pid":9,"tid":9,"ts":%d,"dur":4000}`, at+10)
			fmt.Fprintf(&b, `,{"ph":"X","cat":"user_annotation","name":"gloo:all_reduce","pid":9,"tid":10,"ts":%d,"dur":%d,`+
				`"args":{"Input Dims":[[1000]],"Input type":["float"]}}`, at+5000+100*rank, 300-100*rank)
		}
		b.WriteString("]}\n")
	}
	file, dir := filepath.Join(t.TempDir(), "all.json"), filepath.Join(t.TempDir(), "run")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "analyze", file, "--out", dir)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"ranks", dir}, "The clocks of 1 rank were corrected"},
		{[]string{"breakdown", dir, "--collectives"}, "+5.00 ms"},
		{[]string{"query", dir, "SELECT rid, value FROM metadata WHERE descr = 'Clock correction'", "--format", "csv"}, "1,-5000 µs"},
	} {
		if out := must(t, c.args...); !strings.Contains(out, c.want) {
			t.Errorf("%v: got %s, want %q", c.args, out, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "spool")); err == nil {
		t.Error("the run keeps temporary files")
	}
}
