package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

type (
	evalScore  = truth.Score
	missedCall = truth.Missed
)

// eval runs the command and returns its output.
func eval(t *testing.T, given ...string) (string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := newEvalCmd(&Env{Stdout: &stdout, Stderr: &stderr})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(given)
	err := cmd.ExecuteContext(t.Context())
	if stderr.Len() > 0 {
		t.Errorf("%q wrote %q to standard error", given, stderr.String())
	}
	return stdout.String(), err
}

// evalJSON runs the command with --json.
func evalJSON(t *testing.T, run, truth string) evalScore {
	t.Helper()
	out, err := eval(t, "--json", run, truth)
	if err != nil {
		t.Fatal(err)
	}
	var r evalScore
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return r
}

func writeFile(t *testing.T, content string, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// newRun creates a run directory with these records as files, all in one step.
func newRun(t *testing.T, calls int, records ...string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, fmt.Sprintf(`{"format":1,"version":"1","totals":{"calls":%d,"steps":42}}`, calls), dir, "run.json")
	ofRank := map[string][]string{"0": nil}
	for _, r := range records {
		var of struct{ RID json.Number }
		if err := json.Unmarshal([]byte(r), &of); err != nil {
			t.Fatal(err)
		}
		ofRank[of.RID.String()] = append(ofRank[of.RID.String()], r)
	}
	for rank, records := range ofRank {
		writeFile(t, "["+strings.Join(records, ",\n")+"]", dir, "records", "0", rank, "3.anomalies.json")
	}
	return dir
}

// record returns the record of a function of heat2d, with keys that eval ignores.
func record(rank int, function string, entry, exit int64, more string) string {
	return fmt.Sprintf(`{"algo_params":{"histogram":{"Bin Counts":[2,6]}},"call_stack":[{"entry":%[3]d,"func":"x"}],
		"pid":0,"rid":%[1]d,"tid":0,"fid":7,"func":"%[2]s() [{/src/heat2d.cpp} {47,0}]","entry":%[3]d,"exit":%[4]d,
		"event_id":"%[1]d:0:%[3]d","runtime_exclusive":%[5]d,"is_gpu_event":false,"gpu_parent":null%[6]s}`,
		rank, function, entry, exit, exit-entry, more)
}

// Lines of a recorded truth.1, and the times of the first call in the trace.
const (
	truth1 = `1 1 apply_source 1794703327316722 1794703327318664 1827
1 70 apply_source 1794703327393963 1794703327401010 7046
1 87 unpack_halo 1794703327417802 1794703327421841 4036
`
	truth1Entry, truth1Exit = 1794703327316719, 1794703327318670
)

func TestEvalCountsFoundMissedAndOtherFlags(t *testing.T) {
	planted := writeFile(t, truth1, t.TempDir(), "truth.1")
	run := newRun(t, 500_000,
		record(1, "apply_source", truth1Entry, truth1Exit, `,"status":"confirmed"`),
		record(1, "unpack_halo", 1794703327417790, 1794703327421850, `,"status":"promoted"`),
		record(1, "update_row", 1794703327417791, 1794703327421850, ``),
		record(1, "apply_source", 1794703327393960, 1794703327401020, `,"status":"withdrawn"`))
	// A second rank has an anomaly at the same time.
	writeFile(t, "["+record(2, "unpack_halo", 1794703327417790, 1794703327421850, "")+"]", run, "records", "0", "2", "3.anomalies.json")
	writeFile(t, "[]", run, "records", "0", "2", "4.anomalies.json")
	writeFile(t, "not read", run, "records", "0", "2", "4.normal.json")

	got := evalJSON(t, run, planted)
	want := evalScore{
		Planted: 3, Found: 2, Missed: 1, Flagged: 4, Other: 2,
		Recall: 2.0 / 3, Precision: 0.5, F1: 4.0 / 7, OtherPerMillion: 4,
		MissedList: []missedCall{{Rank: 1, Function: "apply_source", Entry: 1794703327393963, Injected: 7046}}, Troubles: []truth.TroubleScore{},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}

	table, err := eval(t, run, planted)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(table, "\n")
	if got, want := strings.Fields(lines[1]), strings.Fields("2/3 2 4.0 50.0 % 66.7 %"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q in\n%s", got, want, table)
	}
	if want := "missed: rank 1  1794703327.393963  apply_source  7,046 us injected"; !slices.Contains(lines, want) {
		t.Errorf("no line %q in\n%s", want, table)
	}
}

