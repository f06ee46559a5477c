// Package tracetest provides recorded traces for tests: small ones from testdata, large
// ones from archives beside the repository.
package tracetest

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// root returns the directory of the repository: the one with go.mod above the test's.
func root() string {
	dir := "."
	for range 8 {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Join("..", dir)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		panic(err)
	}
	return abs
}

// Root returns the path of a file in the repository.
func Root(name ...string) string { return filepath.Join(append([]string{root()}, name...)...) }

// SkipShort skips the test with -short, for example because it "starts processes".
func SkipShort(tb testing.TB, reason string) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short: " + reason)
	}
}

// Sample returns all cases, or with -short only every nth, beginning with the first.
func Sample[T any](cases []T, n int) []T {
	if !testing.Short() {
		return cases
	}
	var some []T
	for i := 0; i < len(cases); i += n {
		some = append(some, cases[i])
	}
	return some
}

// Cases returns how many cases a test has: all, or with -short the second number.
func Cases[N int | uint64](all, short N) N {
	if testing.Short() {
		return short
	}
	return all
}

// Recorded returns the datasets of a run in testdata/traces.
func Recorded(tb testing.TB, run string) []string {
	tb.Helper()
	return datasets(tb, Root("testdata", "traces", run))
}

// Shared returns the path of a file in ../shared, or skips the test if it is missing.
func Shared(tb testing.TB, name ...string) string {
	tb.Helper()
	path := filepath.Join(append([]string{root(), "..", "shared"}, name...)...)
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("SKIP: ../shared/%s is missing", filepath.Join(name...))
	}
	return path
}

// Large returns the datasets of a run from its archive in ../shared/traces, or skips the
// test if it is missing.
func Large(tb testing.TB, run string) []string {
	tb.Helper()
	return datasets(tb, Unpack(tb, Shared(tb, "traces", run+".tar.zst"), run))
}

// Kineto returns a trace of PyTorch's profiler from ../shared/traces/kineto: the path of
// NAME.json.gz, or the directory with the files of NAME.tar. It skips the test if the trace
// is missing.
func Kineto(tb testing.TB, name string) string {
	tb.Helper()
	if _, err := os.Stat(filepath.Join(root(), "..", "shared", "traces", "kineto", name+".tar")); err != nil {
		return Shared(tb, "traces", "kineto", name+".json.gz")
	}
	dir := Unpack(tb, Shared(tb, "traces", "kineto", name+".tar"), "")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		tb.Fatalf("%s has %d entries, want one directory: %v", dir, len(entries), err)
	}
	return filepath.Join(dir, entries[0].Name())
}

// Capture returns a packet capture of a stream in testdata/sst.
func Capture(tb testing.TB, name string) []byte {
	tb.Helper()
	f, err := os.Open(Root("testdata", "sst", name+".pcap.zst"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read from: nothing can be lost
	z, err := zstd.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	defer z.Close()
	b, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func datasets(tb testing.TB, dir string) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.bp"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no datasets in %s", dir)
	}
	return paths
}

// Unpack unpacks an archive into a directory that is kept for later tests, and returns the
// path of name in it.
func Unpack(tb testing.TB, archive, name string) string {
	tb.Helper()
	info, err := os.Stat(archive)
	if err != nil {
		tb.Fatal(err)
	}
	id := fmt.Sprintf("chimbuko-%s-%d-%d", filepath.Base(archive), info.Size(), info.ModTime().Unix())
	dir := filepath.Join(os.TempDir(), id) //nolint:usetesting // kept for later tests on purpose
	if _, err := os.Stat(dir); err == nil {
		return filepath.Join(dir, name)
	}
	// Tests of several packages run at once: unpack elsewhere, then rename.
	aside, err := os.MkdirTemp("", id+"-") //nolint:usetesting // kept for later tests on purpose
	if err != nil {
		tb.Fatal(err)
	}
	if err := untar(archive, aside); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(aside, dir); err != nil {
		if !errors.Is(err, fs.ErrExist) {
			tb.Fatal(err)
		}
		_ = os.RemoveAll(aside) // another test has unpacked it
	}
	return filepath.Join(dir, name)
}

func untar(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read from: nothing can be lost
	var in io.Reader = f
	if filepath.Ext(archive) == ".zst" {
		z, err := zstd.NewReader(f)
		if err != nil {
			return err
		}
		defer z.Close()
		in = z
	}
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("%s: %q is outside the directory", archive, h.Name)
		}
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = write(path, r)
		}
		if err != nil {
			return err
		}
	}
}

func write(path string, r io.Reader) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// Copy copies a dataset into a temporary directory, where the test may damage it, and
// returns its path.
func Copy(tb testing.TB, dataset string) string {
	tb.Helper()
	to := filepath.Join(tb.TempDir(), filepath.Base(dataset))
	if err := os.CopyFS(to, os.DirFS(dataset)); err != nil {
		tb.Fatal(err)
	}
	return to
}
