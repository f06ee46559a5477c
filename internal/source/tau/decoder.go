// Package tau decodes the steps of TAU traces into events, in order of time on each thread, with
// their names and metadata. Only this package depends on details of TAU: arrays and their columns,
// attribute names, event types. It drops and counts impossible rows; nothing else is lost.
package tau

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// RankRule specifies how to treat the rank in each row.
type RankRule uint8

// The rules.
const (
	// TraceRank takes the rank from the trace. A file of one rank keeps the rank of
	// its first rows.
	TraceRank RankRule = iota
	// VerifyRank drops rows of other ranks than Config.Rank.
	VerifyRank
	// OverrideRank gives all rows the rank Config.Rank.
	OverrideRank
)

// Config configures a Decoder. The zero value means program 0 and the ranks in the
// trace.
type Config struct {
	Program trace.Program // of all events; the number in the trace has no meaning
	Rank    trace.Rank
	Ranks   RankRule
}

// Decoder decodes the steps of one trace in order. It does not allocate per event, and
// keeps the memory of the largest step.
type Decoder struct {
	Names trace.Names

	cfg       Config
	tally     *tally.Tally // of the current step
	total     *tally.Tally
	typeNames map[uint32]string
	kinds     [256]trace.Kind // by the number of the event type
	rank      trace.Rank      // of a file of one rank
	rankKnown bool
	oneFile   bool
	writers   int                 // writers that announce the numbers of their rows in each step
	steps     int                 // decoded so far
	warned    map[trace.Rank]bool // ranks counted as NamesAmbiguous

	step trace.Step
	*room
}

// room is the memory for decoding a step and for its events.
type room struct {
	chunk             []byte
	batches, readings []trace.Batch
	funcs             lane
	comms             lane
	counters          lane
	sides             lane // of funcs: comms and counters together
}

// rooms recycles released memory between Decoders.
var rooms = sync.Pool{New: func() any { return new(room) }}

// NewDecoder returns a Decoder that counts dropped and repaired rows in t.
func NewDecoder(cfg Config, t *tally.Tally) *Decoder {
	return &Decoder{
		Names: trace.EmptyNames(), cfg: cfg, tally: new(tally.Tally), total: t,
		typeNames: make(map[uint32]string), warned: make(map[trace.Rank]bool),
	}
}

// Reader decodes the steps of a source one by one.
type Reader struct {
	*Decoder
	src Source
}

// Source returns steps until io.EOF. It is implemented by bp.Reader.
type Source interface {
	Next(ctx context.Context) (*bp.Step, error)
}

// NewReader returns a Reader of src.
func NewReader(src Source, cfg Config, t *tally.Tally) *Reader {
	return &Reader{Decoder: NewDecoder(cfg, t), src: src}
}

// Next returns the next step, or the error that ended the source.
func (r *Reader) Next(ctx context.Context) (*trace.Step, error) {
	s, err := r.src.Next(ctx)
	if err != nil {
		return nil, err
	}
	return r.Decode(s)
}

// Trace is a Reader as trace.Steps.
type Trace struct {
	Reader *Reader
	Forget func() // frees the memory of the source
}

// Next returns the next step, or the error that ended the source.
func (t *Trace) Next(ctx context.Context) (*trace.Step, error) { return t.Reader.Next(ctx) }

// Names returns the names of the trace.
func (t *Trace) Names() *trace.Names { return &t.Reader.Names }

// Release frees memory until the next step.
func (t *Trace) Release() {
	t.Forget()
	t.Reader.Release()
}

