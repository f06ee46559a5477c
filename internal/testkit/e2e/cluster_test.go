package e2e

import (
	"errors"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// documented are the rights that docs/cluster.md gives to users of an account, for a
// run, by the name of the user.
func documented(t testing.TB, run string) map[string]natsRights {
	t.Helper()
	text, err := os.ReadFile("../../../docs/cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]natsRights{}
	for _, m := range regexp.MustCompile(`(?m)^ *nsc add user (\w+) \\\n +--allow-pub '([^']+)' \\\n +--allow-sub '([^']+)'$`).FindAllStringSubmatch(string(text), -1) {
		list := func(text string) []string {
			text = strings.ReplaceAll(text, "RUN", run)
			return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \\\n", r) })
		}
		found[m[1]] = natsRights{Publish: list(m[2]), Subscribe: list(m[3])}
	}
	if len(found) != 2 || len(found["serve"].Publish) == 0 || len(found["ad"].Publish) == 0 {
		t.Fatalf("docs/cluster.md gives rights to %v", found)
	}
	return found
}

func TestDocumentedNATSPermissionsSuffice(t *testing.T) {
	t.Parallel()
	f := func(name string, args ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := threeRanks(t)
			s := newScene(t)
			nats := startNATS(t, natsOptions{Auth: natsCredentials, TLS: true})
			may := documented(t, "run")
			server := []string{"--nats", nats.URL(), "--nats-ca", nats.CA, "--nats-creds"}
			ad := append(server, nats.Credentials(t, "ad", may["ad"]))
			wrong := may["ad"]
			wrong.Until = time.Now().Add(-time.Hour)
			late := s.ad("late", s.live(r.traces[0]), append(server, nats.Credentials(t, "expired", wrong))...)
			late.awaitLog("cannot connect to the message bus")
			first := s.ad("n0", s.live(r.traces[0]), ad...) // before there is a stream
			serve := s.serve(append(append(server, nats.Credentials(t, "serve", may["serve"]), "--ranks", "3", "--save-model", s.path("model")),
				args...)...)
			s.services()
			ads := []*process{
				first,
				s.ad("n1", s.live(r.traces[1]), ad...),
				s.ad("n2", s.live(r.traces[2]), "--nats-creds", ad[len(ad)-1]), // the run directory has the rest
			}
			succeed(s.replay(r, "4"))
			succeed(append(ads, serve)...)
			agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
			if text := late.stderr.String(); strings.Contains(text, "connected to the message bus\"") {
				t.Errorf("with credentials that have expired an analyzer got in:\n%s", tail(text))
			}
			for line := range strings.SplitSeq(nats.Log(0), "\n") {
				if strings.Contains(line, "Violation") {
					t.Errorf("log of the server: %s", line)
				}
			}
			if left := nats.Streams(); len(left) > 0 {
				t.Errorf("after the end of the run the server has the streams %v", left)
			}
		})
	}
	f("one process")
	f("shards", "--shards", "2")
}

func TestAddressWithUserAndPassword(t *testing.T) {
	t.Parallel()
	r := recorded(t, "ring-BP5")
	s := newScene(t)
	nats := startNATS(t, natsOptions{Auth: natsPassword})
	settings := s.write("settings.toml", "nats = \""+nats.URL()+"\"\n") // not on a command line
	serve := s.serve("--ranks", "2", "--config", settings, "--shards", "2")
	s.services()
	eventually(t, "the second shard is there", func() error {
		for _, command := range children(t, serve) {
			if strings.Contains(command, nats.Password) {
				t.Errorf("a command line contains the password: %q", command)
			}
			return nil
		}
		return errors.New("not yet")
	})
	ads := s.ads(r)
	succeed(s.replay(r, "max"))
	succeed(append(ads, serve)...)
	if text := s.read("run/run.json"); strings.Contains(text, nats.Password) {
		t.Errorf("the run directory contains the password:\n%s", text)
	}
	for _, p := range append(ads, serve) {
		if text := p.stdout.String() + p.stderr.String(); strings.Contains(text, nats.Password) {
			t.Errorf("%s prints the password:\n%s", p.name, tail(text))
		}
	}
}

func TestTooSmallNATSStorageIsAnErrorAtStart(t *testing.T) {
	t.Parallel()
	nats := startNATS(t, natsOptions{Auth: natsCredentials})
	f := func(want string, args ...string) {
		t.Helper()
		s := newScene(t)
		serve := s.serve(append(args, "--nats", nats.URL(), "--nats-creds", nats.Credentials(t, "serve", documented(t, "run")["serve"]))...)
		if code := serve.wait(); code != 1 {
			t.Errorf("exit code %d", code)
		}
		contains(t, serve.stderr.String(), "stream chimbuko-records-run", want)
	}
	f("a stream with 3 replicas needs a cluster of that size", "--stream-replicas", "3", "--stream-size", "64")
	f("no room for 8000 MB on each of 1 servers", "--stream-size", "8000")
}

func TestServicesWaitForClusterWithoutLeader(t *testing.T) {
	t.Parallel()
	r := recorded(t, "ring-BP5")
	s := newScene(t)
	nats := startNATS(t, natsOptions{Servers: 3})
	nats.Kill(t, 1)
	nats.Kill(t, 2)
	serve := s.serve("--nats", nats.URL(), "--ranks", "2", "--stream-replicas", "3", "--stream-size", "64", "--save-model", s.path("model"))
	serve.awaitLog("waiting for the stream of records")
	nats.Restart(t, 1, 2) // together: the leader may have been lost before others knew of it
	s.services()
	ads := s.ads(r)
	succeed(s.replay(r, "max"))
	succeed(append(ads, serve)...)
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestNATSClusterSurvivesLossOfOneServer(t *testing.T) {
	t.Parallel()
	f := func(name string, seed uint64, leader, again bool) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			r := threeRanks(t)
			s := newScene(t)
			nats := startNATS(t, natsOptions{Servers: 3, Auth: natsCredentials, TLS: true})
			may := documented(t, "run")
			server := []string{"--nats", nats.URL(), "--nats-ca", nats.CA, "--nats-creds"}
			serve := s.serve(append(server, nats.Credentials(t, "serve", may["serve"]),
				"--ranks", "3", "--save-model", s.path("model"), "--stream-replicas", "3", "--stream-size", "256")...)
			s.services()
			ads, last := s.allButLast(r, append(server, nats.Credentials(t, "ad", may["ad"]))...)
			replay := s.replay(r, "0.6")
			s.steps(3 + random.Int64N(24))
			victim := random.IntN(3)
			if leader {
				victim = nats.Leader(t, "chimbuko-records-run")
			}
			nats.Kill(t, victim)
			if again {
				s.steps(30)
				nats.Restart(t, victim)
			}
			replay.succeed()
			succeed(append(ads, last(), serve)...)
			agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
		})
	}
	f("the leader of the stream", 1, true, false)
	f("the leader, which comes back", 2, true, true)
	f("any of them", 3, false, false)
	f("any of them, which comes back", 4, false, true)
}
