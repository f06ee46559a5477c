package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/online/node"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// TestStragglerInGrowingLogs follows logs of NCCL Inspector of a simulated training job with a rank that is late. It is named
// while the job runs, and its collective operations are compared; an analyzer that is killed continues. At the end
// everything is as in an analysis of the finished logs.
func TestStragglerInGrowingLogs(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"inspector", "inspector-verbose"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			must(t, "simulate", "--scenario", "hidden-wait", "--format", format, "--out", s.path("logs"))
			must(t, "analyze", s.path("logs"), "--out", s.path("offline"))
			want := collectivesOf(t, s.path("offline"))
			if len(want.Rows) == 0 {
				t.Fatal("the job has no collective operations")
			}
			logs := newGrowing(t, s.path("logs"), s.path("live"))
			logs.write(0.7)
			serve := s.serve("--ranks", fmt.Sprint(len(logs.files)), "--stats-period", "200ms")
			page := browse(t, s.services().Web+"/?token="+s.services().Secret)
			leash, end, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer end.Close() //nolint:errcheck // of a test
			follow := func() *process {
				return startWith(t, leash, "ad", "--leash", "--until-notified", "--linger", "1s", "--run-dir", s.run, "--node", "n0",
					"--exchange", "100ms", s.path("live"))
			}
			ad := follow()
			eventually(t, "the rank is named while the job runs", func() error {
				if found, _, _ := run(t, "findings", s.run); !strings.Contains(found, "Rank 2 (node00) computes") {
					return fmt.Errorf("findings are\n%s", found)
				}
				return nil
			})
			var early api.Collectives
			eventually(t, "the collective operations are compared while the job runs", func() error {
				early = collectivesOf(t, s.run)
				if got, all := executions(early.Rows), executions(want.Rows); 10*got < 6*all {
					return fmt.Errorf("%d executions of %d", got, all)
				}
				return nil
			})
			checkPrefix(t, early.Rows, want.Rows)
			ad.kill()
			ad = follow()
			_ = leash.Close() // the process has it
			logs.write(0.9)
			logs.write(1)
			eventually(t, "the page has all operations before the end", func() error {
				code, text := page.get("api/v1/runs/run/breakdown")
				if code != http.StatusOK {
					return fmt.Errorf("%d %s", code, text)
				}
				var got api.Breakdown
				if err := json.Unmarshal([]byte(text), &got); err != nil {
					return err
				}
				return sameCollectives(got.Collectives, want)
			})
			if o := fetch[api.Overview](page, "api/v1/runs/run/overview"); o.State != api.Running || !o.Collectives {
				t.Errorf("the overview is %+v", o)
			}
			if err := sameCollectives(collectivesOf(t, s.run), want); err != nil {
				t.Errorf("just before the end: %v", err)
			}
			if _, err := fmt.Fprintln(end, node.ProgramEnded); err != nil {
				t.Fatal(err)
			}
			succeed(ad, serve)
			for _, query := range []string{"findings", "ranks", "anomalies", "breakdown"} {
				online, offline := must(t, query, s.run, "--format", "json"), must(t, query, s.path("offline"), "--format", "json")
				if sinceFlagged.Replace(online) != sinceFlagged.Replace(offline) {
					t.Errorf("%s online\n%s\noffline\n%s", query, online, offline)
				}
			}
		})
	}
}

// sinceFlagged removes when anomalies were found: a restarted analyzer finds some again by models that have learned more.
var sinceFlagged = strings.NewReplacer(`"status":"promoted"`, `"status":"confirmed"`)

// collectivesOf returns the collective operations of a run, none if it has none yet.
func collectivesOf(t testing.TB, dir string) (c api.Collectives) {
	t.Helper()
	text, stderr, code := run(t, "breakdown", dir, "--collectives", "--format", "json")
	if code != 0 && strings.Contains(stderr, "no collective operations") {
		return c
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil || code != 0 {
		t.Fatalf("code %d: %v\n%s%s", code, err, text, stderr)
	}
	return c
}

// sameCollectives compares all but the counts of what was not compared, which only the end of a run has.
func sameCollectives(got, want api.Collectives) error {
	if !reflect.DeepEqual(got.Rows, want.Rows) || !reflect.DeepEqual(got.Clocks, want.Clocks) {
		return fmt.Errorf("%+v, want %+v", got, want)
	}
	return nil
}

// checkPrefix checks that a run has some of the executions of each operation of a longer run, and the same late rank.
func checkPrefix(t testing.TB, early, all []api.Collective) {
	t.Helper()
	key := func(c *api.Collective) string { return fmt.Sprint(c.Operation, c.Group, c.Bytes) }
	rows := make(map[string]*api.Collective)
	for i := range all {
		rows[key(&all[i])] = &all[i]
	}
	for i := range early {
		got, want := &early[i], rows[key(&early[i])]
		if want == nil || got.Calls > want.Calls || got.Seen != want.Seen || got.MaxLatency > want.MaxLatency || got.Bandwidth <= 0 ||
			got.MeanSkew == nil || got.Last[0].Rank != want.Last[0].Rank {
			t.Errorf("while the job runs: %+v, at its end %+v", got, want)
		}
	}
	if executions(early) >= executions(all) {
		t.Errorf("%d executions when 70 %% are written, %d at the end", executions(early), executions(all))
	}
}

// executions returns the number of executions of operations.
func executions(rows []api.Collective) (n int64) {
	for i := range rows {
		n += rows[i].Calls
	}
	return n
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
