// Package sqlitefile reads tables of SQLite databases, row by row or by row id, without SQL. It allocates nothing per row, keeps
// a few pages in memory, and continues after damaged pages.
//
// The format is that of https://www.sqlite.org/fileformat.html. Indexes, views, tables without row ids and databases in UTF-16
// are not read.
package sqlitefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// magic begins every database.
const magic = "SQLite format 3\x00"

const headerSize = 100

// DB is an open database.
type DB struct {
	path     string
	file     io.ReaderAt
	close    func() error
	read     func(int64)
	pageSize int
	usable   int    // bytes of a page without its reserved end
	pages    uint32 // in the file
	tables   []*Table
	damage   []Damage
	damaged  int64
}

// Damage is a page that cannot be read.
type Damage struct {
	Offset, Length int64
	Err            error
}

// maxDamage limits the damages that are kept.
const maxDamage = 16

// IsDatabase reports whether a file begins like a database.
func IsDatabase(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read from
	var b [len(magic)]byte
	_, err = io.ReadFull(f, b[:])
	return err == nil && string(b[:]) == magic
}

// Open opens a database. Read, if not nil, is called with the number of bytes after each read of the file.
func Open(path string, read func(int64)) (*DB, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		var db *DB
		if db, err = open(f, info.Size(), read); err == nil {
			db.path, db.close = path, f.Close
			return db, nil
		}
	}
	_ = f.Close() // only read from
	return nil, fmt.Errorf("%s: %w", path, err)
}

// open opens a database of a size.
func open(in io.ReaderAt, size int64, read func(int64)) (*DB, error) {
	var h [headerSize]byte
	if n, err := in.ReadAt(h[:], 0); n < len(h) {
		return nil, fmt.Errorf("byte %d: cannot read the header of a SQLite database: %w", n, err)
	}
	if string(h[:len(magic)]) != magic {
		return nil, errors.New("not a SQLite database")
	}
	db := &DB{file: in, read: read, pageSize: int(binary.BigEndian.Uint16(h[16:]))}
	if db.pageSize == 1 {
		db.pageSize = 1 << 16
	}
	db.usable = db.pageSize - int(h[20])
	if db.pageSize < 512 || db.pageSize&(db.pageSize-1) != 0 || db.usable < 480 {
		return nil, fmt.Errorf("byte 16: a page size of %d bytes is impossible", db.pageSize)
	}
	if encoding := binary.BigEndian.Uint32(h[56:]); encoding > 1 {
		return nil, errors.New("a SQLite database in UTF-16 is not supported")
	}
	db.pages = uint32(min(size/int64(db.pageSize), 1<<32-1))
	counted := binary.BigEndian.Uint32(h[28:])
	sameCount := bytes.Equal(h[24:28], h[92:96]) // the number of pages is valid
	if sameCount && counted > db.pages {
		db.note(size, int64(counted)*int64(db.pageSize)-size, fmt.Errorf("the file is cut: it has %d of %d pages", db.pages, counted))
	} else if rest := size % int64(db.pageSize); rest != 0 {
		db.note(size-rest, rest, errors.New("the file ends within a page"))
	}
	if err := db.readSchema(); err != nil {
		return nil, err
	}
	return db, nil
}

// Close closes the file.
func (db *DB) Close() error { return db.close() }

// Pending returns the name of a file with changes that were not written into the database, as a killed writer leaves it, or "".
func (db *DB) Pending() string {
	for _, suffix := range []string{"-wal", "-journal"} {
		if info, err := os.Stat(db.path + suffix); err == nil && info.Size() > 0 {
			return db.path + suffix
		}
	}
	return ""
}

// Damage returns the first pages that could not be read so far, and the number of all.
func (db *DB) Damage() (first []Damage, all int64) { return db.damage, db.damaged }

func (db *DB) note(offset, length int64, err error) {
	db.damaged++
	if len(db.damage) < maxDamage {
		db.damage = append(db.damage, Damage{offset, length, err})
	}
}

// notePage notes damage of a page.
func (db *DB) notePage(page uint32, format string, args ...any) {
	db.note(int64(page-1)*int64(db.pageSize), int64(db.pageSize), fmt.Errorf(format, args...))
}

// Table returns a table by its name in any case, or nil.
func (db *DB) Table(name string) *Table {
	if i := slices.IndexFunc(db.tables, func(t *Table) bool { return strings.EqualFold(t.Name, name) }); i >= 0 {
		return db.tables[i]
	}
	return nil
}

// Tables returns all tables that can be read.
func (db *DB) Tables() []*Table { return db.tables }

// maxTables limits the tables of a database.
const maxTables = 1 << 12

// readSchema reads the table of tables.
func (db *DB) readSchema() error {
	schema := &Table{
		Name: "sqlite_schema", db: db, root: 1, rowID: -1, columns: []string{"type", "name", "tbl_name", "rootpage", "sql"},
	}
	rows := schema.Rows("type", "name", "rootpage", "sql")
	for rows.Next() && len(db.tables) < maxTables {
		root, _ := rows.Int(2)
		if string(rows.Text(0)) != "table" || root < 2 || root > int64(db.pages) {
			continue
		}
		t := &Table{Name: string(rows.Text(1)), db: db, root: uint32(root)}
		if t.parse(string(rows.Text(3))) {
			db.tables = append(db.tables, t)
		}
	}
	if len(db.tables) == 0 && db.damaged > 0 {
		return fmt.Errorf("byte %d: %w", db.damage[0].Offset, db.damage[0].Err)
	}
	return nil
}
