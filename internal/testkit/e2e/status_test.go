package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// joined waits until n analyzers have joined.
func (s *scene) joined(n int) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%d analyzers have joined", n), func() error {
		st, err := s.status()
		if err == nil && len(st.Nodes) < n {
			err = fmt.Errorf("only %d", len(st.Nodes))
		}
		return err
	})
}

// get returns a page.
func (s *scene) get(path, token string) (code int, body string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.services().Web+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

func TestStatusShowsRanksRatesAndHealth(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	serve := s.serve("--ranks", "3", "--stats-dir", s.path("stats"))
	s.services()
	watch := start(t, "status", s.run, "--watch", "--every", "100ms")
	ads := s.ads(r)
	replay := s.paused(r, 5)
	s.steps(15)

	// On a busy machine a part may not respond in time.
	eventually(t, "the status is complete", func() error {
		var st api.Status
		if err := json.Unmarshal([]byte(must(t, "status", s.run, "--json")), &st); err != nil {
			t.Fatal(err)
		}
		if st.Run.State != api.Running || len(st.Ranks) != 3 || len(st.Nodes) != 3 || len(st.Shards) != 1 || st.Store == nil ||
			st.Sender == nil || len(st.Wrong()) > 0 {
			return fmt.Errorf("status is %+v", st)
		}
		return nil
	})
	eventually(t, "the text of the status is complete", func() error {
		text := must(t, "status", s.run)
		for _, part := range []string{
			"run: running", "3 of 3 ranks, 0 ended", "ANALYZER", "n0", "reading", "BEHIND", "EVENTS/S", "0:2", "vm-copy2", "parameters 0:",
			"store (DuckDB):", "statistics:",
		} {
			if !strings.Contains(text, part) {
				return fmt.Errorf("%q is missing in:\n%s", part, tail(text))
			}
		}
		return nil
	})
	services := s.services()
	contains(t, must(t, "status", services.Web+"/?token="+services.Secret), "run: running")

	eventually(t, "the run is healthy", func() error {
		if code, body := s.get("/healthz", ""); code != http.StatusOK || !strings.Contains(body, `"ok"`) {
			return fmt.Errorf("healthz: %d %s", code, body)
		}
		return nil
	})
	for _, path := range []string{"/metrics", "/api/v1/status"} {
		if code, _ := s.get(path, "wrong"); code != http.StatusUnauthorized {
			t.Errorf("%s with a wrong token: %d", path, code)
		}
	}
	code, metrics := s.get("/metrics", services.Secret)
	if code != http.StatusOK {
		t.Errorf("metrics: %d %s", code, metrics)
	}
	series := regexp.MustCompile(`^([a-z_]+)(\{[^}]*\})? [-+0-9.eEInfNa]+$`)
	found := map[string]bool{}
	for line := range strings.Lines(metrics) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		m := series.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("no series: %s", line)
			continue
		}
		found[m[1]] = true
	}
	for _, name := range []string{
		"chimbuko_node_lag_seconds", "chimbuko_rank_lag_max_seconds", "chimbuko_node_drops_total",
		"chimbuko_node_exchange_last_seconds", "chimbuko_shard_exchange_seconds", "chimbuko_store_lag_seconds",
	} {
		if !found[name] {
			t.Errorf("metrics lack %s", name)
		}
	}

	replay.resume()
	replay.succeed()
	succeed(append(ads, serve)...)
	watch.succeed()
	contains(t, watch.stdout.String(), "run: running", "run: finished")
	_, stderr, code := run(t, "status", s.run)
	if code != 1 {
		t.Errorf("status of a run that has ended: exit code %d", code)
	}
	contains(t, stderr, "chimbuko top")
}

func TestHealthNamesMissingPart(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve("--roles", "nats,params,web")
	store := s.serve("--roles", "store")
	healthy := func(want int, part string) {
		t.Helper()
		eventually(t, fmt.Sprintf("health is %d", want), func() error {
			code, body := s.get("/healthz", "")
			if code != want || !strings.Contains(body, part) {
				return fmt.Errorf("%d %s", code, body)
			}
			return nil
		})
	}
	healthy(http.StatusOK, "ok")
	store.kill()
	healthy(http.StatusServiceUnavailable, `"part":"store"`)
	contains(t, must(t, "status", s.run), "error: store: not responding")
	s.serve("--roles", "store")
	healthy(http.StatusOK, "ok")
}

// TestServicesStartAfterQueryOfTheirStore starts services while a query has the store of the run open, as it happens between
// the creation of the store and the moment at which they answer queries.
func TestServicesStartAfterQueryOfTheirStore(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc")
	}
	s := newScene(t)
	first := s.serve()
	s.services()
	first.kill()
	long := start(t, "query", s.run, "SELECT sum(a.range * b.range % 7) FROM range(100000000) a, range(1000000000) b", "--timeout", "4m")
	eventually(t, "the query opens the store", func() error {
		fds := filepath.Join("/proc", strconv.Itoa(long.cmd.Process.Pid), "fd")
		entries, err := os.ReadDir(fds)
		for _, e := range entries {
			if file, err := os.Readlink(filepath.Join(fds, e.Name())); err == nil && filepath.Ext(file) == ".duckdb" {
				return nil
			}
		}
		return fmt.Errorf("not yet: %w", err)
	})
	serve := s.serve()
	serve.awaitLog("waiting for a query of another process to close the store")
	long.kill()
	serve.awaitLog("the page of the run is at")
	contains(t, must(t, "query", s.run, "SELECT state FROM runs"), "running")
}
