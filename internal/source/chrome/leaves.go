package chrome

// Leaves parses JSON objects of other formats, one text at a time, with the tokenizer of events.
// The zero value is ready. It allocates only if a text is longer than all before.
type Leaves struct {
	p    parser
	text []byte
}

// Parse calls visit with each number, text and literal in an object, at any depth, in order. The key is
// the one in the innermost object: elements of a list have the key of the list. Both are valid until the
// next call. Parse reports whether the text is one JSON object and nothing else; visit may have been
// called if it is not.
func (l *Leaves) Parse(text []byte, visit func(key, value []byte)) bool {
	l.text = append(append(l.text[:0], text...), make([]byte, slack)...)
	p := &l.p
	p.b, p.end, p.depth, p.scratch = l.text, len(text), maxDepth, p.scratch[:0]
	i := skipSpace(p.b, 0)
	if i >= p.end || p.b[i] != '{' {
		return false
	}
	i = p.leaves(i+1, 1, visit)
	return i >= 0 && skipSpace(p.b, i) == p.end
}

// leaves visits the rest of an object.
func (p *parser) leaves(i, depth int, visit func(key, value []byte)) int {
	if depth > p.depth {
		return bad
	}
	for {
		var key []byte
		if key, i = p.key(i); key == nil {
			return i
		}
		if i = p.leaf(key, i, depth, visit); i < 0 {
			return i
		}
		var done bool
		if i, done = p.comma(i); done {
			return i
		}
	}
}

// leaf visits the value of a key.
func (p *parser) leaf(key []byte, i, depth int, visit func(key, value []byte)) int {
	switch p.b[i] {
	case '{':
		return p.leaves(i+1, depth+1, visit)
	case '[':
		return p.elements(key, i+1, depth+1, visit)
	}
	value, _, next := p.token(i, inObject)
	if next >= 0 {
		visit(key, value)
	}
	return next
}

// elements visits the rest of a list.
func (p *parser) elements(key []byte, i, depth int, visit func(key, value []byte)) int {
	if depth > p.depth {
		return bad
	}
	for {
		i = skipSpace(p.b, i)
		if p.b[i] == ']' {
			return i + 1
		}
		if i = p.leaf(key, i, depth, visit); i < 0 {
			return i
		}
		i = skipSpace(p.b, i)
		switch p.b[i] {
		case ',':
			i++
		case ']':
			return i + 1
		default:
			return p.stop(i)
		}
	}
}
