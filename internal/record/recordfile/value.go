package recordfile

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// value is a well-formed JSON value without surrounding space.
type value struct {
	text []byte
	at   int64 // offset in the file
}

// fault is an error in the value at an offset of the file.
type fault struct {
	at   int64
	text string
}

func (f *fault) Error() string { return f.text }

func (v value) wrong(format string, args ...any) error {
	return &fault{v.at, fmt.Sprintf(format, args...)}
}

// excerpt returns the beginning of the value, for errors.
func (v value) excerpt() string {
	const most = 40
	if len(v.text) > most {
		return fmt.Sprintf("%q…", v.text[:most])
	}
	return fmt.Sprintf("%q", v.text)
}

func (v value) isNull() bool   { return v.text[0] == 'n' }
func (v value) isObject() bool { return v.text[0] == '{' }
func (v value) isArray() bool  { return v.text[0] == '[' }
func (v value) isString() bool { return v.text[0] == '"' }

func (v value) sub(from, to int) value { return value{v.text[from:to], v.at + int64(from)} }

// members yields the names and values of an object. Names are strings.
func (v value) members() iter.Seq2[value, value] {
	return func(yield func(name, member value) bool) {
		for i := skipSpace(v.text, 1); v.text[i] != '}'; {
			end := valueEnd(v.text, i)
			name := v.sub(i, end)
			i = skipSpace(v.text, skipSpace(v.text, end)+1) // after the colon
			end = valueEnd(v.text, i)
			if !yield(name, v.sub(i, end)) {
				return
			}
			i = skipComma(v.text, end)
		}
	}
}

// elements yields the elements of an array.
func (v value) elements() iter.Seq[value] {
	return func(yield func(value) bool) {
		for i := skipSpace(v.text, 1); v.text[i] != ']'; {
			end := valueEnd(v.text, i)
			if !yield(v.sub(i, end)) {
				return
			}
			i = skipComma(v.text, end)
		}
	}
}

func skipSpace(text []byte, i int) int {
	for text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r' {
		i++
	}
	return i
}

func skipComma(text []byte, i int) int {
	i = skipSpace(text, i)
	if text[i] == ',' {
		i = skipSpace(text, i+1)
	}
	return i
}

// valueEnd returns the end of the value that begins at i.
func valueEnd(text []byte, i int) int {
	switch text[i] {
	case '"':
		return stringEnd(text, i)
	case '{', '[':
		for depth := 0; ; {
			switch text[i] {
			case '"':
				i = stringEnd(text, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			i++
			if depth == 0 {
				return i
			}
		}
	}
	if n := bytes.IndexAny(text[i:], ",]} \n\t\r"); n >= 0 {
		return i + n
	}
	return len(text)
}

func stringEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// unquote decodes the text of a string without its quotes. It keeps invalid UTF-8. It
// escapes half of a surrogate pair: as \xNN if it is Python's form of an invalid byte.
func unquote(text []byte) string {
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text)
	}
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b = append(b, text[i])
			continue
		}
		i++
		switch text[i] {
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			var n int
			b, n = appendEscaped(b, text[i+1:])
			i += n
		default: // quote, slash, backslash
			b = append(b, text[i])
		}
	}
	return string(b)
}

// appendEscaped appends the character of an escape \u and returns the length of the digits,
// which begin text, and of a second escape.
func appendEscaped(b, text []byte) ([]byte, int) {
	const digits = 4
	r := hex4(text)
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(b, r), digits
	}
	if len(text) >= 2*digits+2 && text[4] == '\\' && text[5] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(text[6:])); pair != utf8.RuneError {
			return utf8.AppendRune(b, pair), 2*digits + 2
		}
	}
	if r >= 0xdc80 && r <= 0xdcff {
		return fmt.Appendf(b, `\x%02x`, byte(r)), digits
	}
	return fmt.Appendf(b, `\u%04x`, r), digits
}

func hex4(text []byte) rune {
	n, _ := strconv.ParseUint(string(text[:4]), 16, 16) // well formed
	return rune(n)
}

// integer is an integer of up to 64 bits and a sign.
type integer struct {
	abs uint64
	neg bool // false for 0
}

// exactFloat is the limit up to which float64 represents all integers.
const exactFloat = 1 << 53

// integer reads an integer. It may have a fraction of zeros or, as far as float64 is exact, an
// exponent.
func (v value) integer() (w integer, err error) {
	text := string(v.text)
	if text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return w, v.wrong("%s is not a number", v.excerpt())
	}
	if bytes.ContainsAny(v.text, "eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > exactFloat {
			return w, v.wrong("%s is not an exactly representable integer", v.excerpt())
		}
		text = strconv.FormatInt(int64(f), 10)
	} else if before, fraction, ok := bytes.Cut(v.text, []byte(".")); ok {
		if len(bytes.Trim(fraction, "0")) > 0 {
			return w, v.wrong("%s is not an integer", v.excerpt())
		}
		text = string(before)
	}
	if text[0] == '-' {
		w.neg, text = true, text[1:]
	}
	if w.abs, err = strconv.ParseUint(text, 10, 64); err != nil {
		return w, v.wrong("%s does not fit into 64 bits", v.excerpt())
	}
	w.neg = w.neg && w.abs != 0
	return w, nil
}

// float reads a number.
func (v value) float() (float64, error) {
	f, err := strconv.ParseFloat(string(v.text), 64)
	if err != nil {
		return 0, v.wrong("%s is out of range", v.excerpt())
	}
	return f, nil
}
