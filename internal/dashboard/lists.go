package dashboard

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/question"
	"github.com/chimbuko/chimbuko/internal/trace"
)

//go:embed sql/*.sql
var files embed.FS

// statement returns the text of a file in sql/.
func statement(name string) string {
	b, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // a file that is not embedded is a mistake in this package
	}
	return strings.TrimSpace(string(b))
}

// list is an answer of rows. Next continues it, where there is more.
type list struct {
	Rows []json.RawMessage `json:"rows"`
	Next string            `json:"next,omitempty"`
}

// maxRows is how many rows a list has at most.
const maxRows = 5000

// top is what lost most to anomalies, as chimbuko top lists it.
func (s *server) top(ctx context.Context, q *asked) (any, error) {
	t := question.Top{By: q.p.word("by", "function"), Order: q.p.word("order", "lost"), Program: q.p.program(), Limit: q.p.limit(10, maxRows)}
	if err := q.p.done(); err != nil {
		return nil, err
	}
	rows, err := objects(q.Top(ctx, t))
	return list{Rows: rows}, err
}

// counters is what is known of counters, as chimbuko counters lists it.
func (s *server) counters(ctx context.Context, q *asked) (any, error) {
	name, program, limit := q.p.text("name"), q.p.program(), q.p.limit(1000, maxRows)
	if err := q.p.done(); err != nil {
		return nil, err
	}
	rows, err := objects(q.Counters(ctx, name, program, limit))
	return list{Rows: rows}, err
}

// functionOrders are the columns that functions can be ordered by.
var functionOrders = map[string]string{
	"name": "", "lost": "lost_us DESC, ", "anomalies": "anomalies DESC, ", "calls": "calls DESC NULLS LAST, ",
	"exclusive": "exclusive_us DESC NULLS LAST, ", "inclusive": "inclusive_us DESC NULLS LAST, ",
}

// functions are those of the run, with and without anomalies.
func (s *server) functions(ctx context.Context, q *asked) (any, error) {
	name, program, order := q.p.text("name"), q.p.program(), q.p.word("order", "lost")
	columns, ok := functionOrders[order]
	if !ok {
		q.p.fail("order", "%.40q is none of anomalies, calls, exclusive, inclusive, lost, name", order)
	}
	return q.offsetPage(ctx, strings.ReplaceAll(statement("functions"), "/*order*/ ", columns), int32(q.Run.ID), orNull(program), pattern(name))
}

// metadata are the facts that were told of ranks.
func (s *server) metadata(ctx context.Context, q *asked) (any, error) {
	name, program := q.p.text("name"), q.p.program()
	var rank any
	if n := q.p.integer("rank", -1, 0, math.MaxInt32); n >= 0 {
		rank = int32(n)
	}
	return q.offsetPage(ctx, statement("metadata"), int32(q.Run.ID), orNull(program), rank, pattern(name))
}

// offsetPage is a part of a list that changes slowly, so that its cursor is the
// number of rows before it. The statement ends with limit and offset.
func (q *asked) offsetPage(ctx context.Context, sql string, args ...any) (any, error) {
	limit, offset := q.p.limit(100, maxRows), q.p.integer("cursor", 0, 0, math.MaxInt32)
	if err := q.p.done(); err != nil {
		return nil, err
	}
	rows, err := objects(q.Query(ctx, sql, append(args, int64(limit)+1, offset)...))
	l := list{Rows: rows}
	if len(rows) > limit {
		l.Rows = rows[:limit]
		l.Next = strconv.FormatInt(offset+int64(limit), 10)
	}
	return l, err
}

// orNull binds a program, or none.
func orNull(p *trace.Program) any {
	if p == nil {
		return nil
	}
	return int32(*p)
}

// pattern binds a pattern with * and ?, or none.
func pattern(glob string) any {
	if glob == "" {
		return nil
	}
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "*", "%", "?", "_").Replace(glob)
}

// timeParts is into how many parts the time of a run is divided.
const timeParts = 20

// function is all that is known of a function, in the parts that chimbuko func
// has.
func (s *server) function(ctx context.Context, q *asked) (any, error) {
	program, limit := q.p.program(), q.p.limit(20, maxRows)
	parts := int(q.p.integer("parts", timeParts, 1, 1000))
	if err := q.p.done(); err != nil {
		return nil, err
	}
	f, err := q.findFunction(ctx, q.r.PathValue("id"), program)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Profile []json.RawMessage `json:"profile"`
		Ranks   []json.RawMessage `json:"ranks"`
		Times   []json.RawMessage `json:"times"`
		Paths   []json.RawMessage `json:"paths"`
		Model   json.RawMessage   `json:"model,omitempty"`
	}
	for _, part := range []struct {
		list *[]json.RawMessage
		ask  func() (*provdb.Rows, error)
	}{
		{&answer.Profile, func() (*provdb.Rows, error) { return q.Profile(ctx, f) }},
		{&answer.Ranks, func() (*provdb.Rows, error) { return q.OverRanks(ctx, f, limit) }},
		{&answer.Times, func() (*provdb.Rows, error) { return q.OverTime(ctx, f, parts) }},
		{&answer.Paths, func() (*provdb.Rows, error) { return q.Paths(ctx, f, limit) }},
	} {
		if *part.list, err = objects(part.ask()); err != nil {
			return nil, err
		}
	}
	answer.Model, err = q.Model(ctx, f)
	return answer, err
}

// findFunction finds a function by its id, which functions lists, or by its name
// as chimbuko func does.
func (q *asked) findFunction(ctx context.Context, id string, program *trace.Program) (*question.Function, error) {
	if first, second, ok := strings.Cut(id, ":"); ok {
		pid, err1 := strconv.ParseUint(first, 10, 31)
		fn, err2 := strconv.ParseUint(second, 10, 31)
		if err1 == nil && err2 == nil {
			rows, err := q.Query(ctx, statement("function_name"), int32(q.Run.ID), int32(pid), int32(fn))
			if err != nil {
				return nil, err
			}
			found, err := rows.Collect()
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				return nil, &problem{http.StatusNotFound, fmt.Sprintf("run %s has no function %s", q.Run.Name, id), "functions lists the ids"}
			}
			p := trace.Program(pid)
			id, program = found[0][0].(string), &p
		}
	}
	f, err := q.Function(ctx, id, program)
	return f, choosing(err)
}

// choosing turns the error of a question that needs to be told the program into
// one of the client.
func choosing(err error) error {
	if err == nil || !strings.Contains(err.Error(), "--program") {
		return err
	}
	return &problem{http.StatusBadRequest, strings.ReplaceAll(err.Error(), "--program", "the parameter program"), "add ?program=N"}
}