func TestEvalJSONKeys(t *testing.T) {
	out, err := eval(t, "--json", newRun(t, 10), writeFile(t, "", t.TempDir(), "truth.0"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"planted": 0.0, "found": 0.0, "missed": 0.0, "flagged": 0.0, "other": 0.0, "recall": 1.0, "precision": 1.0,
		"other_per_million_calls": 0.0, "missed_list": []any{}, "excused": 0.0, "f1": 1.0, "troubles": []any{},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestEvalMatchesTimes plants one anomaly from 100000 to 103000 us of which 2800 us
// were injected.
func TestEvalMatchesTimes(t *testing.T) {
	truth := writeFile(t, "1 7 pack_halo 100000 103000 2800\n", t.TempDir(), "truth.1")
	f := func(found bool, function string, entry, exit int64) {
		t.Helper()
		if r := evalJSON(t, newRun(t, 10, record(1, function, entry, exit, "")), truth); (r.Found == 1) != found || r.Missed != 1-r.Found {
			t.Errorf("%s from %d to %d: found %d, want %t", function, entry, exit, r.Found, found)
		}
	}
	f(true, "pack_halo", 99_995, 103_002)
	f(true, "pack_halo", 50_000, 200_000) // covers it
	f(true, "pack_halo", 100_100, 102_900)
	f(true, "pack_halo", 101_399, 102_000) // overlaps, half the injected time apart
	f(false, "pack_halo", 101_400, 102_000)
	f(false, "pack_halo", 98_700, 102_000-2_001) // ends before it
	f(false, "pack_halo", 50_000, 101_000)
	f(false, "pack_halo", 103_001, 106_000)
	f(false, "pack_hal", 99_995, 103_002)
	f(false, "pack_halo2", 99_995, 103_002)
	f(false, "unpack_halo", 99_995, 103_002)

	short := writeFile(t, "1 7 pack_halo 100000 100900 700\n", t.TempDir(), "truth.1")
	if r := evalJSON(t, newRun(t, 10, record(1, "pack_halo", 100_890, 101_500, "")), short); r.Found != 1 {
		t.Errorf("an overlapping call less than 1000 us apart does not match")
	}
}

func TestEvalMatchesFlagsOneToOne(t *testing.T) {
	dir := t.TempDir()
	// One call contains both planted anomalies.
	truth := writeFile(t, "0 1 f 1000 1400 300\n0 2 f 1500 1900 300\n", dir, "truth.0")
	if r := evalJSON(t, newRun(t, 10, record(0, "f", 990, 2000, "")), truth); r.Found != 1 || r.Other != 0 || r.MissedList[0].Entry != 1500 {
		t.Errorf("one flag for two: %+v", r)
	}
	// The closer flag matches, the other does not.
	truth = writeFile(t, "0 1 f 1000 1400 300\n", dir, "truth.0")
	if r := evalJSON(t, newRun(t, 10, record(0, "f", 500, 2000, ""), record(0, "f", 990, 1500, "")), truth); r.Found != 1 || r.Other != 1 {
		t.Errorf("two flags for one: %+v", r)
	}
	// Each matches the closer flag, in any order.
	truth = writeFile(t, "0 1 f 1500 1600 90\n0 2 f 1000 1100 90\n", dir, "truth.0")
	if r := evalJSON(t, newRun(t, 10, record(0, "f", 990, 1700, ""), record(0, "f", 1490, 1700, "")), truth); r.Found != 2 || r.Other != 0 {
		t.Errorf("two flags for two: %+v", r)
	}
}

func TestEvalMatchesKernelsAndLaunches(t *testing.T) {
	truth := tracetest.Root("testdata", "traces", "gpu-BP5", "truth.txt")
	kernel := func(id int, function string, entry int64, parent string) string {
		return fmt.Sprintf(`{"pid":0,"rid":0,"tid":6,"fid":8,"func":%q,"entry":%d,"exit":%d,"runtime_exclusive":10237,"event_id":"0:3:%d","is_gpu_event":true,"gpu_parent":%s}`,
			function, entry, entry+10237, id, parent)
	}
	launch := func(entry, exit int64) string {
		return fmt.Sprintf(`{"event_id":"0:3:1361","tid":0,"call_stack":[{"entry":%d,"exit":%d,"func":"cudaLaunchKernel"},{"entry":1,"exit":0,"func":"main"}]}`, entry, exit)
	}
	assemble := func(rank int, entry, exit int64) string {
		return fmt.Sprintf(`{"rid":%d,"tid":0,"fid":9,"func":"assemble(int) [{gpuapp.cu} {71,0}]","entry":%d,"exit":%d,"runtime_exclusive":%d,"event_id":"%[1]d:3:9"}`,
			rank, entry, exit, exit-entry)
	}
	const stencil = "stencil_kernel(float*, float const*, int, int)"
	run := newRun(t, 1_000_000,
		kernel(1, stencil, 1794706448286487, launch(1794706448286459, 1794706448286489)),
		kernel(2, "stencil_kernel", 1794706448853048, `"the launch was not seen"`),
		kernel(3, stencil, 1794706449390005, launch(1794706449389970, 0)), // still running
		// The last launch is that of another kernel, of a later call, of an earlier call.
		kernel(4, "stencil_kernel2(float*)", 1794706449954023, launch(1794706449953995, 1794706449954010)),
		kernel(5, stencil, 1794706449954023, launch(1794706449954995, 1794706449955010)),
		kernel(6, stencil, 1794706449954023, launch(1794706449952900, 1794706449952980)),
		kernel(7, "stencil_kernel [sampled]", 1794706449954023, "null"),
		assemble(0, 1794706448653700, 1794706448683899),
		assemble(1, 1794706449708600, 1794706449738800))
	got := evalJSON(t, run, truth)
	missed := []missedCall{
		{Function: "assemble(int)", Entry: 1794706449708666, Injected: 30077},
		{Function: "stencil_kernel", Entry: 1794706449953989},
	}
	if got.Planted != 6 || got.Found != 4 || got.Flagged != 9 || !reflect.DeepEqual(got.MissedList, missed) {
		t.Errorf("got %+v, want 4 of 6 found and missed %+v", got, missed)
	}
	if table, err := eval(t, run, truth); err != nil || !strings.Contains(table, "stencil_kernel  a slow kernel\n") {
		t.Errorf("got %v and\n%s", err, table)
	}

	f := func(found bool, after int64) { // the launch, without a parent
		t.Helper()
		one := writeFile(t, "TRUTH rank=0 kind=gpu_slow kernel=k launch_us=500000 note=a b\n", t.TempDir(), "truth.txt")
		if r := evalJSON(t, newRun(t, 10, kernel(1, "k(int)", 500_000+after, "null")), one); (r.Found == 1) != found {
			t.Errorf("kernel %d us after its launch: found %d, want %t", after, r.Found, found)
		}
	}
	f(true, 200_000)
	f(false, 200_001)
	f(true, -1_000)
	f(false, -1_001)
}

// exactTruth has a trouble whose causes must all be found, one that needs to be found
// only once, and one that is not found.
const exactTruth = `{"trouble":"a","kind":"slow-call","each":true,"program":0,"hosts":["node02"],"ranks":[8],"functions":["f() [{/src/heat2d.cpp} {47,0}]"],"from_us":1000,"to_us":0,"text":"f is slow now and then."}
{"trouble":"b","kind":"slow-host","each":false,"program":0,"hosts":["node02"],"ranks":[8,9,10,11],"functions":[],"from_us":2000000,"to_us":3000000,"text":"node02 is slow."}
{"trouble":"c","kind":"slow-link","each":false,"program":0,"hosts":["n0","n1","n2","n3"],"ranks":[],"functions":[],"from_us":0,"to_us":0,"text":"The link is slow."}
{"call":"8:0:1000","trouble":"a","role":"cause","program":0,"rank":8,"thread":0,"function":"f() [{/src/heat2d.cpp} {47,0}]","entry_us":1000,"exit_us":1500,"injected_us":400}
{"call":"8:0:7000000","trouble":"a","role":"cause","program":0,"rank":8,"thread":0,"function":"f() [{/src/heat2d.cpp} {47,0}]","entry_us":7000000,"exit_us":7000500,"injected_us":-400}
{"call":"1:0:2000100","trouble":"b","role":"victim","program":0,"rank":1,"thread":0,"function":"MPI_Wait()","entry_us":2000100,"exit_us":2000500,"injected_us":300,"culprit":9}
`

func TestEvalShowsTroublesOfExactTruth(t *testing.T) {
	planted := writeFile(t, exactTruth, t.TempDir(), "truth.jsonl")
	run := newRun(t, 1_000_000,
		record(8, "f", 1_000, 1_500, `,"status":"promoted"`), // found at the end, at 8 s
		record(8, "f", 1_600, 1_700, ``),                     // close, but another call
		record(1, "MPI_Wait", 2_000_100, 2_000_500, ``),
		record(11, "g", 2_100_000, 2_500_000, ``),
		record(10, "g", 2_000_100, 2_000_500, `,"status":"withdrawn"`),
		record(0, "g", 7_999_000, 8_000_000, ``))
	got := evalJSON(t, run, planted)
	type row struct {
		name                    string
		planted, found          int
		victims, victimsFlagged int
		seen                    bool
		after                   int64
	}
	var rows []row
	for _, s := range got.Troubles {
		rows = append(rows, row{s.Name, s.Planted, s.Found, s.Victims, s.VictimsFlagged, s.Seen, int64(s.After)})
	}
	want := []row{{"a", 2, 1, 0, 0, true, 7_999_000}, {"b", 0, 1, 1, 1, true, 500_000}, {"c", 0, 0, 0, 0, false, 0}}
	if !slices.Equal(rows, want) {
		t.Errorf("troubles:\n got %+v\nwant %+v", rows, want)
	}
	if got.Planted != 2 || got.Found != 1 || got.Flagged != 5 || got.Excused != 2 || got.Other != 2 || got.F1 != 0.4 {
		t.Errorf("got %+v, want 1 of 2 found and 2 of 5 flags excused", got)
	}

	table, err := eval(t, run, planted)
	if err != nil {
		t.Fatal(err)
	}
	const text = `  FOUND/PLANTED  OTHER FLAGS  PER MILLION CALLS  PRECISION  RECALL      F1  EXCUSED FLAGS
            1/2            2                2.0     33.3 %  50.0 %  40.0 %              2

TROUBLE  KIND       WHERE                 FOUND/PLANTED  VICTIMS FLAGGED  AFTER
a        slow-call  node02: 8             1/2            0/0              7.999 s
b        slow-host  node02: 8-11          1/0            1/1              0.500 s
c        slow-link  n0 and 3 other hosts  0/0            0/0              not found

missed: rank 8  7.000000  f() [{/src/heat2d.cpp} {47,0}]  -400 us injected  a
`
	if table != text {
		t.Errorf("got\n%s\nwant\n%s", table, text)
	}
}

// schedulerRecord is the truth of a run in which rank 1 was stopped, and rank 0 waited for a processor.
const schedulerRecord = `{"kind":"begin","t":5,"pids":{"0":301,"1":302}}
{"kind":"delay","rank":0,"start":500000,"end":520000,"wait_us":9000}
{"kind":"stall","rank":1,"start":100000,"end":200000,"ms":100.0}
{"kind":"stall","rank":1,"start":700000,"end":720000,"ms":20.0}
`

func TestEvalComparesFindingsWithTroubles(t *testing.T) {
	planted := writeFile(t, schedulerRecord, t.TempDir(), "truth.jsonl")
	run := newRun(t, 1_000_000,
		record(1, "f", 110_000, 210_000, `,"lost_time":95000`), record(0, "MPI_Recv", 100_000, 210_000, `,"lost_time":90000`),
		record(0, "g", 505_000, 516_000, `,"lost_time":10000`), record(0, "g", 600_000, 610_000, `,"lost_time":10000`))
	if got := evalJSON(t, run, planted); got.Findings != nil || got.External == nil || got.External.Found != 1 {
		t.Errorf("without findings: got %+v", got)
	}
	const common = `"status":"confirmed","program":0,"first_us":100000,"last_us":650000,"hosts":["n"],"severity":"alarm"`
	writeFile(t, `[{"finding":1,"kind":"outlier","function":"f() [{/src/heat2d.cpp} {47,0}]","ranks":[1],"lost_own_us":95000,"lost_us":185000,"share":0.1,"summary":"f is slow",`+common+`},
		{"finding":2,"kind":"outlier","function":"g() [{/src/heat2d.cpp} {47,0}]","ranks":[0],"lost_own_us":20000,"lost_us":20000,"share":0.02,"summary":"g is slow",`+common+`},
		{"finding":3,"kind":"wait","cause":1,"function":"MPI_Recv()","ranks":[0],"lost_own_us":90000,"lost_us":90000,"share":0.05,"summary":"waits",`+common+`}]`,
		run, "global", "findings.json")
	writeFile(t, `[{"pid":0,"rid":1,"event_id":"1:0:110000","finding":1},{"pid":0,"rid":0,"event_id":"0:0:505000","finding":2},
		{"pid":0,"rid":0,"event_id":"0:0:600000","finding":2},
		{"pid":0,"rid":0,"event_id":"0:0:100000","finding":3,"role":"victim","culprit_event_id":"1:0:110000"}]`, run, "global", "links.json")
	got := evalJSON(t, run, planted)
	if want := (truth.ExternalScore{Stops: 2, Found: 1, Named: 1, Outside: 2, Unexplained: 1, UnexplainedPerMillion: 1}); *got.External != want {
		t.Errorf("got %+v, want %+v", got.External, want)
	}
	want := &truth.FindingScore{
		Lost: 120_000, Covered: 90_000, Named: 1,
		Troubles: []truth.TroubleFinding{
			{Name: "stall 1", Kind: "stall", Lost: 100_000, Covered: 90_000, Finding: 1, FindingKind: truth.Outlier, Summary: "f is slow", Named: true},
			{Name: "stall 2", Kind: "stall", Lost: 20_000},
		},
		Others: []truth.OtherFinding{{Number: 2, Kind: truth.Outlier, Share: 0.02, Summary: "g is slow"}}, OthersShare: 0.02,
	}
	if !reflect.DeepEqual(got.Findings, want) {
		t.Errorf("got  %+v\nwant %+v", got.Findings, want)
	}

	table, err := eval(t, run, planted)
	if err != nil {
		t.Fatal(err)
	}
	const text = `
1 of 2 stops found, 1 named as culprit
2 flags outside troubles, 1 not explained by the scheduler's record: 1.0 per million calls

TROUBLE  LOST     COVERED  PLACE  COSTLIEST FINDING ABOUT IT
stall 1  100 ms   90.0 %   right  1 outlier: f is slow
stall 2  20.0 ms  0 %      -      none
findings cover 75.0 % of 120 ms lost, and name the right place for 1 of 2 troubles

1 finding outside troubles, without interference: 2.0 % of the time
  2 outlier, 2.0 %: g is slow
`
	if !strings.HasSuffix(table, text) {
		t.Errorf("got\n%s\nwant\n%s", table, text)
	}
	writeFile(t, "{", run, "global", "links.json")
	if _, err := eval(t, run, planted); err == nil || !strings.Contains(err.Error(), "links.json") {
		t.Errorf("got %v, want the name of the damaged file", err)
	}
}

// The findings of a stored run are those of its record files.
func TestEvalReadsFindingsFromStoreAndFiles(t *testing.T) {
	tracetest.SkipShort(t, "analyzes twice")
	dir := t.TempDir()
	var scores [2]evalScore
	for i, records := range []string{"db", "json"} {
		out := filepath.Join(dir, records)
		var stdout, stderr bytes.Buffer
		if code := Run(t.Context(), &Env{Stdout: &stdout, Stderr: &stderr},
			[]string{"analyze", tracetest.Root("testdata", "traces", "gpu-BP5"), "--out", out, "--records", records}); code != 0 {
			t.Fatal(stderr.String())
		}
		scores[i] = evalJSON(t, out, tracetest.Root("testdata", "traces", "gpu-BP5", "truth.txt"))
	}
	if scores[0].Findings == nil || len(scores[0].Findings.Troubles) == 0 || !reflect.DeepEqual(scores[0], scores[1]) {
		t.Errorf("from the store %+v, from files %+v", scores[0], scores[1])
	}
}

func TestEvalLimitsPrintedMissedCalls(t *testing.T) {
	lines := strings.SplitAfter(exactTruth, "\n")
	var many strings.Builder
	many.WriteString(lines[0])
	for i := range 1234 {
		many.WriteString(strings.Replace(lines[3], "8:0:1000", fmt.Sprintf("8:0:%d", i), 1))
	}
	table, err := eval(t, newRun(t, 10), writeFile(t, many.String(), t.TempDir(), "truth.jsonl"))
	if n := strings.Count(table, "missed: rank 8 "); err != nil || n != 20 ||
		!strings.HasSuffix(table, "missed: 1,214 more (--json lists all)\n") {
		t.Errorf("%d missed calls, %v in\n%s", n, err, table)
	}
}

func TestEvalReadsTruthFromFilesDirectoriesAndPatterns(t *testing.T) {
	dir := t.TempDir()
	one := writeFile(t, "# planted by hand\n\n0 1 f 1000 1400 300\n", dir, "truth.0")
	two := writeFile(t, "1 1 f 1000 1400 300\nTRUTH iter=2 kind=host_sleep func=g(int, int) start_us=5 end_us=9 rank=3\n", dir, "truth.1")
	writeFile(t, "not read", dir, "README.txt")
	writeFile(t, "not read", dir, "truth.d", "x")
	run := newRun(t, 10)
	f := func(planted int, truth ...string) {
		t.Helper()
		out, err := eval(t, append([]string{run}, truth...)...)
		if want := fmt.Sprintf("0/%d ", planted); err != nil || !strings.Contains(out, want) {
			t.Errorf("%q: got %v and\n%swant %q", truth, err, out, want)
		}
	}
	f(1, one)
	f(2, two)
	f(3, one, two)
	f(3, dir)
	f(3, filepath.Join(dir, "truth.[0-9]"))
	f(3, dir+"*", one, dir) // each file once
}

func TestEvalReportsUnreadableInput(t *testing.T) {
	good := newRun(t, 10)
	truth := writeFile(t, truth1, t.TempDir(), "truth.1")
	f := func(run, truth string, want ...string) {
		t.Helper()
		out, err := eval(t, run, truth)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) || out != "" {
				t.Errorf("got error %v and %q, want %q", err, out, w)
			}
		}
		if _, ok := errors.AsType[usage.Error](err); ok {
			t.Errorf("%v is a usage error", err)
		}
	}
	missing := filepath.Join(t.TempDir(), "missing")
	f(missing, truth, missing, "no such file", "want a run directory")
	f(good, missing, missing, "no such file")
	f(good, missing+"*", "nothing matches", missing)
	f(good, t.TempDir(), "no file named truth.*")

	line := func(text string, want ...string) {
		t.Helper()
		path := writeFile(t, "\n"+text+"\n", t.TempDir(), "truth.0")
		f(good, path, append(want, path+":2: ")...)
	}
	line("0 1 f 1000 1400", "5 words, want 6")
	line("0 1 f 1000 x 300", `exit_us "x" is not a valid integer`)
	line("9999999999 1 f 1000 1400 300", `rank "9999999999"`)
	line("0 1 f 1400 1000 300", "ends before it begins")
	line("TRUTH kind=melted", "unknown kind melted")
	line("TRUTH kind=gpu_slow launch_us=5", "kernel= is missing")
	line("TRUTH kind=gpu_slow kernel=k", "launch_us= is missing")
	line("TRUTH kind=host_sleep func=f start_us=7 end_us=5", "ends before it begins")
	line("TRUTH here kind=gpu_slow", `"here" is not of the form`)
	line(strings.Repeat("x", 1<<17), "too long")

	two := t.TempDir()
	f(good, filepath.Dir(writeFile(t, "a", filepath.Dir(writeFile(t, "b", two, "truth.0")), "truth.1")), "truth.0:1: ", "truth.1:1: ")

	about := func(text string, want string) {
		t.Helper()
		run := newRun(t, 10)
		path := writeFile(t, text, run, "run.json")
		f(run, truth, path, want)
	}
	about("{", "unexpected end")
	about(`{"format":1,"totals":{"calls":"many"}}`, "cannot unmarshal string")
	about(`{"format":1,"totals":{"calls":-1}}`, "totals.calls is -1")
	f(newRun(t, 0, record(0, "f", 1, 2, "")), truth, "1 calls are flagged, but totals.calls in run.json is 0")

	records := func(text string, want string) {
		t.Helper()
		run := newRun(t, 10)
		path := writeFile(t, text, run, "records", "0", "1", "12.anomalies.json")
		f(run, truth, path, want)
	}
	r := record(1, "f", 1, 2, "")
	records("", "the file is empty")
	records(r, "it does not begin with [")
	records("["+r, "the file ends within the array of records")
	records("["+r+`,{"rid":1`, "record 1, byte ")
	records("["+r+"] []", "data after the array")
	records("["+r+","+r+"]", `duplicate record of event "1:0:1"`)
	records(`[{"rid":1,"func":"f","entry":5}]`, "record 0, byte 1: without event_id, exit")
	records("["+record(1, "f", 1, 2, `,"status":"perhaps"`)+"]", "is not confirmed, withdrawn or promoted")

	lost := newRun(t, 10)
	if err := os.RemoveAll(filepath.Join(lost, "records")); err != nil {
		t.Fatal(err)
	}
	f(lost, truth, lost, "is not a run directory", "has no provenance.duckdb")

	_, err := eval(t, good, "no[where")
	if _, ok := errors.AsType[usage.Error](err); !ok || !strings.Contains(err.Error(), `pattern "no[where"`) {
		t.Errorf("a bad pattern: got %v", err)
	}
	if _, err := eval(t, good); err == nil || !strings.Contains(err.Error(), "TRUTH is missing") {
		t.Errorf("without truth: got %v", err)
	}
}
