// Package fileformat compares the format numbers of files and stores with those that this program reads.
package fileformat

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Errors that Check wraps.
var (
	ErrNewer = errors.New("written by a newer chimbuko")
	ErrOlder = errors.New("written by an earlier chimbuko")
)

// Format is the format of a file or store that has its number in it.
type Format struct {
	Number int    // that this program writes and reads
	Oldest int    // oldest format that chimbuko upgrade converts; Number if none
	Renew  string // how to replace earlier ones: "analyze the traces again"
}

// Check returns nil for the number of the format. The error for another number states the remedy; callers add the
// file.
func (f Format) Check(number int) error {
	var err error
	hint := f.Renew
	switch {
	case number == f.Number:
		return nil
	case number > f.Number:
		err, hint = ErrNewer, "install a newer chimbuko"
	default:
		if err = ErrOlder; f.Converts(number) {
			hint = "convert it with chimbuko upgrade RUN"
		}
	}
	return fmt.Errorf("%w: it has format %d, this program reads format %d (%s)", err, number, f.Number, hint)
}

// Converts reports whether chimbuko upgrade converts data of an earlier number.
func (f Format) Converts(number int) bool { return f.Oldest <= number && number < f.Number }

// Steps returns those of steps that convert data of a number. The last of steps converts to f.Number, the one before to its
// predecessor, and so on.
func Steps[S any](f Format, steps []S, number int) []S { return steps[len(steps)-(f.Number-number):] }

// IsOther reports whether err is due to a format number that this program does not read.
func IsOther(err error) bool { return errors.Is(err, ErrNewer) || errors.Is(err, ErrOlder) }

// CutHead splits data that begin with a text and a number, such as "chimbuko models 6". It returns false if they do not.
func CutHead(data []byte, text string) (number int, rest []byte, ok bool) {
	data, ok = bytes.CutPrefix(data, []byte(text))
	digits := 0
	for digits < len(data) && '0' <= data[digits] && data[digits] <= '9' {
		digits++
	}
	number, err := strconv.Atoi(string(data[:digits]))
	return number, data[digits:], ok && err == nil
}
