package duckstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// steps are the statements that convert tables to the next schema, the last step to provdb.Schema. Each step leaves the views
// that the next one expects.
var steps []string

// Upgrade converts the database at path to the current schema, unless dryRun is true, and returns its schema before. All
// steps are one transaction, so an interrupted conversion changes nothing. No other process may have opened the file for
// writing.
func Upgrade(ctx context.Context, path string, dryRun bool) (from int, err error) {
	return upgrade(ctx, path, dryRun, provdb.Schema, steps)
}

func upgrade(ctx context.Context, path string, dryRun bool, to fileformat.Format, steps []string) (from int, err error) {
	if _, err := os.Stat(path); err != nil {
		return 0, err
	}
	s, err := open(ctx, path, Options{ReadOnly: true, anySchema: true}, false)
	if err != nil {
		return 0, err
	}
	from, err = s.version(ctx)
	if err = errors.Join(s.explain("upgrade", err), s.Close()); err != nil || dryRun && to.Converts(from) {
		return from, err
	}
	if !to.Converts(from) {
		return from, s.explain("upgrade", to.Check(from))
	}
	if s, err = open(ctx, path, Options{anySchema: true}, false); err != nil {
		return from, err
	}
	err = s.transaction(ctx, func(conn *sql.Conn) error {
		all := append(fileformat.Steps(to, steps, from), fmt.Sprintf("UPDATE schema_version SET version = %d", to.Number))
		for _, statements := range all {
			if _, err := conn.ExecContext(ctx, statements); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		_, err = s.conn.ExecContext(ctx, "CHECKPOINT prov") // Close ignores its error
	}
	return from, errors.Join(s.explain("upgrade", err), s.Close())
}
