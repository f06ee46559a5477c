package truth

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// line is any line of the exact format.
type line map[string]json.RawMessage

// has reports whether a field has a value.
func (l line) has(name string) bool {
	value, ok := l[name]
	return ok && string(value) != "null"
}

// decode returns the trouble or the call of a line.
func decode(text []byte) (*Trouble, *Call, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, nil, fmt.Errorf("line is not a JSON object: %w", err)
	}
	if l.has("call") {
		c := new(Call)
		err := l.fill(text, c)
		if err == nil {
			err = c.check()
		}
		return nil, c, err
	}
	t := new(Trouble)
	err := l.fill(text, t)
	if err == nil {
		err = t.check()
	}
	return t, nil, err
}

// fill decodes the text of the line. It fails if a field of v without omitempty has no
// value.
func (l line) fill(text []byte, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("%q cannot be a %s", wrong.Field, wrong.Value)
		}
		return err
	}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if option == "" && !l.has(name) {
			return fmt.Errorf("%q is missing", name)
		}
	}
	return nil
}

func (t *Trouble) check() error {
	switch {
	case t.Name == "":
		return errors.New(`"trouble" is empty`)
	case t.Kind == "":
		return errors.New(`"kind" is empty`)
	case t.To != 0 && t.To < t.From:
		return errors.New("the trouble ends before it begins")
	}
	return nil
}

func (c *Call) check() error {
	switch {
	case c.Trouble == "":
		return errors.New(`"trouble" is empty`)
	case c.Role != Cause && c.Role != Victim:
		return fmt.Errorf("unknown role %q (want cause or victim)", c.Role)
	case c.Exit < c.Entry:
		return errors.New("the call ends before it begins")
	}
	return nil
}
