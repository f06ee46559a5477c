package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// questionFlags are those that all questions have.
type questionFlags struct {
	where   rundir.Place // that was opened first
	run     string
	program int
	format  string
	output  string
	showSQL bool
	timeout time.Duration
}

func (q *questionFlags) register(f *pflag.FlagSet) {
	f.StringVar(&q.run, "run", "", "name of the run, where the store holds several; by default the latest")
	f.IntVar(&q.program, "program", -1, "only this program of a workflow; -1 is all")
	f.StringVar(&q.format, "format", "table", "form of the answer: table, json, csv, markdown or parquet")
	f.StringVar(&q.output, "output", "", "file for the answer instead of standard output; parquet needs one")
	f.BoolVar(&q.showSQL, "show-sql", false, "print the SQL of the question to standard error")
	f.DurationVar(&q.timeout, "timeout", time.Minute, "give up after this time; 0 is never")
}

// only is the chosen program, nil for all.
func (q *questionFlags) only() *trace.Program {
	if q.program < 0 {
		return nil
	}
	p := trace.Program(q.program)
	return &p
}

// check says what is wrong with the form of the answer before anything is asked.
func (q *questionFlags) check() error {
	if _, ok := answerForms[q.format]; !ok && q.format != "parquet" {
		return usagef("unknown format %q (want table, json, csv, markdown, parquet)", q.format)
	}
	if q.format == "parquet" && q.output == "" {
		return usagef("an answer as parquet needs a file: give --output FILE")
	}
	return nil
}

// checkLimit says what is wrong with a number of rows.
func checkLimit(n int) error {
	if n < 0 {
		return usagef("limit %d is negative", n)
	}
	return nil
}

// newQuestionCmd makes a command that asks a store.
func newQuestionCmd(env *Env, cmd *cobra.Command, q *questionFlags,
	ask func(ctx context.Context, a *query.Asker, args []string) error,
) *cobra.Command {
	q.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return q.asking(cmd.Context(), func(ctx context.Context) (err error) {
			if q.where, err = rundir.FindStore(args[0]); err != nil {
				return err
			}
			return q.with(ctx, env, q.where, func(a *query.Asker) error { return ask(ctx, a, args[1:]) })
		})
	}
	return cmd
}

// asking asks something within the time that there is, and explains what went wrong.
func (q *questionFlags) asking(ctx context.Context, ask func(ctx context.Context) error) error {
	if err := q.check(); err != nil {
		return err
	}
	ctx, cancel := q.limit(ctx)
	defer cancel()
	err := ask(ctx)
	if err != nil && (errors.Is(context.Cause(ctx), errTooLong) || errors.Is(err, context.DeadlineExceeded)) {
		return fmt.Errorf("no answer within %v; ask for less, or give more with --timeout: %w", q.timeout, err)
	}
	if _, ok := errors.AsType[*query.ChoiceError](err); ok {
		return usageError{err}
	}
	if _, ok := errors.AsType[*contrast.TermError](err); ok {
		return usageError{err}
	}
	return err
}

var errTooLong = errors.New("too long")

// limit bounds the time of a question.
func (q *questionFlags) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if q.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, q.timeout, errTooLong)
}

// with opens the store for the questions of f about one run.
func (q *questionFlags) with(ctx context.Context, env *Env, where rundir.Place, f func(a *query.Asker) error) error {
	return opened(ctx, env, where, func(r provdb.Reader) error {
		a, err := query.New(ctx, r, cmp.Or(q.run, where.Run))
		if err != nil {
			return fmt.Errorf("%s: %w", cmp.Or(redact.URLs(where.Server), where.File), err)
		}
		a.OnQuery = q.told(env)
		return f(a)
	})
}

// opened opens the store for f.
func opened(ctx context.Context, env *Env, where rundir.Place, f func(r provdb.Reader) error) error {
	r, closeStore, err := where.Open(ctx)
	if err != nil {
		return err
	}
	if _, asked := r.(*remotestore.Client); !asked {
		tellCut(env, where)
	}
	return errors.Join(f(r), closeStore())
}

// told prints each statement, if that is wanted.
func (q *questionFlags) told(env *Env) func(sql string, args []any) {
	if !q.showSQL {
		return nil
	}
	return func(sql string, args []any) { fmt.Fprintf(env.Stderr, "%s;\n%s", sql, boundText(args)) }
}

// boundText lists what is bound to $1, $2 … as comments of SQL.
func boundText(args []any) string {
	var b strings.Builder
	for i, v := range args {
		text := fmt.Sprint(v)
		if v == nil {
			text = "NULL"
		}
		if s, ok := v.(string); ok {
			text = "'" + strings.ReplaceAll(s, "'", "''") + "'"
		}
		fmt.Fprintf(&b, "-- $%d = %s\n", i+1, text)
	}
	return b.String() + "\n"
}

