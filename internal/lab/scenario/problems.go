package scenario

import (
	"errors"
	"fmt"
)

// problems are errors, each with its place.
type problems []error

func (l *problems) add(format string, a ...any) { *l = append(*l, fmt.Errorf(format, a...)) }

// in adds err, or each of the errors that it joins, with its place. It ignores nil.
func (l *problems) in(place string, err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			l.in(place, e)
		}
		return
	}
	l.add("%s: %w", place, err)
}

func (l problems) err() error { return errors.Join(l...) }
