package truth

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// line is any line of the exact format. Fields that it does not have are nil.
type line struct {
	Event     *string        `json:"call"`
	Trouble   *string        `json:"trouble"`
	Kind      *string        `json:"kind"`
	Each      *bool          `json:"each"`
	Role      *Role          `json:"role"`
	Program   *trace.Program `json:"program"`
	Hosts     *[]string      `json:"hosts"`
	Ranks     *[]trace.Rank  `json:"ranks"`
	Functions *[]string      `json:"functions"`
	From      *trace.Micros  `json:"from_us"`
	To        *trace.Micros  `json:"to_us"`
	Text      *string        `json:"text"`
	Rank      *trace.Rank    `json:"rank"`
	Thread    *trace.Thread  `json:"thread"`
	Function  *string        `json:"function"`
	Entry     *trace.Micros  `json:"entry_us"`
	Exit      *trace.Micros  `json:"exit_us"`
	Injected  *trace.Micros  `json:"injected_us"`
	Culprit   *trace.Rank    `json:"culprit"`
	Minor     bool           `json:"minor"`
}

// decode returns the trouble or the call of a line.
func decode(text []byte) (*Trouble, *Call, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return nil, nil, fmt.Errorf("%q cannot be a %s", wrong.Field, wrong.Value)
		}
		return nil, nil, fmt.Errorf("line is not a JSON object: %w", err)
	}
	if l.Event != nil {
		c, err := l.call()
		return nil, c, err
	}
	t, err := l.trouble()
	return t, nil, err
}

// required returns *p. If p is nil, it sets *err, unless that is set already.
func required[T any](err *error, name string, p *T) (v T) {
	if p != nil {
		return *p
	}
	if *err == nil {
		*err = fmt.Errorf("%q is missing", name)
	}
	return v
}

func (l *line) trouble() (*Trouble, error) {
	var err error
	t := &Trouble{
		Name: required(&err, "trouble", l.Trouble), Kind: required(&err, "kind", l.Kind), Each: required(&err, "each", l.Each),
		Program: required(&err, "program", l.Program), Hosts: required(&err, "hosts", l.Hosts), Ranks: required(&err, "ranks", l.Ranks),
		Functions: required(&err, "functions", l.Functions), From: required(&err, "from_us", l.From), To: required(&err, "to_us", l.To),
		Text: required(&err, "text", l.Text),
	}
	switch {
	case err != nil:
	case t.Name == "":
		err = errors.New(`"trouble" is empty`)
	case t.Kind == "":
		err = errors.New(`"kind" is empty`)
	case t.To != 0 && t.To < t.From:
		err = errors.New("the trouble ends before it begins")
	}
	return t, err
}

func (l *line) call() (*Call, error) {
	var err error
	c := &Call{
		Event: required(&err, "call", l.Event), Trouble: required(&err, "trouble", l.Trouble), Role: required(&err, "role", l.Role),
		Program: required(&err, "program", l.Program), Rank: required(&err, "rank", l.Rank), Thread: required(&err, "thread", l.Thread),
		Function: required(&err, "function", l.Function), Entry: required(&err, "entry_us", l.Entry), Exit: required(&err, "exit_us", l.Exit),
		Injected: required(&err, "injected_us", l.Injected), Culprit: l.Culprit, Minor: l.Minor,
	}
	switch {
	case err != nil:
	case c.Trouble == "":
		err = errors.New(`"trouble" is empty`)
	case c.Role != Cause && c.Role != Victim:
		err = fmt.Errorf("unknown role %q (want cause or victim)", c.Role)
	case c.Exit < c.Entry:
		err = errors.New("the call ends before it begins")
	}
	return c, err
}
