package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// slowRankRun analyzes a simulated program in which rank 3 is slow from 4 s to 7 s.
func slowRankRun(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(sharedDir, "slow-rank")
	if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil {
		return dir
	}
	traces := filepath.Join(sharedDir, "slow-rank-traces")
	prepare(t, "simulate", "--scenario", "slow-rank", "--out", traces)
	prepare(t, "analyze", traces, "--out", dir, "--records", "both", "--workers", "1")
	return dir
}

func ranksOf(t *testing.T, args ...string) (l output.RankList) {
	t.Helper()
	if err := json.Unmarshal([]byte(must(t, append([]string{"ranks"}, append(args, "--format", "json")...)...)), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRanksListSlowRankFirst(t *testing.T) {
	dir := slowRankRun(t)
	text := must(t, "ranks", dir)
	for _, want := range []string{
		`^\d\d % efficient: load balance \d\d %, communication \d\d %\n\n`,
		`(?m)^RANK +HOST +ROLE +USEFUL +WAIT +LOST TO FINDINGS +RATIO +SLOW +IF LIKE PEERS$`,
		`(?m)^3 +node00 +1 +1\d\.\d s +\d+ ms +[0-9.]+ s +1\.\d+ +[34]\.\d+ s to [67]\.\d+ s +run 1\d\.\d % shorter \([0-9.]+ s\)$`,
		`(?m)^0 +node00 +1 +\d+\.\d s +[0-9.]+ s +[0-9.]+ s +1\.00 +no +the same$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	l := ranksOf(t, dir)
	r := l.Rows[0]
	if len(l.Rows) != 8 || l.All != 8 || r.Ranks[0] != 3 || *r.Share < 0.1 || *r.Peers != 7 || *r.Lost <= 0 || l.Efficiency[0].Slowest != 3 {
		t.Errorf("got %+v", l)
	}
	for i := range l.Rows[1:] {
		if a, b := l.Rows[i], l.Rows[i+1]; *a.Saved < *b.Saved || *a.Saved == *b.Saved && *a.Ratio < *b.Ratio {
			t.Errorf("rank %d is before rank %d", a.Ranks, b.Ranks)
		}
	}
	same(t, "limit", len(ranksOf(t, dir, "--limit", "2").Rows), 2)
	same(t, "program", len(ranksOf(t, dir, "--program", "7").Rows), 0)
	if lines := queryCSV(t, "ranks", dir); len(lines) != 9 || lines[1][1] != "3" {
		t.Errorf("got %v", lines)
	}
	if text := must(t, "ranks", dir, "--format", "markdown"); !strings.Contains(text, "| rank | host | role |") {
		t.Errorf("got %s", text)
	}
	if r := run(t, "ranks", dir, "--show-sql"); !strings.Contains(r.stderr, "FROM rank_loads") {
		t.Errorf("no SQL in %s", r.stderr)
	}
}

func TestFunctionsOfRank(t *testing.T) {
	dir := slowRankRun(t)
	text := must(t, "ranks", dir, "--rank", "3,99")
	for _, want := range []string{
		`(?m)^FUNCTION +CALLS +TIME +SHARE +AT PEERS +RATIO$`, `(?m)^update_block +8000 +8\.\d+ s +7\d\.\d % +7\.\d+ s +1\.2\d$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	l := ranksOf(t, dir, "--rank", "4-7", "--by", "host")
	if len(l.Rows) != 1 || l.Functions == nil || l.Functions.Ranks != 4 || l.Functions.Functions[0].Calls != 32000 {
		t.Errorf("got %+v", l)
	}
	if l := ranksOf(t, dir); l.Functions != nil {
		t.Errorf("got functions %+v of all ranks", l.Functions)
	}
	fails(t, 2, []string{"ranks", dir, "--rank", "x"}, `--rank: "x" is not a rank`)
}

func TestFindingShowsEvidenceOfSlowRank(t *testing.T) {
	tracetest.SkipShort(t, "analyzes or compares large runs")
	dir := slowRankRun(t)
	text := must(t, "findings", dir, "1")
	for _, want := range []string{
		`(?m)^  what if     like its peers, the run would be [0-9.]+ s \(1\d\.\d %\) shorter$`,
		`(?m)^  evidence    strong: slower than 7 peers at equal work, and they wait for it: `,
		`(?m)^0\.00 s +\d\.\d\d s +(0\.9|1\.0)\d +█+$`,
		`(?m)^[45]\.\d\d s +[56]\.\d\d s +[23]\.\d\d +slow +█+$`,
		`(?m)^FUNCTION +CALLS +TIME +AT PEERS +RATIO +LOST +OF LOST$`,
		`(?m)^update_block +\d+ +[0-9.]+ s +[0-9.]+ m?s +2\.\d+ +[0-9.]+ s +7\d\.\d %$`,
		`(?m)^rank 3 +node00 +[0-9.]+ s +[0-9.]+ ms +0\.\d+ %$`,
		`(?m)^rank \d +node0\d +[0-9.]+ s +[0-9.]+ s +6\d\.\d %$`,
		`(?m)^Examples`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	markdown := must(t, "findings", dir, "1", "--format", "markdown")
	for _, want := range []string{"## Finding 1: Rank 3", "| from | to | ratio |", "| update\\_block |", "| rank 3 | node00 |", "### Examples"} {
		if !strings.Contains(markdown, want) {
			t.Errorf("no %q in\n%s", want, markdown)
		}
	}
	var e struct {
		Slow    api.SlowEvidence `json:"slow_peer"`
		WrongIf string           `json:"wrong_if"`
	}
	if err := json.Unmarshal([]byte(must(t, "findings", dir, "1", "--format", "json")), &e); err != nil {
		t.Fatal(err)
	}
	if s := e.Slow; s.Slow.Place != "rank 3" || len(s.Windows) < 16 || s.Twin == nil || len(s.Slow.Functions) == 0 || s.WrongIf != e.WrongIf {
		t.Errorf("got %+v", e)
	}
}

func TestRanksOfHostsRolesAndThreads(t *testing.T) {
	dir := slowRankRun(t)
	hosts := ranksOf(t, dir, "--by", "host").Rows
	if len(hosts) != 2 || hosts[0].Host != "node00" || len(hosts[0].Ranks) != 4 || hosts[0].Slow != 1 || hosts[1].Slow != 0 {
		t.Errorf("got hosts %+v", hosts)
	}
	if ranks := ranksOf(t, dir).Rows; *hosts[0].Saved != *ranks[0].Saved || *hosts[0].Ratio >= *ranks[0].Ratio || *hosts[0].Ratio <= 1 {
		t.Errorf("host %+v, rank %+v", hosts[0], ranks[0])
	}
	if roles := ranksOf(t, dir, "--by", "role").Rows; len(roles) != 1 || len(roles[0].Ranks) != 8 || *roles[0].Role != 1 {
		t.Errorf("got roles %+v", roles)
	}
	if text := must(t, "ranks", dir, "--by", "thread"); !strings.Contains(text, "All ranks have one thread") {
		t.Errorf("got %s", text)
	}
	if text := must(t, "ranks", dir, "--by", "device"); !strings.Contains(text, "no GPUs") {
		t.Errorf("got %s", text)
	}
	fails(t, 2, []string{"ranks", dir, "--by", "planet"}, `unknown by "planet" (want device, host, rank, role, thread)`)
}

func TestRanksOfGPUsAreListed(t *testing.T) {
	l := ranksOf(t, analyzed(t, "gpu", gpuRun), "--by", "device")
	if len(l.Rows) == 0 || l.Rows[0].Thread == nil || l.Efficiency[0].DeviceParallel == nil {
		t.Errorf("got %+v", l)
	}
}

func TestImportedRunsHaveSameRanks(t *testing.T) {
	tracetest.SkipShort(t, "starts PostgreSQL")
	dir, again := slowRankRun(t), filepath.Join(t.TempDir(), "again")
	prepare(t, "import", dir, "--out", again)
	url := pgtest.Shared(t).Database(t)
	prepare(t, "import", dir, "--out", filepath.Join(t.TempDir(), "server"), "--store", url)
	for _, by := range []string{"rank", "host", "role", "thread", "device"} {
		want := ranksOf(t, dir, "--by", by)
		same(t, by, ranksOf(t, again, "--by", by), want)
		same(t, by+" on PostgreSQL", ranksOf(t, url, "--by", by), want)
	}
	for _, table := range []string{"rank_loads", "load_windows", "efficiency", "slow_peers"} {
		sql := "SELECT * FROM " + table
		same(t, table, queryJSON(t, "query", again, sql), queryJSON(t, "query", dir, sql))
	}
}

func TestRunsWithoutLoadsAreExplained(t *testing.T) {
	tracetest.SkipShort(t, "imports a whole run")
	dir := slowRankRun(t)
	old := filepath.Join(t.TempDir(), "old")
	if err := os.CopyFS(old, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rank_loads", "efficiency", "slow_peers"} {
		if err := os.Remove(filepath.Join(old, "global", name+".json")); err != nil {
			t.Fatal(err)
		}
	}
	imported := filepath.Join(t.TempDir(), "imported")
	prepare(t, "import", old, "--out", imported)
	fails(t, 1, []string{"ranks", imported}, "has no load of ranks to compare", "imported from records without them")
}
