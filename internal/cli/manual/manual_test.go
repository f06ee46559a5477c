package manual_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/cli/manual"
)

func TestPagesOfAllVisibleCommands(t *testing.T) {
	root := &cobra.Command{Use: "prog", Short: "Do things", Version: "1.2 (abc)", RunE: func(*cobra.Command, []string) error { return nil }}
	sub := &cobra.Command{
		Use: "go WHERE", Short: "Go somewhere", Long: "Go to WHERE.\n\n.dots and back\\slashes\n\n  code --line",
		Example: "  prog go home", Run: func(*cobra.Command, []string) {},
	}
	sub.Flags().IntP("speed", "s", 3, "steps per `hour`")
	sub.Flags().Bool("secret", false, "not for users")
	if err := sub.Flags().MarkHidden("secret"); err != nil {
		t.Fatal(err)
	}
	root.AddCommand(sub, &cobra.Command{Use: "hidden", Hidden: true, Run: func(*cobra.Command, []string) {}})
	dir := filepath.Join(t.TempDir(), "man1")
	if err := manual.WriteAll(dir, root, time.Date(2026, 11, 18, 23, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	var names []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"prog-go.1", "prog.1"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got pages %q, %v, want %q", names, err, want)
	}
	page, err := os.ReadFile(filepath.Join(dir, "prog-go.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`.TH "PROG-GO" 1 "2026-11-18" "chimbuko 1.2" "Chimbuko"`, "\nprog\\-go \\- Go somewhere\n", ".B prog go WHERE [flags]\n",
		"Go to WHERE.\n.PP\n\\&.dots and back\\eslashes\n.PP\n.PP\n.nf\n  code \\-\\-line\n.fi\n",
		".TP\n\\fB\\-s, \\-\\-speed\\fR \\fIhour\\fR\nsteps per hour (default 3)\n", ".SH EXAMPLES\n.PP\n.nf\n  prog go home\n.fi\n",
		".SH SEE ALSO\n.BR prog (1)\n",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not contain %q:\n%s", want, page)
		}
	}
	if strings.Contains(string(page), "secret") {
		t.Error("the page has a hidden flag")
	}
}
