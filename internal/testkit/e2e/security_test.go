package e2e

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// besieged has a real run continue while someone attacks it, which cannot end before: its
// last analyzer comes then. The run must have the same outcome as ever, and its log must
// have the wanted text, and no secret.
func besieged(t *testing.T, args []string, attack func(s *scene, services *runfiles.Services, serve *process), logged ...string) {
	t.Helper()
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	serve := s.serve(append([]string{"--ranks", "3", "--save-model", s.path("model")}, args...)...)
	services := s.services()
	ads := s.ads(recording{r.name, r.traces[:2]})
	s.joined(2)
	replay := s.replay(r, "0.5")
	s.steps(3)
	attack(s, services, serve)
	for _, text := range logged {
		serve.awaitLog(text)
	}
	ads = append(ads, s.ad("last", s.live(r.traces[2])))
	succeed(append(ads, replay, serve)...)
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
	s.keepsSecrets(append(ads, serve)...)
}

// keepsSecrets fails when a token of the run is in a log, or in a file that others can
// read.
func (s *scene) keepsSecrets(all ...*process) {
	s.t.Helper()
	services := s.services()
	secrets := []string{services.Token, services.Analyzer, services.Secret}
	for _, secret := range secrets {
		if len(secret) < 20 {
			s.t.Errorf("the token %q is short", secret)
		}
		for _, p := range all {
			if strings.Contains(p.stdout.String()+p.stderr.String(), secret) {
				s.t.Errorf("%s has logged a token:\n%s", p.name, tail(p.stderr.String()))
			}
		}
	}
	err := filepath.WalkDir(s.run, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Mode().Perm()&0o077 == 0 {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // of the test
		for _, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				s.t.Errorf("everybody can read a token in %s", path)
			}
		}
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
}

// attacker is a NATS client that ignores all rules.
type attacker struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

// attackAs connects with a token.
func attackAs(t testing.TB, services *runfiles.Services, token string) *attacker {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(services.Bus, "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	a := &attacker{t: t, conn: conn, in: bufio.NewReader(conn)}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	a.send(fmt.Sprintf("CONNECT {\"auth_token\":%q,\"verbose\":false,\"headers\":true,\"name\":\"attacker\",\"lang\":\"go\",\"version\":\"0\",\"protocol\":1}", token), "PING")
	return a
}

// send sends lines; that the server has closed the connection shows when it is read.
func (a *attacker) send(lines ...string) {
	_, _ = io.WriteString(a.conn, strings.Join(lines, "\r\n")+"\r\n")
}

// expect reads until the server sends want, and fails if it sends something else
// before it closes the connection.
func (a *attacker) expect(want string) {
	a.t.Helper()
	var all strings.Builder
	for {
		line, err := a.in.ReadString('\n')
		all.WriteString(line)
		if strings.Contains(line, want) {
			return
		}
		if err != nil {
			a.t.Errorf("an attacker received no %q, but %v:\n%s", want, err, all.String())
			return
		}
	}
}

// ends waits until the server closes the connection.
func (a *attacker) ends() {
	a.t.Helper()
	if _, err := io.Copy(io.Discard, a.in); errors.Is(err, os.ErrDeadlineExceeded) {
		a.t.Error("the server does not mind")
	}
}

func TestClientWithoutTokenIsRejectedByNATS(t *testing.T) {
	besieged(t, nil, func(s *scene, services *runfiles.Services, _ *process) {
		for _, token := range []string{"", "guessed", services.Secret, services.Analyzer[1:]} {
			for range 100 {
				a := attackAs(t, services, token)
				a.expect("Authorization Violation")
				a.ends()
			}
		}
		stranger := s.ad("stranger", s.path("nothing.bp"), "--nats", services.Bus, "--name", "run", "--nats-token-file",
			s.write("wrong", "guessed"))
		stranger.awaitLog("Authorization Violation")
		stranger.kill()
	}, "message server rejects a client: wrong token", "message server rejects a client: no token", "address=127.0.0.1:", "message repeated")
}

