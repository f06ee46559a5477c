package output

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Export writes a run into a directory: its tables as parquet or csv, or its documents as
// json. It reports each file on w.
func Export(ctx context.Context, w io.Writer, a *query.Queries, format, dir string, parquet Parquet) error {
	content := "rows"
	write := func(ctx context.Context, a *query.Queries, name, format, path string) (int, error) {
		return exportTable(ctx, a, name, format, path, parquet)
	}
	names := query.TableNames()
	if format == "json" {
		write, names, content = exportDocuments, query.Collections, "documents"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name+"."+format)
		n, err := write(ctx, a, name, format, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %s %s\n", path, text.Int(n), content)
	}
	return nil
}

// exportTable writes a table to a file and returns the number of rows.
func exportTable(ctx context.Context, a *query.Queries, name, format, path string, parquet Parquet) (n int, err error) {
	rows, err := a.Table(ctx, name)
	if err != nil {
		return 0, err
	}
	rows.All = countItems(rows.All, &n)
	if format == "parquet" {
		err = parquet(ctx, path, rows)
	} else {
		err = WriteFile(path, func(w io.Writer) error { return provdb.WriteCSV(w, rows) })
	}
	return n, errors.Join(err, rows.Close())
}

// exportDocuments writes a collection to a file and returns the number of documents.
func exportDocuments(ctx context.Context, a *query.Queries, collection, _, path string) (n int, err error) {
	documents := countItems(a.Documents(ctx, collection), &n)
	err = WriteFile(path, func(w io.Writer) error { return writeArray[json.RawMessage](w, documents) })
	return n, err
}

// countItems counts the items of a sequence.
func countItems[T any, S ~func(yield func(T, error) bool)](items S, n *int) S {
	return func(yield func(T, error) bool) {
		for item, err := range items {
			*n++
			if !yield(item, err) {
				return
			}
		}
	}
}
