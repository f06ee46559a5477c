package cli

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/settings"
	"github.com/chimbuko/chimbuko/internal/cli/ad"
)

func TestOneFileServesAllCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chimbuko.toml")
	if err := os.WriteFile(file, []byte("algorithm = \"sstd\"\nexchange = \"2s\"\nstats-period = \"5s\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cmd := range map[string]*cobra.Command{
		"analyze": newAnalyzeCmd(new(Env)), "serve": newServeCmd(new(Env)),
		"ad": ad.New(new(Env).analyzer()),
	} {
		if _, err := applySettings(cmd.Flags(), file, []string{"CHIMBUKO_OVERRIDE_RANK=3"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := applySettings(ad.New(new(Env).analyzer()).Flags(), "", []string{"CHIMBUKO_NONSENSE=3"}); err == nil {
		t.Error("a variable that is a setting of no command is accepted")
	}
}

// TestAnalyzerProgramListsSettingsOfOtherCommands compares the list that chimbuko-ad has, which does
// not contain these commands, with their flags.
func TestAnalyzerProgramListsSettingsOfOtherCommands(t *testing.T) {
	env, others := new(Env), make(map[string]bool)
	own := ad.New(env.analyzer()).Flags()
	for _, cmd := range []*cobra.Command{newAnalyzeCmd(env), newRunCmd(env), newServeCmd(env)} {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if own.Lookup(f.Name) == nil && settings.IsSetting(f) {
				others[f.Name] = true
			}
		})
	}
	if want := slices.Sorted(maps.Keys(others)); !slices.Equal(ad.SettingsOfOthers, want) {
		t.Errorf("SettingsOfOthers is\n%q, want\n%q", ad.SettingsOfOthers, want)
	}
}
