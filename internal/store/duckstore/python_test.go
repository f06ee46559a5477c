package duckstore_test

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// reads prints the number of rows of all tables and views and the documents, as DuckDB's
// Python package reads them.
const reads = `
import duckdb, json, sys
db = duckdb.connect(sys.argv[1], read_only=True)
names = [n for (n,) in db.execute("SELECT table_name FROM information_schema.tables").fetchall()]
counts = {n: db.execute(f'SELECT count(*) FROM "{n}"').fetchone()[0] for n in names}
docs = [json.loads(d) for (d,) in db.execute("SELECT doc FROM anomalies_json ORDER BY ev_step, rid").fetchall()]
json.dump({"counts": counts, "docs": docs}, sys.stdout)
`

func TestPythonReadsFile(t *testing.T) {
	t.Parallel()
	python := tracetest.Python(t, "duckdb")
	path := file(t)
	s := open(t, path, false)
	id := createRun(t, s, "run")
	all := storetest.Records(50, 1)
	write(t, s, id, all...)
	closeStore(t, s)
	cmd := exec.CommandContext(t.Context(), python, "-c", reads, path)
	out, err := cmd.Output()
	if err != nil {
		if e, ok := err.(*exec.ExitError); ok { //nolint:errorlint // not wrapped
			t.Log(string(e.Stderr))
		}
		t.Fatal(err)
	}
	var got struct {
		Counts map[string]int64
		Docs   []any
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, true)
	for name, n := range got.Counts {
		rows, err := query(s, t, `SELECT count(*) FROM "`+name+`"`)
		if err != nil || rows[0][0] != n {
			t.Errorf("%s: Python finds %d rows, the store %v, error %v", name, n, rows, err)
		}
	}
	if len(got.Counts) < 30 || got.Counts["anomalies"] != 50 || got.Counts["window_calls"] != 50*21 {
		t.Errorf("Python finds %v", got.Counts)
	}
	for i, r := range all {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if i >= len(got.Docs) || !reflect.DeepEqual(got.Docs[i], want) {
			t.Fatalf("document %d differs from that of %s", i, r.EventID)
		}
	}
}
