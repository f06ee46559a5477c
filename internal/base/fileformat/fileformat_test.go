package fileformat_test

import (
	"errors"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
)

func TestCheckPrintsAdvice(t *testing.T) {
	format := fileformat.Format{Number: 5, Oldest: 3, Renew: "analyze the traces again"}
	f := func(number int, kind error, want string) {
		t.Helper()
		err := format.Check(number)
		if !errors.Is(err, kind) || fileformat.IsOther(err) != (kind != nil) {
			t.Errorf("format %d: got %v, want %v", number, err, kind)
		}
		if err != nil && err.Error() != want {
			t.Errorf("format %d:\n got %v\nwant %s", number, err, want)
		}
	}
	f(5, nil, "")
	f(6, fileformat.ErrNewer, "written by a newer chimbuko: it has format 6, this program reads format 5 (install a newer chimbuko)")
	for _, number := range []int{2, 0, -1} {
		if err := format.Check(number); !errors.Is(err, fileformat.ErrOlder) {
			t.Errorf("format %d: got %v", number, err)
		}
	}
	f(3, fileformat.ErrOlder,
		"written by an earlier chimbuko: it has format 3, this program reads format 5 (convert it with chimbuko upgrade RUN)")
	f(2, fileformat.ErrOlder, "written by an earlier chimbuko: it has format 2, this program reads format 5 (analyze the traces again)")
}

func TestCutHeadReadsNumber(t *testing.T) {
	f := func(data string, number int, rest string, ok bool) {
		t.Helper()
		n, r, is := fileformat.CutHead([]byte(data), "models ")
		if is != ok || ok && (n != number || string(r) != rest) {
			t.Errorf("%q: got %d, %q, %v", data, n, r, is)
		}
	}
	f("models 6\nx", 6, "\nx", true)
	f("models 12", 12, "", true)
	f("models 6, ticks", 6, ", ticks", true)
	f("models ", 0, "", false)
	f("models x", 0, "", false)
	f("model 6", 0, "", false)
	f("models 99999999999999999999999\n", 0, "", false)
	f("", 0, "", false)
}
