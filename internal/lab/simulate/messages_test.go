package simulate_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
)

// channel is what messages go through in the order in which they are sent.
type channel struct {
	program  trace.Program
	from, to trace.Rank
	tag      int32
}

// checkMessages holds each receipt against its sending, and returns how many
// there are.
func checkMessages(t *testing.T, s *scenario.Scenario, all []*traced) (received int) {
	t.Helper()
	sent := make(map[channel][]trace.Event)
	for _, r := range all {
		for _, e := range r.events(trace.Send) {
			c := channel{r.program, r.rank, e.Partner(), e.Tag}
			sent[c] = append(sent[c], *e)
		}
	}
	for _, r := range all {
		p := &s.Programs[r.program]
		for _, e := range r.events(trace.Recv) {
			c := channel{r.program, e.Partner(), r.rank, e.Tag}
			if len(sent[c]) == 0 {
				t.Fatalf("rank %d receives from %d with tag %d at %d what was not sent", r.rank, c.from, c.tag, e.Time)
			}
			from := sent[c][0]
			sent[c] = sent[c][1:]
			travels := trace.Ticks(p.Latency + float64(from.Value)/p.Bandwidth)
			if e.Value != from.Value || e.Time < from.Time+travels {
				t.Errorf("rank %d receives %d bytes from %d at %d, which sent %d at %d", r.rank, e.Value, c.from, e.Time, from.Value, from.Time)
			}
			received++
		}
	}
	for c, left := range sent {
		if len(left) > 0 {
			t.Errorf("%d messages from rank %d to %d with tag %d are never received", len(left), c.from, c.to, c.tag)
		}
	}
	return received
}

func TestMessagesAreReceivedOnceAndInTime(t *testing.T) {
	var total atomic.Int64
	t.Run("all", func(t *testing.T) {
		each(t, func(t *testing.T, s *scenario.Scenario) { total.Add(int64(checkMessages(t, s, record(t, s)))) })
	})
	if n := total.Load(); n < 1000 {
		t.Errorf("all scenarios together have %d messages; this proves nothing", n)
	}
}

func TestMessagesHaveLastDrawnSize(t *testing.T) {
	s := parse(t, `
steps = 3
iterations = 4
[[program]]
name = "p"
ranks = 3
latency_us = 50
bytes_per_us = 10
body = ["pack", "other", "swap", "unpack"]
[program.functions]
pack = { message = { integers = [100, 2000] }, time = { per_byte = 1 } }
other = { time = { fixed = 7 } }
swap = { kind = "exchange", neighbors = [-1, 1] }
unpack = { time = { per_byte = 2 } }
`)
	all := record(t, s)
	if n := checkMessages(t, s, all); n != 2*3*12 {
		t.Errorf("%d messages, want 72", n)
	}
	for _, r := range all {
		packs, unpacks := r.of("pack"), r.of("unpack")
		i := 0
		for _, e := range r.events(trace.Send) {
			if size := packs[i/2].took(); e.Value != uint64(size) || unpacks[i/2].took() != 2*size {
				t.Errorf("rank %d sends %d bytes; pack took %d, unpack %d", r.rank, e.Value, size, unpacks[i/2].took())
			}
			i++
		}
		for _, c := range r.of("MPI_Waitall()") {
			if len(c.sides) != 2 {
				t.Errorf("rank %d receives %d messages in MPI_Waitall, want 2", r.rank, len(c.sides))
			}
		}
		for _, c := range r.of("MPI_Isend()") {
			if len(c.sides) != 1 || c.sides[0].Time != c.entry+1 {
				t.Errorf("rank %d sends %v in MPI_Isend at %d", r.rank, c.sides, c.entry)
			}
		}
	}
}

// TestRankSendsNothingToItself has distances that lead around the end to where
// they began.
func TestRankSendsNothingToItself(t *testing.T) {
	for ranks, want := range map[int]int{1: 0, 2: 2, 3: 4, 5: 4} {
		s := parse(t, fmt.Sprintf(`
steps = 2
iterations = 3
[[program]]
name = "p"
ranks = %d
body = ["swap"]
[program.functions]
swap = { kind = "exchange", neighbors = [-2, -1, 1, 2] }
`, ranks))
		all := record(t, s)
		if n := checkMessages(t, s, all); n != 6*ranks*want {
			t.Errorf("%d ranks send %d messages in 6 iterations, want %d each", ranks, n, want)
		}
		for _, r := range all {
			checkStacks(t, r)
			if n := len(r.of("MPI_Isend()")) + len(r.of("MPI_Irecv()")); n != 6*2*want {
				t.Errorf("rank %d of %d calls MPI_Isend and MPI_Irecv %d times, want %d", r.rank, ranks, n, 12*want)
			}
		}
	}
}

