package breakdown_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
)

// job is a job whose ranks record collective operations at their own pace.
type job struct {
	operations [][]breakdown.Collective // by rank, in order
	logs       []breakdown.RankLog
	recorded   []int // by rank
}

// newJob returns a job of ranks in a group of all and in groups of two, with clocks that differ. Most often rank 1 is last.
func newJob(ranks, operations int, random *rand.Rand) *job {
	j := &job{operations: make([][]breakdown.Collective, ranks), recorded: make([]int, ranks)}
	for i := range operations {
		at, last := trace.Ticks(10_000*i), 1
		if random.IntN(4) == 0 {
			last = random.IntN(ranks)
		}
		arrivals, end := make([]trace.Ticks, ranks), trace.Ticks(0)
		for rank := range arrivals {
			if arrivals[rank] = at + trace.Ticks(random.IntN(100)); rank == last {
				arrivals[rank] += 500
			}
			end = max(end, arrivals[rank]+1000)
		}
		for rank, arrival := range arrivals {
			op := breakdown.Operation{Name: "AllReduce", Group: "all", Size: ranks, Bytes: int64(1 << (10 + i%3))}
			if i%5 == 4 {
				op.Name, op.Group, op.Size = "AllGather", fmt.Sprint("pair ", rank/2), 2
			}
			ahead := trace.Ticks(2000 * rank)
			j.operations[rank] = append(j.operations[rank], breakdown.Collective{
				Operation: op, Seq: int64(i), Launch: breakdown.NoLaunch, Start: arrival + ahead, End: end + ahead,
			})
		}
	}
	j.logs = newLogs(ranks)
	return j
}

func newLogs(ranks int) (logs []breakdown.RankLog) {
	for rank := range ranks {
		logs = append(logs, breakdown.RankLog{Rank: trace.Rank(rank), Log: breakdown.NewLog(1 << 20)})
	}
	return logs
}

// record records up to n operations of a rank.
func (j *job) record(rank, n int) {
	for ; n > 0 && j.recorded[rank] < len(j.operations[rank]); n-- {
		j.logs[rank].Add(j.operations[rank][j.recorded[rank]])
		j.recorded[rank]++
	}
}

// prefix compares the operations that all ranks have recorded.
func (j *job) prefix() *breakdown.Comparison {
	logs, n := newLogs(len(j.logs)), j.recorded[0]
	for _, recorded := range j.recorded {
		n = min(n, recorded)
	}
	for rank, all := range j.operations {
		for _, c := range all[:n] {
			logs[rank].Add(c)
		}
	}
	return breakdown.Compare(logs)
}

// TestLiveIsTheComparisonOfAPrefix compares a growing job after each round with its complete operations so far.
func TestLiveIsTheComparisonOfAPrefix(t *testing.T) {
	const ranks = 4
	random := rand.New(rand.NewPCG(1, 2))
	j := newJob(ranks, 300, random)
	live := breakdown.NewLive(1 << 20)
	for _, log := range j.logs {
		live.Add(log)
	}
	if got := live.Comparison(false); len(got.Operations) > 0 {
		t.Errorf("a job without operations has %d", len(got.Operations))
	}
	for round := range 60 {
		for rank := range ranks {
			if rank != 3 || round > 0 { // which begins late
				j.record(rank, 1+random.IntN(10))
			}
		}
		var all [2]int64
		got, want := live.Comparison(false), j.prefix()
		for i, c := range []*breakdown.Comparison{got, want} {
			for _, o := range c.Operations {
				if o.Group == "all" { // pairs may be ahead of the slowest rank
					all[i] += o.Count
				}
			}
		}
		if all[0] != all[1] || got.Alone > 0 || got.Unmatched > 0 {
			t.Fatalf("round %d: %d operations of all ranks, %d alone, %d unmatched, want %d", round, all[0], got.Alone, got.Unmatched, all[1])
		}
	}
	for rank := range ranks {
		j.record(rank, 1000)
	}
	want := j.prefix()
	if got := live.Comparison(false); !reflect.DeepEqual(got, want) {
		t.Errorf("after the last operation %+v, want %+v", got, want)
	}
	if got := live.Comparison(true); !reflect.DeepEqual(got, want) {
		t.Errorf("at the end %+v, want %+v", got, want)
	}
	if got := live.Logged(); got != ranks*300 {
		t.Errorf("%d operations of ranks, want %d", got, ranks*300)
	}
}

