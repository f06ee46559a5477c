package duckstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func TestDuckDBErrorsAreExplained(t *testing.T) {
	s := &Store{path: "some.duckdb"}
	f := func(kind duckdb.ErrorType, message string, want error, words string) {
		t.Helper()
		problem := &duckdb.Error{Type: kind, Msg: message}
		got := s.explain("do", fmt.Errorf("driver: %w", problem))
		if want != nil && !errors.Is(got, want) || !strings.Contains(got.Error(), words) || !strings.Contains(got.Error(), message) ||
			!strings.HasPrefix(got.Error(), "some.duckdb: do: ") || !errors.Is(got, problem) {
			t.Errorf("%s:\n got %v\nwant %v, %q", message, got, want, words)
		}
		if want == nil && words == "" && got.Error() != "some.duckdb: do: driver: "+message {
			t.Errorf("%s: explained as %v", message, got)
		}
	}
	f(duckdb.ErrorTypeIO, `IO Error: Could not set lock on file "some.duckdb": Conflicting lock is held in PID 1`, provdb.ErrInUse,
		"wait for it to end")
	f(duckdb.ErrorTypeIO, "IO Error: Trying to read a database file with version number 99, but we can only read versions between 64 and "+
		"67.", fileformat.ErrNewer, "")
	f(duckdb.ErrorTypeIO, "IO Error: Try opening the file with a newer version of DuckDB.", fileformat.ErrNewer, "")
	f(duckdb.ErrorTypeIO, `IO Error: The file "x" exists, but it is not a valid DuckDB database file!`, provdb.ErrForeign, "")
	f(duckdb.ErrorTypeIO, `IO Error: Could not write file "x": No space left on device`, nil, "free space and try again")
	f(duckdb.ErrorTypeTransaction, `TransactionContext Error: Failed to commit: Could not write file "x": No space left on device`, nil,
		"free space and try again")
	f(duckdb.ErrorTypeIO, `IO Error: Database "prov" has been invalidated because checkpointing failed. Original error: Could not write file`, nil, "free space and reopen the store")
	f(duckdb.ErrorTypeFatal, "FATAL Error: Failed: database has been invalidated because of a previous fatal error. The database must be "+
		"restarted", provdb.ErrBroken, "restart this command")
	f(duckdb.ErrorTypeIO, "IO Error: Corrupt database file: computed checksum 1 does not match stored checksum 2", nil, "the file is damaged")
	f(duckdb.ErrorTypeTransaction, `TransactionContext Error: Cannot write to database "prov" - transaction is launched in read-only mode`,
		provdb.ErrReadOnly, "")
	f(duckdb.ErrorTypePermission, `Permission Error: Cannot access file "x" - file system operations are disabled by configuration`,
		provdb.ErrReadOnly, "")
	// Text of the statement is not a sign of damage.
	f(duckdb.ErrorTypeBinder, `Binder Error: Referenced column "corrupt checksum: No space left" not found`, nil, "")
	f(duckdb.ErrorTypeConversion, `Conversion Error: Could not convert string 'Could not set lock' to INT32`, nil, "")
	f(duckdb.ErrorTypeTransaction, "TransactionContext Error: Conflict on tuple deletion!", nil, "")
}

func TestContextErrorsAreNotExplained(t *testing.T) {
	s := &Store{path: "some.duckdb"}
	interrupted := &duckdb.Error{Type: duckdb.ErrorTypeInterrupt, Msg: "INTERRUPT Error: Interrupted!"}
	for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
		if got := s.explain("query", errors.Join(want, interrupted)); got.Error() != "some.duckdb: query: "+want.Error() || !errors.Is(got, want) {
			t.Errorf("got %v", got)
		}
	}
	if err := s.explain("query", nil); err != nil {
		t.Errorf("nil became %v", err)
	}
}
