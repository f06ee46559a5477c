package redact_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/redact"
)

func TestURLs(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := redact.URLs(text); got != want {
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
