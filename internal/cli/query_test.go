package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestQueryBindsItsParameters(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := analyzed(t, "ring", ringRun)
	same(t, "all sorts", queryJSON(t, "query", dir, `SELECT $1 AS a, $2 AS b, $3 AS c, $4 AS d, $5 AS e, $6 AS f`,
		"--param", "-3", "--param", "2.5", "--param", "true", "--param", "null", "--param", "it's; --", "--param", "0x10"),
		[]object{{"a": -3, "b": 2.5, "c": true, "d": nil, "e": "it's; --", "f": "0x10"}})
	same(t, "quoted text", queryJSON(t, "query", dir, `SELECT $1 AS a, $2 AS b, $3 AS c, $4 AS d`,
		"--param", "'12'", "--param", "'it''s null'", "--param", "''", "--param", "'"),
		[]object{{"a": "12", "b": "it's null", "c": "", "d": "'"}})
	same(t, "in a filter", queryJSON(t, "query", dir, "SELECT DISTINCT rid, func FROM anomalies WHERE rid = $1 AND func LIKE $2", "--param", "1",
		"--param", "MPI_Wait%"),
		[]object{{"rid": 1, "func": "MPI_Waitall()"}})
	fails(t, 1, []string{"query", dir, "SELECT $1 AS a"}, "argument")
}

func TestQueryReadsStatementFromFileOrStandardInput(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := analyzed(t, "ring", ringRun)
	file := filepath.Join(t.TempDir(), "query.sql")
	const sql = "-- a comment first\nSELECT 1 AS one;\n-- and one last\n"
	if err := os.WriteFile(file, []byte(sql), 0o600); err != nil {
		t.Fatal(err)
	}
	same(t, "a file", queryJSON(t, "query", dir, "--file", file), []object{{"one": 1}})
	if r := runWith(t, sql, "query", dir, "--file", "-", "--format", "csv"); r.code != 0 || r.stdout != "one\n1\n" {
		t.Errorf("standard input: exit code %d, %q, %s", r.code, r.stdout, r.stderr)
	}
	fails(t, 2, []string{"query", dir}, "either a statement or --file")
	fails(t, 2, []string{"query", dir, "SELECT 1", "--file", file}, "either a statement or --file")
	fails(t, 1, []string{"query", dir, "--file", file + ".no"}, "no such file")
}

func TestQueryWarnsAboutOmittedRows(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := analyzed(t, "ring", ringRun)
	f := func(rows int, cut bool, limit string) {
		t.Helper()
		r := run(t, "query", dir, "SELECT i FROM generate_series(1, 7) AS g(i)", "--max-rows", limit, "--format", "csv")
		if r.code != 0 || strings.Count(r.stdout, "\n")-1 != rows || cut != strings.Contains(r.stderr, "more than "+limit+" rows") {
			t.Errorf("--max-rows %s: exit code %d, %q, %q", limit, r.code, r.stdout, r.stderr)
		}
	}
	f(3, true, "3")
	f(6, true, "6")
	f(7, false, "7")
	f(7, false, "0")
}

