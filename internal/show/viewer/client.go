package viewer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// StatusTimeout is how long a part of the services may take to report its status.
const StatusTimeout = 900 * time.Millisecond

// pageTimeout is how long the page may take to report the status. The page waits
// StatusTimeout for parts that do not respond.
const pageTimeout = 5 * time.Second

// FetchStatus requests the status of a run from its services.
func FetchStatus(ctx context.Context, s *runfiles.Services) (*api.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	return fetchStatus(ctx, s)
}

func fetchStatus(ctx context.Context, s *runfiles.Services) (*api.Status, error) {
	client, err := Client(s.CA)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	return dashboard.Fetch(ctx, client, s.Web, s.Secret)
}

// Client returns an HTTP client that also trusts the certificates in a file, if it is not "".
func Client(file string) (*http.Client, error) {
	if file == "" {
		return new(http.Client), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: no certificates", file)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: transport}, nil
}

// Reachable reports whether this machine can reach the HTTP server of services, which may listen
// only on the loopback interface of another machine.
func Reachable(s *runfiles.Services) bool {
	host, _ := os.Hostname() // "" matches no machine
	return s.Host == host || !isLoopback(HostPort(s.Web))
}

// isLoopback reports whether host:port is on this machine only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// HostPort returns host:port of a URL, or "".
func HostPort(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

// WithToken returns the URL of a page with its token.
func WithToken(address, token string) string {
	return address + "/?" + url.Values{"token": {token}}.Encode()
}

// Fragment returns the end of an address that opens a part of the page: the route at, as after #/ in its address, or else
// the execution event, as PROGRAM:RANK:STEP:ROW or of program 0 without PROGRAM. It returns "" for neither.
func Fragment(at, event string) string {
	switch {
	case at != "":
		return "#/" + strings.TrimPrefix(strings.TrimPrefix(at, "#"), "/")
	case strings.Count(event, ":") == 2:
		return "#/e/0:" + event
	case event != "":
		return "#/e/" + event
	}
	return ""
}
