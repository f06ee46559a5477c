package breakdown_test

import (
	"math"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
)

func TestBusFactors(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
		want float64
	}{
		{"allreduce", 4, 1.5},
		{"allreduce_coalesced", 2, 1},
		{"_allgather_base", 4, 0.75},
		{"_reduce_scatter_base", 8, 0.875},
		{"all_to_allv", 2, 0.5},
		{"AllToAll", 2, 0.5},
		{"broadcast", 4, 1},
		{"reduce", 4, 1},
		{"send", 2, 1},
		{"barrier", 4, 0},
		{"allreduce", 1, 0},
	} {
		if got := (&breakdown.Operation{Name: c.name, Size: c.size}).BusFactor(); got != c.want {
			t.Errorf("%s of %d ranks has factor %g, want %g", c.name, c.size, got, c.want)
		}
	}
}

// program runs operations on ranks whose clocks are ahead by offsets: operation i begins at
// arrivals[i][rank] and ends on all ranks at once.
type program struct {
	offsets  []trace.Ticks
	arrivals [][]trace.Ticks
	duration trace.Ticks // from the last arrival
	numbered bool
}

func (p *program) logs(skip int) (logs []breakdown.RankLog) {
	for rank, offset := range p.offsets {
		r := breakdown.NewLog(1 << 10)
		for i, arrivals := range p.arrivals {
			last := trace.Ticks(0)
			for _, at := range arrivals {
				last = max(last, at)
			}
			if rank == 1 && i < skip {
				continue
			}
			r.BeginStep(int64(i), arrivals[rank]+offset-1)
			c := breakdown.Collective{
				Operation: breakdown.Operation{Name: "allreduce", Group: "0", Size: len(p.offsets), Bytes: 1e6, DType: "Float"},
				Seq:       breakdown.NoSeq, Launch: breakdown.NoLaunch, Start: arrivals[rank] + offset, End: last + p.duration + offset,
			}
			if p.numbered {
				c.Seq = int64(i)
			}
			r.Add(c)
		}
		logs = append(logs, breakdown.RankLog{Rank: trace.Rank(rank), Log: r})
	}
	return logs
}

func TestCollectivesAreMatchedOnAlignedClocks(t *testing.T) {
	for _, numbered := range []bool{false, true} {
		p := &program{offsets: []trace.Ticks{0, 50_000, -20_000}, duration: 500, numbered: numbered}
		for i := range trace.Ticks(9) {
			at := 10_000 * i
			p.arrivals = append(p.arrivals, []trace.Ticks{at, at + 10, at + 300}) // rank 2 is last
		}
		p.arrivals[4][0] += 1000 // once rank 0 is
		for skip := range 3 {    // rank 1 begins to record later
			got := breakdown.Compare(p.logs(skip))
			for rank, want := range p.offsets {
				if c := got.Clocks[rank]; c.Offset != want || (c.Matched > 0) != (rank > 0) {
					t.Errorf("clock of rank %d is %+v, want %d", rank, c, want)
				}
			}
			if len(got.Operations) != 1 || got.Unmatched+got.Alone+got.Omitted != 0 {
				t.Fatalf("got %+v", got)
			}
			o := got.Operations[0]
			if o.Count != 9 || o.Ranks != 3 || o.Latency != (breakdown.Spread{Count: 9, Sum: 9 * 500, Max: 500}) {
				t.Errorf("got %+v", o)
			}
			if o.Skew != (breakdown.Spread{Count: 9, Sum: 8*300 + 990, Max: 990}) {
				t.Errorf("skew is %+v", o.Skew)
			}
			if len(o.Last) != 2 || o.Last[0] != (breakdown.LastCount{Rank: 2, Count: 8}) || o.Last[1] != (breakdown.LastCount{Rank: 0, Count: 1}) {
				t.Errorf("last are %+v", o.Last)
			}
			if bw, want := o.BusBandwidth(trace.Nanosecond), 4.0/3*1e6/500e-9; math.Abs(bw-want) > 1e-6*want {
				t.Errorf("bus bandwidth is %g, want %g", bw, want)
			}
		}
	}
}

