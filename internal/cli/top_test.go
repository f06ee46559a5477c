package cli_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// sum is what a group of anomalies lost, added up in Go.
type sum struct {
	pid, rid                   int64
	name, path, host, kind     string
	lost, anomalies, anomalous int64
	severity, score            float64
	first, last                int64
	ranks, hosts, lostNames    map[string]int64
	lostFuncs                  map[string]bool
}

// sumUp groups anomalies by a key.
func sumUp(records []kept, key func(k *kept) string) []*sum {
	groups := make(map[string]*sum)
	for i := range records {
		k := &records[i]
		s := groups[key(k)]
		if s == nil {
			s = &sum{
				pid: k.PID, rid: k.RID, name: k.Func, path: k.path(), host: k.Hostname, kind: k.Kind, first: k.Entry, last: k.Exit, score: k.Score,
				ranks: map[string]int64{}, hosts: map[string]int64{}, lostNames: map[string]int64{}, lostFuncs: map[string]bool{},
			}
			groups[key(k)] = s
		}
		s.lost += k.Lost
		s.anomalies++
		s.anomalous += k.Exclusive
		s.severity += k.Severity
		s.score = max(s.score, k.Score)
		s.first, s.last = min(s.first, k.Entry), max(s.last, k.Exit)
		s.ranks[fmt.Sprint(k.PID, k.RID)]++
		s.hosts[k.Hostname]++
		s.lostNames[k.Func] += k.Lost
		s.lostFuncs[fmt.Sprint(k.PID, k.Func)] = true
	}
	var all []*sum
	for _, s := range groups {
		all = append(all, s)
	}
	return all
}

// by orders sums as top does.
func by(sums []*sum, order string) []*sum {
	value := map[string]func(s *sum) float64{
		"lost":      func(s *sum) float64 { return float64(s.lost) },
		"anomalies": func(s *sum) float64 { return float64(s.anomalies) },
		"severity":  func(s *sum) float64 { return s.severity },
		"score":     func(s *sum) float64 { return s.score },
	}[order]
	slices.SortFunc(sums, func(a, b *sum) int {
		return cmp.Or(cmp.Compare(value(b), value(a)), cmp.Compare(b.lost, a.lost), cmp.Compare(a.pid, b.pid), cmp.Compare(a.path, b.path),
			cmp.Compare(a.name, b.name), cmp.Compare(a.rid, b.rid), cmp.Compare(a.host, b.host))
	})
	return sums
}

// common are the columns that all sums have.
func (s *sum) common(begin int64) object {
	return object{
		"lost_us": s.lost, "anomalies": s.anomalies, "severity": s.severity, "score": s.score,
		"first_s": float64(s.first-begin) / 1e6, "last_s": float64(s.last-begin) / 1e6,
	}
}

// moments are the numbers of a distribution as the files have them.
type moments struct{ Accumulate, Count, Mean, Stddev, Minimum, Maximum float64 }

// profileOf is the entry of a function in global/func_stats.json.
type profileOf struct {
	App     int64
	Name    string `json:"fname"`
	Profile struct {
		Exclusive moments `json:"exclusive_runtime"`
		Inclusive moments `json:"inclusive_runtime"`
	} `json:"runtime_profile"`
}

func profilesOf(t *testing.T, dir string) map[string]profileOf {
	t.Helper()
	var list []profileOf
	readJSON(t, filepath.Join(dir, "global", "func_stats.json"), &list)
	all := make(map[string]profileOf)
	for _, p := range list {
		all[fmt.Sprint(p.App, p.Name)] = p
	}
	return all
}

