package summary

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// cursor reads what the append functions wrote. The first error stays; after it
// everything that is read is zero.
type cursor struct {
	b     []byte
	size  int
	delta bool // of an exchange, which may hold no more than maxValues
	err   error
}

// maxValues is how many values one part of an exchange may hold: more than any
// analyzer sees in its life, and so few that sums of all exchanges stay exact.
const maxValues = 1 << 40

// fail says that what was read cannot be.
func (c *cursor) fail(why string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: before byte %d of %d: %s", stats.ErrEncoding, c.size-len(c.b), c.size, why)
	}
	c.b = nil
}

// list reads the length of a list, and each element with the given function.
func (c *cursor) list(read func(*cursor)) {
	for n := c.number(); n > 0 && c.err == nil; n-- {
		read(c)
	}
}

// end holds that nothing follows.
func (c *cursor) end() {
	if c.err == nil && len(c.b) > 0 {
		c.fail("trailing bytes")
	}
}

func (c *cursor) number() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail("a number is missing")
		return 0
	}
	c.b = c.b[n:]
	return v
}

// below reads a number that is at most the given one.
func (c *cursor) below(most uint64) uint64 {
	v := c.number()
	if v > most {
		c.fail("a number is too large")
		return 0
	}
	return v
}

func (c *cursor) signed(least, most int64) int64 {
	v, n := binary.Varint(c.b)
	if n <= 0 || v < least || v > most {
		c.fail("a number is missing or too large")
		return 0
	}
	c.b = c.b[n:]
	return v
}

// count reads a number that may be negative.
func (c *cursor) count() int64 { return c.signed(math.MinInt64, math.MaxInt64) }

func (c *cursor) bool() bool { return c.below(1) == 1 }

// bytes reads a text without a copy.
func (c *cursor) bytes() []byte {
	n := c.number()
	if n > uint64(len(c.b)) {
		c.fail("a text is cut off")
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) text() string { return string(c.bytes()) }

func (c *cursor) sums(s *stats.Sums) {
	*s = stats.Sums{}
	if c.err != nil {
		return
	}
	rest, err := s.Decode(c.b)
	if c.b = rest; err != nil || c.delta && s.Count() > maxValues {
		c.fail("malformed sums")
	}
}

func (c *cursor) model(m *outlier.Model) {
	m.Reset()
	if c.err != nil {
		return
	}
	rest, err := m.Decode(c.b)
	if c.b = rest; err != nil || c.delta && m.Count() > maxValues {
		c.fail("malformed model")
	}
}

func (c *cursor) runStats() (s stats.RunStats) {
	if len(c.b) < 7*8 {
		c.fail("moments are cut off")
		return s
	}
	for i, v := range [...]*float64{&s.N, &s.Mean, &s.M2, &s.M3, &s.M4, &s.Min, &s.Max} {
		*v = math.Float64frombits(binary.LittleEndian.Uint64(c.b[8*i:]))
	}
	if c.b = c.b[7*8:]; c.delta && !s.Valid() {
		c.fail("malformed moments")
		return stats.RunStats{}
	}
	return s
}

// program reads the number of a program.
func (c *cursor) program() trace.Program { return trace.Program(c.below(math.MaxUint32)) }

func (c *cursor) rank() trace.RankKey {
	return trace.RankKey{Program: c.program(), Rank: trace.Rank(c.signed(math.MinInt32, math.MaxInt32))}
}

func (c *cursor) funcKey() trace.FuncKey { return trace.FuncKey{Program: c.program(), Name: c.text()} }

// id reads the number of a function.
func (c *cursor) id() int { return int(c.below(math.MaxUint32)) }

func (c *cursor) step() int32 { return int32(c.signed(math.MinInt32, math.MaxInt32)) }

func (c *cursor) micros() trace.Micros { return trace.Micros(c.count()) }

func (c *cursor) metrics(m *Metrics) {
	c.sums(&m.Count)
	m.FirstStep, m.LastStep = c.step(), c.step()
	m.First, m.Last = c.micros(), c.micros()
	m.Score = c.runStats()
	c.sums(&m.Severity)
}

func (c *cursor) function(f *FunctionStats) {
	*f = FunctionStats{ID: c.id(), FuncKey: c.funcKey()}
	c.sums(&f.Exclusive)
	c.sums(&f.Inclusive)
	c.sums(&f.PerStep)
	if c.bool() {
		c.metrics(&f.Anomalies)
	}
	f.LostTime = c.micros()
}

func (c *cursor) counter(counter *Counter) {
	counter.FuncKey = c.funcKey()
	c.sums(&counter.Values)
}

func (c *cursor) paths(p *PathDelta) {
	p.Program, p.Depth = c.program(), int(c.below(callpath.MaxDepth))
	var err error
	if p.List, err = callpath.Decode(p.List[:0], c.bytes()); err != nil {
		c.fail("malformed call paths")
	}
}

// readList reads a list into dst, whose memory it uses again.
func readList[T any](c *cursor, dst []T, read func(*T)) []T {
	dst = dst[:0]
	c.list(func(*cursor) {
		if n := len(dst); n < cap(dst) {
			dst = dst[:n+1]
		} else {
			dst = append(dst, *new(T))
		}
		read(&dst[len(dst)-1])
	})
	return dst
}
