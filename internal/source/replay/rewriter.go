package replay

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/bpwriter"
)

// rewriter rewrites a dataset as BP4, with other ranks, other times or both.
type rewriter struct {
	p       *Replay
	src     *bp.Reader
	to      string
	renamer renamer
	w       *bpwriter.Writer
}

func (r *rewriter) open() (err error) {
	r.w, err = bpwriter.Create(r.to)
	if err == nil {
		r.w.Release()
		r.p.wrote(0)
	}
	return err
}

// tauOrder is the order in which TAU writes its variables.
var tauOrder = []string{
	"program_count", "comm_rank_count", "thread_count", "event_type_count", "timer_count", "timer_event_count",
	"counter_count", "counter_event_count", "comm_count", "comm_timestamps", "counter_values", "event_timestamps",
}

// worldSize is the variable with the number of all ranks.
const worldSize = "comm_rank_count"

// typeOf has the types that BP4 can hold.
var typeOf = map[bp.Type]bpwriter.Type{
	bp.Int8: bpwriter.Int8, bp.Int16: bpwriter.Int16, bp.Int32: bpwriter.Int32, bp.Int64: bpwriter.Int64,
	bp.Uint8: bpwriter.Uint8, bp.Uint16: bpwriter.Uint16, bp.Uint32: bpwriter.Uint32, bp.Uint64: bpwriter.Uint64,
	bp.Float: bpwriter.Float, bp.Double: bpwriter.Double, bp.String: bpwriter.String, bp.Char: bpwriter.Int8,
}

func (r *rewriter) write(s *bp.Step, at trace.Ticks) error {
	out := &r.p.step
	seconds := s.Time
	if seconds == 0 {
		seconds = int64(at) / 1_000_000
	}
	r.renamer.offset = r.p.offset
	r.w.Begin(out, seconds+int64(r.p.offset)/1_000_000)
	if err := r.fill(out, s); err != nil {
		return fmt.Errorf("%s step %d: %w", r.src.Path(), s.Index, err)
	}
	defer r.w.Release()
	for _, write := range []func(*bpwriter.Step) (int, error){r.w.WriteData, r.w.WriteMetadata, r.w.WriteIndex} {
		n, err := write(out)
		if err != nil {
			return err
		}
		r.p.wrote(int64(n))
	}
	return nil
}

// fill copies the content of s to out.
func (r *rewriter) fill(out *bpwriter.Step, s *bp.Step) error {
	order := make([]int, len(s.Variables))
	groups := 1
	for i := range order {
		order[i] = i
		groups = max(groups, len(s.Variables[i].Blocks))
	}
	place := func(i int) int {
		if at := slices.Index(tauOrder, s.Variables[i].Name); at >= 0 {
			return at
		}
		return len(tauOrder)
	}
	slices.SortStableFunc(order, func(a, b int) int { return place(a) - place(b) })
	r.putAttributes(out, s)
	for g := range groups {
		if g > 0 {
			out.Group()
		}
		for _, i := range order {
			if v := &s.Variables[i]; g < len(v.Blocks) {
				if err := r.put(out, s, v, g); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// put copies one block of a variable.
func (r *rewriter) put(out *bpwriter.Step, s *bp.Step, v *bp.Variable, block int) error {
	b := &v.Blocks[block]
	typ, ok := typeOf[v.Type]
	if !ok || v.Shape == bp.LocalValue || v.Shape == bp.JoinedArray {
		return fmt.Errorf("variable %q: a %v of type %v cannot be rewritten", v.Name, v.Shape, v.Type)
	}
	if v.Shape == bp.GlobalValue {
		value := b.Value
		if r.p.cfg.Ranks > 0 && v.Name == worldSize && v.Type == bp.Int32 {
			value = binary.LittleEndian.AppendUint32(nil, uint32(r.p.cfg.Ranks))
		}
		out.Value(v.Name, typ, value)
		return nil
	}
	if err := s.ReadAt(v, b, nil, 0); err != nil {
		return err // the variable cannot be read, and its size may be wrong
	}
	bytes := out.Array(v.Name, typ, bpwriter.Dims{Shape: b.Shape, Start: b.Start, Count: b.Count})
	if int64(len(bytes)) != b.Size() {
		return nil // the writer reports the error
	}
	if err := s.ReadAt(v, b, bytes, 0); err != nil {
		return err
	}
	if t := tableOf(v); t != nil {
		t.move(bytes, uint64(r.renamer.ranks), uint64(r.p.offset))
	}
	return nil
}

// move adds to the ranks and times of rows. It keeps special values, such as a partner
// that means any.
func (t *table) move(rows []byte, ranks, times uint64) {
	size := t.columns * 8
	add := func(column int, n, most uint64) {
		for at := column * 8; at < len(rows) && n != 0; at += size {
			if x := binary.LittleEndian.Uint64(rows[at:]); x <= most {
				binary.LittleEndian.PutUint64(rows[at:], x+n)
			}
		}
	}
	add(t.rank, ranks, math.MaxInt32)
	if t.partner >= 0 {
		add(t.partner, ranks, math.MaxInt32)
	}
	add(t.time, times, math.MaxInt64)
}

// putAttributes copies the attributes, and counts those that BP4 cannot hold.
func (r *rewriter) putAttributes(out *bpwriter.Step, s *bp.Step) {
	seen := make(map[string]string, len(s.Attributes))
	for i := range s.Attributes {
		a := &s.Attributes[i]
		if a.Type != bp.String || a.Array {
			r.p.result.OmittedAttributes++
			continue
		}
		name, value := r.renamer.attribute(a.Name, a.Text())
		if len(name) > math.MaxUint16 {
			r.p.result.OmittedAttributes++
			continue
		}
		if len(value) > math.MaxUint16 {
			value = value[:math.MaxUint16]
			r.p.result.CutAttributes++
		}
		if first, ok := seen[name]; ok {
			if first != value {
				r.p.result.OmittedAttributes++
			}
			continue
		}
		seen[name] = value
		out.Attribute(name, value)
	}
}

// finish closes the dataset if the recorded one is.
func (r *rewriter) finish() error {
	if r.src.Active() {
		return nil
	}
	err := r.w.Close()
	r.p.wrote(1)
	return err
}
