package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// ranksOf lists the ranks of which something is stored, as program:rank.
func ranksOf(t testing.TB, run string) string {
	t.Helper()
	var rows []struct {
		PID, RID int
	}
	text := must(t, "query", run, "select distinct pid, rid from anomalies order by 1, 2", "--format", "json")
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	var all []string
	for _, r := range rows {
		all = append(all, fmt.Sprintf("%d:%d", r.PID, r.RID))
	}
	return strings.Join(all, " ")
}

func TestAnalyzerFlagsSelectRanks(t *testing.T) {
	t.Parallel()
	f := func(name, want string, ranks int, ads ...[]string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := threeRanks(t)
			s := newScene(t)
			all := []*process{s.serve("--ranks", fmt.Sprint(ranks))}
			succeed(s.replay(r, "max"))
			for i, args := range ads {
				args[0] = filepath.Join(s.path("live"), args[0])
				all = append(all, s.ad(fmt.Sprintf("n%d", i), args[0], args[1:]...))
			}
			succeed(all...)
			if got := ranksOf(t, s.run); got != want {
				t.Errorf("ranks %s are stored, want %s", got, want)
			}
		})
	}
	f("a directory", "0:0 0:1 0:2", 3, []string{"", "--linger", "100ms"})
	f("a pattern", "0:1 0:2", 2, []string{"*-[12].bp", "--traces", "2"})
	f("rank differs from the trace", "0:0 0:7", 2, []string{"*-0.bp", "--traces", "1"},
		[]string{"*-1.bp", "--traces", "1", "--override-rank", "7"})
	f("one rank alone", "0:2", 1, []string{"*-2.bp", "--traces", "1", "--rank", "2"})
	f("two programs of a workflow", "0:0 1:1", 2, []string{"*-[01].bp", "--traces", "2", "--program", "0=*-0.bp", "--program", "1=*-1.bp"})
}

func TestProgramsHaveSeparateModels(t *testing.T) {
	t.Parallel()
	r := recorded(t, "ring-BP5")
	s := newScene(t)
	programs := []string{"--program", "0=*/live/*", "--program", "3=*/other/*"}
	serve := s.serve("--ranks", "4", "--save-model", s.path("model"))
	s.services()
	ads := append(s.ads(r, programs...), s.ad("other", s.path("other"), append(programs, "--traces", "2")...))
	succeed(s.replay(r, "max"), start(t, "trace", "replay", r.dir(), s.path("other"), "--speed", "max"))
	succeed(append(ads, serve)...)
	got := outcomeOf(t, s.path("model"), s.run)
	offline := recording{"two programs", []string{s.path("live"), s.path("other")}}
	agree(t, got, offlineOf(t, offline, programs...))
}

func TestProgramsAreRecognizedByNames(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var r recording
	for name, from := range map[string]string{"sim": "ring-BP5", "viz": "ring-BP4"} {
		for rank, trace := range tracetest.Recorded(t, from) {
			to := filepath.Join(s.path("source"), fmt.Sprintf("tau-metrics-%s-%d.bp", name, rank))
			if err := os.CopyFS(to, os.DirFS(trace)); err != nil {
				t.Fatal(err)
			}
			r.traces = append(r.traces, to)
		}
	}
	serve := s.serve("--ranks", "4", "--save-model", s.path("model"))
	s.services()
	ad := s.ad("all", s.path("live"), "--traces", "4")
	succeed(s.replay(r, "max"), ad, serve)
	text := must(t, "query", s.run, "select pid, count(distinct rid) as ranks from metadata group by pid order by pid", "--format", "csv")
	if want := "pid,ranks\n0,2\n1,2\n"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestLaterTracesAreFound(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	serve := s.serve("--ranks", "3", "--save-model", s.path("model"))
	s.services()
	ad := s.ad("all", s.path("live/*.bp"), "--traces", "3")
	for i, trace := range r.traces {
		succeed(start(t, "trace", "replay", trace, s.path("live"), "--speed", "max"))
		s.steps(int64(15 * (i + 1)))
	}
	succeed(ad, serve)
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestSecondAnalyzerOfRankIsRejected(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	serve := s.serve("--ranks", "3", "--save-model", s.path("model"))
	s.services()
	first := s.ad("first", s.live(r.traces[0]))
	replay := s.replay(r, "0.7")
	s.steps(3)
	second := s.ad("second", s.live(r.traces[0])) // as if the first had been started again under another name
	first.awaitLog(`rank 0 of program 0 is also read by analyzer \"second\"`)
	replay.succeed()
	if code := first.wait(); code != 1 {
		t.Errorf("an analyzer whose rank is read by another has exit code %d", code)
	}
	succeed(second, s.ad("n1", s.live(r.traces[1])), s.ad("n2", s.live(r.traces[2])), serve)
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}
