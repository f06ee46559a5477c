package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestDatabasesAreEmptyAndSeparate(t *testing.T) {
	s := Shared(t)
	one, two := s.Database(t), s.Database(t)
	s.Query(t, one, "CREATE TABLE t (x int)")
	const tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
	f := func(url, statements, want string) {
		t.Helper()
		if got := s.Query(t, url, statements); got != want {
			t.Errorf("%s at %s: got %q, want %q", statements, url, got, want)
		}
	}
	f(one, "SELECT 1", "1")
	f(one, tables, "1")
	f(two, tables, "0")
	f(two, `SELECT pg_encoding_to_char(encoding), datcollate, datctype FROM pg_database
		WHERE datname = current_database()`, "UTF8|C|C")
}

func TestSharedServerDropsDatabasesAfterTest(t *testing.T) {
	s := Shared(t)
	var url string
	t.Run("test", func(t *testing.T) {
		url = s.Database(t)
		connect(t, s, url) // holds a connection
	})
	name := strings.TrimSuffix(url[strings.LastIndex(url, "/")+1:], "?sslmode=disable")
	got := s.Query(t, s.URL("postgres"), "SELECT count(*) FROM pg_database WHERE datname = '"+name+"'")
	if got != "0" {
		t.Errorf("%s is still there after its test", name)
	}
}

func TestServersSyncByDefault(t *testing.T) {
	f := func(s *Server, want string) {
		t.Helper()
		if got := s.Query(t, s.URL("postgres"), "SHOW fsync"); got != want {
			t.Errorf("fsync is %s, want %s", got, want)
		}
	}
	f(Start(t, Options{}), "on")
	f(Shared(t), "off")
}

func TestCommittedDataSurvives(t *testing.T) {
	f := func(name string, end func(*Server, testing.TB), message string, log string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, Options{})
			url := s.Database(t)
			s.Query(t, url, "CREATE TABLE t (x text)")
			s.Query(t, url, "INSERT INTO t VALUES ('committed')")
			client := connect(t, s, url)
			client.do(t, "BEGIN; INSERT INTO t VALUES ('not committed');")

			end(s, t)
			if got := client.end(); !strings.Contains(got, message) {
				t.Errorf("the client receives\n%q, want\n%q", got, message)
			}

			s.Restart(t)
			if got := s.Query(t, url, "SELECT x FROM t"); got != "committed" {
				t.Errorf("after the restart the table has %q, want only committed rows", got)
			}
			if !strings.Contains(s.log.String(), log) {
				t.Errorf("the log of the restart is\n%s, want %q", s.log, log)
			}
		})
	}
	f("Kill", (*Server).Kill, "server closed the connection unexpectedly", "not properly shut down")
	f("Stop", (*Server).Stop, "terminating connection due to administrator command", "was shut down at")
	f("Restart", (*Server).Restart, "terminating connection due to administrator command", "was shut down at")
}

func TestStoppedServerFreesAndReclaimsPort(t *testing.T) {
	s := Start(t, Options{NoSync: true})
	s.Stop(t)
	s.Kill(t) // does nothing: it is down
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.start(); !errors.Is(err, errPortTaken) {
		t.Errorf("on a port that is taken: got %v, want %v", err, errPortTaken)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
	s.Query(t, s.URL("postgres"), "SELECT 1")
}

// A client is a psql with an open connection.
type client struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr strings.Builder
}

func connect(t *testing.T, s *Server, url string) *client {
	t.Helper()
	c := &client{cmd: s.command(s.program("psql"), "-XAtq", url)}
	c.cmd.Stderr = &c.stderr
	in, err1 := c.cmd.StdinPipe()
	out, err2 := c.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, c.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewReader(out)
	t.Cleanup(func() { c.end() })
	c.do(t, "")
	return c
}

// do runs statements that return no rows and waits until they are done.
func (c *client) do(t *testing.T, statements string) {
	t.Helper()
	fmt.Fprintln(c.in, statements, `\echo done`)
	if line, err := c.out.ReadString('\n'); err != nil || line != "done\n" {
		t.Fatalf("psql %q: %v %q", statements, err, line)
	}
}

