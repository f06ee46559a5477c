package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

// network is hosts on a switch: network namespaces that only see each other.
type network struct {
	t    testing.TB
	name string
}

const networkPrefix = "chimbuko-"

var networks atomic.Int64

// newNetwork makes a network that is gone when the test has ended. Where that cannot
// be done the test is skipped; with CI=true it fails.
func newNetwork(t testing.TB, hosts int) *network {
	t.Helper()
	n := &network{t: t, name: fmt.Sprintf("%s%d-%d-", networkPrefix, os.Getpid(), networks.Add(1))}
	removeNetworks(func(name string) bool { // of tests that were killed
		pid, err := strconv.Atoi(strings.Split(strings.TrimPrefix(name, networkPrefix), "-")[0])
		return err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
	t.Cleanup(func() { removeNetworks(func(name string) bool { return strings.HasPrefix(name, n.name) }) })
	err := ip("netns", "add", n.space("switch"))
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("SKIP: NOT TESTED WITH SEVERAL HOSTS: network namespaces need root and the program ip: %v", err)
	}
	n.must(err)
	n.must(ip("-n", n.space("switch"), "link", "add", "bridge", "type", "bridge"))
	n.must(ip("-n", n.space("switch"), "link", "set", "bridge", "up"))
	for i := range hosts {
		host := n.space(strconv.Itoa(i))
		n.must(ip("netns", "add", host))
		n.must(ip("-n", n.space("switch"), "link", "add", n.port(i), "type", "veth", "peer", "name", "eth0", "netns", host))
		n.must(ip("-n", n.space("switch"), "link", "set", n.port(i), "master", "bridge", "up"))
		n.must(ip("-n", host, "addr", "add", n.address(i)+"/24", "dev", "eth0"))
		n.must(ip("-n", host, "link", "set", "eth0", "up"))
		n.must(ip("-n", host, "link", "set", "lo", "up"))
	}
	return n
}

// ip runs the program of this name.
func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// removeNetworks removes the namespaces of these tests that have a certain name.
func removeNetworks(which func(name string) bool) {
	out, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		return // there are none
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 && strings.HasPrefix(f[0], networkPrefix) && which(f[0]) {
			_ = ip("netns", "del", f[0]) // another test may do the same
		}
	}
}

func (n *network) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *network) space(name string) string { return n.name + name }
func (n *network) port(host int) string     { return fmt.Sprint("port", host) }
func (n *network) address(host int) string  { return fmt.Sprint("10.77.0.", host+1) }
func (n *network) command(host int) []string {
	return []string{"ip", "netns", "exec", n.space(strconv.Itoa(host))}
}

// cut takes the link of a host down, continues the paused replay, and takes the link up when
// analyzers have noticed, which takes them seconds.
func (n *network) cut(host int, replay *process, ads ...*process) {
	n.t.Helper()
	alone := func(p *process) int { return strings.Count(p.stderr.String(), "this analyzer continues alone") }
	before := make([]int, len(ads))
	for i, ad := range ads {
		before[i] = alone(ad)
	}
	n.must(ip("-n", n.space("switch"), "link", "set", n.port(host), "down"))
	replay.resume()
	for i, ad := range ads {
		eventually(n.t, ad.name+" continues alone", func() error {
			if alone(ad) == before[i] {
				return errors.New("not yet")
			}
			return nil
		})
	}
	n.must(ip("-n", n.space("switch"), "link", "set", n.port(host), "up"))
}

// start starts chimbuko on a host.
func (n *network) start(host int, args ...string) *process {
	n.t.Helper()
	return startAs(n.t, fmt.Sprintf("%s on host %d", args[0], host), nil, slices.Concat(n.command(host), []string{program}, args))
}

// ads starts an analyzer on each host but the first.
func (n *network) ads(s *scene, r recording, args ...string) (all []*process) {
	n.t.Helper()
	for i, trace := range r.traces {
		all = append(all, n.start(i+1, append([]string{"ad", s.live(trace), "--node", fmt.Sprint("n", i), "--exchange", "100ms"}, args...)...))
	}
	return all
}

// steps waits until the services, on the first host, report some steps.
func (n *network) steps(s *scene, least int64) {
	n.t.Helper()
	eventually(n.t, fmt.Sprintf("%d steps are reported", least), func() error {
		command := append(n.command(0), program, "status", s.run, "--json")
		out, err := exec.Command(command[0], command[1:]...).Output()
		if err != nil {
			return err
		}
		var st api.Status
		if err := json.Unmarshal(out, &st); err != nil {
			return err
		}
		var steps int64
		for _, node := range st.Nodes {
			steps += node.StepsExchanged
		}
		if steps < least {
			return fmt.Errorf("only %d", steps)
		}
		return nil
	})
}

func TestAnalyzersOnOtherHostsSurviveLinkFailure(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 4)
	r := threeRanks(t)
	s := newScene(t)
	cert, key := signedCertificate(t, n.address(0))
	serve := n.start(0, "serve", "--out", s.run, "--ranks", "3", "--save-model", s.path("model"), "--snapshot", "200ms", "--store-delay",
		"100ms",
		"--nats-listen", n.address(0)+":0", "--tls-cert", cert, "--tls-key", key)
	s.services()
	stranger := n.start(3, "ad", s.live(r.traces[0]), "--run-dir", s.path("none"), "--name", "run", "--nats", s.services().Bus, "--nats-ca",
		cert)
	stranger.awaitLog("cannot connect to the message bus")
	ads := n.ads(s, r, "--run-dir", s.run)
	replay := s.paused(r, 2)
	n.steps(s, 6)
	n.cut(2, replay, ads[1])
	replay.succeed()
	succeed(append(ads, serve)...)
	if text := stranger.stderr.String(); strings.Contains(text, "level=INFO msg=\"connected to the message bus") {
		t.Errorf("without a token an analyzer got in:\n%s", tail(text))
	}
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestAnalyzersWithoutSharedDirectorySurviveLinkFailure(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 4)
	r := threeRanks(t)
	s := newScene(t)
	postgres := pgtest.Start(t, pgtest.Options{NoSync: true})
	database := postgres.Database(t)
	nats := startNATS(t, natsOptions{Auth: natsToken, TLS: true, Host: n.address(0), Prefix: n.command(0)})
	token := s.write("token", nats.Token+"\n")
	bus := []string{"--nats", nats.URL(), "--nats-ca", nats.CA, "--nats-token-file", token, "--name", "job 42"}
	serve := n.start(0, append(bus, "serve", "--out", s.run, "--ranks", "3", "--save-model", s.path("model"), "--snapshot", "200ms",
		"--store-delay", "100ms",
		"--store", postgres.SocketURL(database))...)
	s.services()
	ads := n.ads(s, r, append(bus, "--run-dir", s.path("none"))...)
	replay := s.paused(r, 2)
	n.steps(s, 6)
	n.cut(0, replay, ads...)
	replay.succeed()
	succeed(append(ads, serve)...)
	agree(t, outcomeOf(t, s.path("model"), database, "--run", "job 42"), offlineOf(t, r))
}
