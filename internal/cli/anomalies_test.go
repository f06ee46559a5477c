package cli_test

import (
	"cmp"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// listed orders records as `anomalies` lists them.
func listed(records []kept, order string) []kept {
	value := map[string]func(k *kept) float64{
		"severity": func(k *kept) float64 { return -k.Severity },
		"lost":     func(k *kept) float64 { return -float64(k.Lost) },
		"score":    func(k *kept) float64 { return -k.Score },
		"time":     func(k *kept) float64 { return float64(k.Entry) },
	}[order]
	slices.SortFunc(records, func(a, b kept) int {
		stepA, rowA := a.place()
		stepB, rowB := b.place()
		return cmp.Or(cmp.Compare(value(&a), value(&b)), cmp.Compare(a.PID, b.PID), cmp.Compare(a.RID, b.RID), cmp.Compare(stepA, stepB),
			cmp.Compare(rowA, rowB))
	})
	return records
}

// rowOf is a record as `anomalies` lists it.
func rowOf(k *kept, begin int64) object {
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	return object{
		"event_id": k.ID, "at_s": float64(k.Entry-begin) / 1e6, "exclusive_us": k.Exclusive, "inclusive_us": k.Inclusive, "lost_us": k.Lost,
		"severity": k.Severity, "score": k.Score, "kind": orNull(k.Kind), "status": orNull(k.Status), "io_step": k.IOStep, "program": k.PID,
		"rank": k.RID, "thread": k.TID,
		"host": k.Hostname, "function": k.Func,
	}
}

func TestAnomaliesMatchFilteredRecords(t *testing.T) {
	dir := analyzed(t, "workflow", workflowRun)
	all, begin := recordsOf(t, dir), beginOf(t, dir)
	// f compares with the records that are chosen, which must be some but not all.
	n := 0
	f := func(chosen func(k *kept) bool, args ...string) {
		t.Helper()
		if n++; testing.Short() && n%4 > 0 {
			return
		}
		order := "severity"
		if i := slices.Index(args, "--order"); i >= 0 {
			order = args[i+1]
		}
		var want []object
		for _, k := range listed(slices.Clone(all), order) {
			if chosen(&k) {
				want = append(want, rowOf(&k, begin))
			}
		}
		if len(want) == 0 || len(want) == len(all) {
			t.Errorf("%q chooses %d of %d", args, len(want), len(all))
		}
		same(t, fmt.Sprintf("anomalies %q", args), queryJSON(t, append([]string{"anomalies", dir, "--limit", "100000"}, args...)...), want)
	}
	and := func(chosen func(k *kept) bool) func(k *kept) bool {
		return func(k *kept) bool { return k.counts() && chosen(k) }
	}
	at := func(seconds float64) int64 { return begin + int64(seconds*1e6) }

	for _, order := range []string{"severity", "lost", "score", "time"} {
		f((*kept).counts, "--order", order)
	}
	f(func(k *kept) bool { return !k.Normal }, "--withdrawn")
	f(func(k *kept) bool { return k.Normal }, "--normal")
	f(func(k *kept) bool { return k.Normal && k.Func == "g" }, "--normal", "--func", "g", "--order", "time")
	f(and(func(k *kept) bool { return strings.HasPrefix(k.Func, "MPI_") }), "--func", "MPI_*")
	f(and(func(k *kept) bool { return strings.HasPrefix(k.Func, "table_lookup(") }), "--func", "table?lookup(int)*")
	f(and(func(k *kept) bool { return strings.Contains(k.Func, "_kernel(") }), "--func", "*_kernel(*")
	for _, kind := range []string{"slow", "comm-wait", "gpu"} {
		f(and(func(k *kept) bool { return k.Kind == kind }), "--kind", kind)
	}
	f(and(func(k *kept) bool { return k.Kind == "gpu" || k.Kind == "comm-wait" }), "--kind", "gpu,comm-wait", "--order", "time")
	f(and(func(k *kept) bool { return strings.HasPrefix(k.Hostname, "node") }), "--host", "node?")
	f(and(func(k *kept) bool { return k.Hostname == "node2" }), "--host", "node2")
	f(and(func(k *kept) bool { return k.RID == 0 }), "--rank", "0")
	f(and(func(k *kept) bool { return k.RID == 0 || k.RID == 2 }), "--rank", "0,2")
	f(and(func(k *kept) bool { return k.RID >= 1 }), "--rank", "1-2", "--order", "lost")
	f(and(func(k *kept) bool { return k.PID == 1 }), "--program", "1")
	f(and(func(k *kept) bool { return k.IOStep >= 3 && k.IOStep <= 5 }), "--step", "3:5")
	f(and(func(k *kept) bool { return k.IOStep <= 2 }), "--step", ":2")
	f(and(func(k *kept) bool { return k.IOStep >= 2 }), "--step", "2:")
	f(and(func(k *kept) bool { return k.IOStep == 1 }), "--step", "1")
	// in the midst of the run
	last := all[slices.IndexFunc(all, func(k kept) bool { return k.counts() && strings.HasPrefix(k.Func, "stencil_kernel(") })]
	since := float64(last.Entry-begin) / 1e6
	f(and(func(k *kept) bool { return k.Exit >= last.Entry }), "--since", fmt.Sprintf("%.6f", since), "--order", "time")
	f(and(func(k *kept) bool { return k.Entry <= last.Entry }), "--until", fmt.Sprintf("%.6fs", since))
	f(and(func(k *kept) bool { return k.Exit >= at(since) && k.Entry <= at(since+0.5) }), "--since", fmt.Sprintf("+%.6f", since), "--until",
		fmt.Sprintf("%.6fs", since+0.5))
	f(and(func(k *kept) bool { return k.Severity >= 1000 }), "--min-severity", "1ms")
	f(and(func(k *kept) bool { return k.Severity >= 210 }), "--min-severity", "210")
	f(and(func(k *kept) bool { return k.Lost >= 1500 }), "--min-lost", "1.5ms")
	f(and(func(k *kept) bool { return k.Score >= 20.5 }), "--min-score", "20.5")
	f(and(func(k *kept) bool {
		return k.PID == 2 && k.RID == 2 && k.Hostname == "node2" && k.IOStep == 0 && k.Lost > 0
	}),
		"--program", "2", "--rank", "2", "--host", "*2", "--step", "0:0", "--min-lost", "1")
}

func TestPagesOfAnomaliesDoNotOverlap(t *testing.T) {
	dir := analyzed(t, "workflow", workflowRun)
	for _, order := range []string{"severity", "score"} { // which are the same for many
		all := queryJSON(t, "anomalies", dir, "--order", order, "--limit", "100000")
		var pages []object
		for {
			page := queryJSON(t, "anomalies", dir, "--order", order, "--limit", "100", "--offset", fmt.Sprint(len(pages)))
			pages = append(pages, page...)
			if len(page) < 100 {
				break
			}
		}
		same(t, "pages by "+order, pages, all)
	}
	if n := len(queryJSON(t, "anomalies", dir)); n != 20 {
		t.Errorf("%d rows without --limit, want 20", n)
	}
	same(t, "no rows", queryJSON(t, "anomalies", dir, "--limit", "0"), []object{})
}

func TestInvalidFiltersAreExplained(t *testing.T) {
	dir := analyzed(t, "workflow", workflowRun)
	f := func(want string, args ...string) {
		t.Helper()
		fails(t, 2, append([]string{"anomalies", dir}, args...), want, "--help")
	}
	f(`"4-2" is not a rank or a range`, "--rank", "1,4-2")
	f(`"x" is not a rank`, "--rank", "x")
	f(`"9:3" is not a step`, "--step", "9:3")
	f(`"a:" is not a step`, "--step", "a:")
	f(`--since: "soon" is not a time`, "--since", "soon")
	f(`--until: "NaN" is not a time`, "--until", "NaN")
	f(`--min-severity: "1e300" is not a time`, "--min-severity", "1e300")
	f(`--min-lost: "much" is not a time`, "--min-lost", "much")
	f(`unknown order "beauty" (want lost, score, severity, time`, "--order", "beauty")
	f(`unknown kind "odd" (want comm-wait, excess-work, fast, gpu, rare, recurring, slow`, "--kind", "slow,odd")
	f("is negative", "--limit", "-1")
	f("is negative", "--offset", "-1")
	f(`unknown format "xml" (want `, "--format", "xml")
	f("parquet needs --output FILE", "--format", "parquet")
}

// eventsToLookAt are some of each sort.
func eventsToLookAt(all []kept) []kept {
	seen := make(map[string]int)
	return slices.DeleteFunc(slices.Clone(all), func(k kept) bool {
		sort := fmt.Sprint(k.PID, k.Normal, k.Status, k.GPU)
		seen[sort]++
		return seen[sort] > 2
	})
}

func TestEventEqualsDocumentInFile(t *testing.T) {
	dir := analyzed(t, "workflow", workflowRun)
	some := eventsToLookAt(recordsOf(t, dir))
	sorts := make(map[string]bool)
	for i, k := range some {
		sorts[fmt.Sprintf("status %q", k.Status)], sorts[fmt.Sprintf("GPU %t", k.GPU)] = true, true
		if testing.Short() && i%3 > 0 {
			continue
		}
		args := []string{"event", dir, k.ID, "--program", fmt.Sprint(k.PID)}
		var got, want any
		if err := json.Unmarshal([]byte(must(t, append(args, "--json")...)), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(k.Document, &want); err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("%q", args), got, want)
	}
	for _, sort := range []string{`status "confirmed"`, `status "withdrawn"`, `status "promoted"`, `status ""`, "GPU true", "GPU false"} {
		if !sorts[sort] {
			t.Errorf("none of the events has %s", sort)
		}
	}
	same(t, "--format json", must(t, "event", dir, some[0].ID, "--program", fmt.Sprint(some[0].PID), "--format", "json"),
		must(t, "event", dir, some[0].ID, "--program", fmt.Sprint(some[0].PID), "--json"))
}

func TestAnomaliesHaveKindAndReason(t *testing.T) {
	dir := analyzed(t, "workflow", workflowRun)
	ends := map[string]string{
		"confirmed": "; flagged during the run and confirmed at the end", "promoted": "; found only at the end, by the final model",
		"withdrawn": "; flagged during the run, but withdrawn at the end by the final model",
	}
	seen := make(map[string]bool)
	for _, k := range recordsOf(t, dir) {
		if k.Normal {
			if k.Kind != "" || k.Why != "" {
				t.Errorf("%s is typical, but %q: %s", k.ID, k.Kind, k.Why)
			}
			continue
		}
		name, _, _ := strings.Cut(k.Func, "(")
		want := "slow"
		switch {
		case k.GPU:
			want = "gpu"
		case slices.Contains([]string{
			"MPI_Recv", "MPI_Send", "MPI_Wait", "MPI_Waitall", "MPI_Barrier", "MPI_Allreduce", "cudaStreamSynchronize",
			"cudaDeviceSynchronize",
		}, name):
			want = "comm-wait"
		case k.Lost == 0 && k.Kind == "fast":
			want = "fast"
		}
		if k.Kind != want {
			t.Errorf("%s of %s is %q, want %q", k.ID, k.Func, k.Kind, want)
		}
		if !strings.HasPrefix(k.Why, "took ") || !strings.Contains(k.Why, ", usually ") || !strings.HasSuffix(k.Why, ends[k.Status]) ||
			k.Status == "" {
			t.Errorf("%s is %s: %s", k.ID, k.Status, k.Why)
		}
		if seen[k.Kind+k.Status] {
			continue
		}
		seen[k.Kind+k.Status] = true
		text := must(t, "event", dir, k.ID, "--program", fmt.Sprint(k.PID), "--width", "500")
		if lines := strings.Split(text, "\n"); lines[2] != "  It "+k.Why+"." || !strings.Contains(text, " · kind "+k.Kind+" · ") {
			t.Errorf("event %s does not begin with its sentence, %s:\n%s", k.ID, k.Why, text)
		}
	}
	if len(seen) < 6 {
		t.Errorf("only %v", seen)
	}
}

func TestExportsHaveKindAndReason(t *testing.T) {
	tracetest.SkipShort(t, "analyzes or compares large runs")
	dir, out := analyzed(t, "workflow", workflowRun), t.TempDir()
	want := make(map[string][2]string)
	for _, k := range recordsOf(t, dir) {
		if !k.Normal {
			want[fmt.Sprint(k.PID, " ", k.ID)] = [2]string{k.Kind, k.Why}
		}
	}
	got := make(map[string][2]string)
	must(t, "export", dir, out, "--to", "csv")
	file, err := os.Open(filepath.Join(out, "anomalies.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // only read
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) int { return slices.Index(lines[0], name) }
	for _, line := range lines[1:] {
		got[line[at("pid")]+" "+line[at("event_id")]] = [2]string{line[at("kind")], line[at("why")]}
	}
	same(t, "csv", got, want)

	clear(got)
	must(t, "export", dir, out, "--to", "json")
	var docs []kept
	readJSON(t, filepath.Join(out, "anomalies.json"), &docs)
	for _, k := range docs {
		got[fmt.Sprint(k.PID, " ", k.ID)] = [2]string{k.Kind, k.Why}
	}
	same(t, "json", got, want)

	clear(got)
	must(t, "export", dir, out, "--to", "parquet")
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // of a test
	rows, err := db.QueryContext(t.Context(), "SELECT pid, event_id, kind, why FROM read_parquet($1)", filepath.Join(out, "anomalies.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }() // Err reports it
	for rows.Next() {
		var pid, id, kind, why string
		if err := rows.Scan(&pid, &id, &kind, &why); err != nil {
			t.Fatal(err)
		}
		got[pid+" "+id] = [2]string{kind, why}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	same(t, "parquet", got, want)
}

func TestEventExplainsExecutionAndListsCallsAroundIt(t *testing.T) {
	dir := analyzed(t, "workflow", workflowRun)
	all := recordsOf(t, dir)
	for _, k := range all[:3] {
		args := []string{"event", dir, k.ID, "--program", fmt.Sprint(k.PID)}
		text := strings.Join(strings.FieldsFunc(must(t, args...), unicode.IsSpace), " ")
		for _, want := range []string{k.ID, k.Hostname, strings.Join(strings.FieldsFunc(k.Func, unicode.IsSpace), " ")} {
			if !strings.Contains(text, want) {
				t.Errorf("%q: no %q in\n%s", args, want, text)
			}
		}
		lines := queryCSV(t, args...)
		want := [][]string{{"event_id", "at_us", "inclusive_us", "is_anomaly", "parent_event_id", "fid", "function"}}
		var around struct {
			Window struct {
				Calls []object `json:"exec_window"`
			} `json:"event_window"`
		}
		if err := json.Unmarshal(k.Document, &around); err != nil {
			t.Fatal(err)
		}
		for _, c := range around.Window.Calls {
			entry, exit, took := int64(c["entry"].(float64)), int64(c["exit"].(float64)), ""
			if exit != 0 {
				took = fmt.Sprint(exit - entry)
			}
			want = append(want, []string{
				c["event_id"].(string), fmt.Sprint(entry - k.Entry), took, fmt.Sprint(c["is_anomaly"]),
				c["parent_event_id"].(string), fmt.Sprint(c["fid"]), c["func"].(string),
			})
		}
		if len(want) < 2 {
			t.Errorf("event %s has no calls around it", k.ID)
		}
		same(t, fmt.Sprintf("%q as csv", args), lines, want)
	}
}

func TestProgramFlagChoosesEvent(t *testing.T) {
	dir := analyzed(t, "workflow", workflowRun)
	programs := make(map[string][]kept)
	var twice string
	for _, k := range recordsOf(t, dir) {
		programs[k.ID] = append(programs[k.ID], k)
		if len(programs[k.ID]) == 2 && twice == "" {
			twice = k.ID
		}
	}
	if twice == "" {
		t.Fatal("no two programs have an event of the same id")
	}
	fails(t, 1, []string{"event", dir, twice}, "event "+twice+" is of programs", "--program")
	for _, k := range programs[twice] {
		if text := must(t, "event", dir, twice, "--program", fmt.Sprint(k.PID)); !strings.Contains(text, strings.Fields(k.Func)[0]) {
			t.Errorf("event %s of program %d does not name %s:\n%s", twice, k.PID, k.Func, text)
		}
	}
	for _, id := range []string{"0:0:4294967295", "9999999999:0:0", "0:9999999999:1", "nonsense", "1:2", "a:b:c", ""} {
		fails(t, 1, []string{"event", dir, id}, "not found", "chimbuko anomalies lists the ids")
	}
	fails(t, 2, []string{"event", dir}, "ID is missing")
}
