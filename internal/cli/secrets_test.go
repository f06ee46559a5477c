package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestSecretsAreTakenOutOfURLs(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := withoutSecrets(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	f("postgres://user:secret@server/db", "postgres://user@server/db")
	f("postgres://user:se@cr:et@server/db", "postgres://user@server/db")
	f("postgres://user@server/db?password=secret&sslmode=disable", "postgres://user@server/db?sslmode=disable")
	f("nats://user:secret@a:4222,nats://user:secret@b:4222", "nats://a:4222,nats://b:4222")
	f("tls://secret@a:4222", "tls://a:4222")
	f("nats://a:4222,tls://b:4222", "nats://a:4222,tls://b:4222")
	f("https://user:secret@web/path", "https://user@web/path")
	f("postgres://user@server/db", "postgres://user@server/db")
	f("run/dir:with@signs", "run/dir:with@signs")
}

func TestAPasswordOnTheCommandLineIsWarnedOf(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		var stderr bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		Run(ctx, &Env{Stdout: new(bytes.Buffer), Stderr: &stderr}, args)
		line, _, _ := strings.Cut(stderr.String(), "\n")
		if want == "" && strings.Contains(stderr.String(), "ps shows it") || !strings.Contains(line, want) || strings.Contains(stderr.String(), "secret") {
			t.Errorf("%q: got %s, want %s", args, stderr.String(), want)
		}
	}
	f("password in --store, as ps shows it: use a password file (~/.pgpass, PGPASSFILE), or the environment variable CHIMBUKO_STORE",
		"analyze", "--store", "postgres://user:secret@127.0.0.1:1/db", "--out", t.TempDir()+"/run", "nothing.bp")
	f("password in --nats, as ps shows it: use --nats-token-file or --nats-creds, or the environment variable CHIMBUKO_NATS",
		"stop", "--nats", "nats://secret@127.0.0.1:1", "--name", "x", "nothing")
	f("password in postgres://user@127.0.0.1:1/db, as ps shows it", "top", "postgres://user:secret@127.0.0.1:1/db")
	f("", "top", "postgres://user@127.0.0.1:1/db")
}
