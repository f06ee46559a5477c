package executions

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Column is a column of executions that conditions, orders and groupings use.
type Column struct {
	sql   string // its names in a store, separated by commas
	table string // condition on another table that has the column, with %s in place of the comparison; empty for executions
	// of returns the values of the column in a copy: a slice, a dictionary, or a function of the row.
	of func(x *Columns) any
}

const (
	inLinks    = "(pid, rid, event_id) IN (SELECT pid, rid, event_id FROM links WHERE run = $1 AND %s)"
	inMetadata = "IN (SELECT %s FROM metadata WHERE run = $1 AND descr = '%s' AND %%s)"
)

// Columns of executions.
var (
	Program        = Column{sql: "pid", of: func(x *Columns) any { return dictionary[int64]{x.place, x.programs, nil} }}
	Rank           = Column{sql: "rid", of: func(x *Columns) any { return dictionary[int64]{x.place, x.ranks, &x.byPlace} }}
	ProgramRank    = Column{sql: "pid, rid", of: func(x *Columns) any { return dictionary[trace.RankKey]{x.place, x.places, &x.byPlace} }}
	Thread         = Column{sql: "tid", of: func(x *Columns) any { return x.thread }}
	Host           = Column{sql: "hostname", of: func(x *Columns) any { return dictionary[string]{x.host, x.hosts, &x.byHost} }}
	FunctionNumber = Column{sql: "pid, fn", of: func(x *Columns) any { return dictionary[FunctionID]{x.function, x.functions, &x.byFunction} }}
	PathNumber     = Column{sql: "pid, path", of: func(x *Columns) any { return dictionary[PathID]{x.path, x.pathIDs, nil} }}
	Kind           = Column{sql: "kind", of: func(x *Columns) any { return dictionary[string]{x.kind, x.kinds, nil} }}
	Entry          = Column{sql: "entry", of: func(x *Columns) any { return x.entry }}
	Exit           = Column{sql: `"exit"`, of: func(x *Columns) any { return x.exit }}
	Exclusive      = Column{sql: "runtime_exclusive", of: func(x *Columns) any { return x.exclusive }}
	Lost           = Column{sql: "lost_time", of: func(x *Columns) any { return x.lost }}
	Step           = Column{sql: "io_step", of: func(x *Columns) any { return x.ioStep }}
	Score          = Column{sql: "outlier_score", of: func(x *Columns) any { return x.score }}
	Severity       = Column{sql: "outlier_severity", of: func(x *Columns) any { return x.severity }}
	OnGPU          = Column{sql: "is_gpu_event", of: func(x *Columns) any { return x.onGPU }}
	Anomalous      = Column{sql: "anomalous", of: func(x *Columns) any { return x.anomalous }}
	// Lot is the number by which executions are sampled, less than Lots. No field of an explanation depends on it.
	Lot = Column{sql: LotSQL, of: func(x *Columns) any { return x.lot }}

	flagged   = Column{sql: "(anomalous AND status IS DISTINCT FROM 'withdrawn')", of: func(x *Columns) any { return x.isFlagged }}
	event     = Column{sql: "event_id", of: func(x *Columns) any { return x.id }}
	eventStep = Column{sql: "ev_step", of: func(x *Columns) any { return x.step }}
	eventRow  = Column{sql: "ev_row", of: func(x *Columns) any { return x.row }}
	eventText = Column{sql: "ev_text", of: func(x *Columns) any { return func(row int32) string { return x.texts[row] } }}

	// Columns of other tables.

	Name = Column{
		sql: "func", table: "(pid, fn) IN (SELECT pid, fn FROM (SELECT pid, fn, name AS func FROM functions WHERE run = $1) f WHERE %s)",
		of: func(x *Columns) any { return dictionary[string]{x.function, x.names, &x.byFunction} },
	}
	PathName = Column{
		sql: "call_path", table: "(pid, path) IN (SELECT pid, path FROM call_paths WHERE run = $1 AND %s)",
		of: func(x *Columns) any { return dictionary[string]{x.path, x.pathNames, nil} },
	}
	Finding = Column{sql: "finding", table: inLinks, of: func(x *Columns) any { return x.finding }} // as stored when the run ended
	culprit = Column{
		sql: "culprit_pid, culprit_event_id", table: strings.Replace(inLinks, "%s", `"role" = 'victim' AND %s`, 1),
		of: func(x *Columns) any { return dictionary[trace.EventKey]{x.culprit, x.culprits, &x.byCulprit} },
	}
	metadataHost = Column{
		sql: `"value"`, table: "(pid, rid) " + fmt.Sprintf(inMetadata, "pid, rid", "Hostname"),
		of: func(x *Columns) any { return dictionary[string]{x.place, x.metadataHosts, &x.byPlace} },
	}
	device = metadataColumn("CUDA Device")
	stream = metadataColumn("CUDA Stream")
)

