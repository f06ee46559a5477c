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

// Parse parses and validates a scenario. Errors begin with name.
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
		return nil, fmt.Errorf("%s: unknown keys: %s (docs/scenarios.md lists all)", name, listKeys(unknown, 5))
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
		bad.add("%s: %d more errors", name, more)
	}
	return nil, bad.err()
}

// complete sets defaults that are not zero.
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

// withoutZone returns the start in UTC if the text has no offset. The decoder would use
// the local time zone, and runs would depend on the machine.
func withoutZone(start time.Time, text []byte) time.Time {
	var raw struct {
		Start any `toml:"start"`
	}
	if _, err := toml.Decode(string(text), &raw); err != nil {
		return start
	}
	t, ok := raw.Start.(time.Time)
	if !ok || !strings.HasSuffix(t.Location().String(), "-local") { // the decoder's name
		return start
	}
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// badType matches the decoder's error for a value of the wrong type. For a key of several
// tables it has the line of the last table, not of the wrong one.
var badType = regexp.MustCompile(`(?s)^toml: line (\d+) \(last key "(.*)"\): ` +
	`incompatible types: TOML value has type (.*); destination has type (.*)$`)

// explain shortens and corrects an error of the decoder.
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

// listKeys lists up to n keys, without those inside a listed one.
func listKeys(keys []toml.Key, n int) string {
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
	maxProblems = 20 // in an error
	maxText     = 1 << 20
	// maxNesting bounds the depth of brackets and braces, and the parts of a key. No
	// scenario needs half of it; time and memory of the decoder grow with its cube.
	maxNesting = 16
)

// checkText rejects text that the TOML decoder would take too long for. It skips strings
// and comments, and leaves all other errors to the decoder.
func checkText(text []byte) error {
	if len(text) > maxText {
		return fmt.Errorf("a scenario of %d bytes (at most %d)", len(text), maxText)
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
			return fmt.Errorf("line %d: nested more than %d deep", line, maxNesting)
		}
		i++
	}
	return nil
}

// stringLength returns the length of the TOML string at the start of text, including
// quotes. An unterminated string ends with its line, or a multi-line one with the text.
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
				end++ // up to two quotes may precede the last three
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