func TestMessageOf100MBIsRejectedAtOnce(t *testing.T) {
	besieged(t, nil, func(_ *scene, services *runfiles.Services, _ *process) {
		for _, token := range []string{services.Analyzer, services.Token} {
			a := attackAs(t, services, token)
			a.expect("PONG")
			a.send(fmt.Sprintf("PUB chimbuko.run.records %d", 100<<20), "and so on")
			a.expect("Maximum Payload Violation")
			a.ends()
		}
	}, "maximum payload exceeded: 104857600", "address=127.0.0.1:")
}

func TestForbiddenRequestsOfAnalyzerAreRejected(t *testing.T) {
	besieged(t, nil, func(s *scene, services *runfiles.Services, _ *process) {
		a := attackAs(t, services, services.Analyzer)
		a.expect("PONG")
		const stream = "chimbuko-records-run"
		for _, subject := range []string{
			"chimbuko.run.ps.0.stop", "chimbuko.run.ps.0.status", "chimbuko.run.known", "chimbuko.run.store.status", "chimbuko.other.records",
			"$JS.API.STREAM.PURGE." + stream, "$JS.API.STREAM.DELETE." + stream, "$JS.API.STREAM.CREATE.mine", "$JS.API.STREAM.MSG.GET." + stream,
			"$JS.API.CONSUMER.CREATE." + stream, "$JS.API.INFO", "$SYS.REQ.SERVER.PING", "_INBOX.somebody",
		} {
			a.send("PUB "+subject+" _INBOX.x 0", "")
			a.expect("Permissions Violation for Publish to \"" + subject)
		}
		for _, subject := range []string{
			">", "chimbuko.>", "chimbuko.run.records", "chimbuko.run.ps.0.exchange", "_INBOX.>", "$JS.API.>",
			"$SYS.>",
		} {
			a.send("SUB " + subject + " 1")
			a.expect("Permissions Violation for Subscription to \"" + subject)
		}
		// To have a service or the server send it as an answer does not help.
		for _, forbidden := range []string{"chimbuko.run.ps.0.stop", "$JS.API.STREAM.PURGE." + stream, "$JS.API.STREAM.DELETE." + stream} {
			for _, allowed := range []string{"chimbuko.run.ps.0.exchange", "chimbuko.run.records", "$JS.API.STREAM.INFO." + stream} {
				a.send("PUB "+allowed+" "+forbidden+" 0", "")
			}
		}
		a.send("PING")
		a.expect("PONG")

		// The error names the missing permission.
		token := runfiles.AnalyzerToken(s.run)
		if info, err := os.Stat(token); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the token of analyzers: %v, %v", info, err)
		}
		_, stderr, code := run(t, "stop", s.path("nothing"), "--nats", services.Bus, "--name", "run", "--nats-token-file", token)
		if code == 0 {
			t.Error("the run can be stopped")
		}
		contains(t, stderr, "does not permit this with the given token", "chimbuko.run.ps.0.stop")
	}, "Publish Violation", "Subscription Violation", "address=127.0.0.1:")
}

