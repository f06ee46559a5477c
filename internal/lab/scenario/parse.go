package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// Parse reads a scenario and checks it. name stands in errors.
func Parse(name string, text []byte) (*Scenario, error) {
	if err := checkText(text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s := &Scenario{Iterations: 1, NotableMicros: 100, NotableShare: 0.5}
	meta, err := toml.NewDecoder(bytes.NewReader(text)).Decode(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, explain(err, text))
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("%s: unknown: %s; docs/scenarios.md lists all keys", name, first(unknown, 5))
	}
	if meta.IsDefined("start") {
		s.Start = withoutZone(s.Start, text)
	}
	s.complete()
	var bad problems
	if bad.in(name, s.Validate()); len(bad) == 0 {
		return s, nil
	}
	if more := len(bad) - maxProblems; more > 0 {
		bad = bad[:maxProblems]
		bad.add("%s: and %d more", name, more)
	}
	return nil, bad.err()
}

// complete sets what was left out and has a default that is not zero.
func (s *Scenario) complete() {
	if s.Start.IsZero() {
		s.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	for i := range s.Programs {
		p := &s.Programs[i]
		if p.Latency == 0 {
			p.Latency = 2
		}
		if p.Bandwidth == 0 {
			p.Bandwidth = 10_000
		}
		if len(p.Hosts) == 0 {
			p.Hosts = []string{"node00"}
		}
	}
}

// withoutZone returns the start as UTC if the text gives no offset: the decoder
// takes it for the machine's own zone then, and runs would not be the same
// everywhere.
func withoutZone(start time.Time, text []byte) time.Time {
	var raw struct {
		Start any `toml:"start"`
	}
	if _, err := toml.Decode(string(text), &raw); err != nil {
		return start
	}
	t, ok := raw.Start.(time.Time)
	if !ok || !strings.HasSuffix(t.Location().String(), "-local") { // as the decoder calls it
		return start
	}
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// badType is how the decoder tells that a value is of the wrong type. For a key
// of several tables it gives the line of the last, not of the one that is wrong.
var badType = regexp.MustCompile(`(?s)^toml: line (\d+) \(last key "(.*)"\): ` +
	`incompatible types: TOML value has type (.*); destination has type (.*)$`)

// explain makes an error of the decoder shorter, and more true.
func explain(err error, text []byte) error {
	if at, ok := errors.AsType[toml.ParseError](err); ok {
		return fmt.Errorf("line %d: %s", at.Position.Line, at.Message)
	}
	m := badType.FindStringSubmatch(err.Error())
	if m == nil {
		return errors.New(strings.TrimPrefix(err.Error(), "toml: "))
	}
	what := fmt.Sprintf("%s is a TOML %s, wants %s", m[2], m[3], m[4])
	if table, _, _ := strings.Cut(m[2], "."); bytes.Count(text, []byte("[["+table)) > 1 {
		return errors.New(what)
	}
	return fmt.Errorf("line %s: %s", m[1], what)
}

// first names up to n keys, and not those inside of one that it named.
func first(keys []toml.Key, n int) string {
	var names []string
	for _, k := range keys {
		name := k.String()
		if len(names) == 0 || !strings.HasPrefix(name, names[len(names)-1]+".") {
			names = append(names, name)
		}
	}
	if more := len(names) - n; more > 0 {
		names = append(names[:n], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

const (
	maxProblems = 20 // that an error tells
	maxText     = 1 << 20
	// maxNesting is how many brackets may be open at once, and how many parts a
	// key may have. No scenario needs half of it, and time and memory of the
	// TOML decoder grow with the cube of it.
	maxNesting = 16
)

// checkText refuses what the TOML decoder would take too long for. It knows
// strings and comments, and leaves all other errors to the decoder.
func checkText(text []byte) error {
	if len(text) > maxText {
		return fmt.Errorf("has %d bytes, and a scenario has at most %d", len(text), maxText)
	}
	line, open, dots := 1, 0, 0
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '"', '\'':
			n := stringLength(text[i:])
			line += bytes.Count(text[i:i+n], []byte{'\n'})
			i += n
			continue
		case '#':
			n := bytes.IndexByte(text[i:], '\n')
			if n < 0 {
				return nil
			}
			i += n
			continue
		case '\n':
			line, dots = line+1, 0
		case '[', '{':
			open, dots = open+1, 0
		case ']', '}':
			open, dots = max(open-1, 0), 0
		case '=', ',':
			dots = 0
		case '.':
			dots++
		}
		if open > maxNesting || dots >= maxNesting {
			return fmt.Errorf("line %d: is nested more than %d deep", line, maxNesting)
		}
		i++
	}
	return nil
}

// stringLength returns the length of the TOML string at the beginning of text,
// quotes included. One that does not end ends with its line, or with the text
// if it may have several lines.
func stringLength(text []byte) int {
	quote := text[:1]
	if three := bytes.Repeat(quote, 3); bytes.HasPrefix(text, three) {
		quote = three
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case bytes.HasPrefix(text[i:], quote):
			end := i + len(quote)
			for len(quote) == 3 && end < min(i+5, len(text)) && text[end] == quote[0] {
				end++ // up to two quotes may stand before the last three
			}
			return end
		case text[i] == '\\' && quote[0] == '"':
			i++
		case text[i] == '\n' && len(quote) == 1:
			return i
		}
	}
	return len(text)
}
