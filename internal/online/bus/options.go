package bus

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second

	// A client leaves a server that does not answer this many pings. Otherwise a client whose
	// packets are silently lost would notice only after many minutes.
	pingEvery = 5 * time.Second
	maxPings  = 2
)

// Options describe a client: where the server is, and who connects.
type Options struct {
	URL  string // nats://host:port or tls://host:port; members of a cluster separated by commas
	Name string // of this client, for the operator of the server

	Token          string
	User, Password string
	Credentials    string // a .creds file

	// CA, Cert and Key are PEM files: the authority of the server's certificate, unless the system
	// trusts it, and the client's own certificate.
	CA, Cert, Key string

	Log *slog.Logger // nil discards
}

// natsOptions validates the options. nats.Connect reads the files for TLS.
func (o Options) natsOptions() ([]nats.Option, error) {
	secure := false
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
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(maxPings),
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
		all = append(all, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	if o.CA != "" {
		all = append(all, nats.RootCAs(o.CA))
	}
	switch {
	case o.Cert != "" && o.Key != "":
		all = append(all, nats.ClientCert(o.Cert, o.Key))
	case o.Cert+o.Key != "":
		return nil, errors.New("a client certificate needs its key, and a key its certificate")
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

// retryWait returns how long to wait after a number of attempts. It is random, so that
// many clients do not reconnect at the same moment.
func retryWait(attempts int) time.Duration {
	most := lastRetry
	if attempts < 6 {
		most = firstRetry << attempts
	}
	return most/2 + mathrand.N(most/2)
}
