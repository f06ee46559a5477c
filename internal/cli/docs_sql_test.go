package cli_test

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// sqlPage returns docs/sql.md in two parts: the tables and views, the examples.
func sqlPage(t *testing.T) (schema, examples string) {
	t.Helper()
	text, err := os.ReadFile(tracetest.Root("docs", "sql.md"))
	if err != nil {
		t.Fatal(err)
	}
	schema, examples, ok := strings.Cut(string(text), "\n## Examples\n")
	if !ok {
		t.Fatal("docs/sql.md has no examples")
	}
	return schema, examples
}

// example is a query of docs/sql.md.
type example struct {
	title, sql string
	columns    []string
	onlyDuckDB bool
}

var (
	exampleColumns = regexp.MustCompile("(?s)\nColumns: (`.*?`)\\.\n")
	exampleSQL     = regexp.MustCompile("(?s)\n```sql\n(.*?\n)```\n")
	codeWord       = regexp.MustCompile("`([^`]+)`")
)

func examplesOf(t *testing.T) (all []example) {
	t.Helper()
	_, text := sqlPage(t)
	for _, section := range strings.Split(text, "\n### ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		columns, sql := exampleColumns.FindStringSubmatch(section), exampleSQL.FindAllStringSubmatch(section, -1)
		if columns == nil || len(sql) != 1 {
			t.Fatalf("%s: %d blocks of sql, columns %q", title, len(sql), columns)
		}
		e := example{title: title, sql: sql[0][1], onlyDuckDB: strings.Contains(title, "(DuckDB only)")}
		for _, m := range codeWord.FindAllStringSubmatch(columns[1], -1) {
			e.columns = append(e.columns, m[1])
		}
		all = append(all, e)
	}
	return all
}

// exampleRuns are the runs of the examples.
var exampleRuns = map[string][]string{"gpu": gpuRun, "ring": ringRun}

// noRows are the examples about what a run does not have: a program of one rank
// sends no messages, one without GPU has no kernels, and sstd makes no histograms.
var noRows = map[string][]string{
	"gpu":  {"Which messages around anomalies are the largest?", "Who waited for whom?"},
	"ring": {"Which GPU kernels were slow, and were their launches?", "How are the times of a function distributed?"},
}

// exampleAnswers caches the answers of DuckDB by run and title.
var exampleAnswers = map[[2]string]string{}

// exampleAnswer runs an example query and returns CSV.
func exampleAnswer(t *testing.T, run string, e example) string {
	t.Helper()
	key := [2]string{run, e.title}
	if _, known := exampleAnswers[key]; !known {
		exampleAnswers[key] = must(t, "query", analyzed(t, run, exampleRuns[run]), e.sql, "--format", "csv")
	}
	return exampleAnswers[key]
}

func TestExamplesOfSQLPage(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	if tracetest.WithoutRace(t) {
		return
	}
	t.Run("DuckDB", checkExamples)
	t.Run("PostgreSQL", compareExamplesOnPostgreSQL)
}

func checkExamples(t *testing.T) {
	examples := examplesOf(t)
	common := 0
	for _, e := range examples {
		if !e.onlyDuckDB {
			common++
		}
		if !regexp.MustCompile(`(?m)^ORDER BY `).MatchString(e.sql) {
			t.Errorf("%s: the answer has no order", e.title)
		}
	}
	if common < 15 || len(examples)-common > 2 {
		t.Errorf("%d examples for all stores and %d for DuckDB alone", common, len(examples)-common)
	}
	for name := range exampleRuns {
		if testing.Short() && name != "ring" {
			continue
		}
		missing := slices.Clone(noRows[name])
		for k, e := range examples {
			if testing.Short() && k%3 > 0 {
				continue
			}
			lines, err := csv.NewReader(strings.NewReader(exampleAnswer(t, name, e))).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			same(t, e.title+": columns", lines[0], e.columns)
			i := slices.Index(missing, e.title)
			if i >= 0 {
				missing = slices.Delete(missing, i, i+1)
			}
			if (len(lines) > 1) == (i >= 0) {
				t.Errorf("%s: %d rows about %s", e.title, len(lines)-1, name)
			}
		}
		if len(missing) > 0 && !testing.Short() {
			t.Errorf("docs/sql.md has no example %q", missing)
		}
	}
}

