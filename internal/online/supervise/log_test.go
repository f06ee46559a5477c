package supervise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLastLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := func(text, want string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lastLines(path); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f("", "  (empty)\n")
	f("a\nb", "  a\n  b\n")
	f(strings.Repeat("line\n", 10_000)+"last\n", strings.Repeat("  line\n", 7)+"  last\n")
	f("\x1b[31m"+strings.Repeat("ä", 300)+"\n", "   [31m"+strings.Repeat("ä", 197)+"…\n")
	if got := lastLines(path + "x"); !strings.Contains(got, "no such file") {
		t.Errorf("got %q", got)
	}
}
