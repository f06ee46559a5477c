package legacy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/legacy"
)

// receiver is a web server that records accepted packets. Its connections are pipes, so that time
// passes in a synctest bubble when all goroutines wait.
type receiver struct {
	t      *testing.T
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	down bool
	got  []string
	at   []time.Time // of requests
	// answer replies to the nth request, from 0, after its body was read; nil accepts it.
	answer replier
}

// replier replies to the nth request, from 0, and reports whether it accepts the packet.
// Requests may overlap: the server still handles one whose sender timed out when the
// next arrives. A replier therefore decides by n and has no state.
type replier func(w http.ResponseWriter, r *http.Request, n int) (accepted bool)

// newReceiver starts a receiver; answer may be nil.
func newReceiver(t *testing.T, answer replier) *receiver {
	r := &receiver{t: t, conns: make(chan net.Conn), closed: make(chan struct{}), answer: answer}
	s := &httptest.Server{Listener: r, Config: &http.Server{Handler: r}}
	s.Start()
	t.Cleanup(s.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	n := len(r.at)
	r.at = append(r.at, time.Now())
	r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Errorf("reading a packet: %v", err)
	}
	if req.Method == http.MethodPost && req.Header.Get("Content-Type") != "application/json" {
		r.t.Errorf("the content type is %q", req.Header.Get("Content-Type"))
	}
	if r.answer == nil || r.answer(w, req, n) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, string(body))
	}
}

func (r *receiver) Accept() (net.Conn, error) {
	select {
	case c := <-r.conns:
		return c, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

func (r *receiver) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

func (r *receiver) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (r *receiver) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	r.mu.Lock()
	down := r.down
	r.mu.Unlock()
	if down {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	select {
	case r.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// setDown lets connections fail or succeed.
func (r *receiver) setDown(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

func (r *receiver) packets() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// requests returns the times of requests since the first.
func (r *receiver) requests() (since []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.at {
		since = append(since, at.Sub(r.at[0]))
	}
	return since
}

// sender returns a Sender to the receiver.
func (r *receiver) sender(opt legacy.SenderOptions) *legacy.Sender {
	r.t.Helper()
	transport := &http.Transport{DialContext: r.dial}
	r.t.Cleanup(transport.CloseIdleConnections)
	opt.URL, opt.Client = "http://receiver/packets", &http.Client{Transport: transport}
	if opt.Spill == "" && opt.Dir == "" {
		opt.Spill = r.t.TempDir()
	}
	s, err := legacy.NewSender(opt)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// expect checks that exactly the packets from first to before end were accepted,
// in order.
func (r *receiver) expect(first, end int) {
	r.t.Helper()
	var want []string
	for n := first; n < end; n++ {
		want = append(want, text(n))
	}
	if got := r.packets(); !slices.Equal(got, want) {
		r.t.Errorf("the receiver has %d packets, %.200q,\nwant %d, %.200q", len(got), got, len(want), want)
	}
}

func text(n int) string { return fmt.Sprintf(`{"packet":%d,"fill":%q}`, n, strings.Repeat("x", n%50)) }

func send(s *legacy.Sender, first, end int) {
	for n := first; n < end; n++ {
		s.Send([]byte(text(n)))
	}
}

// pass advances the time of the bubble.
func pass(d time.Duration) { <-time.After(d) }

// closeSoon closes a Sender that is expected to deliver everything.
func closeSoon(t *testing.T, s *legacy.Sender) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// expectFiles checks that a directory has exactly the packets from first to
// before end as files.
func expectFiles(t *testing.T, dir string, first, end int) {
	t.Helper()
	for n := first; n < end; n++ {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("pserver_output_stats_%d.json", n)))
		if err != nil || string(b) != text(n) {
			t.Fatalf("packet %d: got %q, %v", n, b, err)
		}
	}
	if got := names(t, dir); len(got) != end-first {
		t.Errorf("got %q, want %d files", got, end-first)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
