// Package executions lists, sums and filters the stored executions of a run: from a copy in memory, or with SQL.
package executions

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

//go:embed sql/*.sql
var files embed.FS

// Reader reads the executions of one run of a store.
type Reader struct {
	Run   provdb.Run
	Begin trace.Ticks // start of the run; 0 if unknown
	Unit  trace.Unit  // unit of all times in the tables
	// Memory, if not nil, answers queries over many executions.
	Memory Source
	// OnQuery, if not nil, is called with each statement before it runs. Calls may be concurrent.
	OnQuery func(sql string, args []any)
	Store   provdb.Reader
}

// Source answers queries over many executions: the store, or a copy in memory.
type Source interface {
	count(ctx context.Context) (int64, error)
	list(ctx context.Context, where Condition, by Order, limit int) ([]Execution, error)
	page(ctx context.Context, where Condition, by Order, offset, limit int, run *Reader) (*provdb.Rows, error)
	sum(ctx context.Context, where Condition, by Grouping) ([]Sums, error)
	timeline(ctx context.Context, t *timeline, where Condition, lines map[trace.RankKey]int) error
	tables() *Tables
}

// source returns Memory, or else the store.
func (a *Reader) source() Source {
	if a.Memory != nil {
		return a.Memory
	}
	return stored{a}
}

// Tables contains data of a run besides its executions, in memory.
type Tables struct {
	FunctionSums string // of all functions, for function_table.sql
	Facts        []Fact
	Paths        map[PathID]*CallPath
	LastStep     int64
	Threads      map[trace.Program][]int64 // threads of hosts, in order
}

// Tables returns the tables in memory, or nil.
func (a *Reader) Tables() *Tables { return a.source().tables() }

// Count returns the number of stored executions.
func (a *Reader) Count(ctx context.Context) (int64, error) { return a.source().count(ctx) }

// List returns the first executions that a condition selects.
func (a *Reader) List(ctx context.Context, where Condition, by Order, limit int) ([]Execution, error) {
	return a.source().list(ctx, where, by, limit)
}

// Sum adds up the executions that a condition selects.
func (a *Reader) Sum(ctx context.Context, where Condition, by Grouping) ([]Sums, error) {
	return a.source().sum(ctx, where, by)
}

// Query runs a statement and calls OnQuery.
func (a *Reader) Query(ctx context.Context, sql string, args ...any) (*provdb.Rows, error) {
	if a.OnQuery != nil {
		a.OnQuery(sql, args)
	}
	return a.Store.Query(ctx, sql, args...)
}

// InSeconds returns a statement that divides times by 1e6::DOUBLE PRECISION for the unit of the run.
func (a *Reader) InSeconds(sql string) string {
	if a.Unit.Canonical() == 0 {
		return sql
	}
	return strings.ReplaceAll(sql, "1e6::DOUBLE PRECISION", strconv.FormatFloat(a.Unit.PerSecond(), 'e', -1, 64)+"::DOUBLE PRECISION")
}

// InMicros converts severities and the columns whose names end in _us to microseconds. Values of a run in another unit have
// fractions.
func (a *Reader) InMicros(rows *provdb.Rows, err error) (*provdb.Rows, error) {
	if err != nil {
		return nil, err
	}
	return InMicros(a.Unit, rows), nil
}

// InMicros is like Reader.InMicros for rows in ticks of a unit.
func InMicros(unit trace.Unit, rows *provdb.Rows) *provdb.Rows {
	if unit.Canonical() == 0 {
		return rows
	}
	converted := make([]bool, len(rows.Columns))
	out := *rows
	out.Columns = slices.Clone(rows.Columns)
	for i, c := range out.Columns {
		if converted[i] = strings.HasSuffix(c.Name, "_us") || c.Name == "severity"; converted[i] && c.Type == provdb.Int {
			out.Columns[i].Type = provdb.Float
		}
	}
	out.All = func(yield func([]any, error) bool) {
		for row, err := range rows.All {
			for i, v := range row {
				switch v := v.(type) {
				case int64:
					if converted[i] {
						row[i] = unit.MicrosOf(float64(v))
					}
				case float64:
					if converted[i] {
						row[i] = unit.MicrosOf(v)
					}
				}
			}
			if !yield(row, err) {
				return
			}
		}
	}
	return &out
}

// Querier is a Reader, or a type that embeds one.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (*provdb.Rows, error)
	id() int32
}

func (a *Reader) id() int32 { return int32(a.Run.ID) }

// Executions are sampled in the order of LotSQL, which is less than Lots.
const (
	LotSQL = "(ev_row * 7919 + rid) % 1009"
	Lots   = 1009
)

// Statement returns the text of an embedded file sql/NAME.sql, which must exist.
func Statement(files embed.FS, name string) string {
	b, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // a bug of the caller: the file is not embedded
	}
	return strings.TrimSpace(string(b))
}

func text(name string) string { return Statement(files, name) }

// OptionalProgram returns a program as a parameter, or NULL.
func OptionalProgram(p *trace.Program) any {
	if p == nil {
		return nil
	}
	return int32(*p)
}

// Choose returns the value for word, or a ChoiceError.
func Choose[V any](what, word string, among map[string]V) (v V, err error) {
	v, ok := among[word]
	if !ok {
		return v, &ChoiceError{what, word, slices.Sorted(maps.Keys(among))}
	}
	return v, nil
}

// ChoiceError reports an unknown choice.
type ChoiceError struct {
	What, Word string
	Among      []string
}

// Error lists the valid choices.
func (e *ChoiceError) Error() string {
	return fmt.Sprintf("unknown %s %q (want %s)", e.What, e.Word, strings.Join(e.Among, ", "))
}
