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

// States of SQL that mean something to us.
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
	tooManyConnections   = "53300"
	queryCanceled        = "57014"
	adminShutdown        = "57P01"
	crashShutdown        = "57P02"
	cannotConnectNow     = "57P03"
)

// lostError reports that the connection ended before the transaction did.
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

// isLost reports whether the server cannot be reached for now.
func isLost(err error) bool {
	switch code := state(err); code {
	case adminShutdown, crashShutdown, cannotConnectNow, tooManyConnections:
		return true
	case "":
		_, lost := errors.AsType[*lostError](err)
		_, unreached := errors.AsType[*pgconn.ConnectError](err)
		return lost || unreached
	default:
		return strings.HasPrefix(code, "08") // connection exceptions
	}
}

// isConflict reports whether another transaction was in the way.
func isConflict(err error) bool {
	switch state(err) {
	case serializationFailure, deadlockDetected, uniqueViolation:
		return true
	}
	return false
}

// How often a write is done again because of other writers, and how long it
// waits between two attempts.
const (
	maxConflicts = 8
	firstWait    = 20 * time.Millisecond
	longestWait  = 500 * time.Millisecond
)

// patiently does f until it ends well, or with an error that another attempt
// would not change, or until the store's patience ends. f may have been done
// although its error says that the connection was lost.
func (s *Store) patiently(ctx context.Context, f func() error) error {
	var since time.Time
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
			if since.IsZero() {
				since = time.Now()
			}
			if time.Since(since) >= s.patience {
				return err
			}
			s.pool.Reset() // the other connections are lost, too
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

// advice is what to do about an error that the server reports.
var advice = map[string]string{
	readOnlyTransaction:  "the server can only be read from, as a standby: give the address of the primary server",
	invalidAuthorization: "the server refuses the user: check user, password and the server's pg_hba.conf",
	invalidPassword:      "the server refuses user or password: give the password in PGPASSWORD or in ~/.pgpass",
	noDatabase:           "no such database (create it with createdb)",
	insufficientRights:   "the user lacks a right: docs/postgresql.md says which are needed",
	diskFull:             "the server's disk is full: make room and do it again; what was stored before is safe",
	tooManyConnections:   "the server has too many clients: raise its max_connections, or have fewer processes write",
	cannotConnectNow:     "the server is starting or stopping: wait and do it again",
	uniqueViolation:      "other writers stored the same again and again: do it again",
	serializationFailure: "other writers were in the way: do it again",
	deadlockDetected:     "other writers were in the way: do it again",
}

// explain names the server and says what an error means and what to do.
func (s *Store) explain(ctx context.Context, doing string, err error) error {
	code := state(err)
	switch {
	case err == nil || errors.Is(err, provdb.ErrClosed) || errors.Is(err, provdb.ErrNewer):
		return err
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case code == readOnlyTransaction:
		err = fmt.Errorf("%w: %s: %w", provdb.ErrReadOnly, advice[code], err)
	case advice[code] != "":
		err = fmt.Errorf("%s: %w", advice[code], err)
	case isLost(err):
		err = fmt.Errorf("the server cannot be reached: see that it runs and that the address is right, then do it again; what was stored "+
			"before is safe: %w", err)
	}
	return fmt.Errorf("%s: %s: %w", s.name, doing, err)
}

// serverName is the URL of a database without what is secret.
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
	passwordOfUser  = regexp.MustCompile(`(://[^:@/\s]*):.*@`) // up to the last @: passwords may hold any sign
	passwordSetting = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\.|'')*'|[^\s&]+)`)
)

// redact takes passwords out of an address in any form, also of one that cannot
// be read.
func redact(address string) string {
	address = passwordOfUser.ReplaceAllString(address, "$1:xxxxx@")
	return passwordSetting.ReplaceAllString(address, "${1}xxxxx")
}

// located shows the line of a statement that an error of the server points to, with a
// caret below the place, as psql does.
func located(sql string, err error) error {
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
