package cli

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

func newQueryCmd(env *Env) *cobra.Command {
	var q queryFlags
	var file string
	var maxRows int
	var params []string
	var megabytes int64
	cmd := &cobra.Command{
		Use:   "query RUN [SQL]",
		Short: "Query a run in SQL",
		Long: `Run one read-only SQL statement. It has no access to files or the network. docs/sql.md
lists tables and views, with examples. $1, $2 … stand for the values of --param. The table
format shows columns whose names end in _us with units. Other formats have the ticks of the
store, which are nanoseconds for traces of PyTorch. The statement runs in a process of its
own, which ends at --timeout, or if it needs more memory than --sql-memory.` + runHelp,
		Example: `  chimbuko query run 'SELECT func, count(*) FROM anomalies GROUP BY func ORDER BY 2 DESC'
  chimbuko query run 'SELECT * FROM anomalies WHERE rid = $1 LIMIT 5' --param 3 --format json
  chimbuko query run --file query.sql --format csv > answer.csv`,
		Args: usage.Args(cobra.RangeArgs(1, 2)),
	}
	f := cmd.Flags()
	f.StringVar(&file, "file", "", "file with the statement; - for standard input")
	f.IntVar(&maxRows, "max-rows", 100_000, "maximum number of rows, with a warning if there are more; 0 for all")
	registerSQLMemory(f, &megabytes)
	f.StringArrayVar(&params, "param", nil, "value of $1, then of $2 …: a number, true, false, null, or text, which may be quoted as in SQL")
	return newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, args []string) (*output.Answer, error) {
		sql, err := statement(env, args, file)
		if err != nil {
			return nil, err
		}
		values := make([]any, len(params))
		for i, p := range params {
			values[i] = paramValue(p)
		}
		if megabytes < 0 {
			return nil, usage.Errorf("--sql-memory %d is negative", megabytes)
		}
		rows, err := a.Query(provdb.WithLimits(ctx, provdb.Limits{Memory: megabytes * 1e6}), sql, values...)
		if err != nil {
			return nil, err
		}
		if maxRows > 0 {
			rows.All = firstRows(rows.All, maxRows, func() {
				fmt.Fprintf(env.Stderr, "chimbuko: there are more than %d rows (raise --max-rows)\n", maxRows)
			})
		}
		// Tables have ticks in columns named _us.
		shown := executions.InMicros(a.Unit, rows)
		return &output.Answer{
			Rows:     rows,
			Text:     func(w io.Writer) error { return output.WriteRows(w, "table", shown) },
			Markdown: func(w io.Writer) error { return output.WriteRows(w, "markdown", shown) },
		}, nil
	})
}

// registerSQLMemory adds the flag for the memory limit of statements that users write.
func registerSQLMemory(f *pflag.FlagSet, megabytes *int64) {
	f.Int64Var(megabytes, "sql-memory", 0, "megabytes that an SQL query may use; 0 for an eighth of this machine's memory, at most 2000")
}

// statement returns the SQL from the command line or a file.
func statement(env *Env, args []string, file string) (string, error) {
	if (len(args) == 1) == (file != "") {
		return "", usage.Errorf("give either a statement or --file")
	}
	if file == "" {
		return args[0], nil
	}
	if file == "-" {
		text, err := io.ReadAll(env.stdin())
		return string(text), err
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

// paramValue parses the value of a parameter.
func paramValue(text string) any {
	if quoted, ok := strings.CutPrefix(text, "'"); ok {
		if quoted, ok = strings.CutSuffix(quoted, "'"); ok {
			return strings.ReplaceAll(quoted, "''", "'")
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return x
	}
	switch text {
	case "null":
		return nil
	case "true":
		return true
	case "false":
		return false
	}
	return text
}

// firstRows yields at most n rows, and calls onMore if there are more.
func firstRows(rows iter.Seq2[[]any, error], n int, onMore func()) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		seen := 0
		for row, err := range rows {
			if err == nil && seen == n {
				onMore()
				return
			}
			seen++
			if !yield(row, err) {
				return
			}
		}
	}
}

func newRunsCmd(env *Env) *cobra.Command {
	var q queryFlags
	cmd := &cobra.Command{
		Use:     "runs RUN",
		Short:   "List the runs of a store",
		Long:    `List the runs of a store, the latest last.` + runHelp,
		Example: `  chimbuko runs postgres://user@server/chimbuko`,
		Args:    usage.Args(cobra.ExactArgs(1)),
	}
	return newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, _ []string) (*output.Answer, error) {
		return rowsAnswer(a.Query(ctx, `SELECT run, name, state, started, finished,
       (SELECT count(*) FROM executions e WHERE e.run = r.run AND anomalous AND status IS DISTINCT FROM 'withdrawn') AS anomalies
FROM runs r
ORDER BY started, run`))
	})
}