// ring is a program of eight ranks in a ring, of which rank 4 is slow in one
// iteration.
const ring = `
name = "ring"
steps = 5
iterations = 8
[[program]]
name = "ring"
ranks = 8
setup = ["together"]
body = ["work", %q]
[program.functions]
together = { kind = "collective" }
work = { time = { fixed = 1000 } }
halo = { kind = "exchange", neighbors = [-1, 1] }
barrier = { kind = "collective", time = { fixed = 3 } }
[[trouble]]
name = "rank 4"
kind = "slow-rank"
ranks = [4]
from = 0.012
to = 0.013
extra = { fixed = 6000 }
`

// waits returns how much longer each wait of each rank takes than without any
// trouble, and the iteration in which work takes longer on rank 4.
func waits(t *testing.T, s *scenario.Scenario, function string) (excess [][]trace.Ticks, slow int, all []*traced) {
	t.Helper()
	all = record(t, s)
	quiet := record(t, without(s))
	slow = -1
	for i, r := range all {
		var list []trace.Ticks
		for j, c := range r.of(function) {
			list = append(list, c.took()-quiet[i].of(function)[j].took())
		}
		excess = append(excess, list)
		for j, c := range r.of("work") {
			if c.took() == 1000 {
				continue
			}
			if r.rank != 4 || slow >= 0 {
				t.Fatalf("rank %d is slow in iteration %d, rank 4 in %d", r.rank, j, slow)
			}
			slow = j
		}
	}
	if slow < 0 {
		t.Fatal("nothing is slow")
	}
	return excess, slow, all
}

// checkVictims compares the truth with what waits take longer.
func checkVictims(t *testing.T, all []*traced, function string, excess [][]trace.Ticks) {
	t.Helper()
	for i, r := range all {
		listed := make(map[string]truth.Call)
		for _, c := range r.truth {
			if c.Role == truth.Victim {
				listed[c.Event] = c
			}
		}
		for j, c := range r.of(function) {
			v, ok := listed[c.id]
			delete(listed, c.id)
			if long := excess[i][j] >= 5; ok != long || ok && (v.Injected != excess[i][j] || v.Culprit == nil || *v.Culprit != 4 ||
				v.Trouble != "rank 4") {
				t.Errorf("rank %d iteration %d waits %d longer; the truth has %v, %+v", r.rank, j, excess[i][j], ok, v)
			}
		}
		if len(listed) > 0 {
			t.Errorf("rank %d: the truth has victims that are not %s: %v", r.rank, function, listed)
		}
	}
}

func TestSlowRankDelaysNeighborsInTurn(t *testing.T) {
	s := parse(t, fmt.Sprintf(ring, "halo"))
	excess, slow, all := waits(t, s, "MPI_Waitall()")
	for rank, list := range excess {
		distance := min((rank-4+8)%8, (4-rank+8)%8)
		first := slices.IndexFunc(list, func(d trace.Ticks) bool { return d > 5000 })
		if want := slow + distance - 1; distance > 0 && first != want {
			t.Errorf("rank %d waits in iteration %d first, want %d: rank 4 is slow in %d", rank, first, want, slow)
		} else if distance == 0 && first >= 0 {
			t.Errorf("rank 4 waits for itself in iteration %d", first)
		}
		long := 0
		for _, d := range list {
			if d > 100 {
				long++
			}
		}
		if distance > 0 && long != 1 {
			t.Errorf("rank %d waits %d times, want once: %v", rank, long, list)
		}
	}
	checkVictims(t, all, "MPI_Waitall()", excess)
}

func TestSlowRankDelaysAllRanksInCollective(t *testing.T) {
	s := parse(t, fmt.Sprintf(ring, "barrier"))
	excess, slow, all := waits(t, s, "barrier")
	for rank, list := range excess {
		for i, d := range list {
			want := trace.Ticks(0)
			if i == slow && rank != 4 {
				want = 6000
			}
			if d != want {
				t.Errorf("rank %d iteration %d waits %d longer, want %d", rank, i, d, want)
			}
		}
	}
	checkVictims(t, all, "barrier", excess)
}

func TestCollectiveGroupWaitsForOwnRanksOnly(t *testing.T) {
	s := parse(t, fmt.Sprintf(ring, "barrier"))
	f := s.Programs[0].Functions["barrier"]
	f.Group = 3
	s.Programs[0].Functions["barrier"] = f
	excess, slow, _ := waits(t, s, "barrier")
	for rank, list := range excess {
		if waited := list[slow] == 6000; waited != (rank == 3 || rank == 5) {
			t.Errorf("rank %d waits %d longer; ranks 3 to 5 are a group", rank, list[slow])
		}
	}
}
