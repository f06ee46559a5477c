package duckstore_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func TestRepeatedStatementUsesItsArguments(t *testing.T) {
	for range 3 {
		s, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), duckstore.FileName), duckstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		checkAnswers(t, s)
		checkAnswers(t, s)
	}
}

// checkAnswers runs statements whose columns depend on arguments, or are hard to find out.
func checkAnswers(t *testing.T, s *duckstore.Store) {
	t.Helper()
	for _, c := range []struct {
		sql  string
		args []any
		want string
	}{
		{"SELECT $1 AS x", []any{int64(7)}, "[int] [[7]]"},
		{"SELECT $1 AS x", []any{"seven"}, "[string] [[seven]]"},
		{"SELECT $1 AS x", []any{7.5}, "[float] [[7.5]]"},
		{"SELECT $1 AS x", []any{true}, "[bool] [[true]]"},
		{"SELECT $1::INTEGER IS NULL AS x", []any{nil}, "[bool] [[true]]"},
		{"SELECT $1::INTEGER IS NULL AS x", []any{int32(1)}, "[bool] [[false]]"},
		{"SELECT COLUMNS($1) FROM (SELECT 1 AS a, 'text' AS b)", []any{"a"}, "[int] [[1]]"},
		{"SELECT COLUMNS($1) FROM (SELECT 1 AS a, 'text' AS b)", []any{"b"}, "[string] [[text]]"},
		{"SELECT '{\"n\":12345678901234567890}'::JSON AS x, 1 AS x;", nil, "[json int] [[{\"n\":12345678901234567890} 1]]"},
		{"SELECT f FROM (FROM runs) AS r(a, b, c, d, e, f)", nil, "[json] []"},
		{"SELECT 'a' AS x, 2 AS x, count(*) AS n, sum(1) AS s, 1.5::DECIMAL(4, 2) AS d", nil, "[string int int int float] [[a 2 1 1 1.5]]"},
		{"SELECT coalesce($1, 1) AS x, 'a' AS y", []any{2.5}, "[float string] [[2.5 a]]"},
		{"SELECT coalesce($1, 1) AS x, 'a' AS y", []any{int64(2)}, "[int string] [[2 a]]"},
	} {
		rows, err := s.Query(t.Context(), c.sql, c.args...)
		if err != nil {
			t.Fatalf("%s %v: %v", c.sql, c.args, err)
		}
		all, err := rows.Collect()
		if err != nil {
			t.Fatalf("%s %v: %v", c.sql, c.args, err)
		}
		if got := text(rows.Columns, all); got != c.want {
			t.Errorf("%s %v: got %s, want %s", c.sql, c.args, got, c.want)
		}
	}
}

func TestFailingStatementFailsEachTime(t *testing.T) {
	s, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), duckstore.FileName), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for i := range 6 {
		value := fmt.Sprint(i)
		if i%2 == 1 {
			value = "no number"
		}
		rows, err := s.Query(t.Context(), "SELECT $1::VARCHAR::INTEGER AS n", value)
		if err == nil {
			_, err = rows.Collect()
		}
		if (err != nil) != (i%2 == 1) {
			t.Errorf("%q: %v", value, err)
		}
	}
	for range 3 {
		if _, err := s.Query(t.Context(), "DELETE FROM runs"); err == nil {
			t.Error("a statement that writes was executed")
		}
	}
}

// text returns the types of columns and the rows as text.
func text(columns []provdb.Column, rows [][]any) string {
	for _, row := range rows {
		for i := range row {
			if b, ok := row[i].(interface{ MarshalJSON() ([]byte, error) }); ok {
				j, _ := b.MarshalJSON()
				row[i] = string(j)
			}
		}
	}
	var types []provdb.Type
	for _, c := range columns {
		types = append(types, c.Type)
	}
	return fmt.Sprintf("%v %v", types, rows)
}
