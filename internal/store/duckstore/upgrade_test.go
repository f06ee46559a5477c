package duckstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/testkit/faultdisk"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestStepsLeadToSchema(t *testing.T) {
	if n := provdb.Schema.Number - provdb.Schema.Oldest; len(steps) != n {
		t.Errorf("there are %d steps from schema %d to %d", len(steps), provdb.Schema.Oldest, provdb.Schema.Number)
	}
}

// later is a schema two steps after the current one.
var later = fileformat.Format{Number: provdb.Schema.Number + 2, Oldest: provdb.Schema.Number}

var laterSteps = []string{
	"ALTER TABLE runs ADD COLUMN step_one INTEGER DEFAULT 1; CREATE TABLE extra AS SELECT range AS n FROM range(10000)",
	"UPDATE runs SET step_one = step_one + (SELECT count(*) FROM extra)",
}

// newFile returns a file with a run.
func newFile(t *testing.T, path string) error {
	t.Helper()
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		return err
	}
	_, err = s.CreateRun(t.Context(), provdb.Run{Name: "run", State: provdb.Finished})
	return errors.Join(err, s.Close())
}

// contents returns the schema of a file, and whether it has the results of all steps, or of none.
func contents(t *testing.T, path string) (schema int, complete bool) {
	t.Helper()
	s, err := open(t.Context(), path, Options{ReadOnly: true, anySchema: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // only read from
	if schema, err = s.version(t.Context()); err != nil {
		t.Fatal(err)
	}
	var columns, value int
	const count = "SELECT count(*) FROM duckdb_columns() WHERE table_name IN ('runs', 'extra') AND column_name IN ('step_one', 'n')"
	if err := s.conn.QueryRowContext(t.Context(), count).Scan(&columns); err != nil {
		t.Fatal(err)
	}
	if schema == later.Oldest {
		return schema, columns == 0
	}
	if err := s.conn.QueryRowContext(t.Context(), "SELECT step_one FROM runs").Scan(&value); err != nil {
		t.Fatal(err)
	}
	return schema, columns == 2 && value == 10001
}

func TestUpgradeTakesAllStepsOrNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.duckdb")
	if err := newFile(t, path); err != nil {
		t.Fatal(err)
	}
	f := func(dryRun bool, to fileformat.Format, steps []string, want error, words string, after int) {
		t.Helper()
		from, err := upgrade(t.Context(), path, dryRun, to, steps)
		if (err == nil) != (words == "") || want != nil && !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("from %d to %d: got %v, want %v with %q", from, to.Number, err, want, words)
		}
		if schema, complete := contents(t, path); schema != after || !complete {
			t.Errorf("the file has schema %d, complete: %v; want %d", schema, complete, after)
		}
	}
	now := provdb.Schema.Number
	f(true, later, laterSteps, nil, "", now)
	f(false, later, []string{laterSteps[0], "SELECT * FROM nothing"}, nil, "nothing", now)
	f(false, fileformat.Format{Number: now - 1, Oldest: now - 1}, nil, fileformat.ErrNewer, path, now)
	f(false, fileformat.Format{Number: now + 2, Oldest: now + 1, Renew: "analyze again"}, laterSteps[:1], fileformat.ErrOlder, "analyze again", now)
	reader, err := Open(t.Context(), path, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := upgrade(t.Context(), path, false, later, laterSteps); !errors.Is(err, provdb.ErrInUse) {
		t.Errorf("in use: %v", err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	f(false, later, laterSteps, nil, "", later.Number)
	f(false, later, laterSteps, nil, "", later.Number)
	if _, err := Upgrade(t.Context(), path, false); !errors.Is(err, fileformat.ErrNewer) {
		t.Errorf("schema %d: %v", later.Number, err)
	}
}

func TestUpgradeSurvivesFailingDisk(t *testing.T) {
	faultdisk.Long(t)
	tracetest.SkipShort(t, "starts processes")
	if dir := faultdisk.Dir(); dir != "" {
		path := filepath.Join(dir, "x.duckdb")
		if err := newFile(t, path); err != nil {
			t.Fatal(err)
		}
		fmt.Println("begun")
		if _, err := upgrade(t.Context(), path, false, later, laterSteps); err != nil {
			t.Fatal(err)
		}
		fmt.Println("done")
		return
	}
	faultdisk.Torture(t, 5, faultdisk.Ordered, func(t *testing.T, after faultdisk.Aftermath) {
		path := filepath.Join(after.Dir, "x.duckdb")
		if !strings.Contains(after.Output, "begun\n") {
			return
		}
		schema, complete := contents(t, path)
		if !complete || strings.Contains(after.Output, "done\n") && schema != later.Number {
			t.Errorf("after the fault: schema %d, complete: %v", schema, complete)
		}
		if _, err := upgrade(t.Context(), path, false, later, laterSteps); err != nil {
			t.Error(err)
		}
		if schema, complete := contents(t, path); schema != later.Number || !complete {
			t.Errorf("after the repetition: schema %d, complete: %v", schema, complete)
		}
	})
}