// TestLiveOfALongJobIsBounded compares more operations than are kept: counts and durations are exact, skews within the
// error of clocks.
func TestLiveOfALongJobIsBounded(t *testing.T) {
	const ranks, limit = 4, 400
	random := rand.New(rand.NewPCG(3, 4))
	j := newJob(ranks, 5000, random)
	live := breakdown.NewLive(limit)
	for _, log := range j.logs {
		live.Add(log)
	}
	for j.recorded[0] < 5000 {
		for rank := range ranks {
			j.record(rank, 40)
		}
		live.Comparison(false)
		kept := 0
		for _, log := range j.logs {
			kept += log.Len()
		}
		if kept > limit {
			t.Fatalf("%d operations are kept", kept)
		}
	}
	got, want := live.Comparison(true), j.prefix()
	if len(got.Operations) != len(want.Operations) || got.Alone+got.Unmatched+got.Omitted > 0 || live.Logged() != ranks*5000 {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for i := range got.Operations {
		g, w := &got.Operations[i], &want.Operations[i]
		if g.Operation != w.Operation || g.Count != w.Count || g.Latency != w.Latency || g.Ranks != w.Ranks {
			t.Errorf("%+v, want %+v", g, w)
		}
		if g.Skew.Mean() < 0.95*w.Skew.Mean() || g.Skew.Mean() > 1.05*w.Skew.Mean() || g.Last[0].Rank != w.Last[0].Rank {
			t.Errorf("%s: mean skew %g and last %v, want %g and %v", g.Group, g.Skew.Mean(), g.Last, w.Skew.Mean(), w.Last)
		}
	}
	if !reflect.DeepEqual(got.Clocks, want.Clocks) {
		for i, c := range got.Clocks {
			if d := c.Offset - want.Clocks[i].Offset; d < -20 || d > 20 {
				t.Errorf("clock %+v, want %+v", c, want.Clocks[i])
			}
		}
	}
}

// TestLiveWithARankThatStops compares the operations of the others when too many are kept.
func TestLiveWithARankThatStops(t *testing.T) {
	const ranks = 3
	j := newJob(ranks, 1000, rand.New(rand.NewPCG(5, 6)))
	live := breakdown.NewLive(300)
	for _, log := range j.logs {
		live.Add(log)
	}
	j.record(2, 10)
	for range 100 {
		j.record(0, 10)
		j.record(1, 10)
		live.Comparison(false)
	}
	count := int64(0)
	for _, o := range live.Comparison(true).Operations {
		if o.Group == "all" {
			count += o.Count
		}
	}
	if count != 800 { // every fifth is of a pair
		t.Errorf("%d operations, want 800", count)
	}
}

func TestCollectivesAreEncodedWithinALimit(t *testing.T) {
	c := &breakdown.Collectives{Logged: 7}
	for program := range trace.Program(2) {
		p := breakdown.ProgramComparison{Program: program}
		for i := range 100 {
			o := breakdown.OperationStats{Operation: breakdown.Operation{Name: "AllReduce", Group: fmt.Sprint(i), Bytes: 1024, Size: 100}, Count: 3}
			for rank := range trace.Rank(100) {
				o.Last = append(o.Last, breakdown.LastCount{Rank: rank, Count: int64(100 - rank)})
			}
			p.Operations = append(p.Operations, o)
		}
		c.Programs = append(c.Programs, p)
	}
	before, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1 << 20, 1 << 18, 1 << 16, 1 << 12, 1} {
		text, err := c.Encode(limit)
		if err != nil || len(text) > max(limit, 100) {
			t.Fatalf("%d bytes of at most %d, error %v", len(text), limit, err)
		}
		got, err := breakdown.DecodeCollectives(text)
		if err != nil || got.Logged != 7 {
			t.Fatalf("logged %d, error %v", got.Logged, err)
		}
		for i := range got.Programs {
			p := &got.Programs[i]
			if n := int64(len(p.Operations)); 3*n+p.Omitted != 300 {
				t.Errorf("limit %d: %d operations and %d omitted", limit, n, p.Omitted)
			}
			if first := p.Operations[0]; first.Group != "0" || first.Last[0].Count != 100 {
				t.Errorf("limit %d: the first operation is %+v", limit, first)
			}
		}
		if limit == 1<<20 && !reflect.DeepEqual(got.Programs, c.Programs) {
			t.Error("something was left out below the limit")
		}
	}
	if after, err := json.Marshal(c); err != nil || string(after) != string(before) {
		t.Error("encoding changed the comparison", err)
	}
	text, _ := c.Encode(1 << 20)
	for _, bad := range []string{"", "{}", strings.Replace(string(text), `"Version":1`, `"Version":2`, 1)} {
		if _, err := breakdown.DecodeCollectives([]byte(bad)); err == nil {
			t.Errorf("%.20q is accepted", bad)
		}
	}
}

// BenchmarkLiveComparison compares as many operations as an analyzer keeps of a program.
func BenchmarkLiveComparison(b *testing.B) {
	const ranks, operations = 8, 1 << 17
	j := newJob(ranks, operations, rand.New(rand.NewPCG(7, 8)))
	live := breakdown.NewLive(ranks * operations)
	for rank, log := range j.logs {
		live.Add(log)
		j.record(rank, operations)
	}
	for b.Loop() {
		live.Comparison(false)
	}
}
