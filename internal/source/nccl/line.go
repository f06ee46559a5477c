// Package nccl reads the logs of NCCL Inspector and RCCL Inspector: one JSON object a line for each collective
// operation or message of a communicator, in one file for each process, finished or growing.
//
// A Job determines the ranks of files. A Reader returns the operations of a rank as calls, with the time
// between them, in steps. docs/formats/nccl-inspector.md has the format.
package nccl

import (
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/source/chrome"
)

// line is the content of a line. Its texts are valid until the next is parsed.
type line struct {
	id, comm, host, operation []byte
	rank, size, pid, dumped   int64
	number, bytes, duration   int64
	kernel, launch            int64 // earliest start of a kernel, and of the call on the host; 0 if unknown
	message                   bool
	bad                       bool // a number is malformed
	seen                      uint16
}

// The parts that a record must have.
const (
	hasID = 1 << iota
	hasRank
	hasSize
	hasDump
	hasOperation
	hasNumber
	hasBytes
	hasDuration

	hasHeader = hasID | hasRank | hasSize
	hasAll    = 2*hasDuration - 1
)

// Limits of the numbers in a line. Times are microseconds.
const (
	maxRank     = 1 << 24
	maxTime     = 1 << 52
	maxDuration = 1 << 40
	maxBytes    = 1 << 48
)

// parser parses lines.
type parser struct {
	leaves chrome.Leaves
	line   line
	visit  func(key, value []byte)
}

func newParser() *parser {
	p := new(parser)
	p.visit = p.line.set
	return p
}

// kind is the kind of a line.
type kind uint8

const (
	damaged   kind = iota
	unknown        // of a communicator, but neither a collective operation nor a message
	operation      // a collective operation or a message
)

// parse parses a line to p.line.
func (p *parser) parse(text []byte) kind {
	p.line = line{}
	l := &p.line
	switch {
	case !p.leaves.Parse(text, p.visit) || l.bad || l.seen&hasHeader != hasHeader || l.rank >= l.size:
		return damaged
	case l.seen&(hasOperation|hasNumber|hasBytes|hasDuration) == 0:
		return unknown
	case l.seen != hasAll || l.dumped == 0 || len(l.id) == 0 || len(l.operation) == 0:
		return damaged
	}
	return operation
}

// start returns the time when the rank arrived, and whether it is known.
func (l *line) start() (int64, bool) {
	if l.kernel > 0 {
		return l.kernel, true
	}
	return l.launch, l.launch > 0
}

func (l *line) set(key, value []byte) {
	switch string(key) {
	case "id":
		l.id = value
		l.seen |= hasID
	case "comm_name":
		l.comm = value
	case "rank":
		l.rank = l.parse(value, maxRank, hasRank)
	case "n_ranks":
		l.size = l.parse(value, maxRank, hasSize)
	case "hostname":
		l.host = value
	case "pid":
		l.pid = l.parse(value, maxTime, 0)
	case "dump_timestamp_us":
		l.dumped = l.parse(value, maxTime, hasDump)
	case "coll", "p2p":
		l.operation, l.message = value, key[0] == 'p'
		l.seen |= hasOperation
	case "coll_sn", "p2p_sn":
		l.number = l.parse(value, maxTime, hasNumber)
	case "coll_msg_size_bytes", "p2p_msg_size_bytes":
		l.bytes = l.parse(value, maxBytes, hasBytes)
	case "coll_exec_time_us", "p2p_exec_time_us":
		l.duration = l.parse(value, maxDuration, hasDuration)
	case "coll_start_ts", "p2p_start_ts":
		l.launch = l.parse(value, maxTime, 0)
	case "kernel_start_ts": // of a channel
		if t := l.parse(value, maxTime, 0); t > 0 && (l.kernel == 0 || t < l.kernel) {
			l.kernel = t
		}
	}
}

func (l *line) parse(value []byte, limit int64, part uint16) int64 {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 || n > limit {
		l.bad = true
		return 0
	}
	l.seen |= part
	return n
}

// operations are the operations of NCCL. A communicator numbers each kind separately.
var operations = []string{
	"AllGather", "AllReduce", "Broadcast", "Reduce", "ReduceScatter", "All2All", "AllGatherV", "SendRecv", "Send",
	"Recv",
}

// codes is the number of different codes of operations.
const codes = 32

// codeOf returns a number of an operation that is the same for all ranks.
func codeOf(name string) int64 {
	if i := slices.Index(operations, name); i >= 0 {
		return int64(i)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return codes/2 + int64(h.Sum32()%(codes/2))
}
