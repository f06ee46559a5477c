package duckstore

import (
	"errors"
	"reflect"
	"unsafe"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/duckdb/duckdb-go/v2/mapping"
)

// column collects values of a column until they are copied to a vector of DuckDB. The driver's own appender takes lists of
// structures as maps, which costs more than storing them.
type column interface {
	fill(v mapping.Vector)
	reset()
}

// cells are the values of a column.
type cells[T comparable] struct {
	all   []T
	nulls []int // rows
}

func (c *cells[T]) add(v T) { c.all = append(c.all, v) }

func (c *cells[T]) addNull() {
	c.nulls = append(c.nulls, len(c.all))
	c.all = append(c.all, *new(T))
}

// addOrNull adds a value, or null if it is zero.
func (c *cells[T]) addOrNull(v T) {
	if v == *new(T) {
		c.addNull()
	} else {
		c.add(v)
	}
}

func (c *cells[T]) reset() {
	clear(c.all) // frees texts
	c.all, c.nulls = c.all[:0], c.nulls[:0]
}

// values is a column of fixed size.
type values[T bool | int32 | int64 | uint64 | float64 | listEntry] struct{ cells[T] }

func (c *values[T]) fill(v mapping.Vector) {
	if len(c.all) > 0 {
		copy(unsafe.Slice((*T)(mapping.VectorGetData(v)), len(c.all)), c.all)
	}
	invalidate(v, c.nulls)
}

// invalidate makes rows of a vector null.
func invalidate(v mapping.Vector, rows []int) {
	if len(rows) == 0 {
		return
	}
	mapping.VectorEnsureValidityWritable(v)
	const bits = 64
	valid := unsafe.Slice((*uint64)(mapping.VectorGetValidity(v)), rows[len(rows)-1]/bits+1)
	for _, row := range rows {
		valid[row/bits] &^= 1 << (row % bits)
	}
}

// textValues is a column of VARCHAR or JSON.
type textValues struct{ cells[string] }

// shortText is a text of at most 12 bytes in the layout of DuckDB's vectors, duckdb_string_t.
type shortText struct {
	length uint32
	bytes  [12]byte
}

func (c *textValues) fill(v mapping.Vector) {
	if len(c.all) == 0 {
		return
	}
	short := unsafe.Slice((*shortText)(mapping.VectorGetData(v)), len(c.all))
	for i, s := range c.all {
		if len(s) <= len(short[i].bytes) {
			short[i] = shortText{length: uint32(len(s))}
			copy(short[i].bytes[:], s)
			continue
		}
		mapping.VectorAssignStringElementLen(v, mapping.IdxT(i), unsafe.Slice(unsafe.StringData(s), len(s))) // copies it
	}
	invalidate(v, c.nulls)
}

// listEntry is duckdb_list_entry.
type listEntry struct{ offset, length uint64 }

// list is a column of lists of structures.
type list struct {
	rows   values[listEntry]
	size   uint64 // total length of all lists
	fields []column
}

// add adds a list of n structures. The caller adds their fields.
func (c *list) add(n int) {
	c.rows.add(listEntry{c.size, uint64(n)})
	c.size += uint64(n)
}

func (c *list) addNull() { c.rows.addNull() }

func (c *list) reset() {
	c.rows.reset()
	c.size = 0
	for _, f := range c.fields {
		f.reset()
	}
}

func (c *list) fill(v mapping.Vector) {
	mapping.ListVectorReserve(v, mapping.IdxT(c.size))
	mapping.ListVectorSetSize(v, mapping.IdxT(c.size))
	c.rows.fill(v)
	elements := mapping.ListVectorGetChild(v)
	for i, f := range c.fields {
		f.fill(mapping.StructVectorGetChild(elements, mapping.IdxT(i)))
	}
}

// structure is a column of structures. The caller adds the fields, even for null.
type structure struct {
	nulls  []int
	fields []column
}

func (c *structure) reset() {
	c.nulls = c.nulls[:0]
	for _, f := range c.fields {
		f.reset()
	}
}

func (c *structure) fill(v mapping.Vector) {
	for i, f := range c.fields {
		f.fill(mapping.StructVectorGetChild(v, mapping.IdxT(i)))
	}
	invalidate(v, c.nulls)
}

// chunks appends rows of columns to a table.
type chunks struct {
	appender mapping.Appender
	chunk    mapping.DataChunk
	columns  []column
}

// newChunks returns chunks of a table in the database prov. The caller must close it.
func newChunks(conn *duckdb.Conn, table string, columns []column) (*chunks, error) {
	raw, err := handle(conn)
	if err != nil {
		return nil, err
	}
	c := &chunks{columns: columns}
	if mapping.AppenderCreateExt(raw, "prov", "main", table, &c.appender) == mapping.StateError {
		return nil, errors.Join(c.failure(), c.close())
	}
	types := make([]mapping.LogicalType, mapping.AppenderColumnCount(c.appender))
	for i := range types {
		types[i] = mapping.AppenderColumnType(c.appender, mapping.IdxT(i))
	}
	c.chunk = mapping.CreateDataChunk(types)
	for i := range types {
		mapping.DestroyLogicalType(&types[i])
	}
	if len(types) != len(columns) {
		return nil, errors.Join(errors.New("the table "+table+" has other columns"), c.close())
	}
	return c, nil
}

// handle returns the connection behind a connection of the driver, which does not export it.
func handle(conn *duckdb.Conn) (h mapping.Connection, err error) {
	field := reflect.ValueOf(conn).Elem().FieldByName("conn")
	if !field.IsValid() || field.Type() != reflect.TypeFor[mapping.Connection]() {
		return h, errors.New("this version of the DuckDB driver is not supported")
	}
	return *(*mapping.Connection)(field.Addr().UnsafePointer()), nil
}

// append appends the rows of all columns, at most mapping.VectorSize, and empties the columns.
func (c *chunks) append(rows int) error {
	for i, column := range c.columns {
		column.fill(mapping.DataChunkGetVector(c.chunk, mapping.IdxT(i)))
		column.reset()
	}
	mapping.DataChunkSetSize(c.chunk, mapping.IdxT(rows))
	if mapping.AppendDataChunk(c.appender, c.chunk) == mapping.StateError {
		return c.failure()
	}
	mapping.DataChunkReset(c.chunk)
	return nil
}

// flush adds all rows to the transaction.
func (c *chunks) flush() error {
	if mapping.AppenderFlush(c.appender) == mapping.StateError {
		return errors.Join(c.failure(), c.discard())
	}
	return nil
}

// discard drops the rows that flush has not added.
func (c *chunks) discard() error {
	if mapping.AppenderClear(c.appender) == mapping.StateError {
		return c.failure()
	}
	return nil
}

// close frees the memory of DuckDB.
func (c *chunks) close() error {
	mapping.DestroyDataChunk(&c.chunk)
	if mapping.AppenderDestroy(&c.appender) == mapping.StateError {
		return errors.New("close the appender")
	}
	return nil
}

// failure returns the error of the last call.
func (c *chunks) failure() error {
	data := mapping.AppenderErrorData(c.appender)
	defer mapping.DestroyErrorData(&data)
	return &duckdb.Error{Type: duckdb.ErrorType(mapping.ErrorDataErrorType(data)), Msg: mapping.ErrorDataMessage(data)}
}
