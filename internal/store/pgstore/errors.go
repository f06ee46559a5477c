package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// SQLSTATE codes.
const (
	uniqueViolation      = "23505"
	readOnlyTransaction  = "25006"
	invalidAuthorization = "28000"
	invalidPassword      = "28P01"
	noDatabase           = "3D000"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	insufficientRights   = "42501"
	undefinedColumn      = "42703"
	diskFull             = "53100"
	outOfMemory          = "53200"
	tooManyConnections   = "53300"
	limitExceeded        = "53400" // of temporary files
	programLimit         = "54000" // such as the length of a text
	queryCanceled        = "57014"
	adminShutdown        = "57P01"
	crashShutdown        = "57P02"
	cannotConnectNow     = "57P03"
)

// lostError reports that the connection ended before the transaction.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// state returns the SQLSTATE of an error that the server reports, else "".
func state(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// isLost reports whether the server is temporarily unreachable.
func isLost(err error) bool {
	switch code := state(err); code {
	case adminShutdown, crashShutdown, cannotConnectNow, tooManyConnections:
		return true
	case "":
		_, lost := errors.AsType[*lostError](err)
		_, unreachable := errors.AsType[*pgconn.ConnectError](err)
		return lost || unreachable
	default:
		return strings.HasPrefix(code, "08") // connection exceptions
	}
}

// isConflict reports whether another transaction interfered.
func isConflict(err error) bool {
	switch state(err) {
	case serializationFailure, deadlockDetected, uniqueViolation:
		return true
	}
	return false
}

// Limits of retries because of other writers, and of the wait between attempts.
const (
	maxConflicts = 8
	firstWait    = 20 * time.Millisecond
	longestWait  = 500 * time.Millisecond
)

// retry calls f until it succeeds, fails permanently or the store's patience ends. After a
// lost connection f may have taken effect.
func (s *Store) retry(ctx context.Context, f func() error) error {
	var lostSince time.Time
	wait, conflicts := firstWait, 0
	for {
		err := f()
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case isConflict(err):
			if conflicts++; conflicts > maxConflicts {
				return err
			}
		case isLost(err):
			if lostSince.IsZero() {
				lostSince = time.Now()
			}
			if time.Since(lostSince) >= s.retryTime {
				return err
			}
			s.pool.Reset() // other connections are lost, too
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
		wait = min(2*wait, longestWait)
	}
}

// hints explain errors of the server.
var hints = map[string]string{
	readOnlyTransaction:  "the server is read-only, such as a standby (use the address of the primary server)",
	invalidAuthorization: "the server rejects the user (check user, password and the server's pg_hba.conf)",
	invalidPassword:      "the server rejects user or password (set the password in PGPASSWORD or ~/.pgpass)",
	noDatabase:           "no such database (create it with createdb)",
	insufficientRights:   "the user lacks a privilege (see docs/postgresql.md)",
	diskFull:             "the server's disk is full (free space and try again; stored data is safe)",
	tooManyConnections:   "the server has too many clients (raise its max_connections, or use fewer writers)",
	cannotConnectNow:     "the server is starting or stopping (wait and try again)",
	uniqueViolation:      "other writers repeatedly stored the same records (try again)",
	serializationFailure: "conflict with other writers (try again)",
	deadlockDetected:     "conflict with other writers (try again)",
}

// explain adds the server, the operation and a hint to an error.
func (s *Store) explain(ctx context.Context, doing string, err error) error {
	code := state(err)
	switch {
	case err == nil || errors.Is(err, provdb.ErrClosed):
		return err
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case code == readOnlyTransaction:
		err = fmt.Errorf("%w: %s: %w", provdb.ErrReadOnly, hints[code], err)
	case hints[code] != "":
		err = fmt.Errorf("%s: %w", hints[code], err)
	case isLost(err):
		err = fmt.Errorf("the server cannot be reached (check that it runs and the address is correct, then try again; stored data is safe): %w",
			err)
	}
	return fmt.Errorf("%s: %s: %w", s.name, doing, err)
}

// serverName returns the URL of a database without its password.
func serverName(c *pgx.ConnConfig) string {
	u := url.URL{Scheme: "postgres", User: url.User(c.User), Path: "/" + c.Database}
	if strings.HasPrefix(c.Host, "/") { // a directory with sockets
		u.RawQuery = url.Values{"host": {c.Host}}.Encode()
	} else {
		u.Host = net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	}
	return u.String()
}

var (
	passwordOfUser  = regexp.MustCompile(`(://[^:@/\s]*):.*@`) // up to the last @: passwords may have any character
	passwordSetting = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\.|'')*'|[^\s&]+)`)
)

// redact removes passwords from an address in any form, valid or not.
func redact(address string) string {
	address = passwordOfUser.ReplaceAllString(address, "$1:xxxxx@")
	return passwordSetting.ReplaceAllString(address, "${1}xxxxx")
}

// addPosition adds the line of a statement to an error of the server, with a caret below its
// position, as psql does.
func addPosition(sql string, err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.Position < 1 {
		return err
	}
	text := []rune(sql)
	at := min(int(e.Position)-1, len(text))
	before := string(text[:at])
	number := strings.Count(before, "\n") + 1
	begin := strings.LastIndexByte(before, '\n') + 1
	line, _, _ := strings.Cut(before[begin:]+string(text[at:]), "\n")
	head := fmt.Sprintf("LINE %d: ", number)
	return fmt.Errorf("%w\n\n%s%s\n%s^", err, head, line, strings.Repeat(" ", len(head)+len([]rune(before[begin:]))))
}
