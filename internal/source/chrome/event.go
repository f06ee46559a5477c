package chrome

// event parses the event at i, an opening brace, into ev.
func (p *parser) event(i int) int {
	p.scratch = p.scratch[:0]
	p.strays, p.invalid, p.untimed = 0, 0, 0
	args := -1
	e := &p.ev
	*e = Event{Args: e.Args[:0], Counters: e.Counters[:0]}
	i++
	for {
		var key []byte
		if key, i = p.key(i); key == nil {
			break
		}
		if p.mode != strict && p.repeats(string(key)) {
			return bad
		}
		switch string(key) {
		case "ph":
			var ph []byte
			if c := p.b[i]; c == '{' || c == '[' {
				return bad
			}
			if ph, _, i = p.token(i, inKey); len(ph) > 0 {
				e.Phase = ph[0]
			}
		case "name":
			e.Name, _, i = p.token(i, inEvent)
		case "cat":
			e.Category, _, i = p.token(i, inEvent)
		case "id":
			e.ID, _, i = p.token(i, inKey)
		case "pid":
			i = p.id(i, &e.PID)
		case "tid":
			i = p.id(i, &e.TID)
		case "ts":
			i = p.time(i, &e.Time, &e.HasTime)
		case "dur":
			i = p.time(i, &e.Duration, &e.HasDuration)
		case "args":
			args = i
			i = p.args(i)
		case "id2":
			i = p.id2(i)
		default:
			if e.Phase == 0 && documentKeys[string(key)] {
				return document
			}
			i = p.value(i, inEvent, 0)
		}
		if i < 0 {
			return i
		}
		var done bool
		if i, done = p.comma(i); done {
			break
		}
	}
	if i > 0 && e.Phase == 'C' && args >= 0 && p.b[args] == '{' {
		p.counters(args)
	}
	return i
}

// repeats reports whether the event has the key already. Two of them mean that the end of
// an event and the beginning of another are missing.
func (p *parser) repeats(key string) bool {
	switch key {
	case "ph":
		return p.ev.Phase != 0
	case "name":
		return p.ev.Name != nil
	case "ts":
		return p.ev.HasTime
	}
	return false
}

// id parses the process or thread at i.
func (p *parser) id(i int, id *ID) int {
	if n, next := digits(p.b, i); next > 0 && next < p.end {
		*id = ID{Text: p.b[i:next], Number: n, IsNumber: true}
		return next
	}
	text, isString, next := p.token(i, inKey)
	if next < 0 {
		return next
	}
	*id = ID{Text: text}
	if !isString {
		id.Number, id.IsNumber = integer(text)
	}
	return next
}

// id2 parses the object at i: an id that is local to the process, or global.
func (p *parser) id2(i int) int {
	if p.b[i] != '{' {
		return p.value(i, inEvent, 0)
	}
	i++
	for {
		var key []byte
		if key, i = p.key(i); key == nil {
			return i
		}
		var text []byte
		if text, _, i = p.token(i, inObject); i < 0 {
			return i
		}
		if k := string(key); k == "local" || k == "global" {
			p.ev.ID = text
		}
		var done bool
		if i, done = p.comma(i); done {
			return i
		}
	}
}

// time parses the microseconds at i.
func (p *parser) time(i int, to *int64, has *bool) int {
	if n, next := micros(p.b, i); next > 0 && next < p.end {
		*to, *has = n, true
		return next
	}
	text, _, next := p.token(i, inKey)
	if next < 0 {
		return next
	}
	*to, *has = decimal(text, 3)
	if !*has && string(text) != "null" {
		p.untimed++
	}
	return next
}

// args parses the object at i.
func (p *parser) args(i int) int {
	p.ev.Args = p.ev.Args[:0]
	if p.b[i] != '{' || len(p.wanted.names) == 0 {
		return p.value(i, inEvent, 0)
	}
	i++
	var seen uint64 // keys, modulo 64
	for {
		var key []byte
		if key, i = p.key(i); key == nil {
			return i
		}
		if k := p.wanted.index(key); k < 0 {
			i = p.value(i, inObject, 1)
		} else {
			a := Arg{Key: k}
			a.Value, a.String, i = p.token(i, inObject)
			if seen>>(k&63)&1 == 0 || !p.replace(a) {
				p.ev.Args = append(p.ev.Args, a)
			}
			seen |= 1 << (k & 63)
		}
		if i < 0 {
			return i
		}
		var done bool
		if i, done = p.comma(i); done {
			return i
		}
	}
}

// replace replaces the argument of the same key, if there is one.
func (p *parser) replace(a Arg) bool {
	for i := range p.ev.Args {
		if p.ev.Args[i].Key == a.Key {
			p.ev.Args[i] = a
			return true
		}
	}
	return false
}

// counters collects the numbers of the object at i, which was parsed before.
func (p *parser) counters(i int) {
	i++
	for {
		var key, text []byte
		if key, i = p.key(i); key == nil {
			return
		}
		var isString bool
		if text, isString, i = p.token(i, inObject); i < 0 {
			return
		}
		if !isString && numeric(text) {
			p.ev.Counters = append(p.ev.Counters, Counter{key, text})
		}
		var done bool
		if i, done = p.comma(i); done {
			return
		}
	}
}

// numeric reports whether a scalar is a number.
func numeric(b []byte) bool {
	if len(b) > 1 && b[0] == '-' {
		b = b[1:]
	}
	return len(b) > 0 && (b[0]-'0' < 10 || b[0] == '.')
}

// keys is a set of texts.
type keys struct {
	names []string
	first [256]int16 // by hash: the first name with it, plus 1
	next  []int16    // by name: the next one of the same hash, plus 1
}

func newKeys(names []string) (k keys) {
	k.names, k.next = names, make([]int16, len(names))
	for i, name := range names {
		h := hash(name)
		k.next[i] = k.first[h]
		k.first[h] = int16(i + 1)
	}
	return k
}

func hash[T string | []byte](s T) uint8 {
	if len(s) == 0 {
		return 0
	}
	return uint8(len(s))*7 + s[0]*31 + s[len(s)-1]
}

// index returns the index of a name, or -1.
func (k *keys) index(name []byte) int {
	for i := k.first[hash(name)]; i > 0; i = k.next[i-1] {
		if k.names[i-1] == string(name) {
			return int(i - 1)
		}
	}
	return -1
}
