package duckstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// question is a statement that is being answered, on its own connection in a
// transaction that cannot write.
type question struct {
	s      *Store
	ctx    context.Context //nolint:containedctx // of the call of Query
	cancel context.CancelCauseFunc
	conn   *sql.Conn

	mu    sync.Mutex // held while the statement is started, and by end
	rows  *sql.Rows
	ended bool
}

// Query answers one statement that only reads.
func (s *Store) Query(ctx context.Context, query string, args ...any) (*provdb.Rows, error) {
	q, err := s.ask(ctx)
	if err != nil {
		return nil, s.explain("ask", err)
	}
	rows, err := q.start(query, args)
	if err != nil {
		_ = q.end() // err says more
		return nil, s.explain("ask", err)
	}
	return rows, nil
}

// ask begins a question, which Close ends if no one does before.
func (s *Store) ask(ctx context.Context) (*question, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	q := &question{s: s, ctx: ctx, cancel: cancel}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !s.questions.add(q) {
		cancel(nil)
		return nil, provdb.ErrClosed
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		s.questions.remove(q)
		err = q.cause(err)
		cancel(nil)
		return nil, err
	}
	q.conn = conn
	return q, nil
}

// questions are those that are not ended.
type questions struct {
	mu   sync.Mutex
	open map[*question]bool
	shut bool
}

// add is false when no more may be asked.
func (o *questions) add(q *question) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shut {
		return false
	}
	if o.open == nil {
		o.open = make(map[*question]bool)
	}
	o.open[q] = true
	return true
}

func (o *questions) remove(q *question) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, q)
}

func (o *questions) closed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shut
}

// end ends all questions, and lets no other be asked.
func (o *questions) end() error {
	o.mu.Lock()
	o.shut = true
	open := slices.Collect(maps.Keys(o.open))
	o.mu.Unlock()
	var errs []error
	for _, q := range open {
		q.cancel(provdb.ErrClosed)
		errs = append(errs, q.end())
	}
	return errors.Join(errs...)
}

// start runs the statement.
func (q *question) start(query string, args []any) (*provdb.Rows, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return nil, provdb.ErrClosed
	}
	if _, err := q.conn.ExecContext(q.ctx, "USE prov; BEGIN TRANSACTION READ ONLY"); err != nil {
		return nil, q.cause(err)
	}
	key := seenKey(query, args)
	if rows, err := q.again(key, args); rows != nil || err != nil {
		return rows, err
	}
	statement, err := q.inspect(query)
	if err != nil {
		return nil, q.cause(err)
	}
	if err := q.refuse(statement.kind, query, args); err != nil {
		return nil, q.cause(err)
	}
	wrapped, columns := query, []provdb.Column(nil)
	if statement.kind == duckdb.STATEMENT_TYPE_SELECT {
		if wrapped, columns, err = q.wrap(query, args); err != nil {
			return nil, q.cause(err)
		}
	}
	if len(statement.columns) == len(columns) { // where two have the same name, DuckDB renames the second when wrapped
		for i := range columns {
			columns[i].Name = statement.columns[i]
		}
	}
	if q.rows, err = q.conn.QueryContext(q.ctx, wrapped, args...); err != nil { //nolint:rowserrcheck // all checks
		return nil, q.cause(err)
	}
	if columns == nil {
		if columns, _, err = columnsOf(q.rows); err != nil {
			return nil, err
		}
	} else if _, types, err := columnsOf(q.rows); err == nil && key != "" {
		q.s.seen.put(key, &seenStatement{wrapped, columns, types})
	}
	return &provdb.Rows{Columns: slices.Clone(columns), All: q.all(columns), Close: q.end}, nil
}

// again runs a statement that was asked before as it was run then; nil if it was not.
func (q *question) again(key string, args []any) (_ *provdb.Rows, err error) {
	seen := q.s.seen.get(key)
	if seen == nil {
		return nil, nil //nolint:nilnil // it was not
	}
	if q.rows, err = q.conn.QueryContext(q.ctx, seen.wrapped, args...); err != nil { //nolint:rowserrcheck // all checks
		return nil, q.cause(err)
	}
	if !seen.fits(q.rows) {
		err := q.rows.Close()
		q.rows = nil
		return nil, err
	}
	return &provdb.Rows{Columns: slices.Clone(seen.columns), All: q.all(seen.columns), Close: q.end}, nil
}

// all yields the rows.
func (q *question) all(columns []provdb.Column) func(yield func([]any, error) bool) {
	return func(yield func([]any, error) bool) {
		defer func() { _ = q.end() }() // rows.Err tells
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		for q.rows.Next() {
			if err := q.rows.Scan(targets...); err != nil {
				yield(nil, q.s.explain("ask", err))
				return
			}
			for i := range values {
				values[i] = plain(values[i], columns[i].Type)
			}
			if !yield(values, nil) {
				return
			}
		}
		err := q.rows.Err()
		if q.s.questions.closed() {
			err = provdb.ErrClosed
		}
		if err != nil {
			yield(nil, q.s.explain("ask", q.cause(err)))
		}
	}
}

// cause is err, or why the question was given up.
func (q *question) cause(err error) error {
	if q.ctx.Err() != nil {
		return context.Cause(q.ctx)
	}
	return err
}

