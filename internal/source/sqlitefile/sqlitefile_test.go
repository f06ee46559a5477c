package sqlitefile_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/sqlitefile"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
	"github.com/chimbuko/chimbuko/internal/testkit/sqlitetest"
)

func open(t testing.TB, path string) *sqlitefile.DB {
	t.Helper()
	db, err := sqlitefile.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// show returns the values of a row.
func show(rows *sqlitefile.Rows, columns int) string {
	var b strings.Builder
	fmt.Fprint(&b, rows.ID())
	for i := range columns {
		if n, ok := rows.Int(i); ok {
			fmt.Fprint(&b, " ", n)
		} else if text := rows.Text(i); text != nil {
			fmt.Fprintf(&b, " %q", text)
		} else {
			b.WriteString(" null")
		}
	}
	return b.String()
}

// TestRowsEqualWrittenOnes writes rows with values of all sizes, in any order, with gaps between their ids.
func TestRowsEqualWrittenOnes(t *testing.T) {
	for _, pageSize := range []int{512, 4096, 65536} {
		r := rand.New(rand.NewPCG(1, uint64(pageSize)))
		want := make(map[int64]string)
		statements := []string{`CREATE TABLE t (a INTEGER, "id" INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT, c REAL)`}
		for i := range 3000 {
			id := int64(i*7) - 9000
			if i%5 == 0 {
				id = int64(i) << 40
			}
			a := int64(r.Uint64()) >> r.IntN(64)
			text := strings.Repeat("x", r.IntN(1<<r.IntN(14))) // up to many pages
			want[id] = fmt.Sprintf("%d %d %d %q %d", id, a, id, text, i)
			statements = append(statements, fmt.Sprintf("INSERT INTO t VALUES (%d, %d, '%s', %d.25)", a, id, text, i))
		}
		statements = append(statements, "ALTER TABLE t ADD COLUMN late INTEGER", "DELETE FROM t WHERE id % 11 = 0", "CREATE VIEW v AS SELECT * FROM t")
		path := filepath.Join(t.TempDir(), "x.db")
		sqlitetest.Write(t, path, append([]string{fmt.Sprint("COMMIT; PRAGMA page_size = ", pageSize, "; VACUUM; BEGIN")}, statements...)...)
		db := open(t, path)
		table := db.Table("T")
		if table == nil || table.Column("ID") != 1 || !table.HasRowID("id") || table.HasRowID("a") || db.Table("v") != nil {
			t.Fatalf("tables are %v", db.Tables())
		}
		rows := table.Rows("a", "id", "b", "c", "late", "absent")
		find := table.Rows("a", "id", "b", "c", "late", "absent")
		last, n := int64(math.MinInt64), 0
		for rows.Next() {
			if got := show(rows, 6); got != want[rows.ID()]+" null null" || rows.ID() <= last {
				t.Fatalf("row is %.200s, want %.200s", got, want[rows.ID()])
			}
			last = rows.ID()
			n++
		}
		for id, row := range want {
			if deleted := id%11 == 0; find.Find(id) == deleted {
				t.Fatalf("row %d is found: %v", id, deleted)
			} else if got := show(find, 6); !deleted && got != row+" null null" {
				t.Fatalf("found %.200s, want %.200s", got, row)
			}
		}
		if find.Find(1<<62) || find.Find(math.MinInt64) {
			t.Error("found a row that does not exist")
		}
		if first, all := db.Damage(); all != 0 || n < 2700 {
			t.Errorf("%d rows, damage %v", n, first)
		}
	}
}

func TestColumnsOfStatements(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	sqlitetest.Write(t, path,
		"CREATE TABLE `quoted``name` (\n  -- comment, with a comma\n\"a,b\" INT CHECK (\"a,b\" IN (1, 2)), [c d] TEXT DEFAULT 'x, y)' /* ( */, e, \"check\" INTEGER,\n"+
			" CONSTRAINT k UNIQUE (e), PRIMARY KEY (\"check\"), FOREIGN KEY (e) REFERENCES z (id) ON UPDATE CASCADE)",
		"CREATE TABLE pairs (a INTEGER, b INTEGER, PRIMARY KEY (a, b))",
		"CREATE TABLE other (a INTEGER PRIMARY KEY, b TEXT) WITHOUT ROWID",
		"CREATE TABLE copied AS SELECT 1 AS x, 'y' AS y",
	)
	db := open(t, path)
	var got []string
	for _, table := range db.Tables() {
		got = append(got, table.Name)
	}
	if !slices.Equal(got, []string{"quoted`name", "pairs", "copied"}) {
		t.Errorf("tables are %q", got)
	}
	table := db.Table("quoted`name")
	for i, name := range []string{"a,b", "c d", "e", "check"} {
		if table.Column(name) != i {
			t.Errorf("%s is column %d, want %d", name, table.Column(name), i)
		}
	}
	if !table.HasRowID("check") || db.Table("pairs").HasRowID("a") || db.Table("copied").Column("y") != 1 || table.Column("PRIMARY") >= 0 {
		t.Error("columns are not those of the statements")
	}
}

func TestFilesOtherThanDatabasesAreRejected(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "cannot read the header",
		"SQLite format 3\x00":     "cannot read the header",
		strings.Repeat("x", 4096): "not a SQLite database",
		"SQLite format 3\x00\x00\x07" + strings.Repeat("\x00", 4096): "page size",
	} {
		path := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlitefile.Open(path, nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if sqlitefile.IsDatabase(t.TempDir()) {
		t.Error("a directory is a database")
	}
}

// sample returns a database with rows on several levels of pages.
func sample(tb testing.TB) []byte {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "x.db")
	statements := []string{"COMMIT; PRAGMA page_size = 512; VACUUM; BEGIN", "CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT)"}
	for i := range 2000 {
		statements = append(statements, fmt.Sprintf("INSERT INTO t VALUES (%d, '%s')", i, strings.Repeat("x", i%40+i%97/96*3000)))
	}
	sqlitetest.Write(tb, path, statements...)
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// read reads all rows of all tables, and finds some. It returns the number of rows.
func read(t testing.TB, path string) (rows int, damage []sqlitefile.Damage, err error) {
	t.Helper()
	db, err := sqlitefile.Open(path, nil)
	if err != nil {
		return 0, nil, err
	}
	defer db.Close() //nolint:errcheck // only read from
	for _, table := range db.Tables() {
		find := table.Rows("id", "b")
		for r := table.Rows("id", "b", "c"); r.Next(); rows++ {
			show(r, 3)
			if find.Find(r.ID()) {
				show(find, 2)
			}
		}
	}
	damage, _ = db.Damage()
	return rows, damage, nil
}

func TestDamagedPagesAreSkipped(t *testing.T) {
	whole := sample(t)
	path := filepath.Join(t.TempDir(), "x.db")
	write := func(b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(whole)
	all, damaged, err := read(t, path)
	if err != nil || len(damaged) != 0 || all < 2000 {
		t.Fatalf("%d rows, %v, %v", all, damaged, err)
	}
	broken := slices.Clone(whole)
	clear(broken[len(broken)/2/512*512:][:512])
	write(broken)
	rows, damaged, err := read(t, path)
	if err != nil || rows >= all || rows < all-200 || len(damaged) == 0 || damaged[0].Offset != int64(len(broken)/2/512*512) {
		t.Errorf("%d of %d rows, %v, %v", rows, all, damaged, err)
	}
	write(whole[:len(whole)*9/10])
	rows, damaged, err = read(t, path)
	if err != nil || rows == 0 || rows >= all || len(damaged) == 0 || !strings.Contains(damaged[0].Err.Error(), "cut") {
		t.Errorf("%d of %d rows of a cut file, %v, %v", rows, all, damaged, err)
	}
}

// TestDamagedFiles reads mutations of a database. A file that is cut is reported, or has all rows.
func TestDamagedFiles(t *testing.T) {
	whole := sample(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	all := -1
	damage.Run(t, damage.Format{Files: damage.Files{"x.db": whole}, Sample: 300, Read: func(files damage.Files) error {
		if err := files.Write(dir); err != nil {
			return err
		}
		rows, damaged, err := read(t, path)
		switch {
		case all < 0: // undamaged
			all = rows
			return err
		case err != nil && !strings.Contains(err.Error(), path):
			return fmt.Errorf("the error names no file: %w", err)
		case rows > 10*all:
			return fmt.Errorf("%d rows instead of %d", rows, all)
		case err == nil && len(damaged) == 0 && rows < all && len(files["x.db"]) < len(whole):
			return fmt.Errorf("%d of %d rows without a reported damage", rows, all)
		}
		return nil
	}})
}

func FuzzRead(f *testing.F) {
	whole := sample(f)
	f.Add(whole[:8192])
	f.Add(whole[:512])
	f.Add(whole[:20000])
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, _ = read(t, path) // must neither panic nor hang
	})
}

func BenchmarkRows(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x.db")
	if err := os.WriteFile(path, sample(b), 0o600); err != nil {
		b.Fatal(err)
	}
	db := open(b, path)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for r := db.Table("t").Rows("id", "b"); r.Next(); n++ {
			r.Int(0)
		}
		if n != 2000 {
			b.Fatal(n)
		}
	}
}
