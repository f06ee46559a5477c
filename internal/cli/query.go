package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// whereHelp ends the help of all commands that ask.
const whereHelp = `
RUN is a run directory, a provenance.duckdb file or postgres://user@server/database.
A run that is still being written can be asked, too.`

func newQueryCmd(env *Env) *cobra.Command {
	var q questionFlags
	var file string
	var maxRows int
	var params []string
	cmd := &cobra.Command{
		Use:   "query RUN [SQL]",
		Short: "ask a run in SQL",
		Long: `Run one statement of SQL that only reads. It can reach neither files nor the
network. docs/sql.md lists tables and views, with examples. $1, $2 … stand for the
values of --param.` + whereHelp,
		Example: `  chimbuko query run 'SELECT func, count(*) FROM anomalies GROUP BY func ORDER BY 2 DESC'
  chimbuko query run 'SELECT * FROM anomalies WHERE rid = $1 LIMIT 5' --param 3 --format json
  chimbuko query run --file questions.sql --format csv > answer.csv`,
		Args: args(cobra.RangeArgs(1, 2)),
	}
	f := cmd.Flags()
	f.StringVar(&file, "file", "", "file with the statement; - is standard input")
	f.IntVar(&maxRows, "max-rows", 100_000, "rows after which the answer is cut, with a warning; 0 is never")
	f.StringArrayVar(&params, "param", nil, "value of $1, then of $2 …: a number, true, false, null, or else text")
	return newQuestionCmd(env, cmd, &q, func(ctx context.Context, a *query.Asker, args []string) error {
		sql, err := statement(env, args, file)
		if err != nil {
			return err
		}
		values := make([]any, len(params))
		for i, p := range params {
			values[i] = paramValue(p)
		}
		rows, err := a.Query(ctx, sql, values...)
		if err != nil {
			return err
		}
		cut := false
		if maxRows > 0 {
			rows.All = firstRows(rows, maxRows, &cut)
		}
		err = q.answer(ctx, env, rows, nil)
		if cut {
			fmt.Fprintf(env.Stderr, "chimbuko: the answer was cut after %d rows; --max-rows allows more\n", maxRows)
		}
		return err
	})
}

// statement is the SQL of the command line or of a file.
func statement(env *Env, args []string, file string) (string, error) {
	if (len(args) == 1) == (file != "") {
		return "", usagef("give either a statement or --file")
	}
	if file == "" {
		return args[0], nil
	}
	if file == "-" {
		in := env.Stdin
		if in == nil {
			in = os.Stdin
		}
		text, err := io.ReadAll(in)
		return string(text), err
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

// paramValue is the value of a parameter.
func paramValue(text string) any {
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

// firstRows yields at most n rows, and says whether there were more.
func firstRows(rows *provdb.Rows, n int, cut *bool) func(yield func([]any, error) bool) {
	all := rows.All
	return func(yield func([]any, error) bool) {
		seen := 0
		for row, err := range all {
			if err == nil && seen == n {
				*cut = true
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
	var q questionFlags
	cmd := &cobra.Command{
		Use:     "runs RUN",
		Short:   "list the runs of a store",
		Long:    `List the runs that a store holds, the latest last.` + whereHelp,
		Example: `  chimbuko runs postgres://user@server/chimbuko`,
		Args:    args(cobra.ExactArgs(1)),
	}
	return newQuestionCmd(env, cmd, &q, func(ctx context.Context, a *query.Asker, _ []string) error {
		rows, err := a.Query(ctx, `SELECT run, name, state, started, finished,
       (SELECT count(*) FROM executions e WHERE e.run = r.run AND anomalous AND status IS DISTINCT FROM 'withdrawn') AS anomalies
FROM runs r
ORDER BY started, run`)
		return q.answer(ctx, env, rows, err)
	})
}
