package duckstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// explain adds the path, the operation and a hint to an error.
func (s *Store) explain(operation string, err error) error {
	if err == nil {
		return err
	}
	for _, plain := range []error{context.Canceled, context.DeadlineExceeded, provdb.ErrClosed} {
		if errors.Is(err, plain) {
			return fmt.Errorf("%s: %s: %w", s.path, operation, plain)
		}
	}
	if errors.Is(err, provdb.ErrForeign) {
		err = fmt.Errorf("%w (choose another file or directory)", err)
	}
	if problem, ok := errors.AsType[*duckdb.Error](err); ok {
		err = translate(problem, err, s.memory)
	}
	return fmt.Errorf("%s: %s: %w", s.path, operation, err)
}

// translate wraps err, which includes a DuckDB error, in an error of provdb or adds a hint. limit is the memory limit of the
// store, or 0.
func translate(problem *duckdb.Error, err error, limit int64) error {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(problem.Msg, p) {
				return true
			}
		}
		return false
	}
	switch problem.Type {
	case duckdb.ErrorTypeOutOfMemory:
		if limit > 0 {
			return memoryError(limit)
		}
	case duckdb.ErrorTypePermission:
		return fmt.Errorf("%w, without access to files: %w", provdb.ErrReadOnly, err)
	case duckdb.ErrorTypeTransaction:
		if has("read-only mode") {
			return fmt.Errorf("%w: %w", provdb.ErrReadOnly, err)
		}
		fallthrough
	case duckdb.ErrorTypeIO, duckdb.ErrorTypeFatal, duckdb.ErrorTypeInternal, duckdb.ErrorTypeSerialization:
		switch {
		case has("Could not set lock", "Conflicting lock"):
			return fmt.Errorf("%w (wait for it to end, or query through it): %w", provdb.ErrInUse, err)
		case has("not a valid DuckDB database"):
			return fmt.Errorf("%w: %w", provdb.ErrForeign, err)
		case has("newer version of DuckDB", "database file with version number"):
			return fmt.Errorf("%w (install a newer chimbuko): %w", fileformat.ErrNewer, err)
		case has("previous fatal error"): // as some window functions of DuckDB 1.5 cause
			return fmt.Errorf("%w (restart this command; stored data is safe): %w", provdb.ErrBroken, err)
		case has("been invalidated"):
			return fmt.Errorf("the disk is full or cannot be written (free space and reopen the store; stored data is safe): %w", err)
		case has("No space left", "File too large", "Disk quota", "Could not write", "Could not truncate"):
			return fmt.Errorf("the disk is full or cannot be written (free space and try again; stored data is safe): %w", err)
		case has("orrupt", "hecksum", "Could not read", "deserialize"):
			return fmt.Errorf("the file is damaged (restore it from a copy, or create it again with analyze or import): %w", err)
		}
	}
	return err
}
