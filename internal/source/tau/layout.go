package tau

import "github.com/chimbuko/chimbuko/internal/base/trace"

// table is one of the arrays that TAU writes in each step: a row of unsigned
// 64-bit numbers for each event.
type table struct {
	variable string // name of the array; absent from a step without rows
	count    string // name of the scalar that announces the rows
	columns  []string
}

// The arrays and their columns. Program, rank and thread come first in all.
var (
	funcTable = table{"event_timestamps", "timer_event_count", []string{
		"program", "rank", "thread", "event type", "function", "time",
	}}
	commTable = table{"comm_timestamps", "comm_count", []string{
		"program", "rank", "thread", "event type", "tag", "partner", "bytes", "time",
	}}
	counterTable = table{"counter_values", "counter_event_count", []string{
		"program", "rank", "thread", "counter", "value", "time",
	}}
)

// Byte positions of the columns.
const (
	colProgram = 0
	colRank    = 8
	colThread  = 16
	colType    = 24

	funcID      = 32
	funcTime    = 40
	funcRowSize = 48

	commTag     = 32
	commPartner = 40
	commBytes   = 48
	commTime    = 56
	commRowSize = 64

	counterID      = 24
	counterValue   = 32
	counterTime    = 40
	counterRowSize = 48
)

func (t *table) rowSize() int { return 8 * len(t.columns) }

// Bounds of plausible numbers. A row beyond them was damaged.
const (
	maxProgram = 1_000_000
	maxThread  = 1_000_000 // exclusive
	maxTime    = 1 << 53   // microseconds: the year 2255
)

// Prefixes of attribute names; a number follows, after a blank.
const (
	attrProgram   = "program_name"
	attrEventType = "event_type"
	attrTimer     = "timer"
	attrCounter   = "counter"
	attrMetadata  = "MetaData:"
)

// eventTypes are the names of the supported event types. Each trace defines their
// numbers.
var eventTypes = map[string]trace.Kind{
	"ENTRY": trace.Enter, "EXIT": trace.Exit, "SEND": trace.Send, "RECV": trace.Recv,
}

// Keys of metadata of threads that represent GPU streams. TAU writes the same keys for
// CUDA and ROCm.
const (
	keyDevice  = "CUDA Device"
	keyContext = "CUDA Context"
	keyStream  = "CUDA Stream"
)
