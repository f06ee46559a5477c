package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// keeper is a shell script that runs one of PostgreSQL's programs and may outlive the test
// binary. It reads the name of a signal to send to the program. If its input ends instead,
// the test binary was killed: it stops the program and removes the directory, its first
// argument. Only the program keeps the output open.
const keeper = `
dir=$1; shift
"$@" 2>&1 &
exec >/dev/null
read -r signal
kill -s "${signal:-INT}" $!
wait $!
code=$?
[ -n "$signal" ] || rm -rf "$dir"
exit $code
`

// startLimit bounds the start of a server, with recovery.
const startLimit = 2 * time.Minute

var errPortTaken = errors.New("the port is taken")

// A run is a program under the keeper.
type run struct {
	keeper *exec.Cmd
	signal io.Writer
	log    *programLog
}

// keep runs one of PostgreSQL's programs until end is called.
func (s *Server) keep(program string, args ...string) (*run, error) {
	cmd := s.command("sh", append([]string{"-c", keeper, "keeper", s.dir, s.program(program)}, args...)...)
	signal, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = in
	if err := errors.Join(cmd.Start(), in.Close()); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return &run{keeper: cmd, signal: signal, log: follow(out)}, nil
}

// end sends a signal to the program and waits until all its processes have ended. It
// returns an error unless the program succeeded.
func (r *run) end(signal string) error {
	fmt.Fprintln(r.signal, signal)
	err := r.keeper.Wait()
	<-r.log.ended
	return err
}

// initialize creates the data directory. It does not sync, because tests only crash
// processes, not the machine.
func (s *Server) initialize() error {
	r, err := s.keep("initdb", "-D", s.data(), "-U", superuser, "-A", "trust",
		"-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	if err != nil {
		return err
	}
	<-r.log.ended
	if err := r.end("INT"); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, r.log)
	}
	return nil
}

// start starts the server and waits until it accepts connections.
func (s *Server) start() error {
	args := []string{
		"-D", s.data(), "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + s.dir,
	}
	if s.noSync {
		args = append(args, "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
	}
	r, err := s.keep("postgres", args...)
	if err != nil {
		return err
	}
	s.run, s.log = r, r.log

	late := time.NewTimer(startLimit)
	defer late.Stop()
	select {
	case <-s.log.ready:
		return nil
	case <-s.log.ended:
		err = errors.New("postgres ended before it was ready")
		if strings.Contains(s.log.String(), "Address already in use") {
			err = errPortTaken
		}
	case <-late.C:
		err = fmt.Errorf("postgres is not ready after %v", startLimit)
	}
	s.halt("QUIT")
	return fmt.Errorf("port %d: %w:\n%s", s.port, err, s.log)
}

// halt ends a running server, and returns when all its processes have ended.
func (s *Server) halt(signal string) {
	if s.run != nil {
		_ = s.run.end(signal) // the exit code does not matter
		s.run = nil
	}
}

// A programLog follows the output of a program.
type programLog struct {
	ready chan struct{} // closed when the server accepts connections
	ended chan struct{} // closed when no process of the program is left

	mu   sync.Mutex
	tail []string
}

// follow reads a log in the background and closes it at its end.
func follow(from io.ReadCloser) *programLog {
	l := &programLog{ready: make(chan struct{}), ended: make(chan struct{})}
	go l.read(from)
	return l
}

func (l *programLog) read(from io.ReadCloser) {
	defer close(l.ended)
	defer from.Close() //nolint:errcheck // only read from: nothing can be lost
	isReady := false
	for r := bufio.NewReader(from); ; {
		line, err := r.ReadString('\n')
		l.add(line)
		if !isReady && strings.Contains(line, "database system is ready to accept connections") {
			isReady = true
			close(l.ready)
		}
		if err != nil {
			return
		}
	}
}

func (l *programLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const most = 200
	if len(l.tail) == most {
		l.tail = l.tail[1:]
	}
	l.tail = append(l.tail, line)
}

// String returns the last lines.
func (l *programLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.tail, "")
}
