package contrast

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FieldKey identifies a field of executions by its kind and, for counters and node states, its name. Its text is KIND or
// KIND:NAME.
type FieldKey struct {
	Kind FieldKind
	Name string
}

// Term is a condition on a field. Its text is FIELD=VALUE, with a name, a number, or a range such as 5, 4..7, 400.. or ..400 that
// includes both ends. Times are in seconds since the beginning of the run and exclude the end. A link is 5:6.
type Term struct {
	Field    FieldKey
	Label    string  // of a field with names
	From, To float64 // of other fields; infinite if a side is open
}

// fieldForm describes a field.
type fieldForm struct {
	name     string // in words; counters and node states have their own names
	names    bool   // values are names
	integers bool   // values are integers ≥ 0
	named    bool   // the field needs a name
	details  bool   // values are in messages, counters or node states
}

var fieldForms = map[FieldKind]fieldForm{
	FieldFunction: {name: "function", names: true},

	FieldHost:    {name: "host", names: true},
	FieldDevice:  {name: "GPU device", names: true},
	FieldStream:  {name: "GPU stream", names: true},
	FieldRank:    {name: "rank", integers: true},
	FieldLink:    {name: "link", names: true, details: true},
	FieldPartner: {name: "message partner", integers: true, details: true},
	FieldThread:  {name: "thread", integers: true},
	FieldPath:    {name: "call path", names: true},
	FieldBytes:   {name: "message bytes", details: true},
	FieldState:   {named: true, details: true},
	FieldCounter: {named: true, details: true},
	FieldTime:    {name: "time"},
	FieldStep:    {name: "step", integers: true},
}

// Limits of selections and texts.
const (
	maxTermText = 16 << 10
	maxSeconds  = 1e10
	// MaxTerms is the largest number of terms of each kind in a selection.
	MaxTerms = 50
	// MaxVertices is the largest number of corners of a lasso.
	MaxVertices = 50
)

// TermError is an invalid term, field or lasso.
type TermError struct{ Text, Reason string }

func (e *TermError) Error() string { return fmt.Sprintf("%.80q: %s", e.Text, e.Reason) }

// Words returns the name of the field in words.
func (k FieldKey) Words() string { return cmp.Or(k.Name, fieldForms[k.Kind].name) }

// String returns the text that ParseField parses.
func (k FieldKey) String() string {
	if k.Name == "" {
		return string(k.Kind)
	}
	return string(k.Kind) + ":" + k.Name
}

// ParseField parses a field.
func ParseField(text string) (FieldKey, error) {
	kind, name, named := strings.Cut(text, ":")
	k := FieldKey{FieldKind(kind), name}
	form, ok := fieldForms[k.Kind]
	switch {
	case !ok:
		var kinds []string
		for kind, form := range fieldForms {
			if form.named {
				kind += ":NAME"
			}
			kinds = append(kinds, string(kind))
		}
		slices.Sort(kinds)
		return k, &TermError{text, "unknown field (want " + strings.Join(kinds, ", ") + ")"}
	case form.named && name == "":
		return k, &TermError{text, "missing name (write " + kind + ":NAME)"}
	case named && !form.named:
		return k, &TermError{text, "field " + kind + " takes no name"}
	case len(text) > maxTermText || !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return k, &TermError{text, "invalid name"}
	}
	return k, nil
}

// ParseTerm parses a term.
func ParseTerm(text string) (t Term, err error) {
	// The name of a counter may contain =, but its range does not.
	cut := strings.Index(text, "=")
	if kind, _, _ := strings.Cut(text, ":"); fieldForms[FieldKind(kind)].named {
		cut = strings.LastIndex(text, "=")
	}
	if cut < 0 {
		return t, &TermError{text, "write FIELD=VALUE, as in host=nid00123, rank=4..7 or bytes=100000.."}
	}
	if t.Field, err = ParseField(text[:cut]); err != nil {
		return t, err
	}
	value := text[cut+1:]
	form := fieldForms[t.Field.Kind]
	switch {
	case value == "" || len(text) > maxTermText || !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return t, &TermError{text, "invalid value"}
	case t.Field.Kind == FieldLink:
		first, second, ok := strings.Cut(value, ":")
		a, errA := strconv.ParseInt(first, 10, 32)
		b, errB := strconv.ParseInt(second, 10, 32)
		if !ok || errA != nil || errB != nil {
			return t, &TermError{text, "a link is two ranks, as in link=5:6"}
		}
		t.Label = LinkLabel(a, b)
		return t, nil
	case form.names:
		t.Label = value
		return t, nil
	}
	return t, t.readRange(text, value)
}