// flood sends as fast as it can until the server has had enough, or time is up. It
// returns how many bytes it sent, and whether it was disconnected.
func (a *attacker) flood(subject string, size int, most time.Duration) (sent int, cut bool) {
	a.t.Helper()
	one := fmt.Sprintf("PUB %s _INBOX.attacker.x %d\r\n%s\r\n", subject, size, strings.Repeat("x", size))
	all := []byte(strings.Repeat(one, max(1, 256<<10/len(one))))
	if err := a.conn.SetDeadline(time.Now().Add(most)); err != nil {
		a.t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, a.in) })
	for {
		n, err := a.conn.Write(all)
		sent += n
		if err != nil {
			_ = a.conn.Close()
			reading.Wait()
			return sent, !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

func TestFloodFillsNeitherMemoryNorDisk(t *testing.T) {
	const streamSize = 64 // megabytes
	f := func(subject string, size int, logged ...string) {
		t.Run(fmt.Sprintf("%s with %d bytes", subject, size), func(t *testing.T) {
			besieged(t, []string{"--stream-size", strconv.Itoa(streamSize)}, func(s *scene, services *runfiles.Services, serve *process) {
				a := attackAs(t, services, services.Analyzer)
				a.expect("PONG")
				begin := time.Now()
				sent, cut := a.flood(subject, size, patience)
				disk, memory := sizeOf(t, filepath.Join(s.run, "nats"))>>20, peak(serve)>>20
				t.Logf("%d MB in %v, disconnected: %t; the services took %d MB of memory and %d MB on disk", sent>>20, time.Since(begin), cut, memory,
					disk)
				if disk > 3*streamSize || memory > 2048 {
					t.Error("that is too much")
				}
				if !cut {
					t.Error("the server does not mind")
				}
				attackAs(t, services, services.Analyzer).expect("Authorization Violation") // it must wait
			}, logged...)
		})
	}
	cut := []string{"disconnecting a client that sends too much", "its address is banned for sending too much"}
	f("chimbuko.run.records", 16, cut...)
	f("chimbuko.run.ps.0.exchange", 16, cut...)
	f("chimbuko.run.ps.0.stop", 16, append(cut, "Publish Violation")...)
	f("chimbuko.run.records", 500<<10, cut...)
	f("chimbuko.run.ps.0.exchange", 500<<10, cut...)
}

// sizeOf is the size of all files of a directory.
func sizeOf(t testing.TB, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // it was deleted meanwhile
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// peak is the most memory that a process has taken; 0 if unknown.
func peak(p *process) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 10, 64)
			return n << 10
		}
	}
	return 0
}

