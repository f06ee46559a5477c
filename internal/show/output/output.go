// Package output writes answers about runs: for programs as JSON, CSV and Parquet, for
// people as tables, Markdown and sentences. It also shows the progress of long work.
package output

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Formats lists the formats of an Answer.
func Formats() []string { return []string{"table", "json", "csv", "markdown", "parquet"} }

// Answer is the answer to a query. Rows are its content in all formats, unless another field
// replaces them in one format.
type Answer struct {
	Rows     *provdb.Rows
	Text     func(w io.Writer) error // replaces the table
	Markdown func(w io.Writer) error
	JSON     any
}

// Parquet writes rows to a Parquet file.
type Parquet func(ctx context.Context, path string, rows *provdb.Rows) error

// Write writes the answer to a file, or to w if path is empty. Parquet needs a file.
func (a *Answer) Write(ctx context.Context, w io.Writer, format, path string, parquet Parquet) (err error) {
	if a.Rows != nil {
		defer func() { err = errors.Join(err, a.Rows.Close()) }()
	}
	if format == "parquet" {
		return parquet(ctx, path, a.Rows)
	}
	write := func(w io.Writer) error { return WriteRows(w, format, a.Rows) }
	switch {
	case format == "table" && a.Text != nil:
		write = a.Text
	case format == "markdown" && a.Markdown != nil:
		write = a.Markdown
	case format == "json" && a.JSON != nil:
		write = func(w io.Writer) error { return WriteJSON(w, a.JSON) }
	}
	if path != "" {
		return WriteFile(path, write)
	}
	out := bufio.NewWriter(w)
	return errors.Join(write(out), out.Flush())
}

// ticksJSON is a value whose outermost objects have ticks of a unit in fields whose names end in _us. It is encoded in
// microseconds.
type ticksJSON struct {
	unit  trace.Unit
	value any
}

// MarshalJSON encodes the value in microseconds, without rounding.
func (t ticksJSON) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t.value); err != nil || t.unit.Canonical() == 0 {
		return b.Bytes(), err
	}
	var out []byte
	text, depth := b.Bytes(), 0
	for len(text) > 0 {
		n := 1
		switch text[0] {
		case '{':
			depth++
		case '}':
			depth--
		case '"':
			for n < len(text) && text[n] != '"' {
				if text[n] == '\\' {
					n++
				}
				n++
			}
			n++
			if key, isKey := bytes.CutSuffix(text[:n], []byte(`_us"`)); depth == 1 && len(key) > 0 && isKey && text[n] == ':' {
				out = append(out, text[:n+1]...)
				text = text[n+1:]
				n = len(text) - len(bytes.TrimLeft(text, "-+.0123456789eE"))
				out = t.appendMicros(out, text[:n])
				text = text[n:]
				continue
			}
		}
		out = append(out, text[:n]...)
		text = text[n:]
	}
	return out, nil
}

// appendMicros appends a number of ticks in microseconds. Other values, such as null, are empty here.
func (t ticksJSON) appendMicros(out, number []byte) []byte {
	if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return append(out, t.unit.MicrosText(trace.Ticks(n))...)
	}
	if v, err := strconv.ParseFloat(string(number), 64); err == nil {
		return strconv.AppendFloat(out, t.unit.MicrosOf(v), 'f', -1, 64)
	}
	return append(out, number...)
}

