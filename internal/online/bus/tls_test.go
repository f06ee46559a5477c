package bus

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
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.file, _, a.cert, a.key = a.sign(t)
	return a
}

// issue makes a certificate and its key.
func (a *authority) issue(t *testing.T) (cert, key string) {
	t.Helper()
	cert, key, _, _ = a.sign(t)
	return cert, key
}

// sign makes a certificate; that of the authority itself when it has none.
func (a *authority) sign(t *testing.T) (certFile, keyFile string, cert *x509.Certificate, key *ecdsa.PrivateKey) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: t.Name()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IsCA:        a.cert == nil, BasicConstraintsValid: true,
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(err)
	cert, err = x509.ParseCertificate(der)
	must(err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	must(err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must(os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))
	return certFile, keyFile, cert, key
}

// wantRefused fails unless the reason why c is not connected becomes one with want.
func wantRefused(t *testing.T, c *Conn, want string) {
	t.Helper()
	eventually(t, "the reason is "+want, func() bool {
		err := c.LastError()
		return err != nil && strings.Contains(err.Error(), want)
	})
	if c.Connected() {
		t.Error("connected all the same")
	}
}

func TestTLS(t *testing.T) {
	ours, foreign := newAuthority(t), newAuthority(t)
	cert, key := ours.issue(t)
	s := startServer(t, ServerOptions{Cert: cert, Key: key, Token: "secret"})
	if !strings.HasPrefix(s.URL(), "tls://") {
		t.Error("the URL is", s.URL())
	}
	wantConnected(t, connect(t, Options{URL: s.URL(), Token: "secret", CA: ours.file}))
	wantRefused(t, connect(t, Options{URL: s.URL(), Token: "secret", CA: foreign.file}), "unknown authority")
	wantRefused(t, connect(t, Options{URL: s.URL(), Token: "guess", CA: ours.file}), "Authorization")
}

func TestTLSWithClientCertificates(t *testing.T) {
	ours, foreign := newAuthority(t), newAuthority(t)
	cert, key := ours.issue(t)
	s := startServer(t, ServerOptions{Cert: cert, Key: key, CA: ours.file})
	cert, key = ours.issue(t)
	wantConnected(t, connect(t, Options{URL: s.URL(), CA: ours.file, Cert: cert, Key: key}))
	wantRefused(t, connect(t, Options{URL: s.URL(), CA: ours.file}), "certificate required")
	cert, key = foreign.issue(t)
	wantRefused(t, connect(t, Options{URL: s.URL(), CA: ours.file, Cert: cert, Key: key}), "certificate")
}
