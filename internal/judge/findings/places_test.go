package findings_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// slowed adds slow calls of two functions on ranks, every 20 ms from one second to another.
func (s *scene) slowed(from, to int, ranks ...int) {
	for at := trace.Ticks(from * second); at < trace.Ticks(to*second); at += 20_000 {
		for _, r := range ranks {
			s.slow("long", r, at, 3000)
			s.slow("short", r, at+5000, 500+at%100)
		}
	}
}

// quiet returns a program of eight ranks on four hosts.
func quiet() *scene {
	return newScene(8, "long 40000 40000000", "short 40000 8000000", "MPI_Wait() 40000 400000")
}

// loads returns a comparison of the ranks of quiet without slow ones. window returns each second of a rank.
func loads(window func(rank trace.Rank, i int) provenance.LoadWindow) *provenance.Peers {
	all := new(provenance.Peers)
	for rank := range trace.Rank(8) {
		l := provenance.RankLoad{RID: rank, TID: provenance.AllThreads, Host: "node" + strconv.Itoa(int(rank/2)), Role: 1, Peers: 7}
		for i := range 10 {
			w := window(rank, i)
			w.From, w.To = float64(i), float64(i+1)
			l.Windows = append(l.Windows, w)
		}
		all.Loads = append(all.Loads, l)
	}
	return all
}

// TestRankThatPropagatesDelayIsNotSlow has a rank that waits for a slow one, which has no unusual calls, and makes another one wait.
func TestRankThatPropagatesDelayIsNotSlow(t *testing.T) {
	s := quiet()
	for at := trace.Ticks(3 * second); at < 5*second; at += 20_000 {
		s.slow("MPI_Wait()", 3, at, 3000)
	}
	links := blame.Find(&s.Run)
	for i := range links {
		links[i].Role = provenance.Culprit
	}
	conclude := func(p *provenance.Peers) []string { return of(findings.Conclude(&s.Run, links, nil, s.profile(), p)) }
	if got := conclude(nil); !slices.Equal(got, []string{"wait MPI_Wait() [3]"}) {
		t.Errorf("without a cause: got %q", got)
	}
	r := findings.Conclude(&s.Run, links, nil, s.profile(), &provenance.Peers{Slow: []provenance.SlowPeer{slowHost()}})
	if got := of(r); !slices.Equal(got, []string{"slow-peer long [4 5]", "wait MPI_Wait() [3]"}) || r.Findings[1].Cause != 1 {
		t.Errorf("because of a slow host: got %q, %+v", got, r.Findings)
	}
}

func TestRankSlowForAWhileIsASlowPeer(t *testing.T) {
	s := quiet()
	s.slowed(3, 5, 5)
	s.slow("long", 5, 9*second, 4000)
	r := s.conclude()
	if got := of(r); !slices.Equal(got, []string{"slow-peer long [5]", "outlier long [5]"}) {
		t.Fatal(got)
	}
	x := &r.Findings[0]
	if x.From < 2.99 || x.From > 3.01 || *x.To < 4.9 || *x.To > 5 || x.Form != "" || x.Calls != 200 || x.LostOwn != s.lost()-4000 {
		t.Error(x.From, *x.To, x.Form, x.Calls, x.LostOwn)
	}
	const want = "Rank 5 (node2) computed 1.21× slower than its 7 peers from 3.00 s to 4.99 s"
	if x.Summary != want {
		t.Error(x.Summary)
	}
}

// TestSlowPlaceByCallsIsJudgedByLoads has a rank that is slow for two windows of the comparison, which alone does not find it.
func TestSlowPlaceByCallsIsJudgedByLoads(t *testing.T) {
	s := quiet()
	s.slowed(3, 5, 5)
	all := loads(func(rank trace.Rank, i int) (w provenance.LoadWindow) {
		ratio := 1.
		w.Useful, w.Wait = second/2, second/2
		if rank == 5 && (i == 3 || i == 4) {
			ratio, w.Useful, w.Wait = 2, second, 0
		}
		w.Ratio = &ratio
		return w
	})
	r := findings.Conclude(&s.Run, blame.Find(&s.Run), nil, s.profile(), all)
	if got := of(r); !slices.Equal(got, []string{"slow-peer long [5]"}) || len(r.Slow) != 1 {
		t.Fatal(got, r.Slow)
	}
	const want = "Rank 5 (node2) computed 2.01× slower than its 7 peers from 3.00 s to 4.99 s; without it the run would be 10.0 % shorter"
	if x := &r.Findings[0]; x.Summary != want || x.LostOwn != second || x.LostCaused != 7*second {
		t.Error(x.Summary, x.LostOwn, x.LostCaused)
	}
	if slow := &r.Slow[0]; slow.Pattern != provenance.Phase || len(slow.Windows) != 10 || slow.Twin == nil || len(slow.Functions) != 2 {
		t.Errorf("slow peer is %+v", slow)
	}
}