// WriteFile creates a file and fills it with content.
func WriteFile(path string, content func(w io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err := errors.Join(content(w), w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// WriteJSON writes v with indentation and without escaping HTML.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// WriteRows writes rows as a table, JSON, CSV or Markdown.
func WriteRows(w io.Writer, format string, rows *provdb.Rows) error {
	switch format {
	case "table":
		return writeTable(w, rows)
	case "json":
		return writeArray(w, func(yield func([]byte, error) bool) {
			for row, err := range rows.All {
				var object []byte
				if err == nil {
					object, err = provdb.MarshalRow(rows.Columns, row)
				}
				if !yield(object, err) {
					return
				}
			}
		})
	case "csv":
		return provdb.WriteCSV(w, rows)
	case "markdown":
		return writeMarkdown(w, rows)
	}
	return fmt.Errorf("unknown format %q", format)
}

// writeArray writes a JSON array, one item per line. It stops at the first error.
func writeArray[T ~[]byte](w io.Writer, items func(yield func(T, error) bool)) error {
	separator := "["
	for item, err := range items {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n%s", separator, item); err != nil {
			return err
		}
		separator = ","
	}
	_, err := fmt.Fprintf(w, "%s\n]\n", strings.TrimPrefix(separator, ","))
	return err
}

// maxName is the maximum length of names of functions and call paths in tables, which shorten longer ones.
// Kernels have names of hundreds of characters.
const maxName = 120

func writeTable(w io.Writer, rows *provdb.Rows) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	n := -1 // the first line is the heading
	for line, err := range lines(rows) {
		if err != nil {
			return errors.Join(t.Flush(), err)
		}
		for i, c := range rows.Columns {
			switch c.Name {
			case "function":
				line[i] = text.Shorten(text.WithPlace(line[i]), maxName)
			case "call_path":
				line[i] = text.Shorten(text.WithoutSources(line[i]), maxName)
			}
		}
		if n++; n == 0 {
			fmt.Fprintln(t, strings.ToUpper(strings.Join(line, "\t")))
		} else {
			fmt.Fprintln(t, strings.Join(line, "\t"))
		}
	}
	if n == 0 {
		fmt.Fprintln(t, "(none)")
	}
	return t.Flush()
}

func writeMarkdown(w io.Writer, rows *provdb.Rows) error {
	escape := strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "~", `\~`,
		"`", "\\`", "[", `\[`, "]", `\]`, "://", "&#58;//", "www.", "www&#46;") // links as well, which some viewers find by themselves
	rule := strings.Repeat("| --- ", len(rows.Columns)) + "|\n" // below the heading
	for line, err := range lines(rows) {
		if err != nil {
			return err
		}
		for i, cell := range line {
			line[i] = escape.Replace(cell)
		}
		fmt.Fprintf(w, "| %s |\n%s", strings.Join(line, " | "), rule)
		rule = ""
	}
	return nil
}

// lines yields the headings of rows, and then their values, for people.
func lines(rows *provdb.Rows) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		line := make([]string, len(rows.Columns))
		for i, c := range rows.Columns {
			line[i] = heading(c)
		}
		if !yield(line, nil) {
			return
		}
		for row, err := range rows.All {
			for i, v := range row {
				line[i] = text.SingleSpaced(valueText(rows.Columns[i], v))
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

// heading returns the name of a column for people, without its unit, which follows each value.
func heading(c provdb.Column) string {
	if c.Name == "severity" {
		return "own time"
	}
	name := c.Name
	for _, unit := range []string{"_us", "_s", "_percent"} {
		name = strings.TrimSuffix(name, unit)
	}
	return strings.ReplaceAll(name, "_", " ")
}

// valueText formats a value for people, by the unit in the name of its column.
func valueText(c provdb.Column, v any) string {
	number, isNumber := 0.0, true
	switch v := v.(type) {
	case nil:
		return "-"
	case int64:
		number = float64(v)
	case float64:
		number = v
	default:
		isNumber = false
	}
	switch {
	case isNumber && (strings.HasSuffix(c.Name, "_us") || c.Name == "severity"):
		return text.Duration(number)
	case isNumber && strings.HasSuffix(c.Name, "_s"):
		return fmt.Sprintf("%+.3f s", number)
	case isNumber && strings.HasSuffix(c.Name, "_percent"):
		return fmt.Sprintf("%.3g %%", number)
	}
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', 6, 64)
	}
	return provdb.PlainText(v)
}
