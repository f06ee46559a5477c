package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The parts of a run that can die.
const (
	partAll    = "serve" // all services in one process
	partBus    = "nats"
	partParams = "params"
	partStore  = "store"
)

// schedule describes how a run is disturbed. The same seed gives the same schedule.
type schedule struct {
	seed     uint64
	services []string      // the processes of the services
	nodes    []string      // the analyzers
	snapshot time.Duration // between those of the parameter server
	shards   int           // of the parameter server
	deaths   []death
}

// death is a kill -9 of a part at a moment: so long after the replay has begun, or
// after it has ended, when all is reviewed.
type death struct {
	part  string
	after time.Duration
	ended bool
}

const (
	replayTime = 4800 * time.Millisecond // of eightRanks at faultSpeed
	faultSpeed = "0.6"
	endTime    = 2 * time.Second // from the end of the replay to that of the run, and some more
	restart    = time.Second     // how long a part stays dead
)

// The default seeds: few, but with them every part dies.
const (
	usualSeed = 8
	usualRuns = 5
)

// newSchedule makes a schedule of a seed: the services in one process, perhaps with
// shards, or each in its own, and two to five deaths at any moment from the start to the
// end, some of them two at once. A quarter of all schedules has all of them at the end.
func newSchedule(seed uint64, nodes []string) *schedule {
	rng := rand.New(rand.NewPCG(seed, 9)) //nolint:gosec // it has to be the same again
	s := &schedule{seed: seed, nodes: nodes, services: []string{partAll}, shards: 1 + rng.IntN(2)}
	if rng.IntN(3) > 0 {
		s.services, s.shards = []string{partBus, partParams, partStore}, 1
	}
	late := rng.IntN(4) == 0
	s.snapshot = []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second}[rng.IntN(3)]
	for n := 2 + rng.IntN(4); len(s.deaths) < n; {
		d := death{ended: rng.IntN(3) == 0 || late}
		if d.ended {
			d.after = time.Duration(rng.Int64N(int64(endTime)))
		} else {
			d.after = time.Duration(rng.Int64N(int64(replayTime)))
		}
		d.part = s.anyPart(rng)
		s.deaths = append(s.deaths, d)
		if other := s.anyPart(rng); rng.IntN(4) == 0 && other != d.part {
			d.part = other
			s.deaths = append(s.deaths, d)
		}
	}
	slices.SortStableFunc(s.deaths, func(a, b death) int {
		if a.ended != b.ended {
			return map[bool]int{false: -1, true: 1}[a.ended]
		}
		return int(a.after - b.after)
	})
	return s
}

// anyPart is a service as often as an analyzer.
func (s *schedule) anyPart(rng *rand.Rand) string {
	if rng.IntN(2) == 0 {
		return s.services[rng.IntN(len(s.services))]
	}
	return s.nodes[rng.IntN(len(s.nodes))]
}

func (s *schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d (make faults N=1 SEED=%d): services %s with %d shards, snapshots every %v", s.seed, s.seed,
		strings.Join(s.services, " "), s.shards, s.snapshot)
	for _, d := range s.deaths {
		fmt.Fprintf(&b, "\n  %v", d)
	}
	return b.String()
}

func (d death) String() string {
	when := "of the replay"
	if d.ended {
		when = "after its end"
	}
	return fmt.Sprintf("%v %s: %s dies", d.after.Round(time.Millisecond), when, d.part)
}

func TestSeedsGiveReproducibleAndCompleteSchedules(t *testing.T) {
	nodes := []string{"n0", "n1"}
	seen, usual := map[string]bool{}, map[string]bool{}
	for seed := range uint64(200) {
		s := newSchedule(seed, nodes)
		if again := newSchedule(seed, nodes); s.String() != again.String() {
			t.Fatalf("two schedules of a seed:\n%v\n%v", s, again)
		}
		for i, d := range s.deaths {
			seen[fmt.Sprint(d.part, d.ended)] = true
			usual[d.part] = usual[d.part] || seed >= usualSeed && seed < usualSeed+usualRuns
			seen["two at once"] = seen["two at once"] || i > 0 && s.deaths[i-1].after == d.after
		}
	}
	for _, part := range append(nodes, partAll, partBus, partParams, partStore) {
		if !usual[part] {
			t.Errorf("%s does not die in the usual runs", part)
		}
		for _, ended := range []bool{false, true} {
			if !seen[fmt.Sprint(part, ended)] {
				t.Errorf("%s never dies, after the end of the replay: %t", part, ended)
			}
		}
	}
	if !seen["two at once"] {
		t.Error("never do two die at once")
	}
}
