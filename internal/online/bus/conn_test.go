package bus

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// reserveAddress returns an address at which servers of the test can listen.
func reserveAddress(t *testing.T) string {
	t.Helper()
	return "127.0.0.1:" + strconv.Itoa(tracetest.ReservePort(t))
}

func TestClientMayStartBeforeServer(t *testing.T) {
	noLeaks(t)
	listen := reserveAddress(t)
	c := connect(t, Options{URL: "nats://" + listen})
	if c.Connected() || c.LastError() == nil {
		t.Errorf("connected: %v, because of %v; want a reason why not", c.Connected(), c.LastError())
	}
	if _, err := c.Request(t.Context(), "x", nil); !errors.Is(err, ErrNotConnected) {
		t.Errorf("a request got %v, want ErrAway", err)
	}
	service, err := c.Serve("echo", "", 1, echo)
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	eventually(t, "the reason is known", func() bool { return strings.Contains(c.LastError().Error(), "refused") })
	s := startServer(t, ServerOptions{Listen: listen})
	wantConnected(t, c)
	if !c.Connected() || c.LastError() != nil {
		t.Errorf("connected: %v, error %v", c.Connected(), c.LastError())
	}
	other := join(t, s)
	eventually(t, "the service that was there before the server answers", func() bool {
		got, err := other.Request(soon(t), "echo", []byte("hi"))
		return err == nil && string(got) == "hi"
	})
}

func TestWaitReportsWhyNotConnected(t *testing.T) {
	s := startServer(t, ServerOptions{Token: "secret"})
	wrong := connect(t, Options{URL: s.URL(), Token: "guess"})
	eventually(t, "the reason is known", func() bool { return strings.Contains(wrong.LastError().Error(), "Authorization Violation") })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := wrong.Wait(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNotConnected) {
		t.Errorf("got %v, want one of ErrAway and the context's", err)
	}
	wantText(t, err, "Authorization Violation")
	wantText(t, wrong.LastError(), "Authorization Violation")
	if strings.Contains(s.URL(), "secret") {
		t.Error("the token is in the URL", s.URL())
	}
	wantConnected(t, connect(t, Options{URL: s.URL(), Token: "secret"}))
}

func TestInvalidOptionsFail(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(opt Options, want string) {
		t.Helper()
		c, err := Connect(opt)
		if err == nil {
			c.Close()
		}
		wantText(t, err, want)
	}
	const url = "nats://127.0.0.1:1"
	f(Options{}, "want nats://")
	f(Options{URL: "127.0.0.1:4222"}, "want nats://")
	f(Options{URL: "http://127.0.0.1:4222"}, "want nats://")
	f(Options{URL: url + ",nats://"}, "want nats://")
	f(Options{URL: url, CA: missing}, "missing")
	f(Options{URL: url, CA: empty}, "root certificate")
	f(Options{URL: url, Cert: missing, Key: missing}, "missing")
	f(Options{URL: url, Cert: missing}, "needs its key")
	f(Options{URL: url, Key: missing}, "a key its certificate")
	f(Options{URL: url, Credentials: missing}, "missing")
	f(Options{URL: url, Credentials: empty}, "empty")
}

func TestInvalidServerOptionsFail(t *testing.T) {
	running := startServer(t, ServerOptions{})
	dir := t.TempDir()
	startServer(t, ServerOptions{Dir: dir})
	f := func(opt ServerOptions, want ...string) {
		t.Helper()
		s, err := StartServer(t.Context(), opt)
		if err == nil {
			_ = s.Close()
		}
		wantText(t, err, want...)
	}
	f(ServerOptions{}, "needs a directory")
	f(ServerOptions{Dir: dir}, "in use by another", dir)
	f(ServerOptions{Dir: t.TempDir(), Listen: "127.0.0.1:" + strconv.Itoa(running.port)}, "address already in use")
	f(ServerOptions{Dir: t.TempDir(), Listen: "127.0.0.1"}, "want host:port")
	f(ServerOptions{Dir: t.TempDir(), Listen: "127.0.0.1:http"}, "invalid port")
	f(ServerOptions{Dir: t.TempDir(), Listen: "0.0.0.0:0"}, "set a token")
	f(ServerOptions{Dir: t.TempDir(), Cert: "cert.pem"}, "certificate and its key")
	f(ServerOptions{Dir: t.TempDir(), Cert: "missing.pem", Key: "missing.pem"}, "missing.pem")
}

func TestServerListensOnAllAddresses(t *testing.T) {
	s := startServer(t, ServerOptions{Listen: "0.0.0.0:0", Token: "secret"})
	if want := "nats://127.0.0.1:" + strconv.Itoa(s.port); s.URL() != want {
		t.Errorf("got %s, want %s", s.URL(), want)
	}
	wantConnected(t, connect(t, Options{URL: s.URL(), Token: "secret"}))
}

func TestClientReconnectsAfterServerRestart(t *testing.T) {
	noLeaks(t)
	dir, listen := t.TempDir(), reserveAddress(t)
	s := startServer(t, ServerOptions{Dir: dir, Listen: listen})
	var log strings.Builder
	c := connect(t, Options{URL: s.URL(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	wantConnected(t, c)
	service, err := c.Serve("echo", "", 1, echo)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "the client notices", func() bool { return !c.Connected() })
	if c.LastError() == nil {
		t.Error("no reason for the loss")
	}
	_ = startServer(t, ServerOptions{Dir: dir, Listen: listen})
	wantConnected(t, c)
	if got, err := c.Request(soon(t), "echo", []byte("hi")); err != nil || string(got) != "hi" {
		t.Errorf("got %q and %v from a service that outlived the server", got, err)
	}
	service.Close()
	c.Close()
	c.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Request(t.Context(), "echo", nil); !errors.Is(err, ErrNotConnected) || !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v, want ErrAway and ErrClosed", err)
	}
	if err := c.Wait(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
	wantText(t, errors.New(log.String()), "connected", "lost the message bus")
}

func TestRetryWaitIsShortAndRandom(t *testing.T) {
	waits := make(map[time.Duration]bool)
	for attempts := range 1000 {
		wait := retryWait(attempts)
		if wait < firstRetry/2 || wait > lastRetry {
			t.Errorf("after %d attempts: wait %v", attempts, wait)
		}
		waits[wait] = true
	}
	if len(waits) < 900 {
		t.Errorf("1000 clients have only %d different waits", len(waits))
	}
}
