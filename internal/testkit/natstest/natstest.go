// Package natstest runs real nats-server programs for tests, one or a cluster, each
// a process of its own with JetStream, TLS and authentication as people who look
// after NATS set it up. The program is built from the module that go.mod names. It
// speaks no NATS: what it knows of its servers they tell by HTTP.
package natstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Auth is what servers want to see of a client.
type Auth int

// What servers may want: nothing, a token, a name and a password, or credentials
// that an operator signed.
const (
	Open Auth = iota
	Token
	Password
	Credentials
)

// Options say how the servers are set up.
type Options struct {
	Servers int // 1 if it is 0; more of them are a cluster
	Auth    Auth
	TLS     bool // for clients and between the servers

	// Host is where all of them listen, 127.0.0.1 if it is empty, and Prefix a
	// command that runs theirs, such as ip netns exec NAME. Servers with a Prefix
	// are not asked who leads a stream.
	Host   string
	Prefix []string
}

// A Cluster is servers at work. Its methods must not be called at once.
type Cluster struct {
	CA       string // file with the certificate that signed those of the servers
	Token    string // with the Auth Token
	User     string // with the Auth Password
	Password string

	opt     Options
	dir     string
	servers []*server
	signer  *signer // with the Auth Credentials
}

// server is one of them.
type server struct {
	name                   string
	dir                    string
	client, route, monitor int // ports
	cmd                    *exec.Cmd
	ended                  chan struct{}
	starts                 int
}

// patience is how long servers may take to be ready.
const patience = 60 * time.Second

var errPortTaken = errors.New("a port is taken")

// build makes the program, once for a test binary.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "chimbuko-nats-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "nats-server")
	out, err := exec.Command("go", "build", "-o", program, "github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	built.Store(&dir)
	return program, nil
})

var built atomic.Pointer[string] // the directory of the program, if it was made

// Remove removes the program, if it was made. It is for the end of TestMain.
func Remove() {
	if dir := built.Load(); dir != nil {
		_ = os.RemoveAll(*dir) // temporary files
	}
}

// Start starts servers, waits until they are ready, and ends them with the test.
func Start(tb testing.TB, opt Options) *Cluster {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short: needs NATS servers")
	}
	opt.Servers = max(opt.Servers, 1)
	if opt.Host == "" {
		opt.Host = "127.0.0.1"
	}
	c := &Cluster{opt: opt, dir: tb.TempDir()}
	if err := c.prepare(); err != nil {
		tb.Fatalf("natstest: %v", err)
	}
	tb.Cleanup(func() {
		for i, s := range c.servers {
			s.end()
			if tb.Failed() {
				tb.Logf("the log of %s ends:\n%s", s.name, tail(c.Log(i)))
			}
		}
	})
	for try := 1; ; try++ {
		c.choosePorts()
		err := c.startAll()
		if err == nil {
			return c
		}
		for _, s := range c.servers {
			s.end()
		}
		if !errors.Is(err, errPortTaken) || try == 10 {
			tb.Fatalf("natstest: %v", err)
		}
		for _, s := range c.servers {
			_ = os.Remove(s.logFile()) // the next try starts over
			s.starts = 0
		}
	}
}

// prepare makes what all starts have in common.
func (c *Cluster) prepare() error {
	if c.opt.TLS {
		if err := writeCertificates(c.dir, c.opt.Host); err != nil {
			return err
		}
		c.CA = filepath.Join(c.dir, "ca.pem")
	}
	switch c.opt.Auth {
	case Open:
	case Token:
		c.Token = "token-of-the-test"
	case Password:
		c.User, c.Password = "job", "password-of-the-test"
	case Credentials:
		var err error
		if c.signer, err = newSigner(); err != nil {
			return err
		}
	}
	for i := range c.opt.Servers {
		s := &server{name: fmt.Sprint("server", i)}
		s.dir = filepath.Join(c.dir, s.name)
		if err := os.Mkdir(s.dir, 0o700); err != nil {
			return err
		}
		c.servers = append(c.servers, s)
	}
	return nil
}

// choosePorts chooses them below those that systems give to outgoing connections,
// so that nothing takes them while a server is down.
func (c *Cluster) choosePorts() {
	for _, s := range c.servers {
		first := 20000 + rand.IntN(12000-2)
		s.client, s.route, s.monitor = first, first+1, first+2
	}
}