func TestTopMatchesSumsOfRecords(t *testing.T) {
	dir := analyzed(t, "workflow", workflowRun)
	all, begin, profiles := counting(recordsOf(t, dir)), beginOf(t, dir), profilesOf(t, dir)
	own := slices.DeleteFunc(slices.Clone(all), func(k kept) bool { return k.Kind == "comm-wait" })
	if len(own) == len(all) {
		t.Fatal("no waits")
	}
	for _, top := range []struct {
		by   string
		key  func(k *kept) string
		more func(s *sum, row object)
		pick func(s *sum) *sum // of what the order depends on
	}{
		{"function", func(k *kept) string { return fmt.Sprint(k.PID, k.Func) }, func(s *sum, row object) {
			p := profiles[fmt.Sprint(s.pid, s.name)].Profile.Exclusive
			row["calls"], row["anomalous_calls_percent"] = p.Count, 100*float64(s.anomalies)/p.Count
			row["anomalous_time_percent"] = float64(100*s.anomalous) / p.Accumulate
			row["ranks"], row["hosts"], row["program"], row["function"] = len(s.ranks), len(s.hosts), s.pid, s.name
		}, func(s *sum) *sum { s.path, s.rid, s.host = "", 0, ""; return s }},
		{"rank", func(k *kept) string { return fmt.Sprint(k.PID, k.RID) }, func(s *sum, row object) {
			row["functions"], row["program"], row["rank"], row["host"] = len(s.lostNames), s.pid, s.rid, s.host
		}, func(s *sum) *sum { s.path, s.name = "", ""; return s }},
		{"host", func(k *kept) string { return k.Hostname }, func(s *sum, row object) {
			row["ranks"], row["host"] = len(s.ranks), s.host
		}, func(s *sum) *sum { s.pid, s.path, s.name, s.rid = 0, "", "", 0; return s }},
		{"path", func(k *kept) string { return fmt.Sprint(k.PID, k.path()) }, func(s *sum, row object) {
			row["ranks"], row["program"], row["function"], row["call_path"] = len(s.ranks), s.pid, s.name, s.path
		}, func(s *sum) *sum { s.rid, s.host = 0, ""; return s }},
		{"kind", func(k *kept) string { return k.Kind }, func(s *sum, row object) {
			row["functions"], row["ranks"], row["kind"] = len(s.lostFuncs), len(s.ranks), s.kind
		}, func(s *sum) *sum { s.pid, s.path, s.name, s.rid, s.host = 0, "", "", 0, ""; return s }},
	} {
		for _, order := range tracetest.Sample([]string{"lost", "anomalies", "severity", "score"}, 4) {
			// Who waits is not the cause: waits count only on request.
			records, waits := own, "--waits=false"
			if order == "score" || top.by == "kind" {
				records, waits = all, fmt.Sprint("--waits=", top.by != "kind")
			}
			sums := sumUp(records, top.key)
			if len(sums) < 2 {
				t.Errorf("%s: only %d groups", top.by, len(sums))
			}
			for i := range sums {
				sums[i] = top.pick(sums[i])
			}
			var want []object
			for _, s := range by(sums, order) {
				row := s.common(begin)
				top.more(s, row)
				want = append(want, row)
			}
			got := queryJSON(t, "top", dir, "--by", top.by, "--order", order, "--limit", "1000", waits)
			for i, row := range got {
				// Of several that lost the same any may be called the worst.
				if worst, ok := row["worst_function"].(string); ok && i < len(sums) {
					for name, lost := range sums[i].lostNames {
						if lost > sums[i].lostNames[worst] {
							t.Errorf("rank %v: %s is the worst function, but %s lost more", row["rank"], worst, name)
						}
					}
					delete(row, "worst_function")
				}
			}
			same(t, "top --by "+top.by+" --order "+order, got, want)
		}
	}
}

func TestTopFiltersProgramAndRows(t *testing.T) {
	dir := analyzed(t, "workflow", workflowRun)
	all := queryJSON(t, "top", dir, "--limit", "1000", "--waits")
	same(t, "the first three", queryJSON(t, "top", dir, "--limit", "3", "--waits"), all[:3])
	same(t, "the default of ten", queryJSON(t, "top", dir, "--waits"), all[:10])
	for program := range 3 {
		want := slices.DeleteFunc(slices.Clone(all), func(row object) bool { return row["program"] != float64(program) })
		if len(want) == 0 || len(want) == len(all) {
			t.Fatalf("program %d has %d of %d functions", program, len(want), len(all))
		}
		same(t, fmt.Sprint("program ", program), queryJSON(t, "top", dir, "--limit", "1000", "--waits", "--program", strconv.Itoa(program)), want)
	}
	if text := must(t, "top", dir, "--program", "7"); !strings.Contains(text, "(none)") {
		t.Errorf("a program that is not there: %s", text)
	}
	fails(t, 2, []string{"top", dir, "--by", "color"}, `unknown by "color" (want function, host, kind, path, rank`)
	fails(t, 2, []string{"top", dir, "--order", "time"}, `unknown order "time" (want anomalies, lost, score, severity`)
	fails(t, 2, []string{"top", dir, "--limit", "-1"}, "negative")
}

