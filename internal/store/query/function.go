package query

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	words "github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Function returns the function with a name, matching a pattern with * and ?, or with a part of the name. Functions match
// before code between them does. If several match, it returns an error that lists them.
func (a *Queries) Function(ctx context.Context, name string, p *trace.Program) (*executions.Function, error) {
	name = strings.ReplaceAll(name, "…", "*") // tables shorten long names
	patterns := []string{executions.Like(name), "%" + executions.Like(name) + "%"}
	if m := withPlace.FindStringSubmatch(name); m != nil {
		patterns = append(patterns, executions.Like(m[1]+" [{*"+m[2]+"} {"+m[3]+",*"))
	}
	for _, pattern := range patterns {
		matches, err := executions.ReadAll[executions.Function](ctx, a, text("func_match"), executions.OptionalProgram(p), name, pattern)
		if err != nil {
			return nil, err
		}
		if len(matches) == 0 {
			continue
		}
		isCode := func(f executions.Function) bool { return strings.HasPrefix(f.Name, trace.CodePrefix) }
		if functions := slices.DeleteFunc(slices.Clone(matches), isCode); len(functions) > 0 {
			matches = functions
		}
		if len(matches) == 1 || matches[0].Name == name && matches[1].Name != name {
			return &matches[0], nil
		}
		return nil, ambiguousError(name, matches)
	}
	return nil, fmt.Errorf("function %q: %w; chimbuko top lists those with anomalies", name, provdb.ErrNotFound)
}

// withPlace matches a name with its source location as tables show it: f(int) heat2d.cpp:31.
var withPlace = regexp.MustCompile(`^(.+) ([^ /]+):(\d+)$`)

func ambiguousError(name string, matches []executions.Function) error {
	var b strings.Builder
	for i, f := range matches {
		if i == 10 {
			b.WriteString("\n  …")
			break
		}
		fmt.Fprintf(&b, "\n  program %d: %.200s", f.Program, f.Name)
	}
	return fmt.Errorf("%q matches several functions (give the full name, or --program):%s", name, b.String())
}

// Profile returns one row: the times of all calls of the function, and sums over its stored executions.
func (a *Queries) Profile(ctx context.Context, f *executions.Function) (*provdb.Rows, error) {
	return a.InMicros(a.Query(ctx, a.InSeconds(text("func_profile")), int32(a.Run.ID), int64(a.Begin), int32(f.Program), f.Number))
}

// OverRanks returns the ranks on which the function lost most time, as rows of a table.
func (a *Queries) OverRanks(ctx context.Context, f *executions.Function, limit int) (*provdb.Rows, error) {
	return a.InMicros(a.Query(ctx, a.InSeconds(text("func_ranks")), int32(a.Run.ID), int64(a.Begin), int32(f.Program), f.Number, int64(limit)))
}

// RankLosses returns the ranks on which the function lost most time.
func (a *Queries) RankLosses(ctx context.Context, f *executions.Function, limit int) ([]api.FunctionRank, error) {
	groups, err := a.Sum(ctx, executions.AllOf(executions.OfFunction(f), executions.Flagged),
		executions.Grouping{executions.Rank, executions.Host})
	slices.SortFunc(groups, func(x, y executions.Sums) int {
		return cmp.Or(cmp.Compare(y.Lost, x.Lost), cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Host, y.Host))
	})
	list := []api.FunctionRank{}
	for _, g := range groups[:min(limit, len(groups))] {
		list = append(list, api.FunctionRank{
			Rank: int64(g.Rank), Host: words.Host(g.Host), Anomalies: g.Anomalies, Lost: a.Unit.Micros(g.Lost), Longest: a.Unit.Micros(g.Longest),
			First: a.Unit.Seconds(g.First - a.Begin), Last: a.Unit.Seconds(g.Last - a.Begin),
		})
	}
	return list, err
}

// OverTime returns the anomalies in equal parts of the run.
func (a *Queries) OverTime(ctx context.Context, f *executions.Function, parts int) (*provdb.Rows, error) {
	end, err := a.end(ctx)
	if err != nil {
		return nil, err
	}
	return a.InMicros(a.Query(ctx, a.InSeconds(text("func_times")), int32(a.Run.ID), int64(a.Begin), int32(f.Program), f.Number, int64(parts),
		int64(end)))
}

// Paths returns the call paths that lead to the function, as rows of a table.
func (a *Queries) Paths(ctx context.Context, f *executions.Function, limit int) (*provdb.Rows, error) {
	return a.InMicros(a.Query(ctx, text("func_paths"), int32(a.Run.ID), int32(f.Program), f.Number, int64(limit)))
}

// Model returns the final model of the function, or nil.
func (a *Queries) Model(ctx context.Context, f *executions.Function) (json.RawMessage, error) {
	return a.model(ctx, "func_model", f)
}

func (a *Queries) model(ctx context.Context, statement string, f *executions.Function) (json.RawMessage, error) {
	return executions.ReadValue[json.RawMessage](ctx, a, text(statement), int32(f.Program), f.Number)
}
