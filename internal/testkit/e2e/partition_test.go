package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

var (
	partitionRuns = flag.Int("partitions", usualPartitions, "how many runs are disturbed by partitions of the network")
	partitionSeed = flag.Uint64("partition-seed", usualPartition, "seed of the first of these runs; the others have those after it")
	partitionLogs = flag.String("partition-logs", "", "directory for the logs of these runs that failed")
)

// The default seeds: few, but with them all kinds of troubles occur, and an election.
const (
	usualPartition  = 1
	usualPartitions = 4
)

// marks identify hosts in what they send to a NATS server first.
func marks() (all []string) {
	for i, name := range hostNames {
		switch {
		case i < natsHosts:
			all = append(all, fmt.Sprintf("%q:%q", "server_name", name))
		case i < firstAd:
			all = append(all, "chimbuko serve "+name+" of")
		default:
			all = append(all, "analyzer "+name+" ")
		}
	}
	return all
}

// partitioned is a run on the hosts of a fabric.
type partitioned struct {
	*scene
	plan   *partitionPlan
	fabric fabric
	wires  *wires
	nats   *natsCluster
	hosts  []*process // by host; nil for NATS servers
	begun  time.Time
	paused []int // how many troubles pause a host
}

// newPartitioned starts the NATS servers.
func newPartitioned(t testing.TB, plan *partitionPlan) *partitioned {
	t.Helper()
	p := &partitioned{scene: newScene(t), plan: plan, wires: newWires(plan.seed)}
	p.hosts, p.paused = make([]*process, len(hostNames)), make([]int, len(hostNames))
	p.fabric = newFabric(t, p.wires, marks())
	t.Cleanup(p.keepLogs) // before the processes are ended
	p.nats = startNATS(t, natsOptions{Servers: natsHosts, Fabric: p.fabric})
	return p
}

// start starts chimbuko on a host.
func (p *partitioned) start(host int, args ...string) {
	p.t.Helper()
	args = slices.Concat(p.fabric.Command(host), []string{program}, args, []string{"--nats", p.nats.URL(), "--name", "run"})
	p.hosts[host] = startAs(p.t, hostNames[host], nil, args)
}

// startAll starts the services and the analyzers, which read the traces of a recording.
func (p *partitioned) startAll(r recording) {
	p.t.Helper()
	serve := []string{"serve", "--out", p.run, "--snapshot", "200ms"}
	p.start(paramsHost, append(serve, "--roles", "params", "--ranks", strconv.Itoa(len(r.traces)), "--save-model", p.path("model"),
		"--shards", strconv.Itoa(p.plan.shards))...)
	p.start(storeHost, append(serve, "--roles", "store", "--store-delay", "100ms", "--stream-replicas", "3", "--stream-size", "64")...)
	for i, trace := range r.traces {
		p.start(firstAd+i, "ad", p.live(trace), "--run-dir", p.path("none"), "--node", hostNames[firstAd+i], "--exchange", "100ms")
	}
}

// play replays the traces with the troubles of the plan, until all processes have ended.
func (p *partitioned) play(r recording) {
	p.t.Helper()
	p.startAll(r)
	if !p.plan.early {
		p.hosts[paramsHost].awaitLog("analyzers join with")
		p.hosts[storeHost].awaitLog("analyzers join with")
	}
	p.begun = time.Now()
	replay := p.replay(r, partitionSpeed)
	type turn struct {
		at    time.Time
		which int
		begin bool
	}
	var turns []turn
	add := func(at time.Time, ended bool) {
		for i, tr := range p.plan.troubles {
			if tr.ended == ended {
				begin := at.Add(tr.after)
				turns = append(turns, turn{begin, i, true}, turn{begin.Add(tr.lasts), i, false})
			}
		}
	}
	add(p.begun, false)
	shared := make(chan error, 1)
	go func() { shared <- p.shareStore() }()
	active := map[int]bool{}
	for replayed := replay.ended; len(turns) > 0 || replayed != nil; {
		slices.SortStableFunc(turns, func(a, b turn) int { return a.at.Compare(b.at) })
		next := time.NewTimer(lifetime)
		if len(turns) > 0 {
			next.Reset(time.Until(turns[0].at))
		}
		select {
		case <-replayed:
			replay.succeed()
			p.note("the replay has ended")
			add(time.Now(), true)
			replayed = nil
		case <-next.C:
			active[turns[0].which] = turns[0].begin
			p.apply(active)
			p.note(fmt.Sprintf("begins: %t: %v", turns[0].begin, p.plan.troubles[turns[0].which]))
			turns = turns[1:]
		}
		next.Stop()
	}
	p.note("the network works")
	if err := <-shared; err != nil {
		p.t.Fatal(err)
	}
	for _, host := range p.hosts[natsHosts:] {
		select {
		case <-host.ended:
		case <-time.After(patience):
			p.dump()
			p.t.Fatalf("%s did not end within %v", host.name, patience)
		}
		host.succeed()
	}
	p.note("all have ended")
}