// Decode returns the events and metadata of s. An error means that an array could not
// be read; impossible rows are only counted.
func (d *Decoder) Decode(s *bp.Step) (*trace.Step, error) {
	*d.tally = tally.Tally{}
	if d.room == nil {
		d.room = rooms.Get().(*room)
	}
	d.step = trace.Step{Index: s.Index, Metadata: d.step.Metadata[:0], Restored: s.Restored}
	d.noticeOneFile(s)
	d.learn(s.Attributes)
	learned := *d.tally
	if err := d.readTables(s); err != nil {
		return nil, fmt.Errorf("step %d: %w", s.Index, err)
	}
	if d.rejected() && s.Reread() {
		*d.tally = learned
		d.tally.Add(tally.StepReread, 1)
		if err := d.readTables(s); err != nil {
			return nil, fmt.Errorf("step %d: %w", s.Index, err)
		}
	}
	d.assemble()
	d.warnAboutNames()
	d.total.Merge(d.tally)
	if !s.Restored {
		d.steps++
	}
	return &d.step, nil
}

// Release passes the memory of the largest step to other Decoders, for programs that
// read thousands of traces. The last step becomes invalid.
func (d *Decoder) Release() {
	if d.room != nil {
		d.step.Batches, d.step.Readings = nil, nil
		rooms.Put(d.room)
		d.room = nil
	}
}

// rejections are the counts of dropped rows.
var rejections = []tally.Kind{
	tally.ProgramImplausible, tally.RankMismatch, tally.ThreadImplausible,
	tally.TypeUnknown, tally.IDImplausible, tally.TimeImplausible,
}

func (d *Decoder) rejected() bool {
	return slices.ContainsFunc(rejections, func(k tally.Kind) bool { return d.tally.Count(k) > 0 })
}

// noticeOneFile sets oneFile if several ranks write to this file.
func (d *Decoder) noticeOneFile(s *bp.Step) {
	for _, t := range []*table{&funcTable, &commTable, &counterTable} {
		for _, name := range []string{t.count, t.variable} {
			if v := s.Variable(name); v != nil && len(v.Blocks) > 1 {
				d.oneFile = true
			}
		}
	}
}

// warnAboutNames counts once each rank of a shared file, because its names may be those
// of another rank.
func (d *Decoder) warnAboutNames() {
	if !d.oneFile {
		return
	}
	for i := range d.step.Batches {
		if r := d.step.Batches[i].Rank; !d.warned[r] {
			d.warned[r] = true
			d.tally.Add(tally.NamesAmbiguous, 1)
		}
	}
}

// OneFile reports whether several ranks write to this file.
func (d *Decoder) OneFile() bool { return d.oneFile }

// readTables reads the three tables. It begins with messages and counters, which are
// few, and inserts them among the function events while it reads these.
func (d *Decoder) readTables(s *bp.Step) error {
	d.comms.reset(nil)
	if err := d.readTable(s, &commTable, &d.comms, d.decodeComms); err != nil {
		return err
	}
	d.counters.reset(nil)
	if err := d.readTable(s, &counterTable, &d.counters, d.decodeCounters); err != nil {
		return err
	}
	d.comms.order(d.tally)
	d.counters.order(d.tally)
	d.sides.join(&d.comms, &d.counters)
	d.funcs.reset(&d.sides)
	if err := d.readTable(s, &funcTable, &d.funcs, d.decodeFuncs); err != nil {
		return err
	}
	if d.funcs.order(d.tally) {
		d.tally.Add(tally.ThreadsInterleaved, 1)
	}
	d.funcs.adopt()
	return nil
}

// assemble creates the batches of the step.
func (d *Decoder) assemble() {
	d.step.Comms, d.step.Counters = len(d.comms.events), len(d.counters.events)
	d.step.Funcs = len(d.funcs.events) - d.step.Comms - d.step.Counters
	d.batches = d.funcs.batches(d.batches[:0], d.cfg.Program)
	d.readings = d.counters.batches(d.readings[:0], d.cfg.Program)
	d.step.Batches, d.step.Readings = d.batches, d.readings
}

// chunkSize is the number of bytes to read at once. They stay in the processor's cache
// until they are decoded.
const chunkSize = 4096 * 48

