package kineto_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/kineto"
	"github.com/chimbuko/chimbuko/internal/source/profile"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestDamagedTraces reads mutations of recorded traces. If the file is cut, fewer calls than before need an error or a count;
// whole events that are missing in the middle of it are not noticeable.
func TestDamagedTraces(t *testing.T) {
	for _, name := range []string{"cpu", "nccl", "mi300", "straggler"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := unzip(t, tracetest.Root("internal", "source", "chrome", "testdata", name+".json.gz"))
			dir, temp := t.TempDir(), t.TempDir()
			var all tally.Tally
			present := -1
			damage.Run(t, damage.Format{Files: damage.Files{"rank0.json": whole}, Seeds: []uint64{51639, 51846}, Read: func(files damage.Files) error {
				if err := files.Write(dir); err != nil {
					return err
				}
				var counts tally.Tally
				calls, reported, err := readDamaged(t, filepath.Join(dir, "rank0.json"), temp, &counts)
				if present < 0 { // undamaged
					all, present = counts, calls
				}
				if err == nil && calls < present && !reported && counts == all && isCut(whole, files["rank0.json"]) {
					err = fmt.Errorf("%d of %d calls without a reported loss", calls, present)
				}
				return err
			}})
		})
	}
}

// isCut reports whether a text is noticeably cut. A bare list may lack its closing bracket, so that it may end after each event.
func isCut(whole, text []byte) bool {
	ends := whole[0] == '[' && bytes.HasSuffix(bytes.TrimRight(text, ", \n"), []byte("}"))
	return bytes.HasPrefix(whole, text) && !ends
}

// readDamaged reads a file. It returns the number of calls, whether there was an error about the file, and an error if a rule
// was violated.
func readDamaged(t *testing.T, path, temp string, counts *tally.Tally) (calls int, reported bool, violation error) {
	files, err := kineto.Open(path, profile.Options{MaxEvents: 1000, Temp: temp})
	if err != nil {
		if !strings.Contains(err.Error(), path) {
			violation = fmt.Errorf("the error names no file: %w", err)
		}
		return 0, true, violation
	}
	for _, f := range files {
		n, end, err := checkSteps(t, f, counts)
		f.Close()
		if err != nil {
			return calls, reported, err
		}
		calls += n
		reported = reported || !errors.Is(end, io.EOF)
	}
	return calls, reported, nil
}

func unzip(t *testing.T, path string) []byte {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // only read from
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
