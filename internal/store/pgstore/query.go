package pgstore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Query answers one statement that only reads.
func (s *Store) Query(ctx context.Context, sql string, args ...any) (*provdb.Rows, error) {
	rows, err := s.start(ctx, sql, args)
	if isLost(err) { // the server was restarted since the last query
		s.pool.Reset()
		rows, err = s.start(ctx, sql, args)
	}
	if err != nil {
		return nil, s.explain(ctx, "query", translate(err))
	}
	return rows, nil
}

// translate returns provdb.ErrReadOnly for an error of a statement that would write,
// context.DeadlineExceeded for a query that the server stopped, and provdb.ErrLimit for one
// that needs too much memory or disk.
func translate(err error) error {
	switch state(err) {
	case readOnlyTransaction:
		e, _ := errors.AsType[*pgconn.PgError](err)
		return refuse(e.Message)
	case queryCanceled:
		return fmt.Errorf("the query took too long: %w: %w", context.DeadlineExceeded, err)
	case limitExceeded, outOfMemory, programLimit:
		return fmt.Errorf("%w: it used too much memory or disk of the server (aggregate or filter earlier): %w", provdb.ErrLimit, err)
	}
	if _, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); ok {
		return fmt.Errorf("%w: a row has more than %s (shorten its values)", provdb.ErrLimit, text.Bytes(maxLimitedRow))
	}
	return err
}