// end gives the connection up.
func (q *question) end() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return nil
	}
	q.ended = true
	defer q.s.questions.remove(q)
	defer q.cancel(nil)
	if q.conn == nil {
		return nil
	}
	var err error
	if q.rows != nil {
		err = q.rows.Close()
	}
	return errors.Join(err, q.conn.Close()) // and with it its transaction
}

// statement is what is known of one before it runs.
type statement struct {
	kind    duckdb.StmtType
	columns []string // their names; fewer than there are if they depend on parameters
}

// inspect looks at the statement. It must be one: the driver would run all but
// the last of several while it prepares them.
func (q *question) inspect(query string) (st statement, err error) {
	err = q.conn.Raw(func(raw any) error {
		st, err = prepared(raw, query)
		return err
	})
	return st, err
}

func prepared(raw any, query string) (st statement, err error) {
	p, err := raw.(driver.Conn).Prepare(query)
	if err != nil {
		if strings.Contains(err.Error(), "multi-statement") {
			return st, fmt.Errorf("%w, one at a time", provdb.ErrReadOnly)
		}
		return st, err
	}
	stmt := p.(*duckdb.Stmt)
	defer func() { err = errors.Join(err, stmt.Close()) }()
	if st.kind, err = stmt.StatementType(); err != nil {
		return st, err
	}
	n, err := stmt.ColumnCount()
	for i := range n {
		name, e := stmt.ColumnName(i)
		st.columns, err = append(st.columns, name), errors.Join(err, e)
	}
	return st, err
}

// deeds are the functions of DuckDB that change something when they are asked;
// the last two run text that could call one of them.
var deeds = []string{
	"checkpoint", "force_checkpoint", "enable_logging", "disable_logging", "truncate_duckdb_logs",
	"enable_profiling", "disable_profiling", "enable_peg_parser", "disable_peg_parser",
	"query", "json_execute_serialized_sql",
}

// refuse is an error for all that is not a question. The transaction refuses to
// write, but there are functions that write without it.
func (q *question) refuse(kind duckdb.StmtType, query string, args []any) error {
	if kind != duckdb.STATEMENT_TYPE_SELECT && kind != duckdb.STATEMENT_TYPE_EXPLAIN {
		return fmt.Errorf("%w: write one statement that begins with SELECT, WITH, FROM or EXPLAIN", provdb.ErrReadOnly)
	}
	text := strings.ToLower(query)
	if !slices.ContainsFunc(deeds, func(name string) bool { return strings.Contains(text, name) }) {
		return nil
	}
	if kind == duckdb.STATEMENT_TYPE_EXPLAIN { // cannot be explained itself
		return fmt.Errorf("%w: ask without EXPLAIN, for this could do more than that", provdb.ErrReadOnly)
	}
	var key, plan string
	if err := q.conn.QueryRowContext(q.ctx, "EXPLAIN (FORMAT JSON) "+query, args...).Scan(&key, &plan); err != nil {
		return err
	}
	var steps []step
	if err := json.Unmarshal([]byte(plan), &steps); err != nil {
		return fmt.Errorf("%w: the plan cannot be read: %w", provdb.ErrReadOnly, err)
	}
	return refuseSteps(steps)
}

// step of a plan, as DuckDB explains it.
type step struct {
	Name     string `json:"name"`
	Children []step `json:"children"`
}

func refuseSteps(steps []step) error {
	for i := range steps {
		if name := strings.ToLower(strings.TrimSpace(steps[i].Name)); slices.Contains(deeds, name) {
			return fmt.Errorf("%w: the function %s does more than answer", provdb.ErrReadOnly, name)
		}
		if err := refuseSteps(steps[i].Children); err != nil {
			return err
		}
	}
	return nil
}

// wrap returns the query so that all columns arrive as the contract wants them,
// and what they are. JSON arrives as text, for the driver decodes it and loses
// large numbers. What is no table, such as a PRAGMA that answers, cannot be
// wrapped.
func (q *question) wrap(query string, args []any) (string, []provdb.Column, error) {
	body := q.body(query)
	rows, err := q.conn.QueryContext(q.ctx, "SELECT * FROM ("+body+"\n) LIMIT 0", args...)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = rows.Close() }() // nothing was read
	columns, names, err := columnsOf(rows)
	if err = errors.Join(err, rows.Err()); err != nil {
		return "", nil, err
	}
	aliases, exprs := make([]string, len(columns)), make([]string, len(columns))
	same := true
	for i := range columns {
		aliases[i] = fmt.Sprintf("c%d", i)
		exprs[i] = asText(aliases[i], names[i], columns[i].Type)
		same = same && exprs[i] == aliases[i]
	}
	if same {
		return query, columns, nil
	}
	return "SELECT " + strings.Join(exprs, ", ") + " FROM (" + body + "\n) AS answer(" + strings.Join(aliases, ", ") + ")", columns, nil
}

// body is the query without the semicolon that may end it.
func (q *question) body(query string) string {
	for end := strings.LastIndexByte(query, ';'); end >= 0; end = strings.LastIndexByte(query[:end], ';') {
		err := q.conn.Raw(func(raw any) error {
			if _, err := prepared(raw, query[end+1:]); err == nil || err.Error() != "empty query" {
				return errors.New("no end")
			}
			_, err := prepared(raw, query[:end])
			return err
		})
		if err == nil {
			return query[:end]
		}
	}
	return query
}
