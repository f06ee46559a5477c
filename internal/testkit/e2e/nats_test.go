package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/online/bus"
)

func TestExistingNATSServerWithTLSAndToken(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	cert, key := certificate(t, s)
	token := s.write("token", "secret\n")
	server, err := bus.StartServer(t.Context(), bus.ServerOptions{Dir: s.path("nats"), Token: "secret", Cert: cert, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	if !strings.HasPrefix(server.URL(), "tls://") {
		t.Fatalf("the server is at %s", server.URL())
	}
	nats := []string{"--nats", server.URL(), "--nats-ca", cert, "--nats-token-file"}
	stranger := s.ad("stranger", s.live(r.traces[0]), append(nats, s.write("wrong", "guessed"))...)
	stranger.awaitLog("Authorization Violation")
	serve := s.serve(append(nats, token, "--ranks", "3", "--save-model", s.path("model"), "--shards", "2")...)
	s.services()
	ads := []*process{
		s.ad("n0", s.live(r.traces[0]), append(nats, token)...),
		s.ad("n1", s.live(r.traces[1]), append(nats, token)...),
		s.ad("n2", s.live(r.traces[2]), "--nats-token-file", token), // the run directory has the rest
	}
	succeed(s.replay(r, "4"))
	stranger.awaitLog("all traces have ended")
	succeed(append(ads, serve)...)
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestOwnServicesUseTLS(t *testing.T) {
	t.Parallel()
	r := recorded(t, "ring-BP5")
	s := newScene(t)
	cert, key := certificate(t, s)
	serve := s.serve("--ranks", "2", "--tls-cert", cert, "--tls-key", key)
	services := s.services()
	if !strings.HasPrefix(services.Bus, "tls://") || !strings.HasPrefix(services.Web, "https://") {
		t.Errorf("NATS is at %s, HTTP at %s", services.Bus, services.Web)
	}
	must(t, "status", s.run)
	ads := s.ads(r)
	succeed(s.replay(r, "max"))
	succeed(append(ads, serve)...)
}

// write writes a file and returns its path.
func (s *scene) write(name, text string) string {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return s.path(name)
}

// read reads a file.
func (s *scene) read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// certificate makes a certificate for this machine, signed by itself, and its key.
func certificate(t testing.TB, s *scene) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))),
		s.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})))
}