// start sends a query and returns its rows. The connection is free again when they have
// been read.
func (s *Store) start(ctx context.Context, sql string, args []any) (*provdb.Rows, error) {
	release := func() {}
	if _, ok := provdb.LimitsOf(ctx); ok {
		var err error
		if release, err = s.slots.Take(ctx); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	a := &answer{s: s, ctx: ctx, cancel: cancel, release: sync.OnceFunc(release)}
	a.mu.Lock()
	defer a.mu.Unlock()
	s.mu.Lock()
	closed := s.answers == nil
	if !closed {
		s.answers[a] = true
	}
	s.mu.Unlock()
	if closed {
		a.release()
		return nil, provdb.ErrClosed
	}
	if err := a.begin(sql, args); err != nil {
		if errors.Is(context.Cause(ctx), provdb.ErrClosed) {
			err = provdb.ErrClosed
		} else if a.conn != nil {
			err = lostIf(ctx, a.conn, err)
		}
		a.end() //nolint:contextcheck // it has its own context
		return nil, err
	}
	closeRows := func() error { a.stop(nil); return nil } //nolint:contextcheck // the answer has its own context
	return &provdb.Rows{Columns: a.columns, All: a.all, Close: closeRows}, nil
}

// answer is a query whose rows are being read.
type answer struct {
	s      *Store
	ctx    context.Context //nolint:containedctx // of the query
	cancel context.CancelCauseFunc

	release func() // the slot of a statement with limits

	mu      sync.Mutex // protects the fields below
	conn    *pgxpool.Conn
	columns []provdb.Column
	decode  []func(text []byte) (any, error)
	result  *pgconn.ResultReader
	ahead   [][][]byte // rows that were read to determine the types of columns
	done    bool
	stopped error // reason of an early end
}

// begin begins a read-only transaction and sends the query.
func (a *answer) begin(sql string, args []any) (err error) {
	sql, isQuery, err := inspect(sql)
	if err != nil {
		return err
	}
	if a.conn, err = a.s.pool.Acquire(a.ctx); err != nil {
		return err
	}
	pg := a.conn.Conn().PgConn()
	pg.Frontend().SetMaxBodyLen(maxRow(a.ctx))
	if err := pg.Exec(a.ctx, a.s.preamble(a.ctx)).Close(); err != nil {
		return err
	}
	statement, err := pg.Prepare(a.ctx, "", sql, nil)
	if err != nil {
		return addPosition(sql, err) // first, so that syntax errors have PostgreSQL's words
	}
	if !isQuery {
		return refuse("write one statement that begins with SELECT, WITH, VALUES, TABLE or EXPLAIN")
	}
	types, err := columnTypes(a.ctx, a.conn.Conn(), statement.Fields)
	if err != nil {
		return err
	}
	for i, f := range statement.Fields {
		a.columns = append(a.columns, provdb.Column{Name: f.Name, Type: types[i]})
		a.decode = append(a.decode, decoder(f.DataTypeOID, types[i]))
	}
	// Prepare again: columnTypes may have used the unnamed statement, and lists become JSON.
	if statement, err = pg.Prepare(a.ctx, "", asJSON(sql, statement.Fields, types), nil); err != nil {
		return err
	}
	b, err := bind(a.conn.Conn(), statement, args)
	if err != nil {
		return err
	}
	a.result = pg.ExecPrepared(a.ctx, "", b.ParamValues, b.ParamFormats, nil)
	return a.settle()
}

// bind encodes the arguments of a query.
func bind(conn *pgx.Conn, statement *pgconn.StatementDescription, args []any) (b pgx.ExtendedQueryBuilder, err error) {
	if len(args) != len(statement.ParamOIDs) {
		return b, fmt.Errorf("the query has %d parameters, but got %d arguments", len(statement.ParamOIDs), len(args))
	}
	bound := make([]any, len(args))
	for i, v := range args {
		bound[i] = argument(v)
	}
	return b, b.Build(conn.TypeMap(), statement, bound)
}

// limitedSettings bound the memory and the temporary files of a statement that a user wrote.
// Only a superuser may set the latter; for others the administrator does.
const limitedSettings = `SET LOCAL work_mem = '64MB';
	SELECT CASE WHEN current_setting('is_superuser') = 'on' THEN set_config('temp_file_limit', '4GB', true) END`

// The largest rows, in bytes.
const (
	maxLimitedRow = 64 << 20 // of statements that users write
	maxAnyRow     = 1 << 30  // PostgreSQL allows no larger ones
)

func maxRow(ctx context.Context) int {
	if _, ok := provdb.LimitsOf(ctx); ok {
		return maxLimitedRow
	}
	return maxAnyRow
}

// preamble returns the statements that begin the transaction of a query.
func (s *Store) preamble(ctx context.Context) string {
	sql := "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED READ ONLY"
	if _, ok := provdb.LimitsOf(ctx); ok {
		sql += "; " + limitedSettings
	}
	if s.reader {
		sql += "; SET LOCAL ROLE " + readerRole
	}
	if deadline, ok := ctx.Deadline(); ok {
		// A little less than the remaining time, so that the connection survives.
		left := time.Until(deadline)
		sql += fmt.Sprintf("; SET LOCAL statement_timeout = %d", max(1, (left-left/20).Milliseconds()))
	}
	return sql
}

// argument returns a value that can be bound to a parameter of any type that its text fits.
func argument(v any) any {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(r.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(r.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		return strconv.FormatFloat(r.Float(), 'f', -1, 64)
	case reflect.Bool:
		return strconv.FormatBool(r.Bool())
	case reflect.String:
		return r.String()
	}
	return v
}

// columnTypes returns the types of columns; "" for numbers whose type depends on the values.
func columnTypes(ctx context.Context, conn *pgx.Conn, fields []pgconn.FieldDescription) ([]provdb.Type, error) {
	types := make([]provdb.Type, len(fields))
	var unknown []uint32
	for i, f := range fields {
		t, ok := conn.TypeMap().TypeForOID(f.DataTypeOID)
		switch {
		case !ok:
			unknown = append(unknown, f.DataTypeOID)
		case isList(t):
			types[i] = provdb.JSON
		default:
			types[i] = typeOf(f)
		}
	}
	if unknown == nil {
		return types, nil
	}
	rows, err := conn.Query(ctx, "SELECT oid FROM pg_catalog.pg_type WHERE oid = ANY($1) AND (typtype = 'c' OR typcategory = 'A')", unknown)
	if err != nil {
		return nil, err
	}
	nested, err := pgx.CollectRows(rows, pgx.RowTo[uint32])
	for i, f := range fields {
		if types[i] == "" && f.DataTypeOID != pgtype.NumericOID {
			types[i] = provdb.Text
			if slices.Contains(nested, f.DataTypeOID) {
				types[i] = provdb.JSON
			}
		}
	}
	return types, err
}

func isList(t *pgtype.Type) bool {
	switch t.Codec.(type) {
	case *pgtype.ArrayCodec, *pgtype.CompositeCodec, pgtype.RecordCodec:
		return true
	}
	return t.OID == pgtype.RecordArrayOID || t.OID == pgtype.RecordOID
}

// asJSON wraps a query so that lists and structures arrive as JSON.
func asJSON(sql string, fields []pgconn.FieldDescription, types []provdb.Type) string {
	var names, columns []string
	hasLists := false
	for i, f := range fields {
		name := "c" + strconv.Itoa(i)
		names = append(names, name)
		if types[i] == provdb.JSON && f.DataTypeOID != pgtype.JSONOID && f.DataTypeOID != pgtype.JSONBOID {
			hasLists = true
			name = "to_json(" + name + ")"
		}
		columns = append(columns, name)
	}
	if !hasLists {
		return sql
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM (" + sql + "\n) AS answer(" + strings.Join(names, ", ") + ")"
}

// next sets values to those of the next row. It returns false at the end.
func (a *answer) next(values []any) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return false, a.stopped
	}
	row := a.row()
	if row == nil {
		_, err := a.result.Close()
		return false, translate(err)
	}
	for i, text := range row {
		values[i] = nil
		if text == nil {
			continue
		}
		v, err := a.decode[i](text)
		if err != nil {
			return false, fmt.Errorf("column %s: %w", a.columns[i].Name, err)
		}
		values[i] = v
	}
	return true, nil
}

// row returns the next row as text, nil at the end. It is valid until the next call.
func (a *answer) row() [][]byte {
	if len(a.ahead) > 0 {
		row := a.ahead[0]
		a.ahead = a.ahead[1:]
		return row
	}
	if a.result.NextRow() {
		return a.result.Values()
	}
	return nil
}

// all yields the rows.
func (a *answer) all(yield func([]any, error) bool) {
	defer a.stop(nil)
	values := make([]any, len(a.columns))
	for {
		ok, err := a.next(values)
		if err != nil {
			yield(nil, a.s.explain(a.ctx, "query", err))
		}
		if !ok || !yield(values, nil) {
			return
		}
	}
}

// stop ends an answer. Readers get the error.
func (a *answer) stop(why error) {
	if why != nil {
		a.cancel(why) // readers release the mutex
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.done {
		a.stopped = why
		a.end()
	}
}

// end frees the connection, or closes it if it still sends rows. The caller holds mu.
func (a *answer) end() {
	a.done = true
	a.s.mu.Lock()
	delete(a.s.answers, a)
	a.s.mu.Unlock()
	defer a.release()
	defer a.cancel(nil)
	if a.conn == nil {
		return
	}
	if a.result != nil {
		if a.conn.Conn().PgConn().IsBusy() {
			a.cancel(nil)
		}
		_, _ = a.result.Close() // next returns the error
	}
	if !a.conn.Conn().IsClosed() {
		end, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), endTimeout)
		defer cancel()
		_, _ = a.conn.Exec(end, "ROLLBACK") // a connection in a transaction is not reused
	}
	a.conn.Release()
}
