package e2e

import (
	"encoding/json"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// summary is the output of an analyzer with --json.
type summary struct {
	Reading float64 `json:"reading_seconds"`
	Seconds float64 `json:"seconds"`
	Events  int64   `json:"events"`
	Records int64   `json:"records_sent"`
}

func summaryOf(ad *process) (s summary) {
	ad.t.Helper()
	ad.succeed()
	if err := json.Unmarshal([]byte(ad.stdout.String()), &s); err != nil {
		ad.t.Fatalf("%v in %s", err, ad.stdout.String())
	}
	return s
}

func TestAnalyzerReadsAllTracesWithoutServices(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	succeed(s.replay(r, "max"))
	ad := s.ad("alone", s.path("live"), "--traces", "3", "--json")
	ad.awaitLog("this analyzer continues alone")
	ad.awaitLog("all traces have ended")
	serve := s.serve("--ranks", "3", "--save-model", s.path("model"))
	sum := summaryOf(ad)
	serve.succeed()
	if sum.Reading <= 0 || sum.Reading >= sum.Seconds || sum.Events != 3*70859 {
		t.Errorf("the summary is %+v", sum)
	}
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestAnalyzerGivesUpOnRequest(t *testing.T) {
	t.Parallel()
	r := recorded(t, "ring-BP5")
	s := newScene(t)
	succeed(s.replay(r, "max"))
	ad := s.ad("alone", s.path("live"), "--traces", "2", "--give-up", "300ms")
	if code := ad.wait(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	contains(t, ad.stderr.String(), "did not respond within 300ms", "repeat the command")
}

// reading is how long an analyzer of all ranks takes to read with services as they
// are: there, stopped, or not there at all.
func reading(b *testing.B, r recording, services string) float64 {
	b.Helper()
	s := newScene(b)
	var serve *process
	if services != "none" {
		serve = s.serve("--ranks", strconv.Itoa(len(r.traces)))
		s.services()
		s.joined(0)
	}
	if services == "stopped" {
		serve.signal(syscall.SIGSTOP)
	}
	ad := s.ad("all", r.dir(), "--traces", strconv.Itoa(len(r.traces)), "--json", "--exchange", "50ms")
	ad.awaitLog("all traces have ended")
	switch services {
	case "stopped":
		serve.signal(syscall.SIGCONT)
	case "none":
		serve = s.serve("--ranks", strconv.Itoa(len(r.traces)))
	}
	sum := summaryOf(ad)
	serve.succeed()
	if sum.Events < 6_900_000 {
		b.Fatalf("only %d events were read", sum.Events)
	}
	return sum.Reading
}

// BenchmarkNeverWaits compares how long reading takes while the services are
// stopped or not there with how long it takes with them, as medians of runs that
// take turns.
func BenchmarkNeverWaits(b *testing.B) {
	const runs = 5
	for _, name := range []string{"heat2d-large-BP5", "heat2d-large-BP4"} {
		b.Run(name, func(b *testing.B) {
			r := large(b, name)
			for b.Loop() {
				times := map[string][]float64{}
				for range runs {
					for _, services := range []string{"there", "stopped", "none"} {
						times[services] = append(times[services], reading(b, r, services))
					}
				}
				for services, all := range times {
					slices.Sort(all)
					b.Logf("%s: %.3f", services, all)
				}
				there := times["there"][runs/2]
				b.ReportMetric(there, "s/read")
				b.ReportMetric(times["stopped"][runs/2]/there, "ratio-stopped")
				b.ReportMetric(times["none"][runs/2]/there, "ratio-none")
			}
		})
	}
}
