package duckstore

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	_ "embed" // the template
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/chimbuko/chimbuko/internal/base/atomicfile"
)

// groupSize is the number of rows in a row group of new files. DuckDB keeps the row group that it writes in memory. Rows of
// executions are large, so a group has a quarter of the usual number.
const groupSize = 30 << 10

// template is a database with the tables and views of sql/schema.sql and sql/views.sql, compressed with
// gzip. Copying it takes 1 ms, while DuckDB needs 60 ms of processor time for the statements. To generate
// it after changes of these files, run go test -run TestTemplate ./internal/store/duckstore -update.
//
//go:embed sql/template.duckdb.gz
var template []byte

// newSuffix is the end of the names of files that are being created.
const newSuffix = ".new"

// create creates the database at path, unless another process does so first, and reports whether it did. An incomplete file
// cannot be opened, so the file gets its name when it is complete and on disk.
func create(path string) (created bool, err error) {
	temp := path + "." + rand.Text()[:8] + newSuffix
	if err := unpack(temp); err != nil {
		_ = os.Remove(temp) // err is the cause
		return false, fmt.Errorf("%s: create: %w", path, err)
	}
	if err := atomicfile.Publish(temp, path); !errors.Is(err, fs.ErrExist) {
		return err == nil, err
	}
	return false, nil
}

// unpack writes the template to a new file.
func unpack(path string) error {
	in, err := gzip.NewReader(bytes.NewReader(template))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // the umask decides, as for other files of a run
	if err != nil {
		return err
	}
	var content bytes.Buffer
	if _, err = content.ReadFrom(in); err == nil {
		_, err = f.Write(content.Bytes())
	}
	return errors.Join(err, f.Sync(), f.Close())
}
