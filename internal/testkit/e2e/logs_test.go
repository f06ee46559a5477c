package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/online/supervise"
)

// TestStragglerInGrowingLogs follows logs of NCCL Inspector of a simulated training job with a rank that is late. It is named
// while the job runs, and at the end everything is as in an analysis of the finished logs.
func TestStragglerInGrowingLogs(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"inspector", "inspector-verbose"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			must(t, "simulate", "--scenario", "hidden-wait", "--format", format, "--out", s.path("logs"))
			logs := newGrowing(t, s.path("logs"), s.path("live"))
			logs.write(0.7)
			serve := s.serve("--ranks", fmt.Sprint(len(logs.files)), "--stats-period", "200ms")
			leash, end, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer end.Close() //nolint:errcheck // of a test
			ad := startWith(t, leash, "ad", "--leash", "--until-notified", "--linger", "1s", "--run-dir", s.run, "--exchange", "100ms", s.path("live"))
			_ = leash.Close() // the process has it
			eventually(t, "the rank is named while the job runs", func() error {
				if found, _, _ := run(t, "findings", s.run); !strings.Contains(found, "Rank 2 (node00) computes") {
					return fmt.Errorf("findings are\n%s", found)
				}
				return nil
			})
			logs.write(0.9)
			logs.write(1)
			if _, err := fmt.Fprintln(end, supervise.ProgramEnded); err != nil {
				t.Fatal(err)
			}
			succeed(ad, serve)
			must(t, "analyze", s.path("logs"), "--out", s.path("offline"))
			for _, query := range []string{"findings", "ranks", "anomalies"} {
				online, offline := must(t, query, s.run, "--format", "json"), must(t, query, s.path("offline"), "--format", "json")
				if online != offline {
					t.Errorf("%s online\n%s\noffline\n%s", query, online, offline)
				}
			}
		})
	}
}

// growing are copies of files that grow.
type growing struct {
	t     testing.TB
	files []*os.File
	texts [][]byte
	sizes []int
}

func newGrowing(t testing.TB, from, to string) *growing {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(from, "*.log"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no logs", err)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	g := &growing{t: t, sizes: make([]int, len(paths))}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Create(filepath.Join(to, filepath.Base(path)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		g.files, g.texts = append(g.files, file), append(g.texts, text)
	}
	return g
}

// write makes all files this share of their size, which may end within a line.
func (g *growing) write(share float64) {
	g.t.Helper()
	for i, file := range g.files {
		size := int(share * float64(len(g.texts[i])))
		if _, err := file.Write(g.texts[i][g.sizes[i]:size]); err != nil {
			g.t.Fatal(err)
		}
		g.sizes[i] = size
	}
}