func TestClocksPassThroughGroups(t *testing.T) {
	log := func(offset trace.Ticks, groups ...string) *breakdown.Log {
		r := breakdown.NewLog(1 << 10)
		for i := range trace.Ticks(5) {
			for _, g := range groups {
				r.Add(breakdown.Collective{
					Operation: breakdown.Operation{Name: "allgather", Group: g, Size: 2, Bytes: 8},
					Seq:       int64(i), Launch: breakdown.NoLaunch, Start: 100*i + offset, End: 100*i + 50 + offset,
				})
			}
		}
		return r
	}
	got := breakdown.Compare([]breakdown.RankLog{
		{Rank: 3, Log: log(9, "c")}, {Rank: 2, Log: log(-7, "b")}, {Rank: 0, Log: log(1, "a")}, {Rank: 1, Log: log(4, "a", "b")},
	})
	for i, want := range []trace.Ticks{0, 3, -8, 0} { // rank 3 shares no group
		if got.Clocks[i].Rank != trace.Rank(i) || got.Clocks[i].Offset != want {
			t.Errorf("got clock %+v, want %d", got.Clocks[i], want)
		}
	}
	if got.Alone != 5 || len(got.Operations) != 3 {
		t.Errorf("got %+v", got)
	}
}

func TestDisagreeingRanksAreNotCompared(t *testing.T) {
	log := func(name string) *breakdown.Log {
		r := breakdown.NewLog(1 << 10)
		r.Add(breakdown.Collective{Operation: breakdown.Operation{Name: name, Group: "0", Size: 2}, Seq: 4, Start: 1, End: 2})
		return r
	}
	got := breakdown.Compare([]breakdown.RankLog{{Rank: 0, Log: log("allreduce")}, {Rank: 1, Log: log("broadcast")}})
	if got.Unmatched != 1 || len(got.Operations) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestOnlyImpossibleOrdersMoveClocks(t *testing.T) {
	for _, c := range []struct{ offset, want trace.Ticks }{{0, 0}, {400, 0}, {-400, 0}, {700, 700}, {-50_000, -50_000}} {
		p := &program{offsets: []trace.Ticks{0, c.offset}, duration: 500}
		for i := range trace.Ticks(20) {
			p.arrivals = append(p.arrivals, []trace.Ticks{10_000 * i, 10_000*i + 100*(i%2)})
		}
		clocks := breakdown.Align(p.logs(0))
		if c.want == 0 && len(clocks) > 0 || c.want != 0 && (len(clocks) != 1 || clocks[0].Rank != 1 || clocks[0].Offset != c.want) {
			t.Errorf("clock ahead by %d: got %+v", c.offset, clocks)
		}
	}
}

func TestOperationsThatOvertakeEachOther(t *testing.T) {
	var logs []breakdown.RankLog
	for rank := range trace.Rank(2) {
		l := breakdown.NewLog(100)
		for i := range trace.Ticks(10) {
			l.BeginStep(int64(i), 1000*i)
			for j := range trace.Ticks(2) { // on rank 1 the second is first
				at := 1000*i + 100 + 10*(j^trace.Ticks(rank))
				l.Add(breakdown.Collective{
					Operation: breakdown.Operation{Name: "all_reduce", Group: "0", Size: 2, Bytes: int64(1 + j)},
					Seq:       breakdown.NoSeq, Unordered: true, Launch: breakdown.NoLaunch, Start: at, End: 1000*i + 200 + 50*j,
				})
			}
		}
		logs = append(logs, breakdown.RankLog{Rank: rank, Log: l})
	}
	got := breakdown.Compare(logs)
	if len(got.Operations) != 2 || got.Operations[0].Count != 10 || got.Operations[1].Count != 10 || got.Clocks[1].Offset != 0 || got.Unmatched > 0 {
		t.Errorf("got %+v", got)
	}
}
