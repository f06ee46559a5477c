package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// logged is a log that can be read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logged) says(t *testing.T, parts ...string) {
	t.Helper()
	for _, p := range parts {
		eventually(t, "the log has "+p, func() bool { return strings.Contains(l.String(), p) })
	}
}

const (
	theirs = "token of the guests"
	ours   = "token with full access"
)

// guarded starts a server with two tokens: guests may request svc.ask and publish to s.in.
func guarded(t *testing.T, opt ServerOptions) (*Server, *logged) {
	t.Helper()
	log := new(logged)
	opt.Token, opt.Log = ours, log.logger()
	opt.Access = []Access{{Name: "guests", Token: theirs, Subjects: []string{"svc.ask", "s.in"}, Streams: []string{"S"}}}
	s := startServer(t, opt)
	t.Cleanup(func() {
		for _, token := range []string{ours, theirs} {
			if strings.Contains(log.String(), token) {
				t.Errorf("the log holds a token:\n%s", log)
			}
		}
	})
	return s, log
}

func joinAs(t *testing.T, s *Server, token string) *Conn {
	t.Helper()
	c := connect(t, Options{URL: s.URL(), Token: token})
	wantConnected(t, c)
	return c
}

// raw returns a NATS client that bypasses this package.
func raw(t *testing.T, s *Server, token string, options ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(s.URL(), append([]nats.Option{nats.Token(token), nats.MaxReconnects(0)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func TestWrongTokenIsRejectedAndLogged(t *testing.T) {
	s, log := guarded(t, ServerOptions{})
	f := func(token, want string) {
		t.Helper()
		wantRefused(t, connect(t, Options{URL: s.URL(), Token: token}), "Authorization")
		log.says(t, want, "address=127.0.0.1:")
	}
	f("guess", "wrong token")
	f("", "no token")
	for range 500 {
		if _, err := nats.Connect(s.URL(), nats.Token("guess")); !errors.Is(err, nats.ErrAuthorization) {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "\n"); n > 20 {
		t.Errorf("%d lines are in the log", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	log.says(t, "message repeated", "wrong token\" times=")
}

func TestLimitedAccessAllowsRequestsAndPublishing(t *testing.T) {
	s, log := guarded(t, ServerOptions{})
	all, guest := joinAs(t, s, ours), joinAs(t, s, theirs)
	stream := openStream(t, all, StreamOptions{})
	if _, err := all.Serve("svc.ask", "", 4, func(_ context.Context, data []byte) ([]byte, error) { return data, nil }); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1000, 5 << 20} {
		want := bytesOf(1, size)
		if got, err := guest.Request(soon(t), "svc.ask", want); err != nil || !bytes.Equal(got, want) {
			t.Errorf("request of %d bytes: got %d bytes and error %v", size, len(got), err)
		}
	}
	out, err := guest.Stream(soon(t), StreamOptions{Name: "S"})
	if err != nil {
		t.Fatal(err)
	}
	in := consume(t, stream)
	for i, size := range []int{10, 10 << 20} {
		want := largeText(size)
		if err := out.Publish(soon(t), "s.in", fmt.Sprint(i), want); err != nil {
			t.Fatal(err)
		}
		if got := fetch(t, in, 1); !bytes.Equal(got[0].Data, want) {
			t.Errorf("sent %d bytes, got %d", size, len(got[0].Data))
		}
	}
	if log.String() != "" {
		t.Errorf("something was refused:\n%s", log)
	}
}

func TestLimitedAccessDeniesEverythingElse(t *testing.T) {
	s, log := guarded(t, ServerOptions{})
	all, guest := joinAs(t, s, ours), joinAs(t, s, theirs)
	stream := openStream(t, all, StreamOptions{})
	stopped := false
	if _, err := all.Serve("svc.stop", "", 1, func(context.Context, []byte) ([]byte, error) { stopped = true; return nil, nil }); err != nil {
		t.Fatal(err)
	}
	publishSome(t, stream, 3)
	out, err := guest.Stream(soon(t), StreamOptions{Name: "S"})
	if err != nil {
		t.Fatal(err)
	}
	denied := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "Permissions Violation for ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = guest.Request(soon(t), "svc.stop", nil)
	denied("a service for others", err)
	denied("another subject of the stream", out.Publish(soon(t), "s.x", "1", []byte("x")))
	denied("delete a stream", guest.DeleteStream(soon(t), "S"))
	_, err = guest.Stream(soon(t), StreamOptions{Name: "T", Subjects: []string{"t.>"}})
	denied("make a stream", err)
	_, err = out.Consumer(soon(t))
	denied("consume", err)

	// The same without this package.
	errs := make(chan error, 100)
	nc := raw(t, s, theirs, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { errs <- err }))
	refused := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-errs:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(patience):
			t.Errorf("%s is allowed", what)
		}
	}
	for _, subject := range []string{">", "s.>", "svc.ask", "_INBOX.>", "$JS.>", "$SYS.>", "_INBOX.*.*.*"} {
		_, err := nc.SubscribeSync(subject)
		refused("to hear "+subject, err)
	}
	for _, subject := range []string{
		"$JS.API.STREAM.PURGE.S", "$JS.API.STREAM.MSG.DELETE.S", "$JS.API.DIRECT.GET.S",
		"$JS.API.CONSUMER.CREATE.S", "$JS.API.INFO", "_INBOX.x.y", "$SYS.REQ.SERVER.PING", "$JS.ACK.x",
	} {
		refused("to send to "+subject, nc.Publish(subject, nil))
	}
	if stopped {
		t.Error("a forbidden service got a request")
	}
	wantPending(t, stream, 3)
	log.says(t, "Publish Violation", "Subscription Violation", "address=127.0.0.1:")
}

// A service must not do for a client what the client may not do itself.
func TestLimitedAccessCannotUseServicesAsProxy(t *testing.T) {
	s, _ := guarded(t, ServerOptions{})
	all := joinAs(t, s, ours)
	stream := openStream(t, all, StreamOptions{})
	publishSome(t, stream, 3)
	var mu sync.Mutex
	stopped, requested := 0, make(chan struct{}, 10)
	serve := func(subject string, h Handler) {
		if _, err := all.Serve(subject, "", 1, h); err != nil {
			t.Fatal(err)
		}
	}
	serve("svc.ask", func(_ context.Context, data []byte) ([]byte, error) { requested <- struct{}{}; return data, nil })
	serve("svc.stop", func(context.Context, []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		stopped++
		return nil, nil
	})
	nc := raw(t, s, theirs)
	for _, m := range []*nats.Msg{
		{Subject: "svc.ask", Reply: "svc.stop"},
		{Subject: "svc.ask", Reply: "_INBOX.x", Data: []byte("x"), Header: nats.Header{sizeHeader: {"2"}, restHeader: {"svc.stop"}}},
		{Subject: "s.in", Reply: "svc.stop", Data: []byte("x")},
		{Subject: "s.in", Reply: "$JS.API.STREAM.PURGE.S", Data: []byte("x")},
		{Subject: "s.in", Reply: "$JS.API.STREAM.DELETE.S", Data: []byte("x")},
		{Subject: "$JS.API.STREAM.INFO.S", Reply: "$JS.API.STREAM.PURGE.S"},
	} {
		if err := nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.PublishMsg(&nats.Msg{Subject: "svc.ask", Reply: "_INBOX.x"}); err != nil { // comes after all others
		t.Fatal(err)
	}
	select {
	case <-requested:
	case <-time.After(patience):
		t.Fatal("the service got no request")
	}
	if _, err := all.Request(soon(t), "svc.stop", nil); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if stopped != 1 {
		t.Errorf("a forbidden service got %d requests, want 1", stopped)
	}
	wantPending(t, stream, 6)
}

func TestOversizedMessageIsRejectedAndLogged(t *testing.T) {
	s, log := guarded(t, ServerOptions{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // only read from
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "CONNECT {\"auth_token\":%q,\"verbose\":false}\r\nPUB svc.ask %d\r\n", theirs, 100<<20)
	answer, _ := io.ReadAll(conn) // it ends, one way or another
	if !strings.Contains(string(answer), "Maximum Payload Violation") {
		t.Errorf("the server answered %q", answer)
	}
	log.says(t, "maximum payload exceeded: 104857600", "address=127.0.0.1:")
	joinAs(t, s, theirs)
}

func TestFloodingClientIsDisconnectedAndLogged(t *testing.T) {
	begin := time.Now()
	s, log := guarded(t, ServerOptions{limit: rateLimit{each: flow{1000, 4 << 20}, more: flow{2000, 16 << 20}}, ban: 100 * time.Millisecond})
	all := joinAs(t, s, ours)
	if _, err := all.Serve("svc.ask", "", 4, func(_ context.Context, data []byte) ([]byte, error) { return data, nil }); err != nil {
		t.Fatal(err)
	}
	openStream(t, all, StreamOptions{MaxBytes: 4 << 20})
	guest := joinAs(t, s, theirs)
	flood := func(subject string, size int) {
		t.Helper()
		var nc *nats.Conn
		silent := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
		eventually(t, "a client may come again", func() (ok bool) {
			var err error
			nc, err = nats.Connect(s.URL(), nats.Token(theirs), nats.MaxReconnects(0), silent)
			return err == nil
		})
		defer nc.Close()
		data := make([]byte, size)
		for end := time.Now().Add(patience); nc.IsConnected(); {
			_ = nc.PublishRequest(subject, "_INBOX.nobody", data) // it fails when the server closes the connection
			if time.Now().After(end) {
				t.Fatalf("a flood to %s is tolerated", subject)
			}
		}
		eventually(t, "another client is answered", func() bool { // what came with the flood may be lost
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := guest.Request(ctx, "svc.ask", []byte("x"))
			return err == nil
		})
	}
	flood("svc.ask", 10)
	flood("svc.ask", 500<<10)
	flood("s.in", 10)
	flood("s.in", 1<<20)
	flood("svc.none", 10)
	log.says(t, "disconnecting a client that sends too much", "as=guests")
	if n := strings.Count(log.String(), "\n"); n > 30*(1+int(time.Since(begin)/repeatAfter)) {
		t.Errorf("%d lines are in the log:\n%s", n, log)
	}
}

func TestRateLimitDrainsOverTime(t *testing.T) {
	f := func(level int64, took time.Duration, want int64, floods bool) {
		t.Helper()
		most := rateLimit{each: flow{10, 10}, more: flow{100, 100}}
		for _, one := range []flow{{messages: level}, {bytes: level}} {
			left := most.drain(one, took)
			if left.messages+left.bytes != want || most.overflows(left) != floods {
				t.Errorf("after %v: %d of %+v left, overflow %t; want %d, %t", took, left.messages+left.bytes, one, most.overflows(left), want, floods)
			}
		}
	}
	f(0, time.Second, 0, false)
	f(100, 0, 100, false)
	f(101, 0, 101, true)
	f(110, time.Second, 100, false)
	f(110, time.Second/2, 105, true)
	f(1000, time.Minute, 400, true)
	f(1000, time.Hour, 0, false)
}

func TestFloodingAddressIsBanned(t *testing.T) {
	s, log := guarded(t, ServerOptions{ban: time.Hour})
	guest := joinAs(t, s, theirs)
	s.door.ban("127.0.0.1", time.Now())
	wantRefused(t, connect(t, Options{URL: s.URL(), Token: theirs}), "Authorization")
	log.says(t, "its address is banned for sending too much", "as=guests")
	joinAs(t, s, ours)
	if !guest.Connected() {
		t.Error("disconnected an innocent client")
	}
}

func TestTokensMustDiffer(t *testing.T) {
	f := func(opt ServerOptions, want string) {
		t.Helper()
		opt.Dir = t.TempDir()
		_, err := StartServer(t.Context(), opt)
		wantText(t, err, want)
	}
	f(ServerOptions{Access: []Access{{Name: "a", Token: "x"}}}, "needs a token for full access")
	f(ServerOptions{Token: "x", Access: []Access{{Name: "a", Token: "x"}}}, "a separate token")
	f(ServerOptions{Token: "x", Access: []Access{{Name: "a"}}}, "a separate token")
}