// metadataColumn returns the value of threads in the metadata.
func metadataColumn(name string) Column {
	return Column{
		sql: `"value"`, table: "(pid, rid, tid) " + fmt.Sprintf(inMetadata, "pid, rid, tid", name),
		of: func(x *Columns) any {
			values := make(map[Fact]string)
			for _, f := range x.Facts {
				if f.Name == name {
					values[Fact{RankKey: f.RankKey, Thread: f.Thread}] = f.Value
				}
			}
			return func(row int32) string { return values[Fact{RankKey: x.places[x.place[row]], Thread: x.thread[row]}] }
		},
	}
}

// dictionary is a column of positions in a list of values.
type dictionary[V comparable] struct {
	numbers []int32
	values  []V
	rows    *positions // rows by number; nil if not indexed
}

// selector is a dictionary of any type.
type selector interface {
	codes() []int32
	test(q *comparison) (keep func(row int32) bool, rows []int32)
	compare(a, b int32) int
}

func (d dictionary[V]) codes() []int32 { return d.numbers }

func (d dictionary[V]) compare(a, b int32) int {
	return compareValues(d.values[d.numbers[a]], d.values[d.numbers[b]])
}

func (d dictionary[V]) test(q *comparison) (keep func(row int32) bool, rows []int32) {
	set := make([]bool, len(d.values))
	values := make(map[V]bool, len(q.values))
	for _, v := range q.values {
		values[v.(V)] = true
	}
	for i, v := range d.values {
		set[i] = q.values != nil && values[v] || q.values == nil && q.has(v)
	}
	if d.rows != nil {
		rows = d.rows.ofFew(set)
	}
	return func(row int32) bool { return set[d.numbers[row]] }, rows
}

// compareValues compares numbers or texts.
func compareValues(a, b any) int {
	switch a := a.(type) {
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		return cmp.Compare(a, b.(float64))
	default:
		return strings.Compare(a.(string), b.(string))
	}
}

// numbers returns numbers of a copy that are equal for equal values.
func (c *Column) numbers(x *Columns) func(row int32) int64 {
	switch column := c.of(x).(type) {
	case []int64:
		return func(row int32) int64 { return column[row] }
	case []int32:
		return func(row int32) int64 { return int64(column[row]) }
	case []bool:
		return func(row int32) int64 {
			if column[row] {
				return 1
			}
			return 0
		}
	case func(row int32) int64:
		return column
	default:
		codes := column.(selector).codes()
		return func(row int32) int64 { return int64(codes[row]) }
	}
}

// Order sorts executions by columns.
type Order []Key

// Key is a column of an order.
type Key struct {
	Column
	Descending bool
}

// InSamplingOrder is the order in which executions are sampled.
var InSamplingOrder = Order{{Column: Lot}, {Column: Entry}, {Column: Rank}, {Column: eventStep}, {Column: eventRow}, {Column: eventText}}

func (o Order) sql() string {
	var keys []string
	for _, k := range o {
		for name := range strings.SplitSeq(k.sql, ", ") {
			if k.Descending {
				name += " DESC"
			}
			keys = append(keys, name)
		}
	}
	return strings.Join(keys, ", ")
}

func (o Order) isSampling() bool { return &o[0] == &InSamplingOrder[0] }

// compare returns the comparison of rows.
func (o Order) compare(x *Columns) func(a, b int32) int {
	var compares []func(a, b int32) int
	for _, k := range o {
		compare := k.compare(x)
		if k.Descending {
			ascending := compare
			compare = func(a, b int32) int { return ascending(b, a) }
		}
		compares = append(compares, compare)
	}
	return func(a, b int32) int {
		for _, compare := range compares {
			if c := compare(a, b); c != 0 {
				return c
			}
		}
		return 0
	}
}

func (c *Column) compare(x *Columns) func(a, b int32) int {
	switch column := c.of(x).(type) {
	case []int64:
		return comparing(column)
	case []int32:
		return comparing(column)
	case []float64:
		return comparing(column)
	case func(row int32) int64:
		return func(a, b int32) int { return cmp.Compare(column(a), column(b)) }
	case func(row int32) string:
		return func(a, b int32) int { return strings.Compare(column(a), column(b)) }
	default:
		return column.(selector).compare
	}
}

func comparing[T cmp.Ordered](column []T) func(a, b int32) int {
	return func(a, b int32) int { return cmp.Compare(column[a], column[b]) }
}