func (c *Cluster) startAll() error {
	for _, s := range c.servers {
		if err := os.WriteFile(filepath.Join(s.dir, "nats.conf"), []byte(c.config(s)), 0o600); err != nil {
			return err
		}
		if err := c.start(s); err != nil {
			return err
		}
	}
	for _, s := range c.servers {
		if err := c.ready(s); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) logFile() string { return filepath.Join(s.dir, "log") }

// start starts a server.
func (c *Cluster) start(s *server) error {
	program, err := build()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the server has its own
	s.starts++
	command := slices.Concat(c.opt.Prefix, []string{program, "-c", filepath.Join(s.dir, "nats.conf")})
	s.cmd = exec.Command(command[0], command[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the test
	s.ended = make(chan struct{})
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait() // most are killed
	}(s.cmd, s.ended)
	return nil
}

// ready waits until clients can use a server, and in a cluster until the servers
// have agreed.
func (c *Cluster) ready(s *server) error {
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if err = c.healthy(s); err == nil {
			return nil
		}
		if other := c.withoutPort(); other != nil { // for which this one may wait
			return fmt.Errorf("%s: %w", other.name, errPortTaken)
		}
		select {
		case <-s.ended:
			log := s.log()
			if strings.Contains(log, "address already in use") {
				return fmt.Errorf("%s: %w", s.name, errPortTaken)
			}
			return fmt.Errorf("%s ended before it was ready:\n%s", s.name, tail(log))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s is not ready after %v: %w\n%s", s.name, patience, err, tail(s.log()))
}

// withoutPort is a server that ended because a port was taken; nil if none did.
func (c *Cluster) withoutPort() *server {
	for _, s := range c.servers {
		if s.ended == nil {
			continue
		}
		select {
		case <-s.ended:
			if strings.Contains(s.log(), "address already in use") {
				return s
			}
		default:
		}
	}
	return nil
}

// healthy reports whether a server is ready. One in another network says so in its
// log.
func (c *Cluster) healthy(s *server) error {
	if len(c.opt.Prefix) == 0 {
		return c.ask(s, "/healthz", nil)
	}
	if strings.Count(s.log(), "Server is ready") < s.starts {
		return errors.New("it does not say that it is")
	}
	return nil
}

// ask asks a server by HTTP.
func (c *Cluster) ask(s *server, path string, answer any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	url := "http://" + net.JoinHostPort(c.opt.Host, strconv.Itoa(s.monitor)) + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}

// URL is where clients find the servers, with commas between.
func (c *Cluster) URL() string {
	scheme := "nats"
	if c.opt.TLS {
		scheme = "tls"
	}
	who := ""
	if c.User != "" {
		who = c.User + ":" + c.Password + "@"
	}
	all := make([]string, len(c.servers))
	for i, s := range c.servers {
		all[i] = scheme + "://" + who + net.JoinHostPort(c.opt.Host, strconv.Itoa(s.client))
	}
	return strings.Join(all, ",")
}

// Leader returns the number of the server that leads a stream, and waits until
// there is one.
func (c *Cluster) Leader(tb testing.TB, stream string) int {
	tb.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		for _, s := range c.servers {
			if leader := c.leader(s, stream); leader >= 0 {
				return leader
			}
		}
		<-time.After(20 * time.Millisecond)
	}
	tb.Fatalf("natstest: no server leads the stream %s", stream)
	return -1
}

// leader is what a server knows of who leads a stream; -1 is nothing.
func (c *Cluster) leader(s *server, stream string) int {
	for _, one := range c.streams(s) {
		if one.Name == stream {
			return slices.IndexFunc(c.servers, func(s *server) bool { return s.name == one.Cluster.Leader })
		}
	}
	return -1
}

// Streams are the names of all that servers which are up know, in order.
func (c *Cluster) Streams() (names []string) {
	for _, s := range c.servers {
		for _, one := range c.streams(s) {
			names = append(names, one.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

type stream struct {
	Name    string `json:"name"`
	Cluster struct {
		Leader string `json:"leader"`
	} `json:"cluster"`
}

// streams are those that a server knows.
func (c *Cluster) streams(s *server) (all []stream) {
	var found struct {
		Accounts []struct {
			Streams []stream `json:"stream_detail"`
		} `json:"account_details"`
	}
	if s.cmd == nil || c.ask(s, "/jsz?accounts=true&streams=true", &found) != nil {
		return nil
	}
	for _, a := range found.Accounts {
		all = append(all, a.Streams...)
	}
	return all
}

// Kill ends a server as kill -9 does. What it has on disk stays.
func (c *Cluster) Kill(tb testing.TB, i int) {
	tb.Helper()
	c.servers[i].end()
}

// Restart starts a server again with what it has on disk, and waits until it is
// ready.
func (c *Cluster) Restart(tb testing.TB, i int) {
	tb.Helper()
	s := c.servers[i]
	s.end()
	err := c.start(s)
	if err == nil {
		err = c.ready(s)
	}
	if err != nil {
		tb.Fatalf("natstest: %v", err)
	}
}

// Log is what a server has said.
func (c *Cluster) Log(i int) string { return c.servers[i].log() }

func (s *server) log() string {
	b, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// end kills a server, if it is up, and waits for its end.
func (s *server) end() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
	s.cmd = nil
}

// tail is the end of a text.
func tail(text string) string {
	const most = 3000
	if len(text) > most {
		return "…" + text[len(text)-most:]
	}
	return text
}