// end tries one more statement and returns all that the client complained of.
func (c *client) end() string {
	fmt.Fprintln(c.in, "SELECT 1;")
	_ = c.in.Close()
	_ = c.cmd.Wait()
	return c.stderr.String()
}

// The server of a killed test binary ends, although the binary cannot clean up.
func TestServerEndsWithKilledTestBinary(t *testing.T) {
	tracetest.SkipShort(t, "starts a process")
	const inside = "PGTEST_INSIDE"
	if os.Getenv(inside) != "" {
		s := Start(t, Options{NoSync: true})
		fmt.Println(s.dir)
		select {}
	}
	if _, err := find(); err != nil {
		check(t, err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	dir = strings.TrimSpace(dir)
	if _, err := os.Stat(filepath.Join(dir, "data", "postmaster.pid")); err != nil {
		t.Fatalf("no server runs in %q: %v", dir, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	late := time.After(time.Minute)
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) { // the last that happens
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s is still there", dir)
		}
	}
}

func TestNewestServerIsUsed(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	f := func(want string, versions ...string) {
		t.Helper()
		var dirs []string
		for _, v := range versions {
			dir := filepath.Join(t.TempDir(), v)
			script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + v + "'\n"
			err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "postgres"), []byte(script), 0o755))
			if err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, dir)
		}
		dir, err := newest(dirs)
		switch got := filepath.Base(dir); {
		case want == "":
			if !errors.Is(err, errMissing) {
				t.Errorf("%q: got %v %q, want %v", versions, err, dir, errMissing)
			}
		case err != nil || got != want:
			t.Errorf("%q: got %v %q, want %q", versions, err, got, want)
		}
	}
	f("")
	f("", "9.6.24", "13.21 (Debian 13.21-0+deb11u1)")
	f("14.1", "14.1")
	f("17beta1", "9.6.24", "17beta1", "15.18 (Debian 15.18-0+deb12u1)")
}

// A verdict is a test that notes how it ended.
type verdict struct {
	testing.TB
	got string
}

func (v *verdict) Helper() {}

func (v *verdict) Fatal(args ...any) { v.end("fail: " + fmt.Sprint(args...)) }

func (v *verdict) Fatalf(format string, args ...any) { v.Fatal(fmt.Sprintf(format, args...)) }

func (v *verdict) Skipf(format string, args ...any) { v.end("skip: " + fmt.Sprintf(format, args...)) }

func (v *verdict) end(how string) {
	v.got = how
	runtime.Goexit()
}

func judge(tb testing.TB, test func(testing.TB)) string {
	v := &verdict{TB: tb, got: "pass"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(v)
	}()
	<-done
	return v.got
}

func TestMissingPostgreSQLSkipsLocallyAndFailsInCI(t *testing.T) {
	f := func(ci string, err error, want string) {
		t.Helper()
		t.Setenv("CI", ci)
		if got := judge(t, func(tb testing.TB) { check(tb, err) }); !strings.HasPrefix(got, want) {
			t.Errorf("CI=%s, %v: got %q, want %q", ci, err, got, want)
		}
	}
	_, missing := newest(nil)
	f("", missing, "skip: SKIP: NOT TESTED WITH POSTGRESQL: PostgreSQL is missing")
	f("true", missing, "fail: pgtest: PostgreSQL is missing")
	f("", errPortTaken, "fail: ")
	f("", nil, "pass")
}

func TestSharedServerCannotBeStopped(t *testing.T) {
	s := Shared(t)
	for name, end := range map[string]func(*Server, testing.TB){
		"Stop": (*Server).Stop, "Kill": (*Server).Kill, "Restart": (*Server).Restart,
	} {
		if got := judge(t, func(tb testing.TB) { end(s, tb) }); !strings.HasPrefix(got, "fail: ") {
			t.Errorf("%s: got %q, want it to fail", name, got)
		}
	}
	s.Query(t, s.URL("postgres"), "SELECT 1")
}
