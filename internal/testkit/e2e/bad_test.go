package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDamagedTraceIsReportedAndReadableStepsAreStored(t *testing.T) {
	t.Parallel()
	f := func(name, file string, damage func(t *testing.T, path string)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := threeRanks(t)
			s := newScene(t)
			succeed(s.replay(r, "max"))
			bad := s.live(r.traces[1])
			damage(t, filepath.Join(bad, file))
			serve := s.serve("--ranks", "3")
			ads := s.ads(r, "--idle", "2s")
			succeed(ads[0], ads[2])
			if code := ads[1].wait(); code != 1 {
				t.Errorf("the analyzer of the damaged trace has exit code %d", code)
			}
			contains(t, ads[1].stderr.String(), bad, "step", "byte")
			s.missing(serve, "1 of 3 traces could be read only in part")
			s.stored()
			if got := ranksOf(t, s.run); got != "0:0 0:1 0:2" {
				t.Errorf("ranks %s are stored", got)
			}
		})
	}
	size := func(t *testing.T, path string) int64 {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	f("data are cut off", "data.0", func(t *testing.T, path string) {
		if err := os.Truncate(path, size(t, path)/2); err != nil {
			t.Fatal(err)
		}
	})
	f("metadata are garbled", "md.0", func(t *testing.T, path string) {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close() //nolint:errcheck // the write is looked at
		noise := make([]byte, 4096)
		for i := range noise {
			noise[i] = byte(7 * i)
		}
		if _, err := file.WriteAt(noise, size(t, path)*2/3); err != nil {
			t.Fatal(err)
		}
	})
}

func TestServicesRejectBadFlags(t *testing.T) {
	t.Parallel()
	f := func(want string, args ...string) {
		t.Helper()
		out := filepath.Join(t.TempDir(), "run")
		_, stderr, code := run(t, append([]string{"serve", "--out", out}, args...)...)
		if code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
		contains(t, stderr, want)
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%v: a run was made", args)
		}
	}
	f("--stats-url", "--stats-url", "viz:5002/api")
	f("--stats-url", "--stats-url", "http://")
	f("schema 3", "--stats-schema", "3")
	f("viz", "--roles", "nats,viz")
	f("--load-model", "--freeze-model")
	f("host:port", "--http", "8080")
	f("--tls-key", "--tls-cert", "cert.pem")
}

func TestFinishedRunIsNotOverwritten(t *testing.T) {
	t.Parallel()
	r := recorded(t, "ring-BP5")
	s := newScene(t)
	serve := s.serve("--ranks", "2")
	ads := s.ads(r)
	succeed(s.replay(r, "max"))
	succeed(append(ads, serve)...)
	again := s.serve("--ranks", "2")
	if code := again.wait(); code != 1 {
		t.Errorf("serve has exit code %d", code)
	}
	contains(t, again.stderr.String(), "already has a run", "--force")
	forced := s.serve("--ranks", "2", "--force")
	succeed(append(s.ads(r), forced)...)
}

func TestUnreadableServiceTableIsReported(t *testing.T) {
	t.Parallel()
	r := recorded(t, "ring-BP5")
	s := newScene(t)
	if err := os.Mkdir(s.run, 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("run/services.json", "{ this is not JSON")
	for _, command := range [][]string{{"serve", "--out", s.run}, {"status", s.run}, {"stop", s.run}} {
		_, stderr, code := run(t, command...)
		if code != 1 {
			t.Errorf("%s has exit code %d", command[0], code)
		}
		contains(t, stderr, filepath.Join(s.run, "services.json"))
	}
	ads := s.ads(r)
	succeed(s.replay(r, "max"))
	for _, ad := range ads {
		ad.awaitLog("services.json")
		ad.awaitLog("all traces have ended") // despite that
	}
	if err := os.Remove(filepath.Join(s.run, "services.json")); err != nil { // not the directory, which analyzers watch
		t.Fatal(err)
	}
	succeed(append(ads, s.serve("--ranks", "2"))...)
}
