package scenario

import (
	"errors"
	"fmt"
)

// problems are all that is wrong, each with its place.
type problems []error

func (l *problems) add(format string, a ...any) { *l = append(*l, fmt.Errorf(format, a...)) }

// in adds what is wrong in a place: err, or each of the errors that it joins.
// nil adds nothing.
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
