package peers_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// monitor reads a counter of some threads of a program every 0.2 s.
type monitor struct {
	ranks, seconds int
	reader         func(rank int) bool // nil: all
	// value returns the value at a time in seconds. State keeps what it needs from one reading to the next.
	value func(rank int, at float64, rng *rand.Rand, state *float64) float64
}

// read adds the readings of a counter to a load.
func (m monitor) read(l *workload.Load, counter string, rng *rand.Rand) {
	key := trace.FuncKey{Name: counter}
	l.NameCounter(key)
	state := workload.CounterState{Counter: workload.CounterOf(key)}
	for rank := range m.ranks {
		if m.reader != nil && !m.reader(rank) {
			continue
		}
		lane := l.Lane(workload.LaneKey{RankKey: trace.RankKey{Rank: trace.Rank(rank)}})
		var kept float64
		last, valid := uint64(0), false
		for at := 0.1; at < float64(m.seconds); at += 0.2 {
			value := uint64(max(0, math.Round(m.value(rank, at, rng, &kept))))
			increase := value - min(value, last)
			if !valid {
				increase = 0
			}
			state.Decreases = state.Decreases || valid && value < last
			l.AddCounter(state)
			i, ok := l.CounterIndex(state.Counter)
			if !ok {
				break
			}
			r := workload.Reading{Counter: i}
			r.Add(value, increase)
			l.AddReadings(lane, trace.Ticks(begin+1e6*at), []workload.Reading{r})
			last, valid = value, true
		}
	}
}

// usualCounters are counters that do not depend on the rank.
var usualCounters = map[string]func(rank int, at float64, rng *rand.Rand, state *float64) float64{
	"constant":     func(int, float64, *rand.Rand, *float64) float64 { return 8 },
	"zero":         func(int, float64, *rand.Rand, *float64) float64 { return 0 },
	"memory":       func(_ int, _ float64, rng *rand.Rand, _ *float64) float64 { return 2e6 + 9e3*rng.NormFloat64() },
	"percent":      func(_ int, _ float64, rng *rand.Rand, _ *float64) float64 { return 100 * rng.Float64() },
	"mostly zero":  func(_ int, _ float64, rng *rand.Rand, _ *float64) float64 { return max(0, 50*(rng.Float64()-0.95)) },
	"message size": func(_ int, _ float64, rng *rand.Rand, _ *float64) float64 { return math.Exp(10 + 2*rng.NormFloat64()) },
	"different size": func(rank int, _ float64, rng *rand.Rand, _ *float64) float64 {
		return 1e5 + 1e4*ranksDiffer(rank) + rng.Float64()
	},
	"drift": func(_ int, at float64, rng *rand.Rand, _ *float64) float64 { return 1e6 + 1e4*at*rng.Float64() },
	"switches": func(_ int, _ float64, rng *rand.Rand, state *float64) float64 { // some
		if rng.Float64() < 0.1 {
			*state++
		}
		return *state
	},
	"faults": func(_ int, _ float64, rng *rand.Rand, state *float64) float64 {
		*state += 500 + 200*rng.Float64()
		return *state
	},
	"bursts": func(_ int, _ float64, rng *rand.Rand, state *float64) float64 {
		if rng.Float64() < 0.02 {
			*state += 1000
		}
		return *state
	},
	"walk": func(_ int, _ float64, rng *rand.Rand, state *float64) float64 {
		*state += 1000 * rng.NormFloat64()
		return 1e6 + *state
	},
}

// ranksDiffer returns a number of a rank that is distributed normally.
func ranksDiffer(rank int) float64 { return rand.New(rand.NewPCG(uint64(rank), 9)).NormFloat64() }

// counted runs a program whose counters, other than those of monitors, are as usual.
func (p program) counted(monitors map[string]monitor) *provenance.Peers {
	l, seconds := p.run()
	rng := rand.New(rand.NewPCG(p.seed, 2))
	all := make(map[string]monitor)
	for name, value := range usualCounters {
		all[name] = monitor{value: value}
	}
	maps.Copy(all, monitors)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		m.ranks, m.seconds = p.ranks, int(seconds)
		m.read(l, name, rng)
	}
	return peers.Compare(l, name)
}

func countersOf(s *provenance.SlowPeer) (names []string) {
	for _, c := range s.Counters {
		names = append(names, c.Counter)
	}
	return names
}

func TestCountersThatDiffer(t *testing.T) {
	pressure := func(rank int, at float64, rng *rand.Rand, _ *float64) float64 {
		if rank == 2 && at >= 4 {
			return 9e6 + 1e5*rng.NormFloat64()
		}
		return 2e6 + 9e3*rng.NormFloat64()
	}
	switches := func(rank int, at float64, rng *rand.Rand, state *float64) float64 {
		if rank == 2 && at >= 4 {
			*state += 20 * rng.Float64()
		}
		return *state
	}
	for _, ranks := range []int{2, 3, 8, 40} {
		p := program{ranks: ranks, seconds: 12, works: usualWork, noise: 0.02, slow: since(4, 1.8, min(2, ranks-1)), seed: uint64(ranks)}
		at := func(value func(int, float64, *rand.Rand, *float64) float64) monitor {
			return monitor{value: func(rank int, at float64, rng *rand.Rand, state *float64) float64 {
				if rank == min(2, ranks-1) {
					rank = 2
				}
				return value(rank, at, rng, state)
			}}
		}
		s := only(t, p.counted(map[string]monitor{"pressure": at(pressure), "more switches": at(switches)}))
		got := countersOf(s)
		if slices.Sort(got); !slices.Equal(got, []string{"more switches", "pressure"}) {
			t.Errorf("%d ranks: got %+v", ranks, s.Counters)
			continue
		}
		for _, c := range s.Counters {
			if c.Counter == "pressure" {
				near(t, "value", c.Value, 9e6, 3e5)
				near(t, "value of peers", c.Peers, 2e6, 2e4)
				near(t, "past", *c.Past, 2e6, 3e5)
				continue
			}
			near(t, "increase per second", c.Value, 50, 12)
			if !c.Rate || c.Peers != 0 || *c.Past > 5 {
				t.Errorf("%d ranks: got %+v", ranks, c)
			}
		}
	}
}

