package duckstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/duckdb/duckdb-go/v2"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// openQuery is a running statement, on its own connection in a read-only transaction.
type openQuery struct {
	s      *Store
	ctx    context.Context //nolint:containedctx // context of the call of Query
	cancel context.CancelCauseFunc
	conn   *sql.Conn

	mu    sync.Mutex // held by end, and while the statement starts
	rows  *sql.Rows
	ended bool
}

// Query runs a single statement that only reads.
func (s *Store) Query(ctx context.Context, query string, args ...any) (*provdb.Rows, error) {
	if l, ok := provdb.LimitsOf(ctx); ok {
		return s.queryLimited(ctx, l, query, args)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	q := &openQuery{s: s, ctx: ctx, cancel: cancel}
	rows, err := q.start(query, args)
	if err != nil {
		err = q.cause(err)
		_ = q.end() // err is the cause
		return nil, s.explain("query", err)
	}
	return rows, nil
}

// start opens the connection and runs the statement. Store.Close ends the query if end has not been called.
func (q *openQuery) start(query string, args []any) (_ *provdb.Rows, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.s.register(q) {
		return nil, provdb.ErrClosed
	}
	if q.conn, err = q.s.db.Conn(q.ctx); err != nil {
		return nil, err
	}
	if _, err := q.conn.ExecContext(q.ctx, "USE prov; BEGIN TRANSACTION READ ONLY"); err != nil {
		return nil, err
	}
	key := cacheKey(query, args)
	if q.s.any { // tables and views differ from those of the cached statements
		key = ""
	}
	if rows, err := q.runCached(key, args); rows != nil || err != nil {
		return rows, err
	}
	statement, err := q.inspect(query)
	if err != nil {
		return nil, err
	}
	if err := q.reject(statement.kind, query, args); err != nil {
		return nil, err
	}
	if statement.kind == duckdb.STATEMENT_TYPE_SELECT && statement.simple && isSimple(query) {
		if rows, err := q.runSimple(key, query, args); rows != nil || err != nil {
			return rows, err
		}
	}
	wrapped, columns := query, []provdb.Column(nil)
	if statement.kind == duckdb.STATEMENT_TYPE_SELECT {
		if wrapped, columns, err = q.wrap(query, args); err != nil {
			return nil, err
		}
	}
	if len(statement.columns) == len(columns) { // DuckDB renames the second of two equal names in the wrapped query
		for i := range columns {
			columns[i].Name = statement.columns[i]
		}
	}
	if q.rows, err = q.conn.QueryContext(q.ctx, wrapped, args...); err != nil { //nolint:rowserrcheck // all checks
		return nil, err
	}
	if columns == nil {
		if columns, _, err = columnsOf(q.rows); err != nil {
			return nil, err
		}
	} else if _, types, err := columnsOf(q.rows); err == nil && key != "" {
		statements.Add(key, &cachedStatement{wrapped, columns, types})
	}
	return &provdb.Rows{Columns: slices.Clone(columns), All: q.all(columns), Close: q.end}, nil
}

// runSimple runs a statement as it is. It returns nil if a column has a type that wrap converts.
func (q *openQuery) runSimple(key, query string, args []any) (_ *provdb.Rows, err error) {
	if q.rows, err = q.conn.QueryContext(q.ctx, query, args...); err != nil { //nolint:rowserrcheck // all checks
		return nil, err
	}
	columns, types, err := columnsOf(q.rows)
	converted := false
	for i := range columns {
		converted = converted || asText("", types[i], columns[i].Type) != ""
	}
	if err != nil || converted {
		err = errors.Join(err, q.rows.Close())
		q.rows = nil
		return nil, err
	}
	if key != "" {
		statements.Add(key, &cachedStatement{query, columns, types})
	}
	return &provdb.Rows{Columns: slices.Clone(columns), All: q.all(columns), Close: q.end}, nil
}

// runCached runs a statement from the cache. It returns nil if the cache does not have it.
func (q *openQuery) runCached(key string, args []any) (_ *provdb.Rows, err error) {
	cached, ok := statements.Get(key)
	if !ok {
		return nil, nil //nolint:nilnil // not in the cache
	}
	if q.rows, err = q.conn.QueryContext(q.ctx, cached.wrapped, args...); err != nil { //nolint:rowserrcheck // all checks
		return nil, err
	}
	if _, types, err := columnsOf(q.rows); err != nil || !slices.Equal(types, cached.types) {
		err := q.rows.Close()
		q.rows = nil
		return nil, err
	}
	return &provdb.Rows{Columns: slices.Clone(cached.columns), All: q.all(cached.columns), Close: q.end}, nil
}

// all yields the rows.
func (q *openQuery) all(columns []provdb.Column) func(yield func([]any, error) bool) {
	return func(yield func([]any, error) bool) {
		defer func() { _ = q.end() }() // rows.Err has the error
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		for q.rows.Next() {
			if err := q.rows.Scan(targets...); err != nil {
				yield(nil, q.s.explain("query", err))
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
		if err != nil || errors.Is(context.Cause(q.ctx), provdb.ErrClosed) {
			yield(nil, q.s.explain("query", q.cause(err)))
		}
	}
}

// cause returns err, or the reason why the query was canceled.
func (q *openQuery) cause(err error) error {
	if q.ctx.Err() != nil {
		return context.Cause(q.ctx)
	}
	return err
}

// abort ends the query.
func (q *openQuery) abort(cause error) error {
	q.cancel(cause)
	return q.end()
}

// end closes the connection.
func (q *openQuery) end() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return nil
	}
	q.ended = true
	defer q.s.unregister(q) // after the connection: Close waits for open queries
	defer q.cancel(nil)
	if q.conn == nil {
		return nil
	}
	var err error
	if q.rows != nil {
		err = q.rows.Close()
	}
	return errors.Join(err, q.conn.Close()) // and the transaction
}

// statement describes a statement before it runs.
type statement struct {
	kind    duckdb.StmtType
	columns []string // names; incomplete if they depend on parameters
	simple  bool     // all columns probably have types that the driver can read, or JSON
}

// inspect describes a single statement. It rejects several statements, because the driver would run all but the last while it
// prepares them.
func (q *openQuery) inspect(query string) (st statement, err error) {
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
	st.simple = n > 0
	for i := range n {
		name, e := stmt.ColumnName(i)
		t, f := stmt.ColumnType(i)
		st.columns, err = append(st.columns, name), errors.Join(err, e, f)
		st.simple = st.simple && simpleTypes[t]
	}
	return st, err
}

// simpleTypes are types that asText does not convert, and that of JSON, which DuckDB describes as text.
var simpleTypes = map[duckdb.Type]bool{
	duckdb.TYPE_VARCHAR: true, duckdb.TYPE_BOOLEAN: true, duckdb.TYPE_INTEGER: true, duckdb.TYPE_BIGINT: true, duckdb.TYPE_HUGEINT: true,
	duckdb.TYPE_DOUBLE: true, duckdb.TYPE_DECIMAL: true, duckdb.TYPE_TIMESTAMP: true, duckdb.TYPE_TIMESTAMP_TZ: true,
}

// ordinary matches queries that wrap accepts, unlike PRAGMA, whose kind may be SELECT, too.
var ordinary = regexp.MustCompile(`(?i)^\s*(SELECT|WITH)\s`)

// jsonNames matches what queries with columns of JSON contain: names of such columns, functions, or a star.
var jsonNames = regexp.MustCompile(`(?i)json|->|(SELECT|DISTINCT|ALL|,|\.)\s*\*|` +
	`\b(doc|document|info|params|ranks|hosts|examples|over_time|windows|functions|counters|streams|last_ranks)\b`)

// notJSON matches columns that a query converts to text, and names of tables.
var notJSON = regexp.MustCompile(`(?i)\b\w+::VARCHAR\s+AS\s+"?\w+"?|\bFROM\s+\w+`)

// isSimple reports whether a query probably has no columns of JSON. If it is wrong, the query runs twice.
func isSimple(query string) bool {
	return ordinary.MatchString(query) && !jsonNames.MatchString(notJSON.ReplaceAllString(query, ""))
}

// sideEffects are the functions of DuckDB that have side effects. The last two run text that may call others.
var sideEffects = []string{
	"checkpoint", "force_checkpoint", "enable_logging", "disable_logging", "truncate_duckdb_logs",
	"enable_profiling", "disable_profiling", "enable_peg_parser", "disable_peg_parser",
	"query", "json_execute_serialized_sql",
}

// reject returns an error for statements that are not queries. The read-only transaction prevents all writes except those of
// some functions.
func (q *openQuery) reject(kind duckdb.StmtType, query string, args []any) error {
	if kind != duckdb.STATEMENT_TYPE_SELECT && kind != duckdb.STATEMENT_TYPE_EXPLAIN {
		return fmt.Errorf("%w: write one statement that begins with SELECT, WITH, FROM or EXPLAIN", provdb.ErrReadOnly)
	}
	text := strings.ToLower(query)
	if !slices.ContainsFunc(sideEffects, func(name string) bool { return strings.Contains(text, name) }) {
		return nil
	}
	if kind == duckdb.STATEMENT_TYPE_EXPLAIN { // it has no plan
		return fmt.Errorf("%w: EXPLAIN is not allowed for functions with side effects", provdb.ErrReadOnly)
	}
	var key, plan string
	if err := q.conn.QueryRowContext(q.ctx, "EXPLAIN (FORMAT JSON) "+query, args...).Scan(&key, &plan); err != nil {
		return err
	}
	var steps []step
	if err := json.Unmarshal([]byte(plan), &steps); err != nil {
		return fmt.Errorf("%w: cannot read the plan: %w", provdb.ErrReadOnly, err)
	}
	return rejectSteps(steps)
}

// step is an operator of a plan in the JSON of EXPLAIN.
type step struct {
	Name     string `json:"name"`
	Children []step `json:"children"`
}

func rejectSteps(steps []step) error {
	for i := range steps {
		if name := strings.ToLower(strings.TrimSpace(steps[i].Name)); slices.Contains(sideEffects, name) {
			return fmt.Errorf("%w: the function %s has side effects", provdb.ErrReadOnly, name)
		}
		if err := rejectSteps(steps[i].Children); err != nil {
			return err
		}
	}
	return nil
}

// wrap returns a query whose columns have the types of the contract, and the columns. JSON arrives as text, because the
// driver would decode it and lose large numbers. wrap fails for statements that are not tables, such as PRAGMA.
func (q *openQuery) wrap(query string, args []any) (string, []provdb.Column, error) {
	body := q.body(query)
	rows, err := q.conn.QueryContext(q.ctx, "SELECT * FROM ("+body+"\n) LIMIT 0", args...)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = rows.Close() }() // no rows to read
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

// body returns the query without a final semicolon.
func (q *openQuery) body(query string) string {
	for end := strings.LastIndexByte(query, ';'); end >= 0; end = strings.LastIndexByte(query[:end], ';') {
		err := q.conn.Raw(func(raw any) error {
			if _, err := prepared(raw, query[end+1:]); err == nil || err.Error() != "empty query" {
				return errors.New("not the end")
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

// statements are those that ran before in any store, which all have the same tables and views. The key is from cacheKey.
var statements, _ = lru.New[string, *cachedStatement](maxCached) // fails for sizes below 1 only

// cachedStatement describes a statement that ran before. DuckDB takes longer to describe most statements than to run them.
type cachedStatement struct {
	wrapped string // the statement to run
	columns []provdb.Column
	types   []string // DuckDB types of the columns of wrapped
}

// Limits of the cache.
const (
	maxCached      = 500
	maxCachedBytes = 64 << 10 // of one statement
)

// cacheKey returns the text of a statement and the types of its arguments, which determine its columns. It returns "" for
// statements that must not be cached, because their columns depend on values or because they may have side effects.
func cacheKey(query string, args []any) string {
	text := strings.ToLower(query)
	if len(query) > maxCachedBytes || strings.Contains(text, "columns") ||
		slices.ContainsFunc(sideEffects, func(name string) bool { return strings.Contains(text, name) }) {
		return ""
	}
	var b strings.Builder
	for _, a := range args {
		fmt.Fprintf(&b, "%T,", a)
	}
	return b.String() + query
}
