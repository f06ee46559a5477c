package recordfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/recordfile"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// analyze writes the run of a recorded trace and returns its directory.
func analyze(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run")
	dir := recordfile.NewWriter(path)
	cfg := analyzer.Default()
	cfg.SpoolDir = t.TempDir()
	if strings.HasPrefix(name, "ring") { // a short trace
		cfg.Outlier.Algorithm, cfg.Outlier.Sigma, cfg.Outlier.MinSamples = outlier.SSTD, 1, 2
	}
	var inputs []analyzer.Input
	for _, d := range tracetest.Recorded(t, name) {
		inputs = append(inputs, analyzer.Input{Path: d})
	}
	res, err := analyzer.New(cfg, dir, nil).Run(t.Context(), inputs)
	var collections *provenance.Collections
	if err == nil {
		collections, err = res.Collections()
	}
	if err == nil {
		err = dir.WriteGlobal(collections)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// all is the result of reading a directory.
type all struct {
	steps []*recordfile.Step
	errs  []error
	notes recordfile.Notes
}

func read(t *testing.T, dir string) (a all) {
	t.Helper()
	for s, err := range recordfile.Steps(t.Context(), dir, &a.notes) {
		if (s == nil) == (err == nil) {
			t.Fatalf("got step %v with error %v, want one of them", s, err)
		}
		if err != nil {
			a.errs = append(a.errs, err)
		} else {
			a.steps = append(a.steps, s)
		}
	}
	return a
}

// clean reads a directory without damage.
func clean(t *testing.T, dir string) []*recordfile.Step {
	t.Helper()
	a := read(t, dir)
	for _, err := range a.errs {
		t.Error(err)
	}
	if notes := a.noted(); len(notes) > 0 {
		t.Errorf("notes: %v", notes)
	}
	return a.steps
}

func (a *all) noted() map[string]int64 { return maps.Collect(a.notes.All()) }

// records returns the anomalies of all steps.
func (a *all) records() (r []*provenance.Record) {
	for _, s := range a.steps {
		r = append(r, s.Anomalies...)
	}
	return r
}

// written returns records in the form of a file.
func written(t *testing.T, records []*provenance.Record) []byte {
	t.Helper()
	var b bytes.Buffer
	for i, r := range records {
		b.WriteByte("[,"[min(i, 1)])
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
	}
	b.WriteString("]\n")
	return b.Bytes()
}

// files returns the files of steps, by path in the directory of records.
func files(t *testing.T, steps []*recordfile.Step) map[string][]byte {
	t.Helper()
	contents := make(map[string][]byte)
	for _, s := range steps {
		at := fmt.Sprintf("%d/%d/%d.", s.Program, s.Rank, s.Step)
		if len(s.Anomalies) > 0 {
			contents[at+"anomalies.json"] = written(t, s.Anomalies)
		}
		if len(s.Typical) > 0 {
			contents[at+"normalexecs.json"] = written(t, s.Typical)
		}
		if len(s.Metadata) > 0 {
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(s.Metadata); err != nil {
				t.Fatal(err)
			}
			contents[at+"metadata.json"] = b.Bytes()
		}
	}
	return contents
}

func TestRecordsOfRunRoundTrip(t *testing.T) {
	for _, name := range []string{"gpu-BP5", "ring-monitoring-BP4"} {
		run := analyze(t, name)
		want := make(map[string][]byte)
		err := fs.WalkDir(os.DirFS(filepath.Join(run, "records")), ".", func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				want[path], err = os.ReadFile(filepath.Join(run, "records", path))
			}
			return err
		})
		if err != nil || len(want) < 4 {
			t.Fatalf("%s: %d files of records, %v", name, len(want), err)
		}
		for _, dir := range []string{run, filepath.Join(run, "records"), filepath.Join(run, "records", "0")} {
			got := files(t, clean(t, dir))
			if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
				t.Errorf("%s: got files\n%s\nwant\n%s", dir, g, w)
			}
			for path := range want {
				if !bytes.Equal(got[path], want[path]) {
					t.Errorf("%s/%s:\n got %s\nwant %s", dir, path, got[path], want[path])
				}
			}
		}
	}
}

func TestPartsHaveTypesOfNewRecord(t *testing.T) {
	var parents, launches, states int
	for _, s := range clean(t, analyze(t, "gpu-BP5")) {
		for _, r := range slices.Concat(s.Anomalies, s.Typical) {
			switch p := r.GPUParent.(type) {
			case nil, string:
			case provenance.GPUParent:
				parents++
				launches += len(p.CallStack)
			default:
				t.Fatalf("%s: parent is a %T", r.EventID, p)
			}
			if r.NodeState != nil {
				states += len(r.NodeState.Data)
			}
		}
	}
	if parents == 0 || launches <= parents || states == 0 {
		t.Errorf("%d parents with %d calls, %d values of nodes' states: want some of each", parents, launches, states)
	}
}

