package chrome

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Results of parsing other than the position after the parsed text.
const (
	short    = -1 // the window ends too early
	bad      = -2 // the text violates the grammar
	document = -3 // not an event: the beginning of a document
)

const (
	maxDepth  = 256 // of nested lists and objects
	depthSeek = 24  // the same after damage, where each object may be parsed again as part of an enclosing one
	maxStrays = 256 // unescaped quotes in one event
	maxAhead  = 256 // bytes of a key that ends a damaged text
)

// mode determines how the parser finds the end of a string.
type mode uint8

const (
	strict  mode = iota // at the first quote that is not escaped
	lenient             // that of a value, at the first such quote before text that may follow a value there
	literal             // the same, but a backslash escapes nothing
)

// context is the place of a string, which determines the text that may follow it.
type context uint8

const (
	inKey    context = iota // a key, or a value that never has quotes
	inEvent                 // a value of the event itself
	inObject                // a value of another object
	inArray                 // an element of a list
)

// parser parses events in a window. It allocates only if an event needs more room than
// all events before.
type parser struct {
	b       []byte // ends with zero bytes after end
	end     int
	mode    mode
	depth   int // limit
	strays  int // unescaped quotes in this event
	invalid int // texts in this event that were not UTF-8
	untimed int // times in this event that are not numbers
	wanted  keys
	scratch []byte // texts of this event that differ from the input
	ev      Event
}

// Classes of bytes. The zero bytes after the window have none, so that loops end there.
const (
	space  = 1 << iota // between tokens
	scalar             // in numbers, true, false, null, and also NaN, Infinity, …
)

var class = func() (t [256]uint8) {
	for _, c := range " \t\r\n" {
		t[c] = space
	}
	for c := range 256 {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '+', c == '-', c == '.', c == '_':
			t[c] = scalar
		}
	}
	return t
}()

// skipSpace returns the first position from i on that is not white space.
func skipSpace(b []byte, i int) int {
	for b[i] <= ' ' && class[b[i]]&space != 0 {
		i++
	}
	return i
}

// stop returns the reason why parsing stops at i.
func (p *parser) stop(i int) int {
	if i >= p.end {
		return short
	}
	return bad
}

const ones = 0x0101010101010101

// quote returns the position of the first quote or backslash from i on, or a position that
// is not before the end, and whether all bytes before are ASCII.
func quote(b []byte, i, end int) (at int, ascii bool) {
	high := uint64(0)
	for i < end {
		w := binary.LittleEndian.Uint64(b[i:])
		q, s := w^('"'*ones), w^('\\'*ones)
		if m := ((q-ones)&^q | (s-ones)&^s) & (0x80 * ones); m != 0 {
			high |= w & (m&-m - 1) // bytes before
			return i + bits.TrailingZeros64(m)/8, high&(0x80*ones) == 0
		}
		high |= w
		i += 8
	}
	return i, true
}

// text returns the position of the quote that ends the string whose text begins at i, and
// whether it is ASCII without escapes.
func (p *parser) text(i int, c context) (end int, simple bool) {
	if i, simple = quote(p.b, i, p.end); i < p.end && p.b[i] == '"' && p.mode == strict {
		return i, simple
	}
	return p.hardText(i, simple, c)
}

// hardText continues text at a quote, a backslash or the end.
func (p *parser) hardText(i int, simple bool, c context) (end int, _ bool) {
	for {
		at, ascii := quote(p.b, i, p.end)
		i, simple = at, simple && ascii
		switch {
		case i >= p.end:
			return short, false
		case p.b[i] == '\\' && p.mode != literal:
			simple = false
			i += 2
		case p.b[i] == '\\':
			i++
		case p.mode == strict || c == inKey:
			return i, simple
		default:
			switch p.ends(i+1, c) {
			case short:
				return short, false
			case 1:
				return i, simple
			}
			if p.strays++; p.strays > maxStrays || p.opens(i) {
				return bad, false
			}
			i++
		}
	}
}

// ends returns 1 if a string of the context can end before i, 0 if not, or short.
func (p *parser) ends(i int, c context) int {
	b := p.b
	i = skipSpace(b, i)
	if i >= p.end {
		return short
	}
	closing := byte('}')
	if c == inArray {
		closing = ']'
	}
	switch b[i] {
	case closing: // and then the end of what contains it
		i = skipSpace(b, i+1)
		if i >= p.end {
			return short
		}
		return is(b[i] == ',' || b[i] == '}' || b[i] == ']')
	case ',':
	default:
		return 0
	}
	i = skipSpace(b, i+1)
	switch {
	case i >= p.end:
		return short
	case b[i] == closing:
		return 1
	case c == inArray:
		return is(b[i] == '"' || b[i] == '[' || b[i] == '{' || class[b[i]]&scalar != 0)
	case b[i] != '"':
		return 0
	}
	name, i := p.keyAhead(i + 1)
	switch {
	case i < 0:
		return short
	case c == inEvent && !eventKeys[string(name)]:
		return 0
	}
	return is(name != nil)
}

