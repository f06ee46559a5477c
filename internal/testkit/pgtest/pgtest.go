// Package pgtest runs PostgreSQL servers for tests: on a loopback address, with data in a
// temporary directory, both gone when the test or the test binary ends, even if it is
// killed. It sends queries with psql.
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

// Options configure a server. The zero value is as safe as a server in production.
type Options struct {
	NoSync bool // never wait for the disk: faster, and committed data may be lost if the machine stops
}

// A Server is a PostgreSQL server with one superuser without password. Stop, Kill and
// Restart must not be called concurrently; all other methods may.
type Server struct {
	bin    string              // directory of its programs
	dir    string              // its directory, with the data; removed at the end
	as     *syscall.Credential // nil if it runs as the user of the test
	port   int
	noSync bool
	shared bool

	run       *run        // nil while the server is down
	log       *programLog // of the current or last run
	databases atomic.Int64
}

const superuser = "postgres"

// Start starts a server that ends with the test. If PostgreSQL is not installed, it skips
// the test, or fails it with CI=true.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short: needs PostgreSQL")
	}
	s, err := open(o)
	check(tb, err)
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("end of the log of PostgreSQL:\n%s", s.log)
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

var started atomic.Pointer[Server] // the shared server

// Shared returns the server that all tests of a binary share, with NoSync; the first call
// starts it. Each test should use its own Database. A test that stops a server must use
// Start instead. The shared server ends with Main, or else after the test binary.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short: needs PostgreSQL")
	}
	s, err := openShared()
	check(tb, err)
	return s
}

// Main runs the tests, ends the shared server, and returns the exit code:
// func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }.
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

// URL returns the URL of a database, which need not exist. The database postgres always
// exists.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", superuser, s.port, database)
}

// SocketURL returns the URL of the same database over a Unix socket, for other network
// namespaces.
func (s *Server) SocketURL(url string) string {
	_, database, _ := strings.Cut(strings.TrimPrefix(url, "postgres://"), "/")
	database, _, _ = strings.Cut(database, "?")
	return fmt.Sprintf("postgres:///%s?host=%s&port=%d&user=%s", database, s.dir, s.port, superuser)
}

// Database creates an empty UTF-8 database with bytewise text order, and returns its URL.
// The shared server drops it with all its connections when the test ends.
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

// Query runs statements with psql, in one transaction, and returns the rows of the last
// as lines with columns separated by |.
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

// Stop shuts down the server: clients receive SQLSTATE 57P01 and lose their connections,
// and uncommitted transactions are rolled back. It returns when all processes have ended.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	s.halt("INT")
}

// Kill ends the server like a crash: connections break without an error, nothing else is
// written, and Restart recovers from the log. It returns when all processes have ended.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	s.halt("QUIT")
}

// Restart stops the server if it is running, and starts it again with the same port and
// data. It returns when the server accepts connections.
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

// errMissing means that no usable PostgreSQL is installed.
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

// open creates a server and starts it on a free port.
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

// makeDir creates the server's directory. PostgreSQL refuses to run as root, so the user
// postgres runs it and owns the directory then.
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
		parent = "/tmp" // other users may not have access to root's directory
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

// create creates the data directory and starts the server on a free port.
func (s *Server) create() error {
	if err := s.initialize(); err != nil {
		return err
	}
	for try := 1; ; try++ {
		// Below the ports of outgoing connections, so that it stays free while the server
		// is down.
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

// command returns a command that runs as the server's user with its own environment.
func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C", "TZ=UTC"}
	// Ctrl-C should reach only the test binary.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setpgid: true}
	return cmd
}
