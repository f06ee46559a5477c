package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The hosts of a run in partitions: three NATS servers, the services, and the analyzers.
const (
	natsHosts  = 3
	paramsHost = 3
	storeHost  = 4
	firstAd    = 5
	adHosts    = 3
)

var hostNames = []string{"server0", "server1", "server2", "params", "store", "n0", "n1", "n2"}

// troubleKind is the kind of a trouble in the network.
type troubleKind int

const (
	cutBoth troubleKind = iota // no packet passes
	cutOneWay
	slowWires
	lossyWires
	pausedHost // its process is stopped, as on an overloaded host
	troubleKinds
)

func (k troubleKind) String() string {
	return [...]string{"cut", "cut in one direction", "slow", "lossy", "paused"}[k]
}

// trouble is one trouble: so long after the replay has begun, or after it has ended, the
// wires between two sides fail for a time.
type trouble struct {
	kind     troubleKind
	from, to []int // hosts; from is the paused one
	wire     wire
	after    time.Duration
	ended    bool
	lasts    time.Duration
}

// partitionPlan describes the troubles of a run. The same seed gives the same plan.
type partitionPlan struct {
	seed     uint64
	shards   int
	early    bool // the replay begins before the services and the NATS servers are ready
	troubles []trouble
}

const (
	partitionSpeed  = "1"
	partitionReplay = 3 * time.Second // of threeRanks at partitionSpeed
	partitionEnd    = 2 * time.Second // from the end of the replay to that of the run
	shortTrouble    = 200 * time.Millisecond
	longTrouble     = 2500 * time.Millisecond
	electionTime    = 9 * time.Second // the longest time after which a NATS cluster elects a leader
)

// newPartitionPlan makes a plan of two to five troubles at any moment from the start to the
// end, which may overlap. A quarter of all plans cut one NATS server from the others for so
// long that these elect leaders.
func newPartitionPlan(seed uint64) *partitionPlan {
	rng := rand.New(rand.NewPCG(seed, 11)) //nolint:gosec // it has to be the same again
	p := &partitionPlan{seed: seed, shards: 1 + rng.IntN(2), early: rng.IntN(4) == 0}
	for n := 2 + rng.IntN(4); len(p.troubles) < n; {
		tr := newTrouble(rng)
		tr.lasts = shortTrouble + rand64(rng, longTrouble-shortTrouble)
		p.troubles = append(p.troubles, tr)
	}
	if rng.IntN(4) == 0 {
		server := rng.IntN(natsHosts)
		tr := trouble{kind: cutBoth, from: []int{server}, to: others(server), wire: wire{Cut: true}}
		tr.after, tr.ended = moment(rng)
		tr.lasts = electionTime + time.Second
		p.troubles = append(p.troubles, tr)
	}
	slices.SortStableFunc(p.troubles, func(a, b trouble) int {
		if a.ended != b.ended {
			return map[bool]int{false: -1, true: 1}[a.ended]
		}
		return int(a.after - b.after)
	})
	return p
}

func rand64(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most)))
}

// moment returns when a trouble begins: one in three after the end of the replay.
func moment(rng *rand.Rand) (after time.Duration, ended bool) {
	if rng.IntN(3) == 0 {
		return rand64(rng, partitionEnd), true
	}
	return rand64(rng, partitionReplay), false
}

// others returns all hosts but one.
func others(host int) (all []int) {
	for i := range hostNames {
		if i != host {
			all = append(all, i)
		}
	}
	return all
}

// newTrouble makes a trouble between a client and a server, two servers, a host and all
// others, or two sides of a split network.
func newTrouble(rng *rand.Rand) (tr trouble) {
	tr.kind = troubleKind(rng.IntN(int(troubleKinds)))
	tr.after, tr.ended = moment(rng)
	host := rng.IntN(len(hostNames))
	switch server := rng.IntN(natsHosts); rng.IntN(4) {
	case 0:
		if host == server {
			host = (server + 1) % natsHosts
		}
		tr.from, tr.to = []int{host}, []int{server}
	case 1, 2:
		tr.from, tr.to = []int{host}, others(host)
	default:
		for i := range hostNames {
			if rng.IntN(2) == 0 {
				tr.from = append(tr.from, i)
			} else {
				tr.to = append(tr.to, i)
			}
		}
	}
	if rng.IntN(2) == 0 {
		tr.from, tr.to = tr.to, tr.from
	}
	switch tr.kind {
	case cutBoth, cutOneWay:
		tr.wire.Cut = true
	case slowWires:
		tr.wire.Delay = 20*time.Millisecond + rand64(rng, 300*time.Millisecond)
	case lossyWires:
		tr.wire.Loss = 0.05 + 0.35*rng.Float64()
	case pausedHost:
		tr.from, tr.to = []int{host}, nil
	}
	return tr
}

// wires adds the wires of a trouble.
func (tr *trouble) wires(all map[[2]int]wire) {
	for _, a := range tr.from {
		for _, b := range tr.to {
			all[[2]int{a, b}] = all[[2]int{a, b}].join(tr.wire)
			if tr.kind != cutOneWay {
				all[[2]int{b, a}] = all[[2]int{b, a}].join(tr.wire)
			}
		}
	}
}

func (p *partitionPlan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d (make partitions N=1 SEED=%d): %d shards, early: %t", p.seed, p.seed, p.shards, p.early)
	for _, tr := range p.troubles {
		fmt.Fprintf(&b, "\n  %v", tr)
	}
	return b.String()
}

func (tr trouble) String() string {
	names := func(hosts []int) string {
		all := make([]string, len(hosts))
		for i, h := range hosts {
			all[i] = hostNames[h]
		}
		return strings.Join(all, " ")
	}
	when := "of the replay"
	if tr.ended {
		when = "after its end"
	}
	text := fmt.Sprintf("%v %s, for %v: %v: %s", tr.after.Round(time.Millisecond), when, tr.lasts.Round(time.Millisecond), tr.kind,
		names(tr.from))
	if len(tr.to) > 0 {
		text += " to " + names(tr.to)
	}
	switch tr.kind {
	case slowWires:
		text += fmt.Sprintf(" (%v)", tr.wire.Delay.Round(time.Millisecond))
	case lossyWires:
		text += fmt.Sprintf(" (%.0f %%)", 100*tr.wire.Loss)
	}
	return text
}

func TestSeedsGiveReproduciblePartitions(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		p := newPartitionPlan(seed)
		if again := newPartitionPlan(seed); p.String() != again.String() {
			t.Fatalf("two plans of a seed:\n%v\n%v", p, again)
		}
		for _, tr := range p.troubles {
			seen[fmt.Sprint(tr.kind, tr.ended)] = true
			if seed >= usualPartition && seed < usualPartition+usualPartitions {
				seen[fmt.Sprint("usually ", tr.kind)] = true
				seen["usually election"] = seen["usually election"] || tr.lasts > electionTime
			}
			seen[fmt.Sprint("early ", p.early)] = true
			seen["election"] = seen["election"] || tr.lasts > electionTime
			for _, host := range slices.Concat(tr.from, tr.to) {
				seen[hostNames[host]] = true
			}
		}
	}
	want := slices.Concat(hostNames, []string{"election", "usually election", "early true", "early false"})
	for kind := range troubleKinds {
		want = append(want, fmt.Sprint(kind, false), fmt.Sprint(kind, true), fmt.Sprint("usually ", kind))
	}
	for _, what := range want {
		if !seen[what] {
			t.Errorf("no plan has %s", what)
		}
	}
}