func TestFuncMatchesRecords(t *testing.T) {
	dir := analyzed(t, "workflow", workflowRun)
	all, begin, profiles := recordsOf(t, dir), beginOf(t, dir), profilesOf(t, dir)
	f := func(name, given string, program int64) {
		t.Helper()
		var own, flagged []kept
		normal, withdrawn := 0, 0
		for _, k := range all {
			if k.Func != name || k.PID != program {
				continue
			}
			own = append(own, k)
			switch {
			case k.Normal:
				normal++
			case k.counts():
				flagged = append(flagged, k)
			default:
				withdrawn++
			}
		}
		s := sumUp(flagged, func(*kept) string { return "" })[0]
		p := profiles[fmt.Sprint(program, name)].Profile
		part := func(part string) []object {
			return queryJSON(t, "func", dir, given, "--program", fmt.Sprint(program), "--part", part, "--limit", "1000")
		}
		same(t, given+": profile", part("profile"), []object{{
			"program": program, "fid": own[0].FID, "function": name, "calls": p.Exclusive.Count, "exclusive_us": p.Exclusive.Accumulate,
			"exclusive_mean_us": p.Exclusive.Mean, "exclusive_stddev_us": p.Exclusive.Stddev, "exclusive_min_us": p.Exclusive.Minimum,
			"exclusive_max_us": p.Exclusive.Maximum, "inclusive_us": p.Inclusive.Accumulate, "inclusive_mean_us": p.Inclusive.Mean,
			"anomalies": len(flagged), "withdrawn": withdrawn, "normal": normal, "lost_us": s.lost, "severity": s.severity, "score": s.score,
			"lost_percent": float64(100*s.lost) / p.Exclusive.Accumulate, "ranks": len(s.ranks),
			"first_s": float64(s.first-begin) / 1e6, "last_s": float64(s.last-begin) / 1e6,
		}})
		var ranks []object
		for _, s := range by(sumUp(flagged, func(k *kept) string { return fmt.Sprint(k.RID, k.Hostname) }), "lost") {
			longest := int64(0)
			for _, k := range flagged {
				if k.RID == s.rid {
					longest = max(longest, k.Exclusive)
				}
			}
			row := s.common(begin)
			delete(row, "severity")
			row["rank"], row["host"], row["longest_us"] = s.rid, s.host, longest
			ranks = append(ranks, row)
		}
		same(t, given+": ranks", part("ranks"), ranks)
		same(t, given+": paths", part("paths"), pathRows(own))
		anomalies, lost, last := 0.0, 0.0, -1.0
		times := part("times")
		if len(times) != 20 {
			t.Errorf("%s: %d parts of the run, want 20", given, len(times))
		}
		width := times[1]["from_s"].(float64)
		for _, row := range times { // of the whole run, not only up to the last anomaly
			anomalies, lost = anomalies+row["anomalies"].(float64), lost+row["lost_us"].(float64)
			if at := row["part"].(float64); at != last+1 || math.Abs(row["from_s"].(float64)-at*width) > 1e-6 {
				t.Errorf("%s: times: part %v, which begins at %v, follows %v", given, at, row["from_s"], last)
			} else {
				last = at
			}
		}
		if int(anomalies) != len(flagged) || int64(lost) != s.lost {
			t.Errorf("%s: all times together have %v anomalies and lost %v, want %d and %d", given, anomalies, lost, len(flagged), s.lost)
		}
	}
	f("g", "g", 2)
	f("MPI_Waitall()", "Waitall", 1)
	f("cudaMemcpyAsync", "*MemcpyAsync", 0)
}

