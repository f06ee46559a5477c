package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Bounds of exports.
const (
	maxExport      = 1_000_000 // rows
	maxExportBytes = 512 << 20 // of a file
	exportTimeouts = 5         // multiple of the timeout of a query
	maxWriting     = 2         // exports at once
)

// spoolFile is an answer in an open file that was already unlinked.
type spoolFile struct {
	kind, name string // content type, and name of the download
	file       *os.File
	size       int64
	rows       int64
	cut        bool
}

func (s *spoolFile) write(w http.ResponseWriter) {
	defer s.file.Close() //nolint:errcheck // only read from
	h := w.Header()
	h.Set("Content-Type", s.kind)
	setAttachment(h, s.name)
	h.Set("Content-Length", strconv.FormatInt(s.size, 10))
	h.Set("Chimbuko-Rows", strconv.FormatInt(s.rows, 10))
	h.Set("Chimbuko-Cut", strconv.FormatBool(s.cut))
	w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(w, s.file) // fails if the client is gone
}

// export answers an SQL query with a file. It writes the file to disk before it sends it, to
// report errors and to save memory.
func (s *server) export(p *params) (any, error) {
	q, limit, err := readQuery(p, maxExport, maxExport)
	if err != nil {
		return nil, err
	}
	form, ok := map[string]struct{ kind, name string }{
		"csv": {"text/csv; charset=utf-8", "answer.csv"}, "parquet": {"application/vnd.apache.parquet", "answer.parquet"},
	}[q.Format]
	switch {
	case !ok:
		return nil, problem(http.StatusBadRequest, fmt.Sprintf("unknown format %.40q (want csv or parquet)", q.Format),
			`send {"sql": "SELECT …", "format": "csv"}`)
	case q.Format == "parquet" && s.Parquet == nil:
		return nil, problem(http.StatusNotImplemented, "this server cannot write parquet", "use csv, or chimbuko query --format parquet")
	}
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	default:
		return nil, &retry{after: 2 * time.Second, Problem: problem(http.StatusTooManyRequests,
			fmt.Sprintf("%d other exports are being written", maxWriting), "try again in a moment")}
	}
	f := &spoolFile{kind: form.kind, name: form.name}
	err = s.insight.Read(p.r.Context(), p.path("run"), insight.SQLParams{SQL: q.SQL, Args: q.Args}, exportTimeouts,
		func(ctx context.Context, rows *provdb.Rows) error {
			return s.spool(ctx, f, q.Format, rows, int64(limit))
		})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// spool writes an answer to a temporary file, which it opens and removes.
func (s *server) spool(ctx context.Context, f *spoolFile, format string, rows *provdb.Rows, limit int64) error {
	dir, err := os.MkdirTemp("", "chimbuko-export-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary
	path := filepath.Join(dir, f.name)
	f.limit(rows, limit)
	if format == "parquet" {
		err = s.Parquet(ctx, path, rows)
	} else {
		err = writeFile(path, rows)
	}
	if err != nil {
		return err
	}
	if f.file, err = os.Open(path); err != nil {
		return err
	}
	info, err := f.file.Stat()
	if err != nil {
		return errors.Join(err, f.file.Close())
	}
	f.size = info.Size()
	return nil
}

// limit truncates an answer to a number of rows, and to maxExportBytes.
func (f *spoolFile) limit(rows *provdb.Rows, limit int64) {
	all, size := rows.All, int64(0)
	rows.All = func(yield func([]any, error) bool) {
		for row, err := range all {
			for i := range row {
				switch v := row[i].(type) {
				case string:
					size += int64(len(v))
				case json.RawMessage:
					size += int64(len(v))
				}
				size += 8
			}
			if err == nil && (f.rows == limit || size > maxExportBytes) {
				f.cut = true
				return
			}
			f.rows++
			if !yield(row, err) {
				return
			}
		}
	}
}

func writeFile(path string, rows *provdb.Rows) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in a new directory
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(provdb.WriteCSV(w, rows), w.Flush(), f.Close())
}
