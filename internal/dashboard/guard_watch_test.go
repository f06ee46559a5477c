package dashboard_test

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chimbuko/chimbuko/internal/dashboard"
)

// journal is a log that several write to.
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

func TestWhoIsRefusedIsLoggedOnceInAWhileWithoutTheToken(t *testing.T) {
	var log journal
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) {
		c.Token, c.Log = "secret", slog.New(slog.NewTextHandler(&log, nil))
	})
	for range 30 {
		fails(t, do(t, at+"/api/v1/status?token=guessed", ""), 401, "token")
		fails(t, do(t, at+"/api/v1/status", ""), 401, "token")
	}
	for _, want := range []string{`msg="HTTP refuses a client: its token is wrong" address=127.0.0.1:`, `msg="HTTP refuses a client: it has no token" address=127.0.0.1:`, "path=/api/v1/status"} {
		if strings.Count(log.String(), want) == 0 {
			t.Errorf("%s is not in the log:\n%s", want, log.String())
		}
	}
	if text := log.String(); strings.Count(text, "\n") != 2 || strings.Contains(text, "guessed") || strings.Contains(text, "secret") {
		t.Errorf("the log is\n%s", text)
	}
}

func TestWhoGoesOnWithWrongTokensIsCutShortAndTheRightOneIsNot(t *testing.T) {
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Token = "secret" })
	codes := map[int]int{}
	for range 150 {
		codes[do(t, at+"/api/v1/status", "", "Authorization: Bearer guessed").code]++
	}
	if codes[401] != 100 || codes[429] != 50 {
		t.Errorf("the answers are %v", codes)
	}
	want[object](t, do(t, at+"/api/v1/status", "", "Authorization: Bearer secret"), 200)
	fails(t, do(t, at+"/api/v1/status", ""), 401, "token") // nothing was tried
}

func TestARequestThatIsTooLargeIsRefusedUnreadAndLogged(t *testing.T) {
	var log journal
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) {
		c.Token, c.Log = "secret", slog.New(slog.NewTextHandler(&log, nil))
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing is left to be sent
	fmt.Fprintf(conn, "POST %s/sql HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", monday, 100<<20)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read from
	if answer.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(log.String(), "its request is too large") {
		t.Errorf("it answers %s, and the log is\n%s", answer.Status, log.String())
	}
}
