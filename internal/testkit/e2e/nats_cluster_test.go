package e2e

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
	"syscall"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// natsAuth is the authentication that servers require.
type natsAuth int

// Servers may require nothing, a token, a user and a password, or credentials signed by
// an operator.
const (
	natsOpen natsAuth = iota
	natsToken
	natsPassword
	natsCredentials
)

// natsOptions configure the servers.
type natsOptions struct {
	Servers int // 0 means 1; more are a cluster
	Auth    natsAuth
	TLS     bool // for clients and between the servers

	// Host is the address to listen on, by default 127.0.0.1. Prefix is a command that
	// runs the server, such as ip netns exec NAME; Leader does not support it.
	Host   string
	Prefix []string

	// Fabric, if not nil, has the servers on its first hosts; Leader does not support it.
	Fabric fabric
}

// natsCluster is a set of running servers. It must not be used concurrently.
type natsCluster struct {
	CA       string // file with the certificate of the authority
	Token    string // with natsToken
	User     string // with natsPassword
	Password string

	opt     natsOptions
	dir     string
	servers []*natsServer
	signer  *natsSigner // with natsCredentials
}

type natsServer struct {
	name                   string
	number                 int
	dir                    string
	client, route, monitor int // ports
	cmd                    *exec.Cmd
	ended                  chan struct{}
	starts                 int
}

var errPortTaken = errors.New("a port is taken")

