package runfiles_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

func TestTokenFilesArePrivate(t *testing.T) {
	dir := t.TempDir()
	s := &runfiles.Services{Run: "r", Bus: "nats://127.0.0.1:1", Token: "of services", Analyzer: "of analyzers", Secret: "of the page"}
	for range 2 { // created, then replaced
		if err := runfiles.WriteServices(dir, s); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{filepath.Join(dir, "services.json"), runfiles.AnalyzerToken(dir)} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if text, err := os.ReadFile(runfiles.AnalyzerToken(dir)); err != nil || strings.TrimSpace(string(text)) != s.Analyzer {
		t.Errorf("the token file has %q, %v", text, err)
	}
	if got, err := runfiles.ReadServices(dir); err != nil || *got != *s {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestExternalServerHasNoAnalyzerTokenFile(t *testing.T) {
	dir := t.TempDir()
	if err := runfiles.WriteServices(dir, &runfiles.Services{Run: "r", Bus: "nats://elsewhere:1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(runfiles.AnalyzerToken(dir)); err == nil {
		t.Error("the token file exists")
	}
}
