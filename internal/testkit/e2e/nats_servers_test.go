package e2e

import (
	"net"
	"os"
	"strings"
	"testing"
)

func TestServerStopsListeningWhenKilled(t *testing.T) {
	t.Parallel()
	c := startNATS(t, natsOptions{Auth: natsToken})
	at := strings.TrimPrefix(c.URL(), "nats://")
	dial := func() error {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	if err := dial(); err != nil {
		t.Fatal(err)
	}
	c.Kill(t, 0)
	if err := dial(); err == nil {
		t.Errorf("after kill -9 something listens at %s", at)
	}
	c.Restart(t, 0)
	if err := dial(); err != nil {
		t.Error("after the restart:", err)
	}
}

func TestThreeServersWithTLSAndAnOperatorAgree(t *testing.T) {
	t.Parallel()
	c := startNATS(t, natsOptions{Servers: 3, Auth: natsCredentials, TLS: true})
	if n := strings.Count(c.URL(), "tls://127.0.0.1:"); n != 3 {
		t.Errorf("the servers are at %s", c.URL())
	}
	text, err := os.ReadFile(c.Credentials(t, "someone", natsRights{Publish: []string{"a"}}))
	if err != nil || !strings.Contains(string(text), "BEGIN NATS USER JWT") {
		t.Errorf("the credentials are %q, %v", text, err)
	}
	c.Kill(t, 1)
	c.Restart(t, 1)
	for i := range 3 {
		if log := c.Log(i); !strings.Contains(log, "Server is ready") || !strings.Contains(log, "JetStream cluster") {
			t.Errorf("log of server %d:\n%s", i, tail(log))
		}
	}
}
