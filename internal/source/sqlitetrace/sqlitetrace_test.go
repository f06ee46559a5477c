package sqlitetrace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/nsight"
	"github.com/chimbuko/chimbuko/internal/source/profile"
	"github.com/chimbuko/chimbuko/internal/source/rocpd"
	"github.com/chimbuko/chimbuko/internal/source/sqlitetrace"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
	"github.com/chimbuko/chimbuko/internal/testkit/sqlitetest"
)

var formats = []sqlitetrace.Format{nsight.Format, rocpd.Format}

func TestDatabasesWithoutTracesAreRejected(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ sql, want string }{
		"other": {"CREATE TABLE x (y INT)", "without the tables of Nsight Systems or rocpd"},
		"empty": {"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); CREATE TABLE TARGET_INFO_GPU (id INT)", "no calls, ranges or GPU activities"},
	} {
		path := filepath.Join(dir, name)
		sqlitetest.Write(t, path, c.sql)
		if _, err := sqlitetrace.Open(path, profile.Options{}, formats...); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want %s", err, c.want)
		}
		if sqlitetrace.IsTrace(path, formats...) != (name == "empty") {
			t.Errorf("%s: recognized is %v", name, sqlitetrace.IsTrace(path, formats...))
		}
	}
}

// samples returns small traces of all kinds.
func samples(tb testing.TB) map[string][]byte {
	tb.Helper()
	p := &sqlitetest.Program{Rank: 1, World: 2, Steps: 100}
	dir := tb.TempDir()
	all := make(map[string][]byte)
	for name, write := range writers {
		path := filepath.Join(dir, name)
		write(tb, path, p)
		b, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		all[name] = b
	}
	return all
}

var writers = map[string]func(tb testing.TB, path string, p *sqlitetest.Program){
	"nsight2": func(tb testing.TB, path string, p *sqlitetest.Program) {
		sqlitetest.Nsight(tb, path, sqlitetest.Nsight2, p)
	},
	"nsight3": func(tb testing.TB, path string, p *sqlitetest.Program) {
		sqlitetest.Nsight(tb, path, sqlitetest.Nsight3, p)
	},
	"rocpd-inline": func(tb testing.TB, path string, p *sqlitetest.Program) {
		sqlitetest.Rocpd(tb, path, sqlitetest.RocpdInline, p)
	},
	"rocpd-tracks": func(tb testing.TB, path string, p *sqlitetest.Program) {
		sqlitetest.Rocpd(tb, path, sqlitetest.RocpdTracks, p)
	},
}

func TestDamagedTracesAreReadUpToAnError(t *testing.T) {
	for name, whole := range samples(t) {
		path := filepath.Join(t.TempDir(), name)
		write := func(b []byte) {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(whole)
		all := len(sqlitetest.Read(t, sqlitetest.Open(t, path, formats...)[0]).Lines)
		broken := slices.Clone(whole)
		clear(broken[len(broken)*4/5/4096*4096:][:4096])
		write(broken)
		f := sqlitetest.Open(t, path, formats...)[0]
		c := sqlitetest.Read(t, f)
		if len(c.Lines) == 0 || len(c.Lines) >= all || c.Err == nil || !strings.Contains(c.Err.Error(), path+": byte ") ||
			c.Tally.Count(tally.PartUnreadable) == 0 || len(f.Gaps) == 0 {
			t.Errorf("%s: %d of %d events, error %v, counts %v", name, len(c.Lines), all, c.Err, c.Tally.Notes())
		}
		write(whole[:len(whole)*2/3])
		files, err := sqlitetrace.Open(path, profile.Options{}, formats...)
		if err == nil {
			err = sqlitetest.Read(t, files[0]).Err
			files[0].Close()
		}
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error of a cut file is %v", name, err)
		}
	}
}

// check reads a damaged trace and returns the number of its events, and whether losses were reported. Times must not decrease
// on a thread, and calls must be nested.
func check(t *testing.T, path, temp string) (events int, reported bool, err error) {
	files, err := sqlitetrace.Open(path, profile.Options{MaxEvents: 100, Temp: temp}, formats...)
	if err != nil {
		if !strings.Contains(err.Error(), path) {
			return 0, true, fmt.Errorf("the error names no file: %w", err)
		}
		return 0, true, nil
	}
	for _, f := range files {
		defer f.Close()
		depth := make(map[string]int)
		last := make(map[string]int64)
		c := sqlitetest.Read(t, f)
		reported = reported || c.Err != nil || len(c.Tally.Notes()) > 0
		events += len(c.Lines)
		for _, line := range c.Lines {
			var thread, kind string
			var at int64
			if _, err := fmt.Sscan(line, &thread, &at, &kind); err != nil {
				return 0, false, err
			}
			if at < last[thread] {
				return 0, false, fmt.Errorf("%s after %d", line, last[thread])
			}
			last[thread] = at
			switch kind {
			case "enter":
				depth[thread]++
			case "exit":
				depth[thread]--
			}
			if depth[thread] < 0 {
				return 0, false, fmt.Errorf("%s without enter", line)
			}
		}
	}
	return events, reported, nil
}

// TestDamagedTraces reads mutations of traces of all generations. A file that is cut is reported, or has all events.
func TestDamagedTraces(t *testing.T) {
	for name, whole := range samples(t) {
		t.Run(name, func(t *testing.T) {
			dir, temp := t.TempDir(), t.TempDir()
			path := filepath.Join(dir, name)
			all := -1
			damage.Run(t, damage.Format{Files: damage.Files{name: whole}, Read: func(files damage.Files) error {
				if err := files.Write(dir); err != nil {
					return err
				}
				events, reported, err := check(t, path, temp)
				if all < 0 { // undamaged
					all = events
				}
				if err == nil && events < all && !reported && len(files[name]) < len(whole) {
					err = fmt.Errorf("%d of %d events without a reported damage", events, all)
				}
				return err
			}})
		})
	}
}

func FuzzOpen(f *testing.F) {
	for _, whole := range samples(f) {
		f.Add(whole)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "x.sqlite")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := check(t, path, t.TempDir()); err != nil {
			t.Error(err)
		}
	})
}