// TestCountersThatDoNotDiffer counts unrelated counters that are listed: by chance 1 % of them may be.
func TestCountersThatDoNotDiffer(t *testing.T) {
	tracetest.SkipShort(t, "judges many simulated runs")
	for _, ranks := range []int{3, 4, 5, 8, 20} {
		runs, listed := 0, map[string]int{}
		for seed := range uint64(20) {
			at := 5 * float64(seed%2) // or always
			p := program{ranks: ranks, seconds: 10, works: usualWork, noise: 0.02, slow: since(at, 1.8, 1), seed: seed}
			for _, s := range p.counted(nil).Slow {
				runs++
				for _, c := range s.Counters {
					listed[c.Counter]++
				}
			}
		}
		if runs < 10 || len(listed) > 0 {
			t.Errorf("%d ranks: %d slow peers with the counters %v", ranks, runs, listed)
		}
	}
}

// TestCountersOfRankThatIsAlwaysSlow compares totals as well, also of a counter that only increases.
func TestCountersOfRankThatIsAlwaysSlow(t *testing.T) {
	p := program{ranks: 8, seconds: 8, works: usualWork, noise: 0.02, slow: since(0, 1.8, 5), seed: 1}
	more := func(rank int, at float64, _ *rand.Rand, _ *float64) float64 {
		if rank == 5 {
			return 5e6 + 100*math.Floor(at)
		}
		return 2e6 + 100*math.Floor(at)
	}
	size := func(rank int, _ float64, _ *rand.Rand, _ *float64) float64 {
		if rank == 5 {
			return 16
		}
		return 8
	}
	s := only(t, p.counted(map[string]monitor{"memory that grows": {value: more}, "size": {value: size}}))
	got := make(map[string]provenance.SlowCounter)
	for _, c := range s.Counters {
		got[c.Counter] = c
	}
	m, sizes := got["memory that grows"], got["size"]
	if len(got) != 2 || m.Rate || m.Past != nil || m.Value < 5e6 || sizes.Value != 16 || sizes.Peers != 8 {
		t.Errorf("got %+v", s.Counters)
	}
}

// TestCountersOfHosts has a counter that the first rank of each host reads.
func TestCountersOfHosts(t *testing.T) {
	read := func(at func(host int, at float64) float64) monitor {
		return monitor{
			reader: func(rank int) bool { return rank%4 == 0 },
			value: func(rank int, now float64, rng *rand.Rand, _ *float64) float64 {
				return at(rank/4, now) + 100*rng.NormFloat64()
			},
		}
	}
	for _, hosts := range []int{2, 3, 7} {
		p := program{ranks: 4 * hosts, perHost: 4, seconds: 10, works: usualWork, noise: 0.02, slow: since(5, 1.8, 4, 5, 6, 7), seed: 3}
		s := only(t, p.counted(map[string]monitor{
			"idle of host": read(func(host int, at float64) float64 {
				if host == 1 && at > 5 {
					return 1000
				}
				return 90_000
			}),
			"model of host": read(func(host int, _ float64) float64 { return 20_000 * float64(host) }), // is no news
		}))
		if got := countersOf(s); s.Host != "node01" || !slices.Equal(got, []string{"idle of host"}) {
			t.Errorf("%d hosts: %s has the counters %+v", hosts, s.Host, s.Counters)
		}
	}
}

func TestCountersOfGPU(t *testing.T) {
	p := program{
		ranks: 6, seconds: 10, devices: 1, works: usualWork, noise: 0.02, seed: 4,
		slow: func(rank, thread int, at float64) float64 {
			if rank == 3 && thread == 1 && at > 5 {
				return 2
			}
			return 1
		},
	}
	clock := func(rank int, at float64, rng *rand.Rand, _ *float64) float64 { // the main thread reads it
		if rank == 3 && at > 5 {
			return 600 + 5*rng.NormFloat64()
		}
		return 1400 + 5*rng.NormFloat64()
	}
	all := p.counted(map[string]monitor{"clock": {value: clock}})
	if s := only(t, all); !s.Device || !slices.Equal(countersOf(s), []string{"clock"}) {
		t.Errorf("got %+v", s)
	}
}

func TestCountersOfOneRankOnly(t *testing.T) {
	p := program{ranks: 8, seconds: 10, works: usualWork, noise: 0.02, slow: since(5, 1.8, 0), seed: 5}
	s := only(t, p.counted(map[string]monitor{"of rank 0": {
		reader: func(rank int) bool { return rank == 0 },
		value:  func(_ int, at float64, _ *rand.Rand, _ *float64) float64 { return 1e6 * math.Floor(at/5) },
	}}))
	if len(s.Counters) > 0 {
		t.Errorf("got %+v, which no peer has", s.Counters)
	}
}
