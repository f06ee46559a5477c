package paramserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// request is a protocol.ExchangeRequest that was decoded, into memory that is
// used again: exchanges are most of what a server does. It refers to the bytes
// that it was read from.
type request struct {
	sender   *protocol.Sender
	number   uint64
	epoch    uint64
	known    uint64
	flush    bool
	status   *protocol.Status
	steps    []coveredSteps
	models   []modelDelta
	profiles []profileDelta
	ranks    []rankDelta
	found    []*summary.StepReport
	counters []counterDelta
	paths    []pathDelta
}

type coveredSteps struct {
	trace.RankKey
	from, to uint32
	ended    bool
	host     []byte
}

type modelDelta struct {
	id    uint32
	model outlier.Model
}

type profileDelta struct {
	id uint32
	summary.Function
	anomalies stats.Sums
}

type rankDelta struct {
	trace.RankKey
	anomalies stats.Sums
}

type counterDelta struct {
	program trace.Program
	name    []byte
	values  stats.Sums
}

var requests = sync.Pool{New: func() any { return new(request) }}

// maxValues is how many values one part of an exchange may hold: more than any
// analyzer sees in its life, and so few that sums of all exchanges stay exact.
const maxValues = 1 << 40

var errRequest = errors.New("malformed request")

// The tag of a field is its number and, in the lowest three bits, the kind of its
// value.
const (
	number = 0
	text   = 2 // or bytes, or a message
	eight  = 1 // bytes
	four   = 5
)

// field is a field of an encoded message. Of value and content one is set.
type field struct {
	tag     uint64
	value   uint64
	content []byte
}

// nextField splits the first field off an encoded message.
func nextField(b []byte) (f field, rest []byte, ok bool) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag>>3 == 0 {
		return field{}, nil, false
	}
	b = b[n:]
	size := uint64(0)
	switch tag & 7 {
	case number:
		value, n := binary.Uvarint(b)
		if n <= 0 {
			return field{}, nil, false
		}
		return field{tag: tag, value: value}, b[n:], true
	case text:
		if size, n = binary.Uvarint(b); n <= 0 {
			return field{}, nil, false
		}
		b = b[n:]
	case eight:
		size = 8
	case four:
		size = 4
	default:
		return field{}, nil, false
	}
	if size > uint64(len(b)) {
		return field{}, nil, false
	}
	return field{tag: tag, content: b[:size:size]}, b[size:], true
}

// read decodes an encoded protocol.ExchangeRequest. Fields that are not known are
// skipped. What is malformed beside the sender is an error in refused only.
func (x *request) read(data []byte) (refused, err error) {
	x.reset()
	var r reader
	for len(data) > 0 {
		f, rest, ok := nextField(data)
		if !ok {
			return nil, errRequest
		}
		data = rest
		switch f.tag {
		case 1<<3 | text:
			err = proto.UnmarshalOptions{Merge: true}.Unmarshal(f.content, x.sender)
		case 2<<3 | number:
			x.number = f.value
		case 3<<3 | text:
			x.readSteps(&r, f.content)
		case 4<<3 | text:
			x.readModel(&r, f.content)
		case 5<<3 | text:
			x.readSummary(&r, f.content)
		case 6<<3 | number:
			x.epoch = f.value
		case 7<<3 | number:
			x.known = f.value
		case 8<<3 | number:
			x.flush = f.value != 0
		case 9<<3 | text:
			if x.status == nil {
				x.status = new(protocol.Status)
			}
			err = proto.UnmarshalOptions{Merge: true}.Unmarshal(f.content, x.status)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errRequest, err)
		}
	}
	return r.err, nil
}

func (x *request) reset() {
	clear(x.found)
	sender := x.sender
	if sender == nil {
		sender = new(protocol.Sender)
	}
	sender.Reset()
	*x = request{
		sender: sender, steps: x.steps[:0], models: x.models[:0], profiles: x.profiles[:0], ranks: x.ranks[:0],
		found: x.found[:0], counters: x.counters[:0], paths: x.paths[:0],
	}
}

// grow appends a value whose memory, if it was used before, can be used again.
func grow[T any](s *[]T) *T {
	if n := len(*s); n < cap(*s) {
		*s = (*s)[:n+1]
	} else {
		var zero T
		*s = append(*s, zero)
	}
	return &(*s)[len(*s)-1]
}

func (x *request) readSteps(r *reader, b []byte) {
	s := grow(&x.steps)
	*s = coveredSteps{}
	for f, b := r.next(b); f.tag != 0; f, b = r.next(b) {
		switch f.tag {
		case 1<<3 | number:
			s.Program = trace.Program(f.value)
		case 2<<3 | number:
			s.Rank = trace.Rank(f.value)
		case 3<<3 | number:
			s.from = uint32(f.value)
		case 4<<3 | number:
			s.to = uint32(f.value)
		case 5<<3 | number:
			s.ended = f.value != 0
		case 6<<3 | text:
			if s.host = f.content; !utf8.Valid(f.content) {
				r.fail("host")
			}
		}
	}
}

func (x *request) readModel(r *reader, b []byte) {
	m := grow(&x.models)
	m.id = 0
	m.model.Reset()
	for f, b := r.next(b); f.tag != 0; f, b = r.next(b) {
		switch f.tag {
		case modelID<<3 | number:
			m.id = uint32(f.value)
		case modelModel<<3 | text:
			rest, err := m.model.Decode(f.content)
			if err != nil || len(rest) > 0 || m.model.Count() > maxValues {
				r.fail("model")
			}
		}
	}
}