// natsProgram builds nats-server beside chimbuko, once.
var natsProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(program), "nats-server")
	out, err := exec.Command("go", "build", tracetest.LinkFlags(), "-o", path, "github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// startNATS starts servers, waits until they are ready, and ends them with the test.
func startNATS(tb testing.TB, opt natsOptions) *natsCluster {
	tb.Helper()
	opt.Servers = max(opt.Servers, 1)
	if opt.Host == "" {
		opt.Host = "127.0.0.1"
	}
	c := &natsCluster{opt: opt, dir: tb.TempDir()}
	if err := c.prepare(); err != nil {
		tb.Fatalf("NATS servers: %v", err)
	}
	tb.Cleanup(func() {
		for i, s := range c.servers {
			s.end()
			if tb.Failed() {
				tb.Logf("end of the log of %s:\n%s", s.name, tail(c.Log(i)))
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
			tb.Fatalf("NATS servers: %v", err)
		}
		for _, s := range c.servers {
			_ = os.Remove(s.logFile()) // the next attempt has its own
			s.starts = 0
		}
	}
}

// prepare creates certificates, secrets and directories.
func (c *natsCluster) prepare() error {
	if c.opt.TLS {
		if err := writeCertificates(c.dir, c.opt.Host); err != nil {
			return err
		}
		c.CA = filepath.Join(c.dir, "ca.pem")
	}
	switch c.opt.Auth {
	case natsOpen:
	case natsToken:
		c.Token = "token-of-the-test"
	case natsPassword:
		c.User, c.Password = "job", "password-of-the-test"
	case natsCredentials:
		var err error
		if c.signer, err = newNATSSigner(); err != nil {
			return err
		}
	}
	for i := range c.opt.Servers {
		s := &natsServer{name: fmt.Sprint("server", i), number: i}
		s.dir = filepath.Join(c.dir, s.name)
		if err := os.Mkdir(s.dir, 0o700); err != nil {
			return err
		}
		c.servers = append(c.servers, s)
	}
	return nil
}

// choosePorts chooses ports below those of outgoing connections, so that they stay free
// while a server is down.
func (c *natsCluster) choosePorts() {
	for _, s := range c.servers {
		first := 20000 + rand.IntN(12000-2)
		s.client, s.route, s.monitor = first, first+1, first+2
	}
}

func (c *natsCluster) startAll() error {
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

func (s *natsServer) logFile() string { return filepath.Join(s.dir, "log") }

// start starts a server.
func (c *natsCluster) start(s *natsServer) error {
	program, err := natsProgram()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the server has its own descriptor
	s.starts++
	command := slices.Concat(c.prefix(s), []string{program, "-c", filepath.Join(s.dir, "nats.conf")})
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
		_ = cmd.Wait() // it is usually killed
	}(s.cmd, s.ended)
	return nil
}

// ready waits until clients can use a server, and until a cluster has a leader.
func (c *natsCluster) ready(s *natsServer) error {
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if err = c.healthy(s); err == nil {
			return nil
		}
		if other := c.withoutPort(); other != nil { // this one may wait for it
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

// withoutPort returns a server that ended because a port was taken, or nil.
func (c *natsCluster) withoutPort() *natsServer {
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

// healthy returns an error unless a server is ready. It reads the log of a server in
// another network namespace.
func (c *natsCluster) healthy(s *natsServer) error {
	if len(c.prefix(s)) == 0 {
		return c.get(s, "/healthz", nil)
	}
	if strings.Count(s.log(), "Server is ready") < s.starts {
		return errors.New("not in its log")
	}
	return nil
}

// get decodes the JSON of a server's HTTP endpoint, unless answer is nil.
func (c *natsCluster) get(s *natsServer, path string, answer any) error {
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

// prefix returns the beginning of the command that runs a server.
func (c *natsCluster) prefix(s *natsServer) []string {
	if c.opt.Fabric != nil {
		return c.opt.Fabric.Command(s.number)
	}
	return c.opt.Prefix
}

// listen returns the address at which a server listens, and reach that by which others
// reach it.
func (c *natsCluster) listen(s *natsServer, port int) string {
	host := c.opt.Host
	if c.opt.Fabric != nil {
		host = c.opt.Fabric.Address(s.number)
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

func (c *natsCluster) reach(s *natsServer, port int) string {
	if c.opt.Fabric != nil {
		return c.opt.Fabric.Reach(s.number, port)
	}
	return c.listen(s, port)
}

// URL returns the URLs of the servers, separated by commas.
func (c *natsCluster) URL() string {
	scheme := "nats"
	if c.opt.TLS {
		scheme = "tls"
	}
	user := ""
	if c.User != "" {
		user = c.User + ":" + c.Password + "@"
	}
	all := make([]string, len(c.servers))
	for i, s := range c.servers {
		all[i] = scheme + "://" + user + c.reach(s, s.client)
	}
	return strings.Join(all, ",")
}

// Leader waits until a stream has a leader, and returns the index of its server.
func (c *natsCluster) Leader(tb testing.TB, name string) int {
	tb.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		for _, stream := range c.streams() {
			leads := func(s *natsServer) bool { return s.name == stream.Cluster.Leader }
			if i := slices.IndexFunc(c.servers, leads); stream.Name == name && i >= 0 {
				return i
			}
		}
		<-time.After(20 * time.Millisecond)
	}
	tb.Fatalf("NATS servers: no server leads the stream %s", name)
	return -1
}

// Streams returns the sorted names of the streams of all running servers.
func (c *natsCluster) Streams() (names []string) {
	for _, stream := range c.streams() {
		names = append(names, stream.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

type natsStream struct {
	Name    string `json:"name"`
	Cluster struct {
		Leader string `json:"leader"`
	} `json:"cluster"`
}

// streams returns the streams of all running servers.
func (c *natsCluster) streams() (all []natsStream) {
	for _, s := range c.servers {
		var answer struct {
			Accounts []struct {
				Streams []natsStream `json:"stream_detail"`
			} `json:"account_details"`
		}
		if s.cmd != nil && c.get(s, "/jsz?accounts=true&streams=true", &answer) == nil {
			for _, a := range answer.Accounts {
				all = append(all, a.Streams...)
			}
		}
	}
	return all
}

// Kill ends a server as kill -9 does, and keeps its files.
func (c *natsCluster) Kill(tb testing.TB, i int) {
	tb.Helper()
	c.servers[i].end()
}

// Signal sends a signal to a running server.
func (c *natsCluster) Signal(tb testing.TB, i int, s syscall.Signal) {
	tb.Helper()
	if err := c.servers[i].cmd.Process.Signal(s); err != nil {
		tb.Fatalf("%s: %v", c.servers[i].name, err)
	}
}

// Restart starts servers again with their files, and waits until they are ready.
func (c *natsCluster) Restart(tb testing.TB, servers ...int) {
	tb.Helper()
	var errs []error
	for _, i := range servers {
		c.servers[i].end()
		errs = append(errs, c.start(c.servers[i]))
	}
	for _, i := range servers {
		errs = append(errs, c.ready(c.servers[i]))
	}
	if err := errors.Join(errs...); err != nil {
		tb.Fatalf("NATS servers: %v", err)
	}
}

// Log returns the log of a server.
func (c *natsCluster) Log(i int) string { return c.servers[i].log() }

func (s *natsServer) log() string {
	b, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// end kills a running server, and waits for its end.
func (s *natsServer) end() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
	s.cmd = nil
}
