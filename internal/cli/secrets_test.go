package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestPasswordOnCommandLineCausesWarning(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		var stderr bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		Run(ctx, &Env{Stdout: new(bytes.Buffer), Stderr: &stderr}, args)
		line, _, _ := strings.Cut(stderr.String(), "\n")
		if want == "" && strings.Contains(stderr.String(), "ps shows it") || !strings.Contains(line, want) ||
			strings.Contains(stderr.String(), "secret") {
			t.Errorf("%q: got %s, want %s", args, stderr.String(), want)
		}
	}
	f("password in --store (use a password file (~/.pgpass, PGPASSFILE), or the environment variable CHIMBUKO_STORE",
		"analyze", "--store", "postgres://user:secret@127.0.0.1:1/db", "--out", t.TempDir()+"/run", "nothing.bp")
	f("password in --nats (use --nats-token-file or --nats-creds, or the environment variable CHIMBUKO_NATS",
		"stop", "--nats", "nats://secret@127.0.0.1:1", "--name", "x", "nothing")
	f("password in postgres://user@127.0.0.1:1/db (use", "top", "postgres://user:secret@127.0.0.1:1/db")
	f("", "top", "postgres://user@127.0.0.1:1/db")
}
