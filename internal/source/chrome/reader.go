package chrome

import (
	"bytes"
	"errors"
	"io"

	"github.com/chimbuko/chimbuko/internal/base/tally"
)

// ErrNoDocument is the error of an input without a JSON object or list.
var ErrNoDocument = errors.New("no JSON object or list")

// state is the part of a document in which a Reader is.
type state uint8

const (
	outside state = iota // before, between and after documents
	inTop                // among the properties of the top-level object
	inList               // among the events
)

// Reader reads events. It must not be shared between goroutines.
type Reader struct {
	w      window
	p      parser
	tally  *tally.Tally
	opened bool
	state  state
	bare   bool  // the document is a list
	done   error // returned by Next from now on

	documents  int
	events     int // of this document
	properties []property
	previous   []property
	gaps       []Gap
}

type property struct{ name, value []byte }

// NewReader returns a Reader of JSON, plain or compressed by gzip. Events have the
// arguments of the wanted keys. The tally may be nil.
func NewReader(r io.Reader, wanted []string, t *tally.Tally) *Reader {
	return &Reader{w: window{src: r}, p: parser{depth: maxDepth, wanted: newKeys(wanted)}, tally: t}
}

// Next returns the next event, which is valid until the next call. After the last event it
// returns io.EOF, or an *Error if the input is cut or cannot be read to its end.
func (r *Reader) Next() (*Event, error) {
	if !r.opened {
		r.opened = true
		r.w.open()
		r.sync()
	}
	for r.done == nil {
		found := false
		switch r.state {
		case inList:
			found = r.element()
		case inTop:
			r.member()
		case outside:
			r.document()
		}
		if found {
			return &r.p.ev, nil
		}
	}
	return nil, r.done
}

// Documents returns the number of JSON documents so far.
func (r *Reader) Documents() int { return r.documents }

// IsList reports whether this document is a bare list, or events that follow damage without the
// beginning of a document.
func (r *Reader) IsList() bool { return r.bare }

// Offset returns the number of uncompressed bytes that were read.
func (r *Reader) Offset() int64 { return r.w.base + int64(r.w.pos) }

// Gaps returns the first parts of the input that were skipped or repaired, at most
// MaxGaps.
func (r *Reader) Gaps() []Gap { return r.gaps }

// Property returns the JSON of a property of the top-level object of this document, such as
// distributedInfo. Those after traceEvents are available when Next has returned io.EOF. Properties
// larger than MaxProperty are missing.
func (r *Reader) Property(name string) ([]byte, bool) { return lookup(r.properties, name) }

// PreviousProperty returns the JSON of a property of the last document before this one that
// has events.
func (r *Reader) PreviousProperty(name string) ([]byte, bool) { return lookup(r.previous, name) }

func lookup(properties []property, name string) ([]byte, bool) {
	for i := range properties {
		if string(properties[i].name) == name {
			return properties[i].value, true
		}
	}
	return nil, false
}

// sync updates the window of the parser.
func (r *Reader) sync() { r.p.b, r.p.end = r.w.buf[:r.w.end+slack], r.w.end }

// read is window.more that also updates the parser.
func (r *Reader) read(keep, limit int) bool {
	ok := r.w.more(keep, limit)
	r.sync()
	return ok
}

// peek skips white space and commas, and returns the next byte, or false at the end.
func (r *Reader) peek() (byte, bool) {
	for {
		i := r.w.pos
		for class[r.p.b[i]]&space != 0 || r.p.b[i] == ',' {
			i++
		}
		r.w.pos = i
		if i < r.p.end {
			return r.p.b[i], true
		}
		if !r.read(i, MaxEvent) {
			return 0, false
		}
	}
}

// finish ends the input.
func (r *Reader) finish(complete bool) {
	err := r.w.err
	switch {
	case err != nil:
	case r.documents == 0:
		err = ErrNoDocument
	case !complete:
		err = io.ErrUnexpectedEOF
	default:
		r.done = io.EOF
		return
	}
	r.done = &Error{Offset: r.w.base + int64(r.w.end), Compressed: r.w.compressed(), Err: err}
}

// note counts a part of the input.
func (r *Reader) note(k tally.Kind, from, to int64) {
	r.tally.Add(k, 1)
	if len(r.gaps) < MaxGaps {
		r.gaps = append(r.gaps, Gap{k, from, to - from})
	}
}

// begin begins a document.
func (r *Reader) begin(s state, bare bool) {
	if r.state != outside && r.events > 0 {
		r.note(tally.DocumentCut, r.Offset(), r.Offset())
	}
	r.state, r.bare = s, bare
	if r.documents > 0 && r.events == 0 && len(r.properties) == 0 {
		return // nothing of this one was there
	}
	if r.events > 0 {
		r.properties, r.previous = r.previous, r.properties
	}
	r.properties, r.events = r.properties[:0], 0
	r.documents++
}

// document looks for the beginning of a document.
func (r *Reader) document() {
	c, ok := r.peek()
	if ok && r.documents == 0 && r.Offset() == 0 && c == 0xef {
		r.ahead(3)
		if bytes.HasPrefix(r.p.b[r.w.pos:], []byte("\xef\xbb\xbf")) {
			r.w.pos += 3
			c, ok = r.peek()
		}
	}
	switch {
	case !ok:
		r.finish(true)
	case c == '{':
		r.ahead(maxAhead)
		if eventKeys[string(r.firstKey(r.w.pos))] {
			r.begin(inList, true) // events without a list
			return
		}
		r.begin(inTop, false)
		r.w.pos++
	case c == '[':
		r.begin(inList, true)
		r.w.pos++
	default:
		r.skipDamage()
	}
}

