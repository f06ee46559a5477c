package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestPasswordsAreRedacted(t *testing.T) {
	f := func(address, want string) {
		t.Helper()
		if got := redact(address); got != want {
			t.Errorf("%s:\n got %s\nwant %s", address, got, want)
		}
	}
	f("postgres://me:secret@host:5432/db", "postgres://me:xxxxx@host:5432/db")
	f("postgres://me:se/cr@et:@host/db", "postgres://me:xxxxx@host/db")
	f("postgres://:secret@host/db", "postgres://:xxxxx@host/db")
	f("postgres://me@host/db", "postgres://me@host/db")
	f("postgres://host:99999/db", "postgres://host:99999/db")
	f("postgres://host/db?user=me&password=secret&sslmode=disable", "postgres://host/db?user=me&password=xxxxx&sslmode=disable")
	f("host=h user=me password=secret dbname=db", "host=h user=me password=xxxxx dbname=db")
	f(`host=h PASSWORD = 'a \'secret\' b' dbname=db`, "host=h PASSWORD = xxxxx dbname=db")
	f("sslkey=k sslpassword=secret", "sslkey=k sslpassword=xxxxx")
}

func TestServerNamesHaveNoPassword(t *testing.T) {
	f := func(address, want string) {
		t.Helper()
		c, err := pgx.ParseConfig(address)
		if err != nil {
			t.Fatal(err)
		}
		got := serverName(c)
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", address, got, want)
		}
		if _, err := url.Parse(got); err != nil {
			t.Error(err)
		}
	}
	f("postgres://me:secret@host:5433/db?sslmode=disable", "postgres://me@host:5433/db")
	f("host=127.0.0.1 port=6000 user=me password=secret dbname=db", "postgres://me@127.0.0.1:6000/db")
	f("postgres://me:secret@[::1]/db", "postgres://me@[::1]:5432/db")
	f("host=/run/postgresql user=me dbname=db", "postgres://me@/db?host=%2Frun%2Fpostgresql")
}

func TestErrorsHaveHints(t *testing.T) {
	s := &Store{name: "postgres://me@host/db"}
	f := func(err error, want string) {
		t.Helper()
		got := s.explain(t.Context(), "write a batch", err)
		if !errors.Is(got, err) || !strings.HasPrefix(got.Error(), "postgres://me@host/db: write a batch: ") ||
			!strings.Contains(got.Error(), want) {
			t.Errorf("%v:\n got %v\nwant %q", err, got, want)
		}
	}
	f(&pgconn.PgError{Code: diskFull}, "the server's disk is full (free space")
	f(&pgconn.PgError{Code: invalidPassword}, "~/.pgpass")
	f(&pgconn.PgError{Code: tooManyConnections}, "max_connections")
	f(&pgconn.PgError{Code: readOnlyTransaction}, "primary server")
	f(&pgconn.PgError{Code: insufficientRights}, "docs/postgresql.md")
	f(&pgconn.PgError{Code: adminShutdown}, "check that it runs")
	f(&lostError{errors.New("broken pipe")}, "check that it runs")
	f(errors.New("something else"), "something else")
	if err := s.explain(t.Context(), "x", nil); err != nil {
		t.Errorf("no error: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.explain(ctx, "x", errors.New("timeout")); !errors.Is(err, context.Canceled) {
		t.Errorf("after canceling: got %v", err)
	}
}

func TestConflictsAreRetried(t *testing.T) {
	s := newStore(t)
	s.retryTime = time.Hour
	f := func(err error, fails, want int) {
		t.Helper()
		calls := 0
		got := s.retry(t.Context(), func() error {
			if calls++; calls <= fails {
				return fmt.Errorf("attempt %d: %w", calls, err)
			}
			return nil
		})
		if calls != want || (got == nil) != (fails < want) {
			t.Errorf("%v, %d times: got %d attempts and %v, want %d", err, fails, calls, got, want)
		}
	}
	f(&pgconn.PgError{Code: deadlockDetected}, 3, 4)
	f(&pgconn.PgError{Code: serializationFailure}, 1, 2)
	f(&pgconn.PgError{Code: uniqueViolation}, 1000, maxConflicts+1)
	f(&pgconn.PgError{Code: cannotConnectNow}, 2, 3)
	f(&lostError{errors.New("EOF")}, 2, 3)
	f(&pgconn.PgError{Code: diskFull}, 1, 1)
	f(errors.New("something else"), 1, 1)
	s.retryTime = 200 * time.Millisecond
	start := time.Now()
	err := s.retry(t.Context(), func() error { return &lostError{errors.New("EOF")} })
	if took := time.Since(start); !isLost(err) || took < s.retryTime {
		t.Errorf("unreachable server: got %v after %v, want an error after %v", err, took, s.retryTime)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err = s.retry(ctx, func() error { calls++; cancel(); return &lostError{errors.New("EOF")} })
	if err == nil || calls != 1 {
		t.Errorf("canceled: got %v after %d attempts", err, calls)
	}
}
