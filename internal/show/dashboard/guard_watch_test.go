package dashboard_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
)

// journal is a log for concurrent writers.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func TestRejectedRequestsAreLoggedWithoutToken(t *testing.T) {
	var log journal
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) {
		c.Token, c.Log = "secret", slog.New(slog.NewTextHandler(&log, nil))
	})
	for range 30 {
		fails(t, do(t, at+"/api/v1/status?token=guessed", ""), 401, "token")
		fails(t, do(t, at+"/api/v1/status", ""), 401, "token")
	}
	for _, want := range []string{
		`msg="rejecting an HTTP request: token is wrong" address=127.0.0.1:`,
		`msg="rejecting an HTTP request: token is missing" address=127.0.0.1:`, "path=/api/v1/status",
	} {
		if strings.Count(log.String(), want) == 0 {
			t.Errorf("%s is not in the log:\n%s", want, log.String())
		}
	}
	if text := log.String(); strings.Count(text, "\n") != 2 || strings.Contains(text, "guessed") || strings.Contains(text, "secret") {
		t.Errorf("the log is\n%s", text)
	}
}

func TestManyWrongTokensAreLimited(t *testing.T) {
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Token = "secret" })
	codes := map[int]int{}
	for range 150 {
		codes[do(t, at+"/api/v1/status", "", "Authorization: Bearer guessed").code]++
	}
	if codes[401] != 100 || codes[429] != 50 {
		t.Errorf("the answers are %v", codes)
	}
	want[object](t, do(t, at+"/api/v1/status", "", "Authorization: Bearer secret"), 200)
	fails(t, do(t, at+"/api/v1/status", ""), 401, "token") // without a token
}

func TestOversizedRequestIsRejectedUnreadAndLogged(t *testing.T) {
	var log journal
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) {
		c.Token, c.Log = "secret", slog.New(slog.NewTextHandler(&log, nil))
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing is left to be sent
	fmt.Fprintf(conn, "POST %s/sql HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Type: "+
		"application/json\r\nContent-Length: %d\r\n\r\n{", monday, 100<<20)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read from
	if answer.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(log.String(), "request is too large") {
		t.Errorf("status %s, log\n%s", answer.Status, log.String())
	}
}

func TestOversizedRequestGetsItsAnswer(t *testing.T) {
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Token = "secret" })
	some := strings.Repeat("x", 1<<20)
	const chunked, known = "Transfer-Encoding: chunked", "Content-Length: 12582912"
	f := func(request, length, token string, code int) {
		t.Helper()
		conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // nothing is left to be sent
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s\r\n\r\n", request,
			token, length)
		for range 12 {
			piece := some
			if length == chunked {
				piece = fmt.Sprintf("%x\r\n%s\r\n", len(some), some)
			}
			if _, err := conn.Write([]byte(piece)); err != nil {
				t.Fatalf("%s, %s: cannot send: %v", request, length, err)
			}
		}
		if length == chunked {
			fmt.Fprint(conn, "0\r\n\r\n")
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s, %s: no answer: %v", request, length, err)
		}
		defer answer.Body.Close() //nolint:errcheck // only read from
		if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != code || !bytes.Contains(text, []byte("error")) {
			t.Errorf("%s, %s: %s %s, %v", request, length, answer.Status, text, err)
		}
	}
	for _, length := range []string{chunked, known} {
		f("POST "+monday+"/sql", length, "wrong", http.StatusUnauthorized)
		f("POST /api/v1/status", length, "secret", map[string]int{
			chunked: http.StatusMethodNotAllowed,
			known:   http.StatusRequestEntityTooLarge,
		}[length])
	}
	f("POST "+monday+"/sql", known, "secret", http.StatusRequestEntityTooLarge)
	f("POST "+monday+"/sql/export", known, "secret", http.StatusRequestEntityTooLarge)
	f("POST "+monday+"/sql", chunked, "secret", http.StatusBadRequest) // not JSON
	f("PUT "+monday+"/labels/x", chunked, "secret", http.StatusForbidden)
}

func TestOversizedRequestIsRejectedOnExpect(t *testing.T) {
	at, _ := serve(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing is left to be sent
	fmt.Fprintf(conn, "POST %s/sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: "+
		"100-continue\r\nContent-Length: %d\r\n\r\n", monday, 2<<20)
	answer, err := io.ReadAll(conn) // until the server closes it
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 413 ") {
		t.Errorf("got %s, %v", answer, err)
	}
}
