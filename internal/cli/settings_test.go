package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
)

func TestOneFileServesAllCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chimbuko.toml")
	if err := os.WriteFile(file, []byte("algorithm = \"sstd\"\nexchange = \"2s\"\nstats-period = \"5s\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cmd := range map[string]*cobra.Command{
		"analyze": newAnalyzeCmd(new(Env)), "serve": newServeCmd(new(Env)),
		"ad": newADCmd(new(Env)),
	} {
		if _, err := applySettings(cmd.Flags(), file, []string{"CHIMBUKO_OVERRIDE_RANK=3"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := applySettings(newADCmd(new(Env)).Flags(), "", []string{"CHIMBUKO_NONSENSE=3"}); err == nil {
		t.Error("a variable that is a setting of no command is accepted")
	}
}