func TestGlobalRoundTrip(t *testing.T) {
	run := analyze(t, "gpu-BP5")
	for _, dir := range []string{run, filepath.Join(run, "records"), filepath.Join(run, "global")} {
		var notes recordfile.Notes
		c, err := recordfile.Global(t.Context(), dir, &notes)
		if err != nil || len(maps.Collect(notes.All())) > 0 {
			t.Fatalf("%s: %v, notes %v", dir, err, maps.Collect(notes.All()))
		}
		for name, v := range map[string]any{
			"func_stats": c.FuncStats, "counter_stats": c.CounterStats, "ad_model": c.ADModels,
			"path_stats": c.PathStats,
		} {
			got, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join(run, "global", name+".json"))
			if err != nil || len(want) < 100 {
				t.Fatalf("%s: %d bytes, %v", name, len(want), err)
			}
			if !bytes.Equal(append(got, '\n'), want) {
				t.Errorf("%s:\n got %s\nwant %s", name, got, want)
			}
		}
	}
}

// asAny returns JSON as maps and lists.
func asAny(t *testing.T, text []byte) (v []map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func TestRecordsOfOriginalRoundTrip(t *testing.T) {
	const dir = "testdata/original"
	got := files(t, clean(t, dir))
	// The original does not write lost_time. It is the exclusive time less the median of the
	// histogram or the mean of the statistics.
	lost := map[string]any{"1:0:37": 1721.0 - 654, "1:15:5006": 7363.0 - 54}
	f := func(path string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		want := asAny(t, text)
		for _, r := range want {
			if n, ok := lost[fmt.Sprint(r["event_id"])]; ok {
				r["lost_time"] = n
			}
		}
		if got := asAny(t, got[path]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", path, got, want)
		}
	}
	f("0/1/0.anomalies.json")
	f("0/1/15.anomalies.json")
	f("0/1/11.normalexecs.json")
	f("0/1/0.metadata.json")
	if len(got) != 4 {
		t.Errorf("%d files were read, want 4", len(got))
	}
}

// store writes a file and returns the first element of its path.
func store(t *testing.T, content string, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path[0]
}

// minimal returns a record with the required fields and more.
func minimal(rank int, event, more string) string {
	return fmt.Sprintf(`{"event_id":%s,"func":"f","fid":1,"entry":10,"exit":30,"rid":%d,"tid":0,"runtime_exclusive":20%s}`,
		strconv.Quote(event), rank, more)
}

func TestStepsAreSortedByNumber(t *testing.T) {
	dir := t.TempDir()
	for _, program := range []int{10, 9} {
		for _, rank := range []int{2, 11} {
			for _, step := range []int{100, 20, 3} {
				at := []string{dir, strconv.Itoa(program), strconv.Itoa(rank), strconv.Itoa(step)}
				at[3] += ".normalexecs.json"
				store(t, "["+minimal(rank, fmt.Sprintf("%d:%d:1", rank, step), fmt.Sprintf(`,"pid":%d`, program))+"]", at...)
			}
		}
	}
	store(t, `[{"descr":"a","value":"b","rid":2}]`, dir, "9", "2", "20.metadata.json")
	store(t, "["+minimal(2, "2:20:7", `,"lost_time":1`)+"]", dir, "9", "2", "20.anomalies.json")
	var got []string
	for _, s := range clean(t, dir) {
		got = append(got, fmt.Sprintf("%d/%d/%d", s.Program, s.Rank, s.Step))
		for _, r := range s.Typical {
			if r.PID != s.Program || r.RID != s.Rank || r.IOStep != int32(s.Step) {
				t.Errorf("step %v has a record of program %d, rank %d, step %d", got[len(got)-1], r.PID, r.RID, r.IOStep)
			}
		}
		if s.Program == 9 && s.Rank == 2 && s.Step == 20 {
			want := []provenance.Metadata{{Descr: "a", PID: 9, RID: 2, Value: "b"}}
			if len(s.Anomalies) != 1 || len(s.Typical) != 1 || !slices.Equal(s.Metadata, want) {
				t.Errorf("step with all collections: %+v", s)
			}
		}
	}
	want := "9/2/3 9/2/20 9/2/100 9/11/3 9/11/20 9/11/100 10/2/3 10/2/20 10/2/100 10/11/3 10/11/20 10/11/100"
	if strings.Join(got, " ") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, " "), want)
	}
}

func BenchmarkSteps(b *testing.B) {
	run := analyze(b, "gpu-BP5")
	records, size := 0, int64(0)
	err := filepath.WalkDir(filepath.Join(run, "records"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			info, infoErr := d.Info()
			if infoErr != nil {
				return infoErr
			}
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		for s, err := range recordfile.Steps(b.Context(), run, nil) {
			if err != nil {
				b.Fatal(err)
			}
			records += len(s.Anomalies) + len(s.Typical)
		}
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
}
