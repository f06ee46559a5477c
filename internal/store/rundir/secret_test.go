package rundir_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// secret returns the token of a run directory.
func secret(t *testing.T, dir string) string {
	t.Helper()
	token, err := rundir.Secret(dir)
	if err != nil || len(token) < 16 {
		t.Fatalf("%q: %v", token, err)
	}
	return token
}

func TestTokenOfRunDirectoryIsStable(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	first := secret(t, dir)
	if again := secret(t, dir); again != first || secret(t, other) == first {
		t.Errorf("got %s, then %s", first, again)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
}

func TestTokenOfServicesTakesPrecedence(t *testing.T) {
	dir := t.TempDir()
	secret(t, dir)
	if err := runfiles.WriteServices(dir, &runfiles.Services{Run: "r", Bus: "nats://localhost", Secret: "of the services"}); err != nil {
		t.Fatal(err)
	}
	if got, err := rundir.Secret(dir); got != "of the services" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestConcurrentCallersGetSameToken(t *testing.T) {
	dir := t.TempDir()
	tokens := make([]string, 20)
	var wg sync.WaitGroup
	for i := range tokens {
		wg.Go(func() { tokens[i], _ = rundir.Secret(dir) })
	}
	wg.Wait()
	for _, token := range tokens {
		if token != secret(t, dir) {
			t.Errorf("%s is not %s", token, secret(t, dir))
		}
	}
}

func TestInvalidTokenFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "http-token"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if first := secret(t, dir); first != secret(t, dir) {
		t.Error("the token changes")
	}
}

func TestTokenIsTemporaryIfItCannotBeStored(t *testing.T) {
	token, err := rundir.Secret(filepath.Join(t.TempDir(), "nothing"))
	if err == nil || len(token) < 16 {
		t.Errorf("%q, %v", token, err)
	}
}