// pathRows are the call paths of the executions of a function.
func pathRows(own []kept) (rows []object) {
	for _, s := range by(sumUp(own, (*kept).path), "lost") {
		lost, anomalies, normal, longest := int64(0), 0, 0, any(nil)
		for _, k := range own {
			if k.path() != s.path {
				continue
			}
			if k.Normal {
				normal++
			}
			if k.counts() {
				anomalies, lost = anomalies+1, lost+k.Lost
				if longest == nil || longest.(int64) < k.Exclusive {
					longest = k.Exclusive
				}
			}
		}
		rows = append(rows, object{
			"anomalies": anomalies, "normal": normal, "lost_us": lost, "longest_us": longest, "ranks": len(s.ranks),
			"depth": strings.Count(s.path, " > ") + 1, "call_path": s.path,
		})
	}
	slices.SortFunc(rows, func(a, b object) int {
		return cmp.Or(cmp.Compare(b["lost_us"].(int64), a["lost_us"].(int64)), cmp.Compare(b["anomalies"].(int), a["anomalies"].(int)),
			cmp.Compare(a["call_path"].(string), b["call_path"].(string)))
	})
	return rows
}

func TestFuncShowsAllPartsAndMatchesNames(t *testing.T) {
	dir := analyzed(t, "workflow", workflowRun)
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(must(t, "func", dir, "MPI_Waitall()", "--format", "json")), &all); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"profile", "ranks", "times", "paths"} {
		var rows []object
		if err := json.Unmarshal(all[part], &rows); err != nil {
			t.Fatal(err)
		}
		same(t, part, rows, queryJSON(t, "func", dir, "MPI_Waitall()", "--part", part))
	}
	var model struct{ Count float64 }
	if err := json.Unmarshal(all["model"], &model); err != nil || model.Count != 40 {
		t.Errorf("the model is %s", all["model"])
	}
	text := must(t, "func", dir, "MPI_Waitall()")
	for _, want := range []string{
		"MPI_Waitall()\n", "Profile", "Anomalies by rank", "Anomalies over time", "Call paths to the function",
		"taupreload_main > MPI_Waitall()", "█",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if text := must(t, "func", dir, "Waitall", "--format", "markdown"); !strings.Contains(text, "## Call paths to the function") {
		t.Errorf("no heading in\n%s", text)
	}
	if lines := queryCSV(t, "func", dir, "Waitall"); lines[0][0] != "program" || len(lines) != 2 {
		t.Errorf("the profile as csv is %q", lines)
	}
	fails(t, 1, []string{"func", dir, "MPI_*"}, "several functions", "\n  program 1: MPI_Recv()")
	fails(t, 1, []string{"func", dir, ".TAU application"}, "--program", "program 0", "program 1")
	fails(t, 1, []string{"func", dir, "quicksort"}, `"quicksort"`, "not found")
	fails(t, 2, []string{"func", dir, "g", "--program", "2", "--part", "model"}, `unknown part "model" (want `)
}

func TestCountersEqualFile(t *testing.T) {
	dir := analyzed(t, "workflow", workflowRun)
	var want []struct {
		App     int64
		Counter string
		Stats   moments
	}
	readJSON(t, filepath.Join(dir, "global", "counter_stats.json"), &want)
	rows := func(choose func(app int64, counter string) bool) (rows []object) {
		for _, c := range want {
			if choose(c.App, c.Counter) {
				s := c.Stats
				rows = append(rows, object{
					"program": c.App, "counter": c.Counter, "values": s.Count, "mean": s.Mean, "stddev": s.Stddev,
					"minimum": s.Minimum, "maximum": s.Maximum, "sum": s.Accumulate,
				})
			}
		}
		slices.SortFunc(rows, func(a, b object) int {
			return cmp.Or(cmp.Compare(a["program"].(int64), b["program"].(int64)), cmp.Compare(a["counter"].(string), b["counter"].(string)))
		})
		return rows
	}
	all := rows(func(int64, string) bool { return true })
	same(t, "all counters", queryJSON(t, "counters", dir), all)
	same(t, "the first two", queryJSON(t, "counters", dir, "--limit", "2"), all[:2])
	same(t, "of a program", queryJSON(t, "counters", dir, "--program", "1"), rows(func(app int64, _ string) bool { return app == 1 }))
	some := rows(func(_ int64, name string) bool { return strings.HasPrefix(name, "Message size") })
	if len(some) == 0 || len(some) == len(all) {
		t.Fatalf("%d of %d counters", len(some), len(all))
	}
	same(t, "by name", queryJSON(t, "counters", dir, "--name", "Message size*"), some)
	same(t, "no percent sign", queryJSON(t, "counters", dir, "--name", "%"), []object{})
}
