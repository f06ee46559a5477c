package output

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/explain"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// FunctionParts lists the tables about a function.
func FunctionParts() []string { return []string{"profile", "ranks", "times", "paths"} }

var partTitles = map[string]string{
	"profile": "Profile", "ranks": "Anomalies by rank, most lost time first", "times": "Anomalies over time",
	"paths": "Call paths to the function",
}

// FunctionPart returns one of the tables about a function, at most limit rows.
func FunctionPart(ctx context.Context, a *query.Queries, f *executions.Function, part string, limit int) (*provdb.Rows, error) {
	const periods = 20 // of the run
	switch part {
	case "profile":
		return a.Profile(ctx, f)
	case "ranks":
		return a.OverRanks(ctx, f, limit)
	case "times":
		return a.OverTime(ctx, f, periods)
	case "paths":
		return a.Paths(ctx, f, limit)
	}
	return nil, fmt.Errorf("unknown part %q", part)
}

// Function returns all tables about a function, and its model.
func Function(ctx context.Context, a *query.Queries, f *executions.Function, limit int) (*Answer, error) {
	model, err := a.Model(ctx, f)
	if err != nil {
		return nil, err
	}
	tables, object := make(map[string]*provdb.Rows), make(map[string]any)
	if model != nil {
		object["model"] = model
	}
	for _, part := range FunctionParts() {
		rows, err := FunctionPart(ctx, a, f, part, limit)
		if err != nil {
			return nil, err
		}
		all, err := rows.Collect()
		if err != nil {
			return nil, err
		}
		objects := make([]json.RawMessage, len(all))
		for i, row := range all {
			if objects[i], err = provdb.MarshalRow(rows.Columns, row); err != nil {
				return nil, err
			}
		}
		object[part] = objects
		switch part {
		case "profile":
			tables[part] = transpose(rows.Columns, all)
		case "times":
			tables[part] = withBars(rows.Columns, all, "anomalies")
		default:
			tables[part] = rowsOf(rows.Columns, all, func(row *[]any) []any { return *row })
		}
	}
	write := func(w io.Writer, format, mark string) error {
		fmt.Fprintf(w, "%s\n", text.SingleSpaced(f.Name))
		for _, part := range FunctionParts() {
			fmt.Fprintf(w, "\n%s%s\n\n", mark, partTitles[part])
			if err := WriteRows(w, format, tables[part]); err != nil {
				return err
			}
		}
		return nil
	}
	return &Answer{
		JSON:     object,
		Markdown: func(w io.Writer) error { return write(w, "markdown", "## ") },
		Text: func(w io.Writer) error {
			if err := write(w, "table", ""); err != nil || model == nil {
				return err
			}
			return explain.WriteModel(w, &provenance.Record{AlgoParams: model}, explain.DefaultWidth)
		},
	}, nil
}

// transpose returns one row per value.
func transpose(of []provdb.Column, all [][]any) *provdb.Rows {
	var pairs [][]any
	for _, row := range all {
		for i, v := range row {
			if c := of[i]; c.Name != "function" {
				pairs = append(pairs, []any{heading(c), valueText(c, v)})
			}
		}
	}
	return rowsOf(columns("what value"), pairs, func(pair *[]any) []any { return *pair })
}

// withBars adds a column of bars that are proportional to a column of integers.
func withBars(of []provdb.Column, all [][]any, column string) *provdb.Rows {
	const width = 40
	at := slices.IndexFunc(of, func(c provdb.Column) bool { return c.Name == column })
	most := int64(1)
	for _, row := range all {
		most = max(most, row[at].(int64))
	}
	return rowsOf(append(slices.Clone(of), columns("share")...), all, func(row *[]any) []any {
		n := ((*row)[at].(int64)*width + most - 1) / most
		return append(slices.Clone(*row), strings.Repeat("█", int(n)))
	})
}