// ahead reads at least n bytes after pos, unless the input ends.
func (r *Reader) ahead(n int) {
	for r.p.end-r.w.pos < n && r.read(r.w.pos, MaxEvent) {
	}
}

// firstKey returns the first key of the object at i if it ends within maxAhead bytes, which
// are in memory.
func (r *Reader) firstKey(i int) []byte {
	limit := min(i+maxAhead, r.p.end)
	i = skipSpace(r.p.b, i+1)
	if i >= limit || r.p.b[i] != '"' {
		return nil
	}
	rest := r.p.b[i+1 : limit]
	return rest[:max(0, bytes.IndexByte(rest, '"'))]
}

// element reads an element of the list of events and reports whether it is an event.
func (r *Reader) element() bool {
	c, ok := r.peek()
	switch {
	case !ok:
		r.finish(r.bare)
		return false
	case c == '{':
	case c == ']':
		r.w.pos++
		r.state = inTop
		if r.bare {
			r.state = outside
		}
		return false
	default:
		return r.skipElement()
	}
	for {
		n := r.p.event(r.w.pos)
		switch {
		case n >= 0:
			return r.accept(n)
		case n == document:
			r.begin(inTop, false)
			r.w.pos++
			return false
		case n == bad:
			return r.repair()
		case !r.read(r.w.pos, MaxEvent):
			if r.w.eof {
				return r.repair()
			}
			return r.tooLarge()
		}
	}
}

// accept returns true if the parsed object, which ends at n, is an event.
func (r *Reader) accept(n int) bool {
	from := r.Offset()
	e := &r.p.ev
	if e.Phase == 0 {
		if r.p.b[skipSpace(r.p.b, r.w.pos+1)] != '}' { // {} often ends a list
			r.note(tally.ElementUnknown, from, from+int64(n-r.w.pos))
		}
		r.w.pos = n
		return false
	}
	e.Offset, e.NewDocument = from, r.events == 0
	r.events++
	if r.p.invalid > 0 {
		r.note(tally.TextInvalid, from, from+int64(n-r.w.pos))
	}
	if r.p.untimed > 0 {
		r.note(tally.TimeUnreadable, from, from+int64(n-r.w.pos))
	}
	r.w.pos = n
	return true
}

// skipElement skips an element that is not an object.
func (r *Reader) skipElement() bool {
	for {
		n := r.p.value(r.w.pos, inArray, 0)
		if n == short && r.read(r.w.pos, MaxProperty) {
			continue
		}
		if n >= 0 {
			i := skipSpace(r.p.b, n)
			if i >= r.p.end {
				if r.read(r.w.pos, MaxProperty) {
					continue
				}
				return r.skipDamage() // the list does not continue; n and i may be of an earlier window
			}
			if r.p.b[i] == ',' || r.p.b[i] == ']' {
				r.note(tally.ElementUnknown, r.Offset(), r.Offset()+int64(n-r.w.pos))
				r.w.pos = n
				return false
			}
		}
		return r.skipDamage()
	}
}

// store keeps a property.
func (r *Reader) store(name, value []byte) {
	from := r.Offset()
	if len(value) > MaxProperty {
		r.note(tally.PropertyIgnored, from, from+int64(len(value)))
		return
	}
	p := (*property)(nil)
	for i := range r.properties {
		if bytes.Equal(r.properties[i].name, name) {
			p = &r.properties[i]
		}
	}
	if p == nil {
		if len(r.properties) == MaxProperties {
			r.note(tally.PropertyIgnored, from, from+int64(len(value)))
			return
		}
		r.properties = append(r.properties, property{name: bytes.Clone(name)})
		p = &r.properties[len(r.properties)-1]
	}
	p.value = bytes.Clone(value)
}

// member reads a property of the top-level object, or the beginning of the list of events.
func (r *Reader) member() {
	c, ok := r.peek()
	switch {
	case !ok:
		r.finish(false)
		return
	case c == '}':
		r.w.pos++
		r.state = outside
		return
	case c != '"':
		r.skipDamage()
		return
	}
	for {
		r.p.scratch = r.p.scratch[:0]
		r.p.strays = 0
		key, i := r.p.key(r.w.pos)
		if key != nil {
			key = bytes.Clone(key) // listsEvents overwrites it
			if r.p.b[i] == '[' && (string(key) == "traceEvents" || r.listsEvents(i)) {
				r.state, r.bare = inList, false
				r.w.pos = i + 1
				return
			}
			from := i
			if i = r.p.value(i, inObject, 0); i >= 0 {
				r.store(key, r.p.b[from:i])
				r.w.pos = i
				return
			}
		}
		switch {
		case i == short && r.read(r.w.pos, MaxProperty+maxAhead):
			continue
		case i == short && !r.w.eof && key != nil:
			r.skipLarge()
			return
		}
		r.skipDamage()
		return
	}
}

// listsEvents reports whether the list at i begins with an event. Such a list is the list of
// events, even if damage has changed its name.
func (r *Reader) listsEvents(i int) bool {
	i = skipSpace(r.p.b, i+1)
	return r.p.b[i] == '{' && r.p.event(i) >= 0 && r.p.ev.Phase != 0 && r.p.ev.Name != nil
}
