package pgstore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Query answers one statement that only reads.
func (s *Store) Query(ctx context.Context, sql string, args ...any) (*provdb.Rows, error) {
	rows, err := s.ask(ctx, sql, args)
	if isLost(err) { // the server was restarted since the last question
		s.pool.Reset()
		rows, err = s.ask(ctx, sql, args)
	}
	if err != nil {
		return nil, s.explain(ctx, "ask", tooLate(refusal(err)))
	}
	return rows, nil
}

// refusal tells an error of a statement that would write from others.
func refusal(err error) error {
	if state(err) == readOnlyTransaction {
		e, _ := errors.AsType[*pgconn.PgError](err)
		return refuse(e.Message)
	}
	return err
}

// tooLate reports that the server stopped a question whose time had passed.
func tooLate(err error) error {
	if state(err) == queryCanceled {
		return fmt.Errorf("the question took too long: %w: %w", context.DeadlineExceeded, err)
	}
	return err
}

// ask sends a question and returns the answer, whose connection is free again when
// it has been read.
func (s *Store) ask(ctx context.Context, sql string, args []any) (*provdb.Rows, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &answer{s: s, ctx: ctx, cancel: cancel}
	a.mu.Lock()
	defer a.mu.Unlock()
	s.mu.Lock()
	closed := s.answers == nil
	if !closed {
		s.answers[a] = true
	}
	s.mu.Unlock()
	if closed {
		return nil, provdb.ErrClosed
	}
	if err := a.begin(sql, args); err != nil {
		if errors.Is(context.Cause(ctx), provdb.ErrClosed) {
			err = provdb.ErrClosed
		} else if a.conn != nil {
			err = lostIf(ctx, a.conn, err)
		}
		a.end() //nolint:contextcheck // it has the context of the answer
		return nil, err
	}
	return &provdb.Rows{Columns: a.columns, All: a.all, Close: a.close}, nil
}

// answer is one that is being read.
type answer struct {
	s      *Store
	ctx    context.Context //nolint:containedctx // of the question
	cancel context.CancelCauseFunc

	mu      sync.Mutex // of all below
	conn    *pgxpool.Conn
	columns []provdb.Column
	decode  []func(text []byte) (any, error)
	result  *pgconn.ResultReader
	ahead   [][][]byte // rows that were read to find out what columns hold
	done    bool
	stopped error // why it ended before its time
}

// begin begins a transaction that only reads and sends the question.
func (a *answer) begin(sql string, args []any) (err error) {
	sql, asks, err := question(sql)
	if err != nil {
		return err
	}
	if a.conn, err = a.s.pool.Acquire(a.ctx); err != nil {
		return err
	}
	pg := a.conn.Conn().PgConn()
	if err := pg.Exec(a.ctx, a.s.preamble(a.ctx)).Close(); err != nil {
		return err
	}
	statement, err := pg.Prepare(a.ctx, "", sql, nil)
	if err != nil {
		return located(sql, err) // in PostgreSQL's words, also of what is no SQL at all
	}
	if !asks {
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
	// Looking types up, and lists as JSON, need another statement.
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

// bind encodes the values of a question's parameters.
func bind(conn *pgx.Conn, statement *pgconn.StatementDescription, args []any) (b pgx.ExtendedQueryBuilder, err error) {
	if len(args) != len(statement.ParamOIDs) {
		return b, fmt.Errorf("the question has %d parameters, but %d values are given", len(statement.ParamOIDs), len(args))
	}
	bound := make([]any, len(args))
	for i, v := range args {
		bound[i] = argument(v)
	}
	return b, b.Build(conn.TypeMap(), statement, bound)
}

// preamble begins the transaction of a question.
func (s *Store) preamble(ctx context.Context) string {
	sql := "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED READ ONLY"
	if s.reader {
		sql += "; SET LOCAL ROLE " + readerRole
	}
	if deadline, ok := ctx.Deadline(); ok {
		// A little less than the rest, so that the connection survives.
		left := time.Until(deadline)
		sql += fmt.Sprintf("; SET LOCAL statement_timeout = %d", max(1, (left-left/20).Milliseconds()))
	}
	return sql
}

// argument is a value that can be bound to a parameter of any type, where its text
// has the form of one.
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

// columnTypes returns what columns hold; "" for numbers of which only the values
// tell.
func columnTypes(ctx context.Context, conn *pgx.Conn, fields []pgconn.FieldDescription) ([]provdb.Type, error) {
	types := make([]provdb.Type, len(fields))
	var unknown []uint32
	for i, f := range fields {
		t, known := conn.TypeMap().TypeForOID(f.DataTypeOID)
		switch {
		case !known:
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
			for _, oid := range nested {
				if oid == f.DataTypeOID {
					types[i] = provdb.JSON
				}
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

// asJSON wraps a question so that lists and structures arrive as JSON.
func asJSON(sql string, fields []pgconn.FieldDescription, types []provdb.Type) string {
	var names, columns []string
	found := false
	for i, f := range fields {
		name := "c" + strconv.Itoa(i)
		names = append(names, name)
		if types[i] == provdb.JSON && f.DataTypeOID != pgtype.JSONOID && f.DataTypeOID != pgtype.JSONBOID {
			found = true
			name = "to_json(" + name + ")"
		}
		columns = append(columns, name)
	}
	if !found {
		return sql
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM (" + sql + "\n) AS answer(" + strings.Join(names, ", ") + ")"
}

// next sets values to those of the next row, and tells whether there is one.
func (a *answer) next(values []any) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return false, a.stopped
	}
	row := a.row()
	if row == nil {
		_, err := a.result.Close()
		return false, tooLate(refusal(err))
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

// row returns the next row as text, nil at the end. It is valid until the next.
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
			yield(nil, a.s.explain(a.ctx, "ask", err))
		}
		if !ok || !yield(values, nil) {
			return
		}
	}
}

func (a *answer) close() error {
	a.stop(nil)
	return nil
}

// stop ends an answer, wherever it is. Who still reads it gets the error.
func (a *answer) stop(why error) {
	if why != nil {
		a.cancel(why) // makes who reads let go
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.done {
		a.stopped = why
		a.end()
	}
}

// end frees the connection; the caller holds mu. One that still sends rows is
// given up: they could be many.
func (a *answer) end() {
	a.done = true
	a.s.mu.Lock()
	delete(a.s.answers, a)
	a.s.mu.Unlock()
	defer a.cancel(nil)
	if a.conn == nil {
		return
	}
	if a.result != nil {
		if a.conn.Conn().PgConn().IsBusy() {
			a.cancel(nil)
		}
		_, _ = a.result.Close() // next tells
	}
	if !a.conn.Conn().IsClosed() {
		end, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), endTimeout)
		defer cancel()
		_, _ = a.conn.Exec(end, "ROLLBACK") // a connection in a transaction is not used again
	}
	a.conn.Release()
}