// answerForms are the forms that are written to a stream.
var answerForms = map[string]func(w io.Writer, rows *provdb.Rows) error{
	"table": writeTable, "json": writeJSONRows, "csv": provdb.WriteCSV, "markdown": writeMarkdownTable,
}

// answer writes rows in the form that was chosen, and closes them.
func (q *questionFlags) answer(ctx context.Context, env *Env, rows *provdb.Rows, err error) error {
	if err != nil {
		return err
	}
	if q.format == "parquet" {
		err = duckstore.WriteParquet(ctx, q.output, rows)
	} else {
		err = q.write(env, func(w io.Writer) error { return answerForms[q.format](w, rows) })
	}
	return errors.Join(err, rows.Close())
}

// write writes to standard output or to the file that was chosen.
func (q *questionFlags) write(env *Env, content func(w io.Writer) error) error {
	if q.output == "" {
		w := bufio.NewWriter(env.Stdout)
		return errors.Join(content(w), w.Flush())
	}
	f, err := os.Create(q.output)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(content(w), w.Flush(), f.Close())
}

func writeTable(w io.Writer, rows *provdb.Rows) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, c := range rows.Columns {
		fmt.Fprint(t, tabBefore(i), strings.ToUpper(strings.ReplaceAll(title(c), "_", " ")))
	}
	fmt.Fprintln(t)
	n := 0
	for row, err := range rows.All {
		if err != nil {
			return errors.Join(t.Flush(), err)
		}
		n++
		for i, v := range row {
			fmt.Fprint(t, tabBefore(i), oneLine(forPeople(rows.Columns[i], v)))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if n == 0 {
		fmt.Fprintln(w, "(none)")
	}
	return nil
}

func tabBefore(i int) string {
	if i == 0 {
		return ""
	}
	return "\t"
}

// title is the name of a column for people, who see the unit at the value.
func title(c provdb.Column) string {
	name := c.Name
	for _, unit := range []string{"_us", "_s", "_percent"} {
		name = strings.TrimSuffix(name, unit)
	}
	return name
}

// forPeople writes a value for people, by the unit in the name of its column.
func forPeople(c provdb.Column, v any) string {
	number, isNumber := 0.0, false
	switch v := v.(type) {
	case nil:
		return "-"
	case int64:
		number, isNumber = float64(v), true
	case float64:
		number, isNumber = v, true
	}
	switch {
	case isNumber && (strings.HasSuffix(c.Name, "_us") || c.Name == "severity"):
		return microsText(number)
	case isNumber && strings.HasSuffix(c.Name, "_s"):
		return fmt.Sprintf("%+.3f s", number)
	case isNumber && strings.HasSuffix(c.Name, "_percent"):
		return fmt.Sprintf("%.3g %%", number)
	}
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	return provdb.PlainText(v)
}

func writeMarkdownTable(w io.Writer, rows *provdb.Rows) error {
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "`", "\\`")
	for _, c := range rows.Columns {
		fmt.Fprint(w, "| ", strings.ReplaceAll(title(c), "_", " "), " ")
	}
	fmt.Fprintf(w, "|\n%s|\n", strings.Repeat("| --- ", len(rows.Columns)))
	for row, err := range rows.All {
		if err != nil {
			return err
		}
		for i, v := range row {
			fmt.Fprint(w, "| ", escape.Replace(oneLine(forPeople(rows.Columns[i], v))), " ")
		}
		fmt.Fprintln(w, "|")
	}
	return nil
}

// writeJSONRows writes an array of objects, whose keys are in the order of the
// columns.
func writeJSONRows(w io.Writer, rows *provdb.Rows) error {
	n := 0
	for row, err := range rows.All {
		if err != nil {
			return err
		}
		object, err := jsonObject(rows.Columns, row)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\n%s", "[,"[min(n, 1):min(n, 1)+1], object)
		n++
	}
	if n == 0 {
		fmt.Fprint(w, "[")
	}
	_, err := fmt.Fprintln(w, "\n]")
	return err
}

func jsonObject(columns []provdb.Column, row []any) (string, error) {
	var b strings.Builder
	for i, v := range row {
		key, err := json.Marshal(columns[i].Name)
		if err != nil {
			return "", err
		}
		value, err := marshalPlain(v)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", columns[i].Name, err)
		}
		b.WriteByte("{,"[min(i, 1)])
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	if len(row) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.String(), nil
}

// marshalPlain is json.Marshal without the care for HTML. Numbers that JSON does
// not know are null.
func marshalPlain(v any) ([]byte, error) {
	if x, ok := v.(float64); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
		return []byte("null"), nil
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// rowsOf makes an answer of rows that are there already.
func rowsOf(columns []provdb.Column, all [][]any) *provdb.Rows {
	return &provdb.Rows{
		Columns: columns,
		All: func(yield func([]any, error) bool) {
			for _, row := range all {
				if !yield(row, nil) {
					return
				}
			}
		},
		Close: func() error { return nil },
	}
}
