package chrome

import (
	"bytes"

	"github.com/chimbuko/chimbuko/internal/base/tally"
)

// maxCandidate is the maximum size of an object that may be an event after damage.
const maxCandidate = 1 << 20

// repair parses the event at pos, which violates the grammar, with other rules for the
// ends of strings. If that fails, it skips to the next event.
func (r *Reader) repair() bool {
	for m := lenient; m <= literal; m++ {
		for {
			n := r.eventAs(m, r.w.pos)
			if n == short && r.read(r.w.pos, MaxEvent) {
				continue
			}
			if n >= 0 && r.p.ev.Phase != 0 {
				r.note(tally.EventRepaired, r.Offset(), r.Offset()+int64(n-r.w.pos))
				return r.accept(n)
			}
			break
		}
	}
	return r.skipDamage()
}

// eventAs is event in another mode.
func (r *Reader) eventAs(m mode, i int) int {
	r.p.mode = m
	n := r.p.event(i)
	r.p.mode = strict
	return n
}

// tooLarge skips an event that does not fit into memory.
func (r *Reader) tooLarge() bool {
	from := r.Offset()
	r.w.pos = r.p.end
	return r.seek(tally.EventTooLarge, from)
}

// skipDamage skips unreadable bytes from pos to the next event or known property. It reports
// whether it found an event.
func (r *Reader) skipDamage() bool {
	from := r.Offset()
	r.w.pos++
	return r.seek(tally.PartUnreadable, from)
}

// seek looks for the next event or property from pos on. The part since from is lost.
func (r *Reader) seek(k tally.Kind, from int64) bool {
	var last, second byte // bytes before pos that are not white space
	for {
		if r.w.pos == r.p.end && !r.read(r.w.pos, MaxEvent) {
			r.note(k, from, r.Offset())
			r.finish(r.state == outside)
			return false
		}
		switch c := r.p.b[r.w.pos]; c {
		case '"':
			r.ahead(maxAhead)
			if r.atProperty() {
				r.note(k, from, r.Offset())
				if r.state == outside {
					r.begin(inTop, false)
				}
				r.state = inTop
				return false
			}
		case '{':
			switch n := r.candidate(); {
			case n == document:
				r.note(k, from, r.Offset())
				r.begin(inTop, false)
				r.w.pos++
				return false
			case n >= 0:
				r.note(k, from, r.Offset())
				switch {
				case r.state == outside, last == '[' && r.events > 0:
					r.begin(inList, second != ':')
				case r.state == inTop:
					r.state, r.bare = inList, false
				}
				return r.accept(n)
			}
		}
		if c := r.p.b[r.w.pos]; class[c]&space == 0 {
			last, second = c, last
		}
		r.w.pos++
	}
}

// atProperty reports whether a property that only documents have begins at pos.
func (r *Reader) atProperty() bool {
	limit := min(r.w.pos+maxAhead, r.p.end)
	rest := r.p.b[r.w.pos+1 : limit]
	n := bytes.IndexByte(rest, '"')
	if n < 0 || !documentKeys[string(rest[:n])] {
		return false
	}
	i := skipSpace(r.p.b, r.w.pos+n+2)
	return i < limit && r.p.b[i] == ':'
}

// candidate parses the object at pos if it can be an event, and returns the position after
// it, document, or bad.
func (r *Reader) candidate() int {
	r.ahead(maxAhead)
	key := r.firstKey(r.w.pos)
	if documentKeys[string(key)] {
		return document
	}
	if key == nil {
		return bad
	}
	plausible := eventKeys[string(key)]
	r.p.depth = depthSeek
	defer func() { r.p.depth = maxDepth }()
	for m := strict; m <= lenient; m++ {
		n := r.eventAs(m, r.w.pos)
		for n == short && r.read(r.w.pos, maxCandidate) {
			n = r.eventAs(m, r.w.pos)
		}
		if n == document || n >= 0 && r.p.ev.Phase != 0 && (r.p.ev.Name != nil || r.p.ev.HasTime) {
			if m != strict && n >= 0 {
				r.note(tally.EventRepaired, r.Offset(), r.Offset()+int64(n-r.w.pos))
			}
			return n
		}
		if !plausible {
			break
		}
	}
	return bad
}

// skipLarge skips a property that does not fit into memory.
func (r *Reader) skipLarge() {
	from := r.Offset()
	_, i := r.p.key(r.w.pos)
	r.w.pos = i
	depth := 0
	inString, escaped, closed := false, false, false
	for {
		if r.w.pos == r.p.end && !r.read(r.w.pos, MaxEvent) {
			r.note(tally.PropertyIgnored, from, r.Offset())
			r.finish(false)
			return
		}
		c := r.p.b[r.w.pos]
		r.w.pos++
		switch {
		case inString && escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case inString && c == '"':
			inString, closed = false, true
		case inString, class[c]&space != 0:
		case closed && c != ',' && c != ':' && c != '}' && c != ']': // a string cannot end there
			r.w.pos--
			r.skipDamage()
			return
		case c == '"':
			inString = true
		case c == '{', c == '[':
			depth++
			closed = false
		case depth == 0: // the comma or brace after a string or scalar
			if c == ',' || c == '}' {
				r.w.pos--
				r.note(tally.PropertyIgnored, from, r.Offset())
				return
			}
		case c == '}', c == ']':
			closed = false
			if depth--; depth == 0 {
				r.note(tally.PropertyIgnored, from, r.Offset())
				return
			}
		default:
			closed = false
		}
	}
}
