// Package pgtest gives tests a real PostgreSQL server of their own: on a
// loopback address, with its data in a temporary directory, gone when the test
// or the test binary ends, however it ends. It talks to the server with psql
// alone and knows nothing of our tables.
package pgtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// Options say how a server is run. The zero value is as careful as a server in
// production.
type Options struct {
	NoSync bool // never wait for the disk: faster, and committed data may be lost if the machine stops
}

// A Server is a PostgreSQL server with one superuser, who needs no password.
// Stop, Kill and Restart must not be called at once; everything else may be
// called from several goroutines.
type Server struct {
	bin    string              // the directory of its programs
	dir    string              // its own, with data in it; removed at the end
	as     *syscall.Credential // nil if it runs as the user of the test
	port   int
	noSync bool
	shared bool

	run       *run        // nil while the server is down
	log       *programLog // of this run or the last
	databases atomic.Int64
}

const superuser = "postgres"

// Start starts a server for one test, which it ends with. Where PostgreSQL is
// not installed the test is skipped; with CI=true it fails.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short: needs PostgreSQL")
	}
	s, err := open(o)
	check(tb, err)
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the log of PostgreSQL ends:\n%s", s.log)
		}
		if err := s.close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

var openShared = sync.OnceValues(func() (*Server, error) {
	s, err := open(Options{NoSync: true})
	if err == nil {
		s.shared = true
		started.Store(s)
	}
	return s, err
})

var started atomic.Pointer[Server] // the shared one, if there is one

// Shared returns the server that all tests of a binary share; the first call
// starts it, without waiting for the disk. Each test takes its own Database.
// No one may stop it: a test that does takes its own server with Start. It ends
// with Main, or without Main just after the test binary.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short: needs PostgreSQL")
	}
	s, err := openShared()
	check(tb, err)
	return s
}

// Main runs the tests, ends the shared server if one was started, and returns
// the exit code: func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }.
func Main(m *testing.M) int {
	code := m.Run()
	if s := started.Load(); s != nil {
		if err := s.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return max(code, 1)
		}
	}
	return code
}

// URL returns the address of a database, which need not exist. The database
// that is called postgres always does.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", superuser, s.port, database)
}

// SocketURL returns the address of the same database for who cannot reach it by
// TCP, as in another network namespace.
func (s *Server) SocketURL(url string) string {
	_, database, _ := strings.Cut(strings.TrimPrefix(url, "postgres://"), "/")
	database, _, _ = strings.Cut(database, "?")
	return fmt.Sprintf("postgres:///%s?host=%s&port=%d&user=%s", database, s.dir, s.port, superuser)
}

// Database creates an empty database in UTF-8 whose text is ordered by bytes,
// and returns its URL. On the shared server it is dropped when the test ends,
// with all connections to it.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("test_%d", s.databases.Add(1))
	admin := s.URL("postgres")
	s.Query(tb, admin, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'")
	if s.shared {
		tb.Cleanup(func() { s.Query(tb, admin, "DROP DATABASE "+name+" WITH (FORCE)") })
	}
	return s.URL(name)
}

// Query has psql run statements, all in one transaction if there are several,
// and returns the rows of the last: a line for each, the columns apart by |.
func (s *Server) Query(tb testing.TB, url, statements string) string {
	tb.Helper()
	cmd := s.command(s.program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statements, url)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("psql %q: %v\n%s", statements, err, &stderr)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// Stop shuts the server down in order: clients are told (SQLSTATE 57P01) and
// lose their connections, what they had not committed is undone. It returns
// when all its processes have ended; a server that is down stays down.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	s.halt("INT")
}

// Kill ends the server as a crash does: connections break without an error
// from the server, nothing more is written, and Restart has to recover from the
// log. It returns when all its processes have ended.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	s.halt("QUIT")
}

// Restart starts the server again, on the same port and data, and returns when
// it accepts connections. One that still runs is stopped first.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	s.halt("INT")
	if err := s.start(); err != nil {
		tb.Fatal(err)
	}
}

func (s *Server) own(tb testing.TB) {
	tb.Helper()
	if s.shared {
		tb.Fatal("pgtest: other tests need the shared server; use Start")
	}
}

// errMissing says that there is no PostgreSQL to test with.
var errMissing = errors.New("PostgreSQL is missing")

func check(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case errors.Is(err, errMissing) && os.Getenv("CI") != "true":
		tb.Skipf("SKIP: NOT TESTED WITH POSTGRESQL: %v; run scripts/test-setup", err)
	default:
		tb.Fatalf("pgtest: %v", err)
	}
}

// open makes a new server and starts it on a free port.
func open(o Options) (*Server, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, noSync: o.NoSync}
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	if err := s.create(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// makeDir makes the server's directory. PostgreSQL refuses to run as root: then
// another user runs it and owns the directory.
func (s *Server) makeDir() error {
	parent := os.TempDir()
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return fmt.Errorf("%w: it does not run as root: %w", errMissing, err)
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		parent = "/tmp" // others may not be able to enter root's own
	}
	dir, err := os.MkdirTemp(parent, "chimbuko-postgres-")
	if err != nil {
		return err
	}
	s.dir = dir
	if s.as != nil {
		err = os.Chown(dir, int(s.as.Uid), int(s.as.Gid))
	}
	return err
}

// create makes the data directory and starts the server on a port that is free.
func (s *Server) create() error {
	if err := s.initialize(); err != nil {
		return err
	}
	for try := 1; ; try++ {
		// Below the ports that systems give to outgoing connections, so that
		// nothing takes it while the server is down.
		s.port = 20000 + rand.IntN(12000)
		err := s.start()
		if !errors.Is(err, errPortTaken) || try == 10 {
			return err
		}
	}
}

// close ends the server and removes its directory.
func (s *Server) close() error {
	s.halt("INT")
	return os.RemoveAll(s.dir)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) program(name string) string { return filepath.Join(s.bin, name) }

// command returns a program that runs as the server's user and is not touched
// by the settings of ours.
func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C", "TZ=UTC"}
	// A group of its own: Ctrl-C is for the test binary, with which this ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setpgid: true}
	return cmd
}
