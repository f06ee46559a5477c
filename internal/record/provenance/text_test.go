package provenance_test

import (
	"testing"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestTextEscapesInvalidBytes(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got := provenance.Text(in)
		if got != want || !utf8.ValidString(got) || provenance.Text(got) != got {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	f("", "")
	f("void f<T>() 'x' \"y\" \\", "void f<T>() 'x' \"y\" \\")
	f("größe�", "größe�")
	f("a\xffb\x00c", `a\xffb\x00c`)
	f("\xe2\x82", `\xe2\x82`)
}