// readTable reads all blocks of one table, row by row.
func (d *Decoder) readTable(s *bp.Step, t *table, l *lane, decode func([]byte, uint32, rankCheck)) error {
	v := s.Variable(t.variable)
	if v == nil {
		d.checkCount(s, t, 0)
		return nil
	}
	total := uint64(0)
	for i := range v.Blocks {
		c := v.Blocks[i].Count
		if v.Type != bp.Uint64 || len(c) != 2 || c[1] != uint64(len(t.columns)) {
			d.tally.Add(tally.TableMisshapen, 1)
			return nil
		}
		if err := s.ReadAt(v, &v.Blocks[i], nil, 0); err != nil {
			return err // refused: its size is not reliable
		}
		if total += c[0]; total > math.MaxUint32 {
			return fmt.Errorf("variable %q has more than %d rows in one step", t.variable, uint32(math.MaxUint32))
		}
	}
	d.checkCount(s, t, total)
	room := int(total)
	if l.sides != nil {
		room += len(l.sides.events)
	}
	l.grow(room)
	for i := range v.Blocks {
		if err := d.readBlock(s, v, &v.Blocks[i], t, l, decode); err != nil {
			return err
		}
	}
	return nil
}

func (d *Decoder) readBlock(s *bp.Step, v *bp.Variable, b *bp.Block, t *table, l *lane, decode func([]byte, uint32, rankCheck)) error {
	if d.chunk == nil {
		d.chunk = make([]byte, chunkSize)
	}
	var want rankCheck
	first := uint32(0)
	for off := int64(0); off < b.Size(); {
		chunk := d.chunk[:min(b.Size()-off, int64(chunkSize/t.rowSize()*t.rowSize()))]
		chunk, err := s.Bytes(v, b, chunk, off)
		if err != nil {
			return err
		}
		if off == 0 {
			want = d.expect(chunk, t.rowSize())
			first = l.rows[want.rank]
		}
		decode(chunk, first, want)
		off += int64(len(chunk))
		first += uint32(len(chunk) / t.rowSize())
	}
	if d.oneFile {
		l.rows[want.rank] = first
	}
	return nil
}

// checkCount compares the number of rows with the number announced. In each step, TAU
// announces it once for each writer.
func (d *Decoder) checkCount(s *bp.Step, t *table, rows uint64) {
	blocks, announced := 0, uint64(0)
	if v := s.Variable(t.count); v != nil {
		blocks = len(v.Blocks)
		for i := range v.Blocks {
			n, _ := v.Uint64(i)
			announced += n
		}
	}
	switch {
	case s.Restored:
		return
	case blocks < d.writers || len(s.Variables) == 0, blocks > d.writers && d.steps > 0:
		d.tally.Add(tally.RowsUnannounced, 1)
	}
	d.writers = max(d.writers, blocks)
	if blocks == 0 || announced == rows {
		return
	}
	d.tally.Add(tally.CountMismatch, 1)
	if announced > rows {
		d.tally.Add(tally.RowsMissing, int64(min(announced-rows, math.MaxUint32)))
	}
}

// rankCheck is the rank that rows must have and the rank of their events.
type rankCheck struct {
	rank trace.Rank
	want uint64
	mask uint64 // 0 accepts any rank
}

// expect returns the rank that the rows of a block must have.
func (d *Decoder) expect(rows []byte, size int) rankCheck {
	switch d.cfg.Ranks {
	case OverrideRank:
		return rankCheck{rank: d.cfg.Rank}
	case VerifyRank:
		return rankCheck{d.cfg.Rank, uint64(d.cfg.Rank), math.MaxUint64}
	}
	if d.rankKnown && !d.oneFile {
		return rankCheck{d.rank, uint64(d.rank), math.MaxUint64}
	}
	// Two of the first three rows decide, in case one is damaged.
	var r [3]uint64
	for i := range r {
		at := min(i, len(rows)/size-1) * size
		r[i] = binary.LittleEndian.Uint64(rows[at+colRank:])
	}
	want := r[0]
	if r[0] != r[1] && r[0] != r[2] && r[1] == r[2] {
		want = r[1]
	}
	if want > math.MaxInt32 {
		want = 0 // impossible; the rows will be rejected
	} else if !d.oneFile {
		d.rank, d.rankKnown = trace.Rank(want), true
	}
	return rankCheck{trace.Rank(want), want, math.MaxUint64}
}