func compareExamplesOnPostgreSQL(t *testing.T) {
	server := pgtest.Shared(t)
	for name, settings := range exampleRuns {
		url := server.Database(t)
		must(t, append([]string{"analyze", "--out", filepath.Join(t.TempDir(), name), "--store", url, "--workers", "1"}, settings...)...)
		for _, e := range examplesOf(t) {
			if e.onlyDuckDB {
				continue
			}
			if got, want := must(t, "query", url, e.sql, "--format", "csv"), exampleAnswer(t, name, e); got != want {
				t.Errorf("%s, about %s:\n got %s\nwant %s", e.title, name, got, want)
			}
		}
		compareSchema(t, url, "chimbuko", "PostgreSQL")
	}
}

// privateTables serve stores themselves.
var privateTables = []string{"blocks", "function_names", "numbering", "schema_version"}

func TestSQLPageListsAllColumns(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	schema, _ := sqlPage(t)
	for _, name := range privateTables {
		if !strings.Contains(schema, "`"+name+"`") {
			t.Errorf("%s is not named", name)
		}
	}
	compareSchema(t, analyzed(t, "ring", ringRun), "main", "DuckDB")
}

// compareSchema compares the tables and columns of docs/sql.md with those of a
// store, both ways.
func compareSchema(t *testing.T, where, schema, store string) {
	t.Helper()
	documented := documentedColumns(t, store)
	found := make(map[string]string)
	for _, row := range queryJSON(t, "query", where, "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE "+
		"table_schema = '"+schema+"'") {
		if table := row["table_name"].(string); !slices.Contains(privateTables, table) {
			found[table+"."+row["column_name"].(string)] = typeName(row["data_type"].(string))
		}
	}
	for _, column := range slices.Sorted(maps.Keys(found)) {
		as, ok := documented[column]
		switch {
		case !ok:
			t.Errorf("%s: docs/sql.md does not name %s", store, column)
		case as != "" && as != found[column]:
			t.Errorf("%s: docs/sql.md documents %s as %s, but it is %s", store, column, as, found[column])
		}
	}
	for _, column := range slices.Sorted(maps.Keys(documented)) {
		if _, ok := found[column]; !ok {
			t.Errorf("%s: docs/sql.md names %s, which is not there", store, column)
		}
	}
	if len(found) < 200 {
		t.Errorf("%s: only %d columns", store, len(found))
	}
}

// typeName is the word of docs/sql.md for a type of a store.
func typeName(data string) string {
	data = strings.ToLower(data)
	for prefix, name := range map[string]string{
		"integer[]": "json", "array": "json", "struct": "json", "json": "json", "integer": "int", "bigint": "int", "ubigint": "int",
		"numeric": "int",
		"double":  "float", "varchar": "string", "text": "string", "boolean": "bool", "timestamp": "time",
	} {
		if strings.HasPrefix(data, prefix) && (prefix != "integer" || data == prefix) {
			return name
		}
	}
	return data
}

// documentedColumns are the columns that docs/sql.md names for a store, as
// table.column, with their types.
func documentedColumns(t *testing.T, store string) map[string]string {
	t.Helper()
	schema, _ := sqlPage(t)
	all := make(map[string]string)
	for _, section := range strings.Split(schema, "\n### ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		for line := range strings.SplitSeq(body, "\n") {
			cells := strings.Split(line, "|")
			if len(cells) != 5 || !strings.Contains(cells[1], "`") {
				continue
			}
			if only, _, ok := strings.Cut(strings.TrimSpace(cells[3]), " only:"); ok && only != store {
				continue
			}
			for _, table := range codeWord.FindAllStringSubmatch(heading, -1) {
				for _, column := range codeWord.FindAllStringSubmatch(cells[1], -1) {
					name := table[1] + "." + column[1]
					if _, twice := all[name]; twice {
						t.Errorf("docs/sql.md names %s twice", name)
					}
					all[name] = strings.TrimSpace(cells[2])
				}
			}
		}
	}
	return all
}

func TestPythonOfSQLPage(t *testing.T) {
	python := tracetest.Python(t, "duckdb")
	schema, _ := sqlPage(t)
	script := regexp.MustCompile("(?s)\n```python\n(.*?)```\n").FindStringSubmatch(schema)
	if script == nil {
		t.Fatal("docs/sql.md has no Python")
	}
	dir := analyzed(t, "ring", ringRun)
	cmd := exec.CommandContext(t.Context(), python, "-c", script[1])
	cmd.Dir = t.TempDir()
	if err := os.Symlink(dir, filepath.Join(cmd.Dir, "run")); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var want strings.Builder
	for _, row := range queryJSON(t, "query", dir, "SELECT func, count(*) AS n FROM anomalies GROUP BY func ORDER BY 2 DESC, 1") {
		fmt.Fprintln(&want, row["n"], row["func"])
	}
	if string(out) != want.String() || want.Len() == 0 {
		t.Errorf("got %s\nwant %s", out, want.String())
	}
}
