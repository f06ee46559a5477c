package cli_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// finer are steps with times in nanoseconds, each extra later than that of the original.
type finer struct {
	trace.Steps
	extra trace.Ticks
}

func (f finer) Next(ctx context.Context) (*trace.Step, error) {
	step, err := f.Steps.Next(ctx)
	if err != nil {
		return nil, err
	}
	fine := *step
	scale := func(all []trace.Batch) (scaled []trace.Batch) {
		for _, b := range all {
			events := make([]trace.Event, len(b.Events))
			for i, e := range b.Events {
				e.Time = 1000*e.Time + f.extra
				events[i] = e
			}
			b.Events = events
			scaled = append(scaled, b)
		}
		return scaled
	}
	fine.Batches, fine.Readings = scale(step.Batches), scale(step.Readings)
	return &fine, nil
}

// silent shows no progress.
type silent struct{}

func (silent) Show(analyzer.ProgressReport) {}
func (silent) During(string) func()         { return func() {} }
func (silent) Clear()                       {}

// analyzeSimulation analyzes a simulated program in ticks of a unit.
func analyzeSimulation(t *testing.T, name string, unit trace.Unit, extra trace.Ticks) string {
	t.Helper()
	text, err := scenario.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	var inputs []analyzer.Input
	for _, of := range simulate.New(s).Streams() {
		inputs = append(inputs, analyzer.Input{
			Path: of.ProgramName() + ".bp", Program: of.Program(), Steps: func(*tally.Tally) (trace.Steps, error) {
				if unit == trace.Microsecond {
					return of, nil
				}
				return finer{of, extra}, nil
			},
		})
	}
	dir := filepath.Join(t.TempDir(), "run")
	cfg := analyzer.DefaultIn(unit)
	info := provdb.NewInfo("test", "test", map[string]string{"algorithm": string(cfg.Outlier.Algorithm)})
	if _, err := rundir.Analyze(t.Context(), &rundir.Config{Dir: dir, Database: true}, cfg, inputs, info, silent{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// similarAnswers compares JSON of two runs: numbers may differ by a share, because models have finer bins.
func similarAnswers(t *testing.T, what string, got, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
			return
		}
		for key, v := range want {
			switch key {
			case "score", "rarity", "chance", "bits": // depend on the bins of models
				continue
			case "windows", "here", "twin": // the width of windows is a power of two of ticks
				continue
			}
			similarAnswers(t, what+"."+key, g[key], v)
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
			return
		}
		for i, v := range want {
			similarAnswers(t, what, g[i], v)
		}
	case float64:
		if g, ok := got.(float64); !ok || math.Abs(g-want) > 0.1*math.Abs(want)+0.05 {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	case string:
		if g, ok := got.(string); !ok || rounded(g) != rounded(want) {
			t.Errorf("%s:\n got %v\nwant %v", what, got, want)
		}
	default:
		if got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
}

// rounded returns a text without numbers, whose last digits may differ.
func rounded(text string) string {
	return regexp.MustCompile(`[0-9][0-9.,]*`).ReplaceAllString(text, "#")
}

// A trace in nanoseconds has the same results as the same trace in microseconds.
func TestUnitDoesNotChangeResults(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	if tracetest.WithoutRace(t) {
		return
	}
	for _, name := range tracetest.Sample([]string{"burst", "slow-rank"}, 2) {
		t.Run(name, func(t *testing.T) {
			micros, nanos := analyzeSimulation(t, name, trace.Microsecond, 0), analyzeSimulation(t, name, trace.Nanosecond, 0)
			for _, args := range []string{
				"findings RUN --all --notes", "findings RUN 1", "ranks RUN", "top RUN", "anomalies RUN --limit 1000 --order time", "explain RUN",
				"anomalies RUN --min-lost 2ms --since 1s --until 6s --order time", "explain RUN --finding 1",
			} {
				var answers [2]any
				for i, dir := range []string{micros, nanos} {
					text := must(t, append(strings.Fields(strings.ReplaceAll(args, "RUN", dir)), "--format", "json")...)
					if err := json.Unmarshal([]byte(text), &answers[i]); err != nil {
						t.Fatalf("%s: %v", args, err)
					}
				}
				similarAnswers(t, args, answers[1], answers[0])
			}
			sql := "SELECT func, sum(lost_time) AS lost_us FROM anomalies GROUP BY func ORDER BY 1"
			for _, format := range []string{"table", "markdown"} {
				shown := must(t, "query", micros, sql, "--format", format)
				if !strings.Contains(shown, " ms") && !strings.Contains(shown, " s") {
					t.Errorf("no times in %s", shown)
				}
				same(t, "sums in SQL", must(t, "query", nanos, sql, "--format", format), shown)
			}
			worst := "SELECT event_id FROM anomalies ORDER BY lost_time DESC, event_id LIMIT 1"
			_, id, _ := strings.Cut(strings.TrimSpace(must(t, "query", micros, worst, "--format", "csv")), "\n")
			same(t, "calls around an event", must(t, "event", nanos, id, "--format", "csv"), must(t, "event", micros, id, "--format", "csv"))
			diff := must(t, "diff", micros, nanos, "--format", "json")
			var d struct {
				Exclusive [2]float64 `json:"exclusive_us"`
			}
			if err := json.Unmarshal([]byte(diff), &d); err != nil || d.Exclusive[0] == 0 || d.Exclusive[0] != d.Exclusive[1] {
				t.Errorf("the runs took %v us, %v", d.Exclusive, err)
			}
		})
	}
}

// A nanosecond is visible in all answers.
func TestNanosecondsAreKept(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	const extra = 7
	dir := analyzeSimulation(t, "burst", trace.Nanosecond, extra)
	var rows []struct {
		ID string `json:"event_id"`
	}
	if err := json.Unmarshal([]byte(must(t, "anomalies", dir, "--limit", "1", "--format", "json")), &rows); err != nil || len(rows) != 1 {
		t.Fatalf("%d anomalies, %v", len(rows), err)
	}
	var record struct {
		Tick  int64 `json:"tick_ns"`
		Entry int64 `json:"entry"`
	}
	err := json.Unmarshal([]byte(must(t, "event", dir, rows[0].ID, "--json")), &record)
	if err != nil || record.Tick != 1 || record.Entry%1000 != extra {
		t.Errorf("the record has %+v, %v", record, err)
	}
	var value []struct {
		Entry int64 `json:"entry"`
		Tick  int64 `json:"tick"`
	}
	sql := "SELECT min(entry) AS entry, max((info ->> 'tick_ns')::BIGINT) AS tick FROM anomalies a JOIN runs r ON r.run = a.run"
	err = json.Unmarshal([]byte(must(t, "query", dir, sql, "--format", "json")), &value)
	if err != nil || len(value) != 1 || value[0].Entry%1000 != extra || value[0].Tick != 1 {
		t.Errorf("SQL has %+v, %v", value, err)
	}
	path := filepath.Join(t.TempDir(), "trace.json")
	must(t, "export", dir, path, "--event", rows[0].ID, "--to", "chrome")
	text, err := os.ReadFile(path)
	if err != nil || !regexp.MustCompile(`"ts":\d+\.007,`).Match(text) {
		t.Errorf("no nanoseconds in %.300s, %v", text, err)
	}
}
