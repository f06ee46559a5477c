package sst

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// repeated serves the recorded bytes of a writer to each of several readers in turn, and returns
// the contact file.
func repeated(t *testing.T, recorded []byte) string {
	t.Helper()
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = c.Write(recorded) }() // the reader may leave early
			_, _ = io.Copy(io.Discard, c)            // until then
			_ = c.Close()
		}
	}()
	return writeContact(t, contact{writer: 0x1234, address: addressOf(l, 0)})
}

// readSaving reads up to n steps, and returns the restored attributes and the others.
func readSaving(t *testing.T, contactFile string, n int) (restored, received []string, err error) {
	t.Helper()
	opt := Default()
	opt.Save = true
	opt.Unsaved = func(err error) { t.Error(err) }
	r, err := Open(contactFile, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // never fails
	for range n {
		s, err := r.Next(t.Context())
		if err != nil {
			return restored, received, err
		}
		list := &received
		if s.Restored {
			list = &restored
			if len(s.Variables) > 0 {
				t.Errorf("the restored step %d has %d variables", s.Index, len(s.Variables))
			}
		}
		for i := range s.Attributes {
			*list = append(*list, line(&s.Attributes[i]))
		}
	}
	return restored, received, nil
}

func line(a *bp.Attribute) string { return a.Name + "=" + a.Text() }

func TestNextReaderOfStreamHasItsAttributes(t *testing.T) {
	path := repeated(t, recorded(t, "tau-1rank").writer)
	restored, saved, err := readSaving(t, path, 1)
	if err != nil || len(restored) > 0 || len(saved) == 0 {
		t.Fatalf("the first reader restored %d attributes and received %d: %v", len(restored), len(saved), err)
	}
	file, err := os.ReadFile(path + SavedSuffix)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, content []byte, want int) {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path+SavedSuffix, content, 0o644); err != nil {
				t.Fatal(err)
			}
			restored, received, err := readSaving(t, path, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(restored) != want {
				t.Errorf("restored %d attributes, want %d", len(restored), want)
			}
			if want == 0 {
				return
			}
			for _, a := range received {
				for _, b := range restored {
					if a == b {
						t.Errorf("%q is new although it was restored", a)
					}
				}
			}
		})
	}
	check("complete file", file, len(saved))
	check("file with an incomplete step", append(slices.Clip(file), file[len(file)-9:]...), len(saved))
	check("truncated file", file[:len(file)-1], 0)
	check("file of another stream", append([]byte{file[0], file[1], file[2], file[3], 0}, file[5:]...), 0)
	check("empty file", nil, 0)
	if _, _, err := readSaving(t, path, 1<<30); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
	if _, err := os.Stat(path + SavedSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file remains after the end of the stream: %v", err)
	}
}

func TestStreamIsReadIfAttributesCannotBeSaved(t *testing.T) {
	path := repeated(t, recorded(t, "tau-1rank").writer)
	if err := os.Mkdir(path+SavedSuffix, 0o755); err != nil {
		t.Fatal(err)
	}
	failed := false
	opt := Default()
	opt.Save, opt.Unsaved = true, func(error) { failed = true }
	r, err := Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // never fails
	if s, err := r.Next(t.Context()); err != nil || len(s.Attributes) == 0 || !failed {
		t.Errorf("read a step: %v; reported that its attributes are not saved: %v", err, failed)
	}
}
