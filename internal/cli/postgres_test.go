package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

func TestPostgreSQLGivesSameAnswers(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	workflow, ring := analyzed(t, "workflow", workflowRun), analyzed(t, "ring", ringRun)
	first := filepath.Join(t.TempDir(), "first")
	must(t, "import", workflow, "--out", first, "--store", url)
	sameAnswers(t, workflow, first)
	same(t, "by address", queryJSON(t, "top", url), queryJSON(t, "top", workflow))
	same(t, "rows", countsOf(t, first), countsOf(t, workflow))

	// A second run on the same server changes nothing for the first.
	second := filepath.Join(t.TempDir(), "second")
	must(t, "import", ring, "--out", second, "--store", url, "--name", "monday")
	same(t, "the first", queryJSON(t, "top", first), queryJSON(t, "top", workflow))
	same(t, "the second", queryJSON(t, "top", second), queryJSON(t, "top", ring))
	same(t, "the latest", queryJSON(t, "top", url), queryJSON(t, "top", ring))
	same(t, "by name", queryJSON(t, "top", url, "--run", "first"), queryJSON(t, "top", workflow))
	same(t, "runs", column(queryJSON(t, "runs", url), "name"), []string{"first", "monday"})
	same(t, "eval", must(t, "eval", first, "testdata/traces/gpu-BP5/truth.txt"),
		must(t, "eval", workflow, "testdata/traces/gpu-BP5/truth.txt"))
	same(t, "diff", queryCSV(t, "diff", url, url, "--run", "first", "--run-b", "monday"), queryCSV(t, "diff", workflow, ring))
	third := filepath.Join(t.TempDir(), "third")
	must(t, append([]string{"analyze", "--out", third, "--store", url}, ringRun...)...)
	same(t, "analyzed", queryJSON(t, "top", third), queryJSON(t, "top", ring))
	must(t, append([]string{"analyze", "--out", third, "--store", url, "--force"}, ringRun...)...)
	same(t, "analyzed again", queryJSON(t, "anomalies", third), queryJSON(t, "anomalies", ring))
	fails(t, 1, []string{"top", url, "--run", "tuesday"}, `run "tuesday": not found; the store holds first, monday, third`)
	fails(t, 1, []string{"import", ring, "--out", filepath.Join(t.TempDir(), "x"), "--store", url, "--name", "first"}, "already exists",
		"--name", "--force")
	must(t, "import", ring, "--out", filepath.Join(t.TempDir(), "x"), "--store", url, "--name", "first", "--force")
	same(t, "replaced", queryJSON(t, "top", url, "--run", "first"), queryJSON(t, "top", ring))
}

func TestPostgreSQLGivesSameErrors(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	fails(t, 1, []string{"top", url}, "no tables of chimbuko")
	ring := analyzed(t, "ring", ringRun)
	must(t, "import", ring, "--out", filepath.Join(t.TempDir(), "run"), "--store", url)
	for _, sql := range []string{
		"DELETE FROM runs", "SELECT 1; SELECT 2", "COPY runs TO '/tmp/x'", "CREATE TABLE mine (x INTEGER)",
		"SELECT pg_read_file('/etc/passwd')",
	} {
		fails(t, 1, []string{"query", url, sql}, "only read-only queries are allowed")
	}
	fails(t, 1, []string{"query", url, "SELECT nothing FROM runs"}, `column "nothing" does not exist`)
	fails(t, 1, []string{
		"query", url, "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b", "--timeout",
		"100ms",
	}, "no answer within 100ms")
	fails(t, 1, []string{"event", url, "9999999999:0:0"}, "not found")
	// An answer that is not read must not keep the program from ending.
	missing := filepath.Join(t.TempDir(), "missing", "file")
	for _, format := range []string{"csv", "parquet"} {
		fails(t, 1, []string{"query", url, "SELECT * FROM window_calls", "--output", missing, "--format", format}, missing)
	}
	fails(t, 1, []string{"export", url, ring + "/run.json", "--to", "csv"}, "run.json")
	r := run(t, "top", strings.Replace(url, "postgres@", "postgres:secret@", 1), "--run", "nobody")
	if r.code != 1 || strings.Contains(r.stderr, "secret") {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
}