func TestQueryOnlyReads(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := analyzed(t, "ring", ringRun)
	before := queryJSON(t, "query", dir, "SELECT run, name, state FROM runs")
	file := filepath.Join(t.TempDir(), "written")
	for _, sql := range tracetest.Sample([]string{
		"DELETE FROM runs", "UPDATE runs SET name = 'mine'", "INSERT INTO functions SELECT * FROM functions", "DROP VIEW anomalies",
		"CREATE TABLE mine (x INTEGER)", "CREATE TEMP TABLE mine AS SELECT 1", "ALTER TABLE runs ADD COLUMN x INTEGER",
		"SELECT 1; DELETE FROM runs", "SELECT 1; SELECT 2", "BEGIN", "COMMIT", "CHECKPOINT", "SELECT * FROM checkpoint()", "SET threads = 1",
		"INSTALL httpfs",
		"COPY runs TO '" + file + "'", "EXPORT DATABASE '" + file + "'", "ATTACH '" + file + "'",
		"SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM read_text('/etc/passwd')", "SELECT content FROM read_blob('/etc/passwd')",
		"SELECT * FROM glob('/*')", "SELECT * FROM '" + tracetest.Root("go.mod") + "'", "SELECT getenv('HOME') AS home",
	}, 4) {
		r := run(t, "query", dir, sql)
		if r.code != 1 || r.stdout != "" || !strings.HasPrefix(r.stderr, "chimbuko: ") {
			t.Errorf("%s: exit code %d, %q, %q", sql, r.code, r.stdout, r.stderr)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a query wrote a file")
	}
	same(t, "runs", queryJSON(t, "query", dir, "SELECT run, name, state FROM runs"), before)
	fails(t, 1, []string{"query", dir, "DELETE FROM runs"}, "only read-only queries are allowed")
	fails(t, 1, []string{"query", dir, "SELECT * FROM read_csv('/etc/passwd')"}, "without access to files")
}

func TestQueryShowsDatabaseError(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := analyzed(t, "ring", ringRun)
	fails(t, 1, []string{"query", dir, "SELECT nothing FROM runs"}, `"nothing" not found`, "LINE 1: SELECT nothing FROM runs")
	fails(t, 1, []string{"query", dir, "SELECT * FROM anomalie"}, "anomalie does not exist", "Did you mean")
	fails(t, 1, []string{"query", dir, "SELEKT 1"}, `syntax error at or near "SELEKT"`)
	fails(t, 1, []string{"query", dir, ""}, "empty")
}

func TestQueryHasTimeLimit(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := analyzed(t, "ring", ringRun)
	endless := "SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000000) c WHERE a.range + b.range + c.range = 7"
	fails(t, 1, []string{"query", dir, endless, "--timeout", "50ms"}, "no answer within 50ms", "--timeout")
}

func TestAnswerFormats(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := analyzed(t, "ring", ringRun)
	const sql = `SELECT 3::BIGINT AS zeta, '<a|b>' || chr(10) || '"c",*' AS alpha, NULL::VARCHAR AS "none", true AS "Yes", 2.5::DOUBLE AS half, 'nan'::DOUBLE AS nan,
		1500 AS took_us, 0.25::DOUBLE AS at_s, -1::DOUBLE AS before_s, 12.5::DOUBLE AS share_percent, TIMESTAMP '2026-01-02 03:04:05.5' AS t,
		'{"b": 1, "a": [2]}'::JSON AS j, 18446744073709551615::UBIGINT AS large`
	f := func(format, want string) {
		t.Helper()
		if got := must(t, "query", dir, sql, "--format", format); got != want {
			t.Errorf("%s:\n got %s\nwant %s", format, got, want)
		}
	}
	f("json", `[
{"zeta":3,"alpha":"<a|b>\n\"c\",*","none":null,"Yes":true,"half":2.5,"nan":null,"took_us":1500,"at_s":0.25,"before_s":-1,"share_percent":12.5,"t":"2026-01-02T03:04:05.5Z","j":{"b":1,"a":[2]},"large":18446744073709551615}
]
`)
	f("csv", "zeta,alpha,none,Yes,half,nan,took_us,at_s,before_s,share_percent,t,j,large\n"+
		"3,\"<a|b>\n\"\"c\"\",*\",,true,2.5,NaN,1500,0.25,-1,12.5,2026-01-02T03:04:05.5Z,\"{\"\"b\"\": 1, \"\"a\"\": "+
		"[2]}\",18446744073709551615\n")
	f("markdown", "| zeta | alpha | none | Yes | half | nan | took | at | before | share | t | j | large |\n"+
		strings.Repeat("| --- ", 13)+"|\n"+
		`| 3 | &lt;a\|b&gt; "c",\* | - | true | 2.5 | NaN | 1.50 ms | +0.250 s | -1.000 s | 12.5 % | 2026-01-02T03:04:05.5Z | {"b": 1, "a": \[2\]} | 18446744073709551615 |`+"\n")
	if got := must(t, "query", dir, "SELECT '[x](https://e.org) www.e.org' AS a", "--format", "markdown"); !strings.HasSuffix(got,
		"\n| \\[x\\](https&#58;//e.org) www&#46;e.org |\n") {
		t.Errorf("links as markdown: %q", got)
	}
	if got := must(t, "query", dir, "SELECT 1500 AS took_us, NULL AS nothing, 'x' AS a_b"); got != "TOOK     NOTHING  A B\n1.50 ms  -        x\n" {
		t.Errorf("table: %q", got)
	}
	if got := must(t, "query", dir, "SELECT DATE '5881580-07-10' AS a", "--format", "json"); got != "[\n{\"a\":\"5881580-07-10T00:00:00Z\"}\n]\n" {
		t.Errorf("a date that Go does not marshal: %q", got)
	}
	if got := must(t, "query", dir, "SELECT {'a': ['nan'::DOUBLE, '-inf'::FLOAT], 'b': 'NaN'} AS a", "--format", "json"); got !=
		"[\n{\"a\":{\"a\":[null,null],\"b\":\"NaN\"}}\n]\n" {
		t.Errorf("a document with numbers outside of JSON: %q", got)
	}
	if got := must(t, "query", dir, "SELECT * FROM test_all_types()", "--format", "json"); !json.Valid([]byte(got)) {
		t.Errorf("all types: %q", got)
	}
	if got := must(t, "query", dir, "SELECT 1 AS a WHERE false", "--format", "json"); got != "[\n]\n" {
		t.Errorf("no rows as json: %q", got)
	}
	if got := must(t, "query", dir, "SELECT 1 AS a WHERE false"); got != "A\n(none)\n" {
		t.Errorf("no rows as table: %q", got)
	}
	out := filepath.Join(t.TempDir(), "answer")
	if text := must(t, "query", dir, "SELECT 1 AS a", "--format", "csv", "--output", out); text != "" {
		t.Errorf("with --output it prints %q", text)
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != "a\n1\n" {
		t.Errorf("the file has %q, %v", b, err)
	}
	fails(t, 1, []string{"query", dir, "SELECT 1 AS a", "--output", filepath.Join(out, "x")}, out)
	fails(t, 1, []string{"query", dir, "SELECT 1 AS a", "--format", "parquet", "--output", filepath.Join(out, "x")}, out)
}

// readParquet has pyarrow read files as rows.
func readParquet(t *testing.T, paths ...string) (files [][]object) {
	t.Helper()
	script := "import json, sys, pyarrow.parquet as p; json.dump([p.read_table(f).to_pylist() for f in sys.argv[1:]], sys.stdout)"
	out, err := exec.CommandContext(t.Context(), tracetest.Python(t, "pyarrow"), append([]string{"-c", script}, paths...)...).Output()
	if err == nil {
		err = json.Unmarshal(out, &files)
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestParquetIsReadable(t *testing.T) {
	tracetest.Python(t, "pyarrow")
	dir := analyzed(t, "workflow", workflowRun)
	first, second := filepath.Join(t.TempDir(), "1.parquet"), filepath.Join(t.TempDir(), "2.parquet")
	f := func(path string, args ...string) []object {
		t.Helper()
		must(t, append(args, "--format", "parquet", "--output", path)...)
		return queryJSON(t, args...)
	}
	want := [][]object{
		f(first, "anomalies", dir, "--withdrawn", "--limit", "100000"),
		f(second, "query", dir, "SELECT *, 18446744073709551615::UBIGINT AS large, NULL::BIGINT AS none FROM all_executions ORDER BY pid, "+
			"event_id"),
	}
	for i, rows := range readParquet(t, first, second) {
		if len(rows) < 100 {
			t.Errorf("only %d rows", len(rows))
		}
		same(t, "parquet", rows, want[i])
	}
}

var shown = regexp.MustCompile(`(?m)^-- \$\d+ = (.*)$`)

func TestShownSQLGivesSameAnswer(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := analyzed(t, "workflow", workflowRun)
	f := func(args ...string) {
		t.Helper()
		args = append(args, "--format", "csv")
		first := run(t, append(args, "--show-sql")...)
		if first.code != 0 || first.stdout != must(t, args...) {
			t.Fatalf("%q: exit code %d, %s", args, first.code, first.stderr)
		}
		statements := strings.Split(strings.TrimSpace(first.stderr), "\n\n")
		sql, bound, _ := strings.Cut(statements[len(statements)-1], ";\n")
		again := []string{"query", args[1], sql, "--format", "csv"}
		for _, m := range shown.FindAllStringSubmatch(bound, -1) {
			value := m[1]
			if s, ok := strings.CutPrefix(value, "'"); ok {
				value = strings.ReplaceAll(strings.TrimSuffix(s, "'"), "''", "'")
			} else if value == "NULL" {
				value = "null"
			}
			again = append(again, "--param", value)
		}
		if got := must(t, again...); got != first.stdout || strings.Count(got, "\n") < 2 {
			t.Errorf("%q: queried again with %q:\n got %s\nwant %s", args, again, got, first.stdout)
		}
	}
	for _, by := range tracetest.Sample([]string{"path", "function", "rank", "host"}, 4) {
		f("top", dir, "--by", by)
	}
	f("top", dir, "--program", "2", "--order", "score")
	f("anomalies", dir)
	f("anomalies", dir, "--func", "*a*", "--rank", "0,1-7", "--step", "0:", "--since", "0", "--until", "9s", "--min-severity", "1",
		"--min-lost", "1",
		"--min-score", "0.5", "--host", "?*")
	if r := run(t, "anomalies", dir, "--host", "it's", "--show-sql"); !strings.Contains(r.stderr, " = 'it''s'\n") {
		t.Errorf("a quote is shown as %s", r.stderr)
	}
	f("counters", dir, "--name", "*")
	for _, part := range tracetest.Sample([]string{"times", "profile", "ranks", "paths"}, 4) {
		f("func", dir, "MPI_Waitall()", "--part", part)
	}
	f("runs", dir)
}
