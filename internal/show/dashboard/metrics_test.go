package dashboard_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// scrape reads the metrics, which must be valid and in good style, by series.
func scrape(t *testing.T, at string) map[string]string {
	t.Helper()
	text, series := read(t, at)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "chimbuko_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	return series
}

// read is scrape without the check of style, which is slow for many series.
func read(t *testing.T, at string) (text string, series map[string]string) {
	t.Helper()
	a := do(t, at+"/metrics", "")
	if a.code != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
		t.Fatalf("%d %s: %s", a.code, a.header.Get("Content-Type"), a.body)
	}
	series = make(map[string]string)
	for line := range strings.Lines(a.body) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && !strings.HasPrefix(line, "#") {
			series[line[:i]] = strings.TrimSpace(line[i:])
		}
	}
	return a.body, series
}

func TestMetricsEqualStatus(t *testing.T) {
	at, p := serve(t, nil)
	got := scrape(t, at)
	for series, value := range map[string]string{
		`chimbuko_up`:                                                                    "1",
		`chimbuko_build_info{version="v1"}`:                                              "1",
		`chimbuko_run_info{run="monday"}`:                                                "1",
		`chimbuko_run_state{state="running"}`:                                            "1",
		`chimbuko_run_state{state="failed"}`:                                             "0",
		`chimbuko_healthy{part="store",severity="info"}`:                                 "1",
		`chimbuko_ranks_expected`:                                                        "4",
		`chimbuko_events_total`:                                                          "4000",
		`chimbuko_read_bytes_total`:                                                      "1.048576e+06",
		`chimbuko_node_info{host="nid001",node="node-a",pid="17"}`:                       "1",
		`chimbuko_node_state{node="node-a",state="reading"}`:                             "1",
		`chimbuko_node_lag_seconds{node="node-a"}`:                                       "0.25",
		`chimbuko_node_drops_total{node="node-a"}`:                                       "2",
		`chimbuko_node_kind_events_total{kind="counter",node="node-a"}`:                  "200",
		`chimbuko_node_stage_seconds_total{node="node-a",stage="read"}`:                  "1.5",
		`chimbuko_node_tally_total{node="node-a",severity="repaired",tally="exit-lost"}`: "3",
		`chimbuko_node_exchange_seconds_count{node="node-a"}`:                            "29",
		`chimbuko_node_exchange_seconds_sum{node="node-a"}`:                              "7.25",
		`chimbuko_node_exchange_max_seconds{node="node-a"}`:                              "0.1",
		`chimbuko_rank_lag_seconds{program="0",rank="1"}`:                                "2.5",
		`chimbuko_rank_lag_max_seconds`:                                                  "2.5",
		`chimbuko_ranks_without_series`:                                                  "0",
		`chimbuko_shard_exchange_seconds{shard="0",quantile="0.99"}`:                     "0.02",
		`chimbuko_shard_snapshot_age_seconds{shard="0"}`:                                 "3",
		`chimbuko_store_lag_seconds`:                                                     "0.5",
		`chimbuko_sender_packets_total`:                                                  "60",
	} {
		if got[series] != value {
			t.Errorf("%s is %q, want %s", series, got[series], value)
		}
	}
	if got["go_goroutines"] == "" || got["process_resident_memory_bytes"] == "" {
		t.Error("no metrics of the process")
	}
	p.set(func(p *pipeline) { p.err = errors.New("timeout") })
	if got := scrape(t, at); got["chimbuko_up"] != "0" || got["chimbuko_events_total"] != "" || got["go_goroutines"] == "" {
		t.Errorf("without status: %v", got)
	}
}

func TestSeriesOfRanksAreBounded(t *testing.T) {
	at, p := serve(t, nil)
	p.set(func(p *pipeline) {
		p.status.Ranks = nil
		for i := range 5000 {
			p.status.Ranks = append(p.status.Ranks, api.Rank{Program: 1, Rank: int64(4999 - i), Behind: float64(4999 - i)})
		}
	})
	series := 0
	_, got := read(t, at)
	for name := range got {
		if strings.HasPrefix(name, "chimbuko_rank_lag_seconds{") {
			series++
		}
	}
	if series != 2000 || got["chimbuko_ranks_without_series"] != "3000" || got["chimbuko_rank_lag_max_seconds"] != "4999" ||
		got[`chimbuko_rank_lag_seconds{program="1",rank="1999"}`] != "1999" {
		t.Errorf("%d series, %s without", series, got["chimbuko_ranks_without_series"])
	}
}

// Repeated and invalid names do not break a scrape.
func TestOddNamesDoNotBreakScrape(t *testing.T) {
	at, p := serve(t, nil)
	p.set(func(p *pipeline) {
		n := p.status.Nodes[0]
		n.Tallies = append(n.Tallies, n.Tallies...)
		n.Stages = append(n.Stages, n.Stages...)
		odd := n
		odd.Name = "a\"\\\n\xff"
		p.status.Nodes = []api.Node{n, n, odd}
		p.status.Ranks = append(p.status.Ranks, p.status.Ranks...)
		p.status.Shards = append(p.status.Shards, p.status.Shards...)
		p.status.Health = append(p.status.Health, p.status.Health...)
	})
	if got := scrape(t, at); got[`chimbuko_node_drops_total{node="a\"\\\n�"}`] != "2" {
		t.Errorf("got %v", got)
	}
}

func TestDocsListAllMetrics(t *testing.T) {
	text, err := os.ReadFile("../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	at, _ := serve(t, nil)
	var names []string
	for name := range scrape(t, at) {
		name, _, _ = strings.Cut(name, "{")
		name = regexp.MustCompile("_seconds_(sum|count)$").ReplaceAllString(name, "_seconds")
		if strings.HasPrefix(name, "chimbuko_") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if !strings.Contains(string(text), fmt.Sprintf("`%s`", strings.TrimPrefix(name, "chimbuko_"))) {
			t.Errorf("docs/api.md does not list %s", name)
		}
	}
}

// TestContributedMetricsExist compares the metrics in dashboards and alert rules with the list in the documentation.
func TestContributedMetricsExist(t *testing.T) {
	known, err := os.ReadFile("../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"grafana/chimbuko.json", "prometheus/alerts.yml"} {
		text, err := os.ReadFile("../../../contrib/" + file)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`chimbuko_[a-z_]+`).FindAllString(string(text), -1)
		if len(names) < 8 {
			t.Errorf("%s has only the metrics %v", file, names)
		}
		for _, name := range names {
			if !strings.Contains(string(known), fmt.Sprintf("| `%s` |", strings.TrimPrefix(name, "chimbuko_"))) {
				t.Errorf("%s: %s does not exist", file, name)
			}
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(text) {
			t.Errorf("%s is not JSON", file)
		}
	}
}

// TestAlertRules tests the alert rules with promtool.
func TestAlertRules(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: starts promtool")
	}
	program, err := exec.LookPath("promtool")
	if err != nil {
		program = "../../../.venv/bin/promtool" // of scripts/test-setup
		if _, err := os.Stat(program); err != nil && os.Getenv("CI") != "true" {
			t.Skip("SKIP: there is no promtool (Debian package prometheus)")
		}
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		for i, a := range args {
			if strings.HasSuffix(a, ".yml") {
				args[i] = "../../../contrib/prometheus/" + a
			}
		}
		if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", args[0], err, out)
		}
	}
}
