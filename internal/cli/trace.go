package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/sst"
)

func newTraceCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "look into the traces that TAU wrote with ADIOS2",
		Long: `Look into the traces that TAU wrote with ADIOS2 (BP3, BP4 and BP5), finished or
still being written, or that it streams live (SST). ADIOS2 itself is not needed.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q for %q", args[0], cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(newTraceInfoCmd(env), newTraceDumpCmd(env), newTraceMetadataCmd(env), newTraceReplayCmd(env))
	return cmd
}

// expandPaths turns files, directories and patterns into the paths of
// datasets, each once, in the order given; those of a directory are sorted.
func expandPaths(given []string) ([]string, error) {
	var found []string
	for _, g := range given {
		paths, err := expandPath(g)
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			if !slices.Contains(found, p) {
				found = append(found, p)
			}
		}
	}
	return found, nil
}

func expandPath(path string) ([]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?[") {
		matches, err := filepath.Glob(path)
		if err != nil {
			return nil, usagef("pattern %q: %w", path, err)
		}
		if len(matches) == 0 {
			return nil, fmt.Errorf("nothing matches %s", path)
		}
		if !sst.IsContact(path) {
			matches = slices.DeleteFunc(matches, isBeside)
		}
		return expandPaths(matches)
	}
	if err != nil || !info.IsDir() || isDataset(path) {
		return []string{path}, nil // opening it will say what is wrong
	}
	return datasetsIn(path)
}

// isDataset reports whether a directory is a dataset rather than a place that
// holds some.
func isDataset(dir string) bool {
	if filepath.Ext(dir) == ".bp" {
		return true
	}
	for _, name := range []string{"md.idx", "data_oids.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// isBeside reports whether a path that a pattern matched is something that
// lies beside datasets: their listings, or the data of BP3 files.
func isBeside(path string) bool {
	return filepath.Ext(path) != ".bp" && (strings.Contains(path, ".bp.") || strings.Contains(path, ".bpls."))
}

// datasetsIn returns all datasets below dir.
func datasetsIn(dir string) ([]string, error) {
	var found, contacts []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case sst.IsContact(path):
			contacts = append(contacts, path)
		case filepath.Ext(path) == ".bp" || d.IsDir() && path != dir && isDataset(path):
			found = append(found, path)
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir() && strings.HasSuffix(path, ".bp.dir"):
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		found = contacts
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no .bp dataset in this directory; set TAU_ADIOS2_FILENAME to write traces into it", dir)
	}
	return found, nil
}

// advise adds to an error of opening a dataset what the user can do.
func advise(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(err, bp.ErrNotReady):
		return fmt.Errorf("%w; use --follow to wait for it", err)
	case errors.Is(err, bp.ErrNotReady):
		return fmt.Errorf("%w: its writer has just begun, or it is no dataset", err)
	}
	return err
}