// TestRankIsNotSlowWhileOnlyItComputes has a rank that computes while others wait for it, so delays can hit only this rank then.
func TestRankIsNotSlowWhileOnlyItComputes(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		s := quiet()
		s.slowed(3, 5, 5)
		all := loads(func(rank trace.Rank, i int) provenance.LoadWindow {
			if waiting && rank != 5 && (i == 3 || i == 4) {
				return provenance.LoadWindow{Wait: second}
			}
			return provenance.LoadWindow{Useful: second}
		})
		got := of(findings.Conclude(&s.Run, blame.Find(&s.Run), nil, s.profile(), all))
		if isSlow := slices.Contains(got, "slow-peer long [5]"); isSlow == waiting {
			t.Errorf("others wait %v: got %q", waiting, got)
		}
	}
}

// lost returns the time that all anomalies lost.
func (s *scene) lost() (sum trace.Ticks) {
	for i := range s.Anomalies {
		sum += s.Anomalies[i].Lost
	}
	return sum
}

func TestHostSlowForAWhileIsASlowPeer(t *testing.T) {
	s := quiet()
	s.slowed(3, 5, 4, 5)
	if got := of(s.conclude()); !slices.Equal(got, []string{"slow-peer long [4 5]"}) {
		t.Error(got)
	}
}

func TestRankThatIsSlowNowHasNoEnd(t *testing.T) {
	s := quiet()
	s.slowed(7, 10, 5)
	for i := range s.Anomalies {
		s.Anomalies[i].Status = provenance.Provisional
	}
	x := &s.conclude().Findings[0]
	if x.Kind != provenance.SlowPlace || x.To != nil || !strings.HasSuffix(x.Summary, " since 7.00 s") {
		t.Error(x.Kind, x.Summary)
	}
}

func TestTwoEpisodesAreTwoSlowPeers(t *testing.T) {
	s := quiet()
	s.slowed(1, 2, 3)
	s.slowed(6, 9, 3)
	if got := of(s.conclude()); !slices.Equal(got, []string{"slow-peer long [3]", "slow-peer long [3]"}) {
		t.Error(got)
	}
}

func TestSlowPlaceRequiresContrast(t *testing.T) {
	for name, fill := range map[string]func(s *scene){
		"all ranks for a while":   func(s *scene) { s.slowed(3, 5, 0, 1, 2, 3, 4, 5, 6, 7) },
		"a rank throughout":       func(s *scene) { s.slowed(0, 10, 5) },
		"many calls in a moment":  func(s *scene) { s.moment(5) },
		"a moment of a host":      func(s *scene) { s.moment(4); s.moment(5) },
		"a few calls of one rank": func(s *scene) { s.slow("long", 5, second, 2000); s.slow("long", 5, second+100_000, 2000) },
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet()
			fill(s)
			for _, x := range s.conclude().Findings {
				if x.Kind == provenance.SlowPlace {
					t.Error(x.Summary)
				}
			}
		})
	}
}

// moment adds 40 slow calls of a rank within 40 ms.
func (s *scene) moment(rank int) {
	for i := range trace.Ticks(40) {
		s.slow("long", rank, 3*second+i*1000, 900)
	}
}

func TestRandomDelaysAreNotASlowPlace(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := quiet()
		for range 20 + rng.IntN(1000) {
			s.slow("long", rng.IntN(8), trace.Ticks(rng.IntN(10*second)), 1000)
		}
		for _, x := range s.conclude().Findings {
			if x.Kind == provenance.SlowPlace {
				t.Error(seed, x.Summary)
			}
		}
	}
}

func TestSlowRankCausesWaitsMeanwhile(t *testing.T) {
	s := quiet()
	s.slowed(3, 5, 5)
	const waits = 60
	for i := range trace.Ticks(waits) {
		s.slow("MPI_Wait()", 1, 3*second+20_000+i*30_000, 800)
	}
	s.slow("MPI_Wait()", 1, 3*second-30_000, 800) // before its calls are unusual
	s.slow("MPI_Wait()", 1, 8*second, 800)
	r := s.conclude()
	if got := of(r); !slices.Equal(got, []string{"slow-peer long [5]", "wait MPI_Wait() [1]", "wait MPI_Wait() [1]"}) {
		t.Fatal(got)
	}
	if x := &r.Findings[0]; x.Waits != waits+1 || x.LostCaused != (waits+1)*800 || x.WaitRanks != 1 {
		t.Error(x.Waits, x.LostCaused, x.WaitRanks)
	}
	if known, unknown := &r.Findings[2], &r.Findings[1]; known.Cause != 1 || unknown.Cause != 0 || unknown.Calls != 1 {
		t.Error(known.Summary, unknown.Summary)
	}
}
