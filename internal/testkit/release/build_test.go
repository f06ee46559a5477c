package release

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

var distribution = flag.String("dist", "", "directory of the result of make dist to test, instead of that of scripts/dist --quick")

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

var temporary string // directory of all tests

func runTests(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "chimbuko-release-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary files
	temporary = dir
	return m.Run()
}

var errNoTools = errors.New("the tools of scripts/dist are missing; run scripts/test-setup")

// build returns the directory of a distribution.
var build = sync.OnceValues(func() (string, error) {
	if *distribution != "" {
		return *distribution, nil
	}
	if _, err := os.Stat(tracetest.Root(".venv", "dist", "tools")); err != nil {
		return "", errNoTools
	}
	if _, err := exec.LookPath("node"); err != nil {
		return "", fmt.Errorf("%w: %w", errNoTools, err)
	}
	dir := filepath.Join(temporary, "dist")
	cmd := exec.Command(tracetest.Root("scripts", "dist"), "--quick", dir)
	out, err := cmd.CombinedOutput()
	missing := strings.Contains(string(out), "SKIP: ") || strings.Contains(string(out), "cannot get the sources of DuckDB")
	if err != nil && !missing {
		return "", fmt.Errorf("scripts/dist --quick: %w\n%s", err, out)
	}
	if missing {
		return "", fmt.Errorf("%w: %s", errNoTools, out)
	}
	return dir, nil
})

// dist returns the directory of a distribution. Without its tools, it skips the test, or fails it with CI=true.
func dist(t *testing.T) string {
	t.Helper()
	tracetest.SkipShort(t, "builds a release")
	dir, err := build()
	switch {
	case errors.Is(err, errNoTools) && os.Getenv("CI") != "true":
		t.Skipf("SKIP: RELEASE NOT TESTED: %v", err)
	case err != nil:
		t.Fatal(err)
	}
	return dir
}

// An archive is one for an architecture, extracted.
type archive struct {
	name string // without the ending
	arch string
	root string
	mode map[string]os.FileMode // of files, by path in root
}

// archives returns the extracted archives of a distribution.
var archives = sync.OnceValues(func() ([]*archive, error) {
	dir, err := build()
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "chimbuko-*-linux-*.tar.gz"))
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(errors.New("no archives in "+dir), err)
	}
	var result []*archive
	for _, path := range paths {
		a, err := extract(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		result = append(result, a)
	}
	return result, nil
})

// eachArchive calls f for each archive of a distribution.
func eachArchive(t *testing.T, f func(t *testing.T, a *archive)) {
	t.Helper()
	dist(t)
	all, err := archives()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		t.Run(a.arch, func(t *testing.T) { f(t, a) })
	}
}

func extract(path string) (*archive, error) {
	name := strings.TrimSuffix(filepath.Base(path), ".tar.gz")
	a := &archive{name: name, root: filepath.Join(temporary, name), mode: map[string]os.FileMode{}}
	_, a.arch, _ = strings.Cut(name, "-linux-")
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	to, err := os.OpenRoot(temporary)
	if err != nil {
		return nil, err
	}
	defer to.Close() //nolint:errcheck // only a directory
	for entries := tar.NewReader(z); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return nil, err
		}
		inside, ok := strings.CutPrefix(h.Name, name+"/")
		if !ok || h.Uid != 0 || h.Gid != 0 {
			return nil, fmt.Errorf("%s of user %d: want files in %s of user 0", h.Name, h.Uid, name)
		}
		if h.Typeflag == tar.TypeDir {
			err = to.MkdirAll(h.Name, 0o755)
		} else {
			a.mode[inside] = h.FileInfo().Mode()
			err = write(to, h.Name, h.FileInfo().Mode(), entries)
		}
		if err != nil {
			return nil, err
		}
	}
}

func write(to *os.Root, name string, mode os.FileMode, content io.Reader) error {
	f, err := to.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// run returns the standard output of a command.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, stderr.String())
	}
	return string(out)
}

// read returns the content of a file of the repository.
func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(tracetest.Root(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// find returns the first group of a pattern in a file of the repository.
func find(t *testing.T, pattern string, path ...string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(read(t, path...))
	if m == nil {
		t.Fatalf("%s has no %s", filepath.Join(path...), pattern)
	}
	return m[1]
}
