package inputs

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/source/inspect"
)

// Separate returns --program rules that separate traces with the same ranks. Each directory becomes a program, or each
// name of traces in a directory that has several. Separate returns nil if the traces have the same directory and name, and
// if err is not a *trace.RankConflict.
func Separate(err error, all []analyzer.Input) (rules []string) {
	conflict, ok := errors.AsType[*trace.RankConflict](err)
	if !ok {
		return nil
	}
	byDir := make(map[string][]string)
	for i := range all {
		dir := filepath.Dir(all[i].Path)
		byDir[dir] = append(byDir[dir], all[i].Path)
	}
	var patterns []string
	for dir, paths := range byDir {
		if filepath.Dir(conflict.Paths[0]) != filepath.Dir(conflict.Paths[1]) && !inspect.AreSeveral(paths) {
			patterns = append(patterns, filepath.Join(dir, "*"))
			continue
		}
		for _, p := range paths {
			patterns = append(patterns, filepath.Join(dir, stem(p)+"*"))
		}
	}
	slices.Sort(patterns) // a longer pattern follows those that match more, because the last rule decides
	patterns = slices.Compact(patterns)
	if len(patterns) < 2 {
		return nil
	}
	for i, p := range patterns {
		rules = append(rules, "--program", fmt.Sprintf("%d=%s", i, p))
	}
	return rules
}

// stem returns the name of a trace without its rank.
func stem(path string) string {
	return strings.TrimRight(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), "0123456789")
}