// readRange parses 5, 4..7, 400.. or ..400.
func (t *Term) readRange(text, value string) error {
	first, last, isRange := strings.Cut(value, "..")
	if !isRange {
		last = first
	}
	form := fieldForms[t.Field.Kind]
	t.From, t.To = math.Inf(-1), math.Inf(1)
	for _, end := range []struct {
		text string
		to   *float64
	}{{first, &t.From}, {last, &t.To}} {
		if end.text == "" {
			continue
		}
		v, err := strconv.ParseFloat(end.text, 64)
		switch {
		case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
			return &TermError{text, "want a number or a range such as 4..7, 400.. or ..400"}
		case form.integers && (v < 0 || v > math.MaxInt32 || v != math.Trunc(v)):
			return &TermError{text, "a " + form.name + " must be an integer ≥ 0"}
		case t.Field.Kind == FieldTime && math.Abs(v) > maxSeconds:
			return &TermError{text, "time out of range"}
		}
		*end.to = v + 0 // avoid negative zero
	}
	switch {
	case math.IsInf(t.From, 0) && math.IsInf(t.To, 0):
		return &TermError{text, "a range needs at least one end"}
	case t.From > t.To:
		return &TermError{text, "the range ends before it begins"}
	case t.Field.Kind == FieldTime && !isRange:
		return &TermError{text, "write a range of seconds, as in time=9.5..13"}
	}
	return nil
}

// String returns the text that ParseTerm parses.
func (t Term) String() string {
	number := func(v float64) string {
		if math.IsInf(v, 0) {
			return ""
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	value := t.Label
	switch {
	case t.Field.Kind == FieldLink:
		value = strings.Replace(value, linkDash, ":", 1)
	case fieldForms[t.Field.Kind].names:
	case t.From == t.To && t.Field.Kind != FieldTime:
		value = number(t.From)
	default:
		value = number(t.From) + ".." + number(t.To)
	}
	return t.Field.String() + "=" + value
}

// Has reports whether a value satisfies the term.
func (t *Term) Has(c Cell) bool {
	if fieldForms[t.Field.Kind].names {
		return c.Label == t.Label
	}
	return c.Number >= t.From && c.Number <= t.To
}

const linkDash = " – "

// LinkLabel returns the label of the link between two ranks.
func LinkLabel(a, b int64) string { return fmt.Sprintf("%d%s%d", min(a, b), linkDash, max(a, b)) }

// Vertex is a corner of a lasso: seconds since the beginning of the run, and microseconds of exclusive time.
type Vertex struct{ Seconds, Micros float64 }

// ParseLasso parses the corners of a polygon around executions, such as 9.03:1200,9.5:1300,…: seconds since the beginning of
// the run and microseconds of exclusive time. Its edges are straight in a plot with logarithmic durations.
func ParseLasso(text string) (lasso []Vertex, err error) {
	for part := range strings.SplitSeq(text, ",") {
		at, took, _ := strings.Cut(part, ":")
		x, errX := strconv.ParseFloat(at, 64)
		y, errY := strconv.ParseFloat(took, 64)
		if errX != nil || errY != nil || !(math.Abs(x) <= maxSeconds) || !(y >= 0 && y <= 1e6*maxSeconds) {
			return nil, &TermError{part, "a corner of a lasso is SECONDS:MICROSECONDS, as in 9.5:1300"}
		}
		if lasso = append(lasso, Vertex{x + 0, y + 0}); len(lasso) > MaxVertices {
			break
		}
	}
	if n := len(lasso); n < 3 || n > MaxVertices {
		return nil, &TermError{text, fmt.Sprintf("a lasso has 3 to %d corners", MaxVertices)}
	}
	return lasso, nil
}

// LassoText returns the text that ParseLasso parses.
func LassoText(lasso []Vertex) string {
	var parts []string
	for _, v := range lasso {
		parts = append(parts, strconv.FormatFloat(v.Seconds, 'f', -1, 64)+":"+strconv.FormatFloat(v.Micros, 'f', -1, 64))
	}
	return strings.Join(parts, ",")
}

// FieldKind is the kind of a field.
type FieldKind string

// The kinds of fields. Counters and node states also have a name. Functions do not explain a selection, because its baseline has
// the same functions, but they can narrow and group it.
const (
	FieldFunction FieldKind = "function"

	FieldHost    FieldKind = "host"
	FieldDevice  FieldKind = "gpu-device"
	FieldStream  FieldKind = "gpu-stream"
	FieldRank    FieldKind = "rank"
	FieldLink    FieldKind = "link"
	FieldPartner FieldKind = "partner"
	FieldThread  FieldKind = "thread"
	FieldPath    FieldKind = "call-path"
	FieldBytes   FieldKind = "bytes"
	FieldState   FieldKind = "node-state"
	FieldCounter FieldKind = "counter"
	FieldTime    FieldKind = "time"
	FieldStep    FieldKind = "step"
)

// NeedsDetails reports whether the values of a field are in the messages, counters or node states of executions.
func (k FieldKind) NeedsDetails() bool { return fieldForms[k].details }

// Named reports whether values of the field are names rather than numbers.
func (k FieldKind) Named() bool { return fieldForms[k].names }

// Whole reports whether values of the field are integers ≥ 0.
func (k FieldKind) Whole() bool { return fieldForms[k].integers }