// shareStore lets the parameter server query the store, which only answers on its host.
func (p *partitioned) shareStore() error {
	for end := time.Now().Add(patience); ; {
		var owner struct{ Address string }
		text, err := os.ReadFile(rundir.Owner(p.run))
		if err == nil {
			err = json.Unmarshal(text, &owner)
		}
		if err == nil {
			return p.fabric.Share(p.t, paramsHost, storeHost, owner.Address)
		}
		if time.Now().After(end) {
			return err
		}
		<-time.After(20 * time.Millisecond)
	}
}

// apply puts the active troubles into effect, and ends the others.
func (p *partitioned) apply(active map[int]bool) {
	p.t.Helper()
	all := map[[2]int]wire{}
	paused := make([]int, len(hostNames))
	for i, tr := range p.plan.troubles {
		if !active[i] {
			continue
		}
		tr.wires(all)
		if tr.kind == pausedHost {
			paused[tr.from[0]]++
		}
	}
	p.wires.replace(all)
	for host, n := range paused {
		switch before := p.paused[host]; {
		case before == 0 && n > 0:
			p.signal(host, syscall.SIGSTOP)
		case before > 0 && n == 0:
			p.signal(host, syscall.SIGCONT)
		}
	}
	p.paused = paused
}

// signal signals the process of a host, unless it has ended.
func (p *partitioned) signal(host int, s syscall.Signal) {
	p.t.Helper()
	if host < natsHosts {
		p.nats.Signal(p.t, host, s)
		return
	}
	p.hosts[host].trySignal(s)
}

// dump makes all processes log their goroutines and end.
func (p *partitioned) dump() {
	p.t.Helper()
	for _, host := range p.hosts[natsHosts:] {
		if host.trySignal(syscall.SIGQUIT) {
			<-host.ended
		}
	}
}

// keepLogs keeps the logs of a failed run.
func (p *partitioned) keepLogs() {
	p.t.Helper()
	if !p.t.Failed() || *partitionLogs == "" {
		return
	}
	dir := filepath.Join(*partitionLogs, fmt.Sprint("seed-", p.plan.seed))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Error(err)
	}
	for host, name := range hostNames {
		text := ""
		switch {
		case host < natsHosts:
			text = p.nats.Log(host)
		case p.hosts[host] != nil:
			text = p.hosts[host].stderr.String()
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			p.t.Error(err)
		}
	}
}

// note logs an event with its time.
func (p *partitioned) note(text string) {
	p.t.Helper()
	p.t.Logf("%v: %s", time.Since(p.begun).Round(time.Millisecond), text)
}

// quiet fails if a process repeats a log line too often.
func (p *partitioned) quiet() {
	p.t.Helper()
	const most = 60 // at most ten for each trouble, and a plan has six at most
	for _, host := range p.hosts[natsHosts:] {
		lines := map[string]int{}
		for line := range strings.Lines(host.stderr.String()) {
			lines[numbers.ReplaceAllString(line, "N")]++
		}
		for line, n := range lines {
			if n > most {
				p.t.Errorf("%s logs %d times: %s", host.name, n, line)
			}
		}
	}
}

var numbers = regexp.MustCompile(`[0-9]+`)

// undisturbed returns the summary of a run of three ranks without troubles.
func undisturbed(t testing.TB, r recording) string {
	t.Helper()
	undisturbedOnce.Lock()
	defer undisturbedOnce.Unlock()
	if undisturbedOnce.final == "" {
		p := newPartitioned(t, &partitionPlan{shards: 1})
		p.play(r)
		agree(t, outcomeOf(t, p.path("model"), p.run), offlineOf(t, r))
		undisturbedOnce.final, _ = sumUp(t, p.run)
	}
	return undisturbedOnce.final
}

var undisturbedOnce struct {
	sync.Mutex
	final string
}

func TestPartitionScheduleLosesAndDuplicatesNothing(t *testing.T) {
	r := threeRanks(t)
	for i := range *partitionRuns {
		plan := newPartitionPlan(*partitionSeed + uint64(i))
		t.Run(fmt.Sprint("seed ", plan.seed), func(t *testing.T) {
			t.Parallel()
			want := undisturbed(t, r)
			t.Log(plan)
			p := newPartitioned(t, plan)
			p.play(r)
			agree(t, outcomeOf(t, p.path("model"), p.run), offlineOf(t, r))
			if final, _ := sumUp(t, p.run); final != want {
				t.Errorf("run.json has:\n%s\nwant:\n%s", final, want)
			}
			for id, n := range storedRecords(t, p.run) {
				if n != 1 {
					t.Errorf("record %s is stored %d times", id, n)
				}
			}
			p.quiet()
		})
	}
}
