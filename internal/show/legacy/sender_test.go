package legacy_test

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/legacy"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestPacketsArriveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newReceiver(t, nil), t.TempDir()
		s := r.sender(legacy.SenderOptions{Dir: dir})
		send(s, 0, 20)
		closeSoon(t, s)
		r.expect(0, 20)
		expectFiles(t, dir, 0, 20)
		st := s.Stats()
		if p := st.Receiver; p.Sent != 20 || p.Pending != 0 || p.PendingBytes != 0 || p.Retries != 0 || p.LastStatus != 200 || p.LastError != "" ||
			p.LastSent.IsZero() {
			t.Errorf("receiver: got %+v", p)
		}
		if p := st.Files; p.Sent != 20 || p.Pending != 0 || p.LastStatus != 0 || p.LastError != "" {
			t.Errorf("files: got %+v", p)
		}
	})
}

func TestFilesContinueNumbering(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pserver_output_stats_29.json"), []byte(text(29)), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := legacy.NewSender(legacy.SenderOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	send(s, 30, 33)
	closeSoon(t, s)
	expectFiles(t, dir, 29, 33)
}

// failures reports each request that got no answer.
type failures chan error

func (f failures) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		select {
		case f <- err:
		default:
		}
	}
	return answer, err
}

func TestLateReceiverGetsAllPackets(t *testing.T) {
	tracetest.SkipShort(t, "starts a server")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	failed := make(failures, 1)
	s, err := legacy.NewSender(legacy.SenderOptions{URL: "http://" + addr, Client: &http.Client{Transport: failed}, Spill: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	send(s, 0, 10)
	<-failed
	if l, err = net.Listen("tcp", addr); err != nil {
		t.Skip("the port was taken by another process: ", err)
	}
	r := &receiver{t: t}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: r}}
	server.Start()
	defer server.Close()
	closeSoon(t, s)
	r.expect(0, 10)
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestRandomFailuresKeepOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pauses := rand.New(rand.NewPCG(7, 2))
		r := newReceiver(t, func(w http.ResponseWriter, req *http.Request, n int) bool {
			switch rand.New(rand.NewPCG(7, uint64(n))).IntN(12) {
			case 0:
				w.WriteHeader(500)
			case 1:
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(429)
			case 2:
				w.WriteHeader(404)
			case 3:
				panic(http.ErrAbortHandler) // the connection breaks
			case 4:
				<-req.Context().Done()
			case 5:
				w.Header().Set("Location", "/packets/new")
				w.WriteHeader(307)
			default:
				return true
			}
			return false
		})
		dir, spill := t.TempDir(), t.TempDir()
		s := r.sender(legacy.SenderOptions{Dir: dir, Spill: spill, Queue: 1000, Timeout: time.Second})
		for n := range 1000 {
			send(s, n, n+1)
			pass(time.Duration(pauses.IntN(400)) * time.Millisecond)
		}
		if len(names(t, spill)) == 0 {
			t.Error("no packet waits in a file: the test covers too little")
		}
		closeSoon(t, s)
		r.expect(0, 1000)
		expectFiles(t, dir, 0, 1000)
		if left := names(t, spill); len(left) > 0 {
			t.Errorf("still waiting: %q", left)
		}
	})
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f := func(opt legacy.SenderOptions, want string) {
		t.Helper()
		if s, err := legacy.NewSender(opt); err == nil || s != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", opt, err, want)
		}
	}
	f(legacy.SenderOptions{}, "give a URL or a directory")
	for _, url := range []string{"localhost:8080", "ftp://host/x", "http:///path", "http://a b/", "/path"} {
		f(legacy.SenderOptions{URL: url, Spill: dir}, "want for example http://host:port/path")
	}
	f(legacy.SenderOptions{URL: "http://host/"}, "need a directory to wait in")
	f(legacy.SenderOptions{Dir: file}, "cannot be written to "+file)
	f(legacy.SenderOptions{Dir: filepath.Join(file, "below")}, "give a writable directory")
	f(legacy.SenderOptions{URL: "http://host/", Spill: file}, "cannot wait in "+file)
	if got := names(t, dir); !slices.Equal(got, []string{"file"}) {
		t.Errorf("the directory has %q", got)
	}
}

func TestCloseTwice(t *testing.T) {
	s, err := legacy.NewSender(legacy.SenderOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	closeSoon(t, s)
	cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("the second time: %v", err)
	}
}
