package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// signedCertificate creates a certificate for an address and 127.0.0.1, and returns its file
// and that of its key.
func signedCertificate(tb testing.TB, host string) (cert, key string) {
	tb.Helper()
	dir := tb.TempDir()
	if err := writeCertificates(dir, host); err != nil {
		tb.Fatalf("NATS servers: %v", err)
	}
	return filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
}

// writeCertificates writes ca.pem, and cert.pem and key.pem for host, signed by it.
func writeCertificates(dir, host string) error {
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server of the test"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		IPAddresses: []net.IP{net.ParseIP(host), net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, // servers are clients of each other
	}
	authorityKey, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	leafKey, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	ca, err1 := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	cert, err2 := x509.CreateCertificate(rand.Reader, leaf, authority, &leafKey.PublicKey, authorityKey)
	key, err3 := x509.MarshalECPrivateKey(leafKey)
	write := func(name, kind string, der []byte) error {
		return os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	return errors.Join(write("ca.pem", "CERTIFICATE", ca), write("cert.pem", "CERTIFICATE", cert), write("key.pem", "EC PRIVATE KEY", key))
}
