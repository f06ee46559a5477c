package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// burstRun analyses a simulated program in which two bursts make others wait.
func burstRun(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(sharedDir, "burst")
	if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil {
		return dir
	}
	traces := filepath.Join(sharedDir, "burst-traces")
	prepare(t, "simulate", "--scenario", "burst", "--out", traces)
	prepare(t, "analyze", traces, "--out", dir, "--records", "both", "--workers", "1")
	return dir
}

func TestFilesDoNotDependOnWorkers(t *testing.T) {
	one, several := burstRun(t), filepath.Join(t.TempDir(), "run")
	prepare(t, "analyze", filepath.Join(sharedDir, "burst-traces"), "--out", several, "--records", "json", "--workers", "8")
	files := 0
	for _, part := range []string{"records", "global"} {
		err := filepath.WalkDir(filepath.Join(one, part), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files++
			want, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if got, err := os.ReadFile(filepath.Join(several, strings.TrimPrefix(path, one))); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s differs: %v", path, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 50 {
		t.Errorf("only %d files", files)
	}
}

func TestFindingsListCausesFirst(t *testing.T) {
	dir := burstRun(t)
	text := must(t, "findings", dir)
	for _, want := range []string{
		`(?m)^FINDING +KIND +OWN +CAUSED +TOTAL +OF TIME +CALLS +EXPECTED +ACTUAL +RANKS +HOSTS +FROM +TO +OVER TIME +EXAMPLE +FUNCTION$`,
		`(?m)^1 +outlier +[0-9.]+ ms +[0-9.]+ ms +[0-9.]+ ms +[0-9.]+ % +15 +35\d us +[0-9.]+ ms +1 +node00 .* \+3\.\d+ s .*[▁▂▃▄▅▆▇█]{20} +1:\d+:\d+ +collide$`,
		`(?m)^ +and made \w+ waits on 7 ranks lose [0-9.]+ ms of it: MPI_Allreduce\(\) \d+, MPI_Waitall\(\) \d+\n +in bursts$`,
		`(?m)^2 +outlier +[0-9.]+ ms .* 160 .* 4-7 +node01 .* stream\n +and made `,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "waited because of finding") {
		t.Errorf("waits with known causes are listed:\n%s", text)
	}
	if all := must(t, "findings", dir, "--all"); !strings.Contains(all, "\n         waited because of finding 1, collide\n") {
		t.Errorf("waits with known causes are not listed:\n%s", all)
	}
	if one := must(t, "findings", dir, "--all", "--limit", "1"); !regexp.MustCompile(`\nand \w+ more findings: give a larger --limit\n$`).MatchString(one) {
		t.Errorf("the output does not report omitted findings:\n%s", one)
	}
}

func TestFindingsFiltersAndFormats(t *testing.T) {
	dir := burstRun(t)
	all := queryJSON(t, "findings", dir, "--all")
	kinds := func(rows []object) (found []string) {
		for _, row := range rows {
			found = append(found, row["kind"].(string))
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	same(t, "kinds", kinds(all), []string{"outlier", "wait"})
	same(t, "of one kind", kinds(queryJSON(t, "findings", dir, "--kind", "wait")), []string{"wait"})
	same(t, "of one function", len(queryJSON(t, "findings", dir, "--func", "str?am")), 1)
	same(t, "of a program that is not there", len(queryJSON(t, "findings", dir, "--program", "7", "--all")), 0)
	if text := must(t, "findings", dir, "--kind", "change"); !strings.Contains(text, "(none)") {
		t.Errorf("got %s", text)
	}
	for _, row := range all {
		if cause, ok := row["cause"].(float64); ok && (row["role"] != "victim" || all[int(cause)-1]["role"] != "culprit") {
			t.Errorf("%v is the cause of %v", all[int(cause)-1], row)
		}
	}
	for _, row := range all {
		for name := range strings.FieldsSeq("function ranks hosts from_s to_s lost_own_us lost_caused_us lost_us status summary") {
			if _, ok := row[name]; !ok {
				t.Errorf("no %s in %v", name, row)
			}
		}
		us := func(name string) float64 { return row[name].(float64) }
		if ranks, ok := row["ranks"].([]any); !ok || len(ranks) == 0 || us("lost_us") != us("lost_own_us")+us("lost_caused_us") {
			t.Errorf("got %v", row)
		}
	}
	same(t, "by the old name", must(t, "issues", dir), must(t, "findings", dir))
	if text := must(t, "findings", dir, "--withdrawn"); !strings.Contains(text, "(none)") {
		t.Errorf("got %s", text)
	}
	lines := queryCSV(t, "findings", dir, "--all")
	same(t, "lines of csv", len(lines)-1, len(all))
	if text := must(t, "findings", dir, "--format", "markdown"); !strings.Contains(text, "| finding | kind | form | status |") {
		t.Errorf("got %s", text)
	}
	for _, args := range [][]string{{"--kind", "odd"}, {"--limit", "-1"}} {
		if r := run(t, append([]string{"findings", dir}, args...)...); r.code != 2 {
			t.Errorf("%q: exit code %d, %s", args, r.code, r.stderr)
		}
	}
}

func TestFindingHasEvidence(t *testing.T) {
	dir := burstRun(t)
	text := must(t, "findings", dir, "1")
	for _, want := range []string{
		"Finding 1, outlier, confirmed: ", "  lost  ", "  calls  ", "it is wrong if ", "Examples (", "is typical", "Own time of ", "are flagged.",
		"What differs: ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	var got struct {
		Number     int    `json:"finding"`
		Summary    string `json:"summary"`
		Executions []struct {
			Event string  `json:"event_id"`
			Own   float64 `json:"own_us"`
		} `json:"executions"`
		Twin *struct {
			Own float64 `json:"own_us"`
		} `json:"twin"`
		Limit   float64  `json:"limit_us"`
		Differs []object `json:"differs"`
		WrongIf string   `json:"wrong_if"`
	}
	if err := json.Unmarshal([]byte(must(t, "findings", dir, "1", "--format", "json")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Number != 1 || got.Summary == "" || len(got.Executions) == 0 || got.Executions[0].Own <= got.Limit || got.Twin == nil ||
		got.Twin.Own > got.Limit || len(got.Differs) == 0 || got.WrongIf == "" {
		t.Errorf("got %+v", got)
	}
	same(t, "lines of csv", len(queryCSV(t, "findings", dir, "1"))-1, len(got.Executions))
	statements := run(t, "findings", dir, "1", "--show-sql").stderr
	same(t, "documents read", strings.Count(statements, "FROM execution_documents"), len(got.Executions)+1) // with the twin
	for _, number := range []string{"0", "x", "999"} {
		if r := run(t, "findings", dir, number); r.code == 0 {
			t.Errorf("finding %s: exit code 0", number)
		}
	}
}

func TestEventNamesVictimAndCulprit(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := burstRun(t)
	one := func(where string) object {
		rows := queryJSON(t, "query", dir, "SELECT event_id, culprit_event_id FROM links WHERE "+where+" ORDER BY event_id LIMIT 1")
		if len(rows) == 0 {
			t.Fatalf("no link with %s", where)
		}
		return rows[0]
	}
	plain := func(id any) string { return strings.Join(strings.Fields(must(t, "event", dir, id.(string))), " ") }
	victim := one("role = 'victim' AND hops = 1")
	culprit := victim["culprit_event_id"].(string)
	rank, _, _ := strings.Cut(culprit, ":")
	f := func(what, text, want string) {
		t.Helper()
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s: no %s in %s", what, want, text[:min(700, len(text))])
		}
	}
	f("victim", plain(victim["event_id"]),
		`It waited because of \w+ on rank `+rank+` \(node0\d\)\. The culprit is event `+culprit+`\. Finding \d+\.`)
	f("culprit", plain(culprit), `\w+ waits? on \w+ ranks? lost [0-9.]+ ms because of it\. Finding \d+\.`)
	f("another culprit", plain(one("role = 'culprit' AND waits = 0")["event_id"]),
		`Others waited for its rank, most because of \w+\. The culprit is event \d+:\d+:\d+\. Finding \d+\.`)
	typical := queryJSON(t, "query", dir, "SELECT event_id FROM normalexecs ORDER BY event_id LIMIT 1")[0]["event_id"]
	if text := plain(typical); strings.Contains(text, "Finding ") {
		t.Errorf("a typical execution is a finding: %s", text[:min(700, len(text))])
	}
}

func TestFindingsAreInFilesAndSummary(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := burstRun(t)
	var findings []provenance.Finding
	var links []provenance.Link
	readJSON(t, filepath.Join(dir, "global", "findings.json"), &findings)
	readJSON(t, filepath.Join(dir, "global", "links.json"), &links)
	same(t, "links", len(links), int(queryJSON(t, "query", dir, "SELECT count(*) AS n FROM links")[0]["n"].(float64)))
	same(t, "findings", len(findings), len(queryJSON(t, "findings", dir, "--all", "--limit", "1000")))
	var info struct {
		Findings struct {
			Count int
			Worst []provenance.Finding
		}
	}
	readJSON(t, filepath.Join(dir, "run.json"), &info)
	if info.Findings.Count != 2 || !reflect.DeepEqual(info.Findings.Worst, findings[:2]) {
		t.Errorf("run.json has %+v", info.Findings)
	}
	traces := filepath.Join(sharedDir, "burst-traces")
	text := must(t, "analyze", traces, "--out", filepath.Join(t.TempDir(), "run"), "--records", "json")
	if want := regexp.MustCompile(`\n\w+ findings, the costliest first:\n\n  1\. collide: 15 of 96,000 calls on rank 1 \(node00\) took .* in bursts; \w+ waits on 7 ranks lost [0-9.]+ ms because of it: lost `); !want.MatchString(text) {
		t.Errorf("no %s in\n%s", want, text)
	}
}

// An imported run has the same findings, because they are computed from the store.
func TestImportedRunHasSameFindings(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := burstRun(t)
	imported := filepath.Join(t.TempDir(), "imported")
	must(t, "import", dir, "--out", imported)
	same(t, "findings", must(t, "findings", imported, "--all", "--format", "json"), must(t, "findings", dir, "--all", "--format", "json"))
	count := "SELECT (SELECT count(*) FROM findings) AS findings, (SELECT count(*) FROM links) AS links"
	same(t, "stored", queryJSON(t, "query", imported, count), queryJSON(t, "query", dir, count))
}
