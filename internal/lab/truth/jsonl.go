package truth

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// line has the fields of any line of the exact format.
type line map[string]present

// present is set if a field has a value.
type present bool

// UnmarshalJSON reports any value but null as present.
func (p *present) UnmarshalJSON(value []byte) error {
	*p = string(value) != "null"
	return nil
}

var callFields, troubleFields = required[Call](), required[Trouble]()

// required returns the names of the fields without omitempty.
func required[T any]() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, option, _ := strings.Cut(f.Tag.Get("json"), ","); option == "" {
			names = append(names, name)
		}
	}
	return names
}

// decoded is the content of a line: one of its fields.
type decoded struct {
	trouble  *Trouble
	call     *Call
	external *externalLine
}

// decode returns the content of a line.
func decode(text []byte) (decoded, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return decoded{}, fmt.Errorf("line is not a JSON object: %w", err)
	}
	if l["call"] {
		c := new(Call)
		err := l.fill(text, c, callFields)
		if err == nil {
			err = c.check()
		}
		return decoded{call: c}, err
	}
	if !l["trouble"] {
		if e, err := decodeExternal(text); e != nil || err != nil {
			return decoded{external: e}, err
		}
	}
	t := new(Trouble)
	err := l.fill(text, t, troubleFields)
	if err == nil {
		err = t.check()
	}
	return decoded{trouble: t}, err
}

// fieldError names the field of an error of encoding/json.
func fieldError(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%q cannot be a %s", wrong.Field, wrong.Value)
	}
	return err
}

// fill decodes the text of the line. It fails if a required field has no value.
func (l line) fill(text []byte, v any, required []string) error {
	if err := json.Unmarshal(text, v); err != nil {
		return fieldError(err)
	}
	for _, name := range required {
		if !l[name] {
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
