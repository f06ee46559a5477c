package bus

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// Options describe a client: where the server is, and who connects.
type Options struct {
	URL  string // nats://host:port or tls://host:port; members of a cluster separated by commas
	Name string // of this client, for the operator of the server

	Token          string
	User, Password string
	Credentials    string // a .creds file

	// CA, Cert and Key are PEM files: the authority of the server's certificate, unless
	// the system knows it, and the client's own certificate.
	CA, Cert, Key string

	Log *slog.Logger // nil discards
}

// natsOptions validates the options and reads the files that they name.
func (o Options) natsOptions() ([]nats.Option, error) {
	secure := o.CA != "" || o.Cert != ""
	for one := range strings.SplitSeq(o.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Hostname() == "" || u.Scheme != "nats" && u.Scheme != "tls" {
			return nil, fmt.Errorf("message server %q: want nats://host:port or tls://host:port", withoutUser(one))
		}
		secure = secure || u.Scheme == "tls"
	}
	id := rand.Text() // so that no other client receives the replies
	all := []nats.Option{
		nats.Name(strings.TrimSpace(o.Name + " " + id)), nats.CustomInboxPrefix(inboxes + id),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), // fail at once without a connection
		nats.PingInterval(20 * time.Second), nats.MaxPingsOutstanding(2),
	}
	if o.Token != "" {
		all = append(all, nats.Token(o.Token))
	}
	if o.User != "" {
		all = append(all, nats.UserInfo(o.User, o.Password))
	}
	if o.Credentials != "" {
		creds := nats.UserCredentials(o.Credentials)
		if err := tryCredentials(creds); err != nil {
			return nil, fmt.Errorf("credentials %s: %w", o.Credentials, err)
		}
		all = append(all, creds)
	}
	if secure {
		conf, err := tlsConfig(o.CA, o.Cert, o.Key)
		if err != nil {
			return nil, err
		}
		all = append(all, nats.Secure(conf))
	} else if o.Key != "" {
		return nil, fmt.Errorf("key %s has no certificate", o.Key)
	}
	return all, nil
}

// withoutUser removes credentials from addresses, also from malformed ones.
func withoutUser(addresses string) string { return userOfURL.ReplaceAllString(addresses, "$1") }

var userOfURL = regexp.MustCompile(`(^|//|,\s*)[^,\s]*@`)

// tryCredentials reads the file as a connection would.
func tryCredentials(creds nats.Option) error {
	var o nats.Options
	if err := creds(&o); err != nil {
		return err
	}
	if _, err := o.UserJWT(); err != nil {
		return err
	}
	_, err := o.SignatureCB([]byte("nonce"))
	return err
}

func tlsConfig(ca, cert, key string) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("CA of the message server: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA of the message server: no certificate in %s", ca)
		}
	}
	if cert == "" && key == "" {
		return conf, nil
	}
	if cert == "" || key == "" {
		return nil, errors.New("a client certificate needs its key, and a key its certificate")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	conf.Certificates = []tls.Certificate{pair}
	return conf, nil
}

// retryWait returns how long to wait after a number of attempts. It is random, so that
// many clients do not reconnect at the same moment.
func retryWait(attempts int) time.Duration {
	most := lastRetry
	if attempts < 6 {
		most = firstRetry << attempts
	}
	return most/2 + mathrand.N(most/2)
}