// keyAhead returns the key whose text begins at i, or nil if no key of reasonable length
// is there, or short.
func (p *parser) keyAhead(i int) ([]byte, int) {
	n := bytes.IndexByte(p.b[i:min(i+maxAhead, p.end)], '"')
	if n < 0 {
		if p.end-i < maxAhead {
			return nil, short
		}
		return nil, i
	}
	after := skipSpace(p.b, i+n+1)
	if after >= p.end {
		return nil, short
	}
	if p.b[after] != ':' {
		return nil, i
	}
	return p.b[i : i+n], i
}

// opens reports whether an event or a document begins with the quote at i, so that the
// text before has lost its end.
func (p *parser) opens(i int) bool {
	brace := i - 1
	for brace > 0 && class[p.b[brace]]&space != 0 {
		brace--
	}
	if brace < 0 || p.b[brace] != '{' {
		return false
	}
	name, _ := p.keyAhead(i + 1)
	return eventKeys[string(name)] || documentKeys[string(name)]
}

func is(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// eventKeys are the keys of events.
var eventKeys = set("ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "id2", "s", "bp", "bind_id", "tts", "tdur", "cname",
	"sf", "stack", "esf", "estack", "scope", "flow_in", "flow_out", "tidelta", "ticount", "use_async_tts")

// documentKeys are keys of documents that no event has.
var documentKeys = set("traceEvents", "schemaVersion", "deviceProperties", "distributedInfo", "displayTimeUnit",
	"baseTimeNanoseconds", "traceName", "otherData", "stackFrames", "systemTraceEvents")

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}

// value skips the value at i.
func (p *parser) value(i int, c context, depth int) int {
	switch p.b[i] {
	case '"':
		end, _ := p.text(i+1, c)
		if end < 0 {
			return end
		}
		return end + 1
	case '[':
		return p.array(i+1, depth+1)
	case '{':
		return p.object(i+1, depth+1)
	}
	from := i
	for class[p.b[i]]&scalar != 0 {
		i++
	}
	if i == from || i >= p.end {
		return p.stop(i)
	}
	return i
}

// array skips the rest of a list.
func (p *parser) array(i, depth int) int {
	if depth > p.depth {
		return bad
	}
	b := p.b
	for {
		i = skipSpace(b, i)
		if b[i] == ']' {
			return i + 1
		}
		if i = p.value(i, inArray, depth); i < 0 {
			return i
		}
		i = skipSpace(b, i)
		switch b[i] {
		case ',':
			i++
		case ']':
			return i + 1
		default:
			return p.stop(i)
		}
	}
}

// object skips the rest of an object.
func (p *parser) object(i, depth int) int {
	if depth > p.depth {
		return bad
	}
	for {
		var key []byte
		if key, i = p.key(i); key == nil {
			return i
		}
		if i = p.value(i, inObject, depth); i < 0 {
			return i
		}
		var done bool
		if i, done = p.comma(i); done {
			return i
		}
	}
}

// key returns the key at i and the position of its value. Without a key, it returns nil and the
// position after the object, or the reason why parsing stops.
func (p *parser) key(i int) ([]byte, int) {
	b := p.b
	i = skipSpace(b, i)
	if p.mode != strict {
		for b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	if b[i] != '"' {
		if b[i] == '}' {
			return nil, i + 1
		}
		return nil, p.stop(i)
	}
	from := i + 1
	end, simple := p.text(from, inKey)
	if end < 0 {
		return nil, end
	}
	i = skipSpace(b, end+1)
	if b[i] != ':' {
		return nil, p.stop(i)
	}
	key := b[from:end]
	if !simple {
		key = p.unescape(key)
	}
	return key, skipSpace(b, i+1)
}

// comma returns the position after the comma that follows a value of an object, or the position
// after the object and true, or the reason why parsing stops and true.
func (p *parser) comma(i int) (int, bool) {
	i = skipSpace(p.b, i)
	switch p.b[i] {
	case ',':
		return i + 1, false
	case '}':
		return i + 1, true
	}
	return p.stop(i), true
}

// unescape returns the text of a string that is not simple, as valid UTF-8.
func (p *parser) unescape(s []byte) []byte {
	n := len(p.scratch)
	if p.mode != literal && bytes.IndexByte(s, '\\') >= 0 {
		p.scratch = unescape(p.scratch, s)
		s = p.scratch[n:len(p.scratch):len(p.scratch)]
	}
	return p.toValid(s)
}

// toValid returns the text as valid UTF-8.
func (p *parser) toValid(s []byte) []byte {
	if utf8.Valid(s) {
		return s
	}
	p.invalid++
	n := len(p.scratch)
	p.scratch = appendValid(p.scratch, s)
	return p.scratch[n:len(p.scratch):len(p.scratch)]
}

// token returns the text of the value at i as valid UTF-8, whether it is a string, and the
// position after it.
func (p *parser) token(i int, c context) (text []byte, isString bool, next int) {
	if p.b[i] != '"' {
		next = p.value(i, c, 0)
		if next < 0 {
			return nil, false, next
		}
		text = p.b[i:next]
		if text[0] == '[' || text[0] == '{' {
			text = p.toValid(text)
		}
		return text, false, next
	}
	end, simple := p.text(i+1, c)
	if end < 0 {
		return nil, false, end
	}
	text = p.b[i+1 : end]
	if !simple {
		text = p.unescape(text)
	}
	return text, true, end + 1
}
