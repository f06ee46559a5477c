package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/settings"
	"github.com/chimbuko/chimbuko/internal/cli/ad"
)

// applySettings sets flags from the TOML file and the environment, and returns the origin of each flag's value. It ignores
// settings of other commands, because one file serves all commands.
func applySettings(fs *pflag.FlagSet, file string, environ []string) (origin map[string]string, err error) {
	return settings.Apply(fs, file, environ, func(name string) bool {
		env := new(Env)
		for _, cmd := range []*cobra.Command{newAnalyzeCmd(env), newRunCmd(env), newServeCmd(env), ad.New(env.analyzer())} {
			if f := cmd.Flags().Lookup(name); f != nil && settings.IsSetting(f) {
				return true
			}
		}
		return false
	})
}

// settings is the option.Settings of commands.
func (env *Env) settings(fs *pflag.FlagSet, file string) (origin map[string]string, err error) {
	return applySettings(fs, file, env.Environ)
}