func TestRejectedHTTPRequestsAreLogged(t *testing.T) {
	besieged(t, nil, func(s *scene, services *runfiles.Services, _ *process) {
		for _, token := range []string{"guessed", services.Token, services.Analyzer} {
			if code, body := s.get("/api/v1/status", token); code != http.StatusUnauthorized {
				t.Errorf("a wrong token: %d %s", code, body)
			}
		}
		dial := func() net.Conn {
			conn, err := net.Dial("tcp", strings.TrimPrefix(services.Web, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			return conn
		}
		answers := func(want int, request string) {
			t.Helper()
			conn := dial()
			defer conn.Close()                   //nolint:errcheck // the answer is there
			_, _ = io.WriteString(conn, request) // the server may have closed it
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close() //nolint:errcheck // only read from
			if resp.StatusCode != want {
				t.Errorf("%.60q… is answered with %s, want %d", request, resp.Status, want)
			}
		}
		const host = " HTTP/1.1\r\nHost: localhost\r\n"
		answers(http.StatusUnauthorized, "GET /api/v1/status"+host+"\r\n")
		answers(http.StatusRequestEntityTooLarge, fmt.Sprintf("POST /api/v1/runs/run/sql%sAuthorization: Bearer %s\r\nContent-Type: "+
			"application/json\r\nContent-Length: %d\r\n\r\n{", host, services.Secret, 100<<20))
		answers(http.StatusRequestHeaderFieldsTooLarge, "GET /api/v1/status"+host+"X: "+strings.Repeat("x", 200<<10)+"\r\n\r\n")
		var all []net.Conn
		for range 600 {
			all = append(all, dial())
		}
		eventually(t, "connections are refused", func() error {
			refused := 0
			for _, c := range all {
				_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
				if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					refused++
				}
			}
			if refused < 50 {
				return fmt.Errorf("%d are refused", refused)
			}
			return nil
		})
		for _, c := range all {
			_ = c.Close()
		}
		eventually(t, "others are answered again", func() error {
			_, err := s.status()
			return err
		})
	}, "rejecting an HTTP request: token is wrong", "rejecting an HTTP request: token is missing",
		"rejecting an HTTP request: request is too large", "HTTP refuses a client: too many connections", "address=127.0.0.1:")
}

// issuer signs certificates, in files of a scene.
type issuer struct {
	s    *scene
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newIssuer(s *scene) *issuer {
	s.t.Helper()
	i := &issuer{s: s}
	i.file, _ = i.issue("authority", time.Now().Add(time.Hour))
	return i
}

// issue makes a certificate for this machine that is valid until then, and its key.
func (i *issuer) issue(name string, until time.Time) (certFile, keyFile string) {
	i.s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: i.cert == nil, BasicConstraintsValid: true,
	}
	parent, signer := i.cert, i.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		i.s.t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		i.s.t.Fatal(err)
	}
	if i.cert == nil {
		i.cert, i.key = template, key
	}
	return i.s.write(name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		i.s.write(name+"-key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})))
}

func TestClientWithoutValidCertificateIsRejected(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	ours, foreign := newIssuer(s), &issuer{s: s}
	foreign.file, _ = foreign.issue("foreign authority", time.Now().Add(time.Hour))
	later, before := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	cert, key := ours.issue("server", later)
	clientCert, clientKey := ours.issue("client", later)
	valid := []string{"--nats-cert", clientCert, "--nats-key", clientKey, "--nats-ca", ours.file}
	serve := s.serve(append(valid, "--ranks", "3", "--save-model", s.path("model"), "--tls-cert", cert, "--tls-key", key, "--tls-client-ca",
		ours.file)...)
	services := s.services()
	ads := s.ads(recording{r.name, r.traces[:2]}, valid...)
	for _, ad := range ads {
		ad.awaitLog("connected to the message bus")
	}
	replay := s.replay(r, "0.5")

	refused := func(want string, args ...string) {
		t.Helper()
		stranger := s.ad("stranger", s.path("nothing.bp"), append([]string{
			"--nats", services.Bus, "--name", "run", "--nats-token-file",
			runfiles.AnalyzerToken(s.run),
		}, args...)...)
		stranger.awaitLog(want)
		stranger.kill()
	}
	cert, key = ours.issue("expired", before)
	refused("tls: expired certificate", "--nats-cert", cert, "--nats-key", key, "--nats-ca", ours.file)
	serve.awaitLog("certificate has expired")
	refused("tls: certificate required", "--nats-ca", ours.file)
	serve.awaitLog("client didn't provide a certificate")
	cert, key = foreign.issue("stranger", later)
	refused("tls: certificate required", "--nats-cert", cert, "--nats-key", key, "--nats-ca", ours.file) // it is not even shown
	refused("certificate signed by unknown authority", "--nats-cert", clientCert, "--nats-key", clientKey, "--nats-ca", foreign.file)
	serve.awaitLog("tls: bad certificate")

	_, stderr, code := run(t, "status", services.Web) // without the certificate of the authority
	if code == 0 {
		t.Error("a certificate of an unknown authority is accepted")
	}
	contains(t, stderr, "certificate signed by unknown authority")
	serve.awaitLog("http: TLS handshake error from 127.0.0.1:")

	ads = append(ads, s.ad("last", s.live(r.traces[2]), valid...))
	succeed(append(ads, replay, serve)...)
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
	s.keepsSecrets(append(ads, serve)...)
}

func TestExpiredServerCertificateIsRejected(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ours := newIssuer(s)
	cert, key := ours.issue("expired", time.Now().Add(-time.Hour))
	_, stderr, code := run(t, "serve", "--out", s.run, "--tls-cert", cert, "--tls-key", key)
	if code == 0 {
		t.Error("a server with an expired certificate runs")
	}
	contains(t, stderr, cert, "expired on ")

	// One that expires while the server runs.
	until := time.Now().Add(3 * time.Second)
	cert, key = ours.issue("short", until)
	log := s.path("server.log")
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	server, err := bus.StartServer(t.Context(), bus.ServerOptions{
		Dir: s.path("nats"), Token: "secret", Cert: cert, Key: key, Log: slog.New(slog.NewTextHandler(out, nil)),
	})
	if err != nil {
		t.Skip("this machine is too slow for a certificate of three seconds: ", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), out.Close()); err != nil {
			t.Error(err)
		}
	})
	<-time.After(time.Until(until) + time.Second)
	stranger := s.ad("late", s.path("nothing.bp"), "--nats", server.URL(), "--name", "run", "--nats-ca", ours.file, "--nats-token-file",
		s.write("token", "secret"))
	stranger.awaitLog("certificate has expired")
	stranger.kill()
	eventually(t, "the server has logged it", func() error {
		if text := s.read("server.log"); !strings.Contains(text, "TLS handshake error") || !strings.Contains(text, "address=127.0.0.1:") {
			return errors.New(text)
		}
		return nil
	})
}
