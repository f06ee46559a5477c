package recordfile_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/recordfile"
)

func TestDamagedFileYieldsRecordsBeforeDamage(t *testing.T) {
	good := minimal(3, "3:7:1", `,"status":"confirmed"`)
	second := minimal(3, "3:7:2", `,"status":"confirmed"`)
	n := int64(len(good))
	f := func(content string, records, record int, offset int64, want string) {
		t.Helper()
		dir := t.TempDir()
		bad := filepath.Join(dir, "0", "3", "7.anomalies.json")
		store(t, content, bad)
		store(t, "["+minimal(3, "3:7:100", "")+"]", dir, "0", "3", "7.normalexecs.json")
		store(t, "["+minimal(3, "3:8:1", "")+"]", dir, "0", "3", "8.normalexecs.json")
		store(t, "["+minimal(4, "4:7:1", "")+"]", dir, "0", "4", "7.normalexecs.json")
		a := read(t, dir)
		if len(a.steps) != 3 || len(a.steps[0].Anomalies) != records || len(a.steps[0].Typical) != 1 {
			t.Errorf("%.200q: got %d steps, want 3, of which the first has %d anomalies", content, len(a.steps), records)
		}
		if len(a.errs) != 1 {
			t.Fatalf("%.200q: errors %v, want one", content, a.errs)
		}
		e, ok := errors.AsType[*recordfile.Error](a.errs[0])
		if !ok || e.Path != bad || e.Record != record || e.Offset != offset || !strings.Contains(e.Error(), want) {
			t.Errorf("%.200q:\n got %v (%+v)\nwant record %d, byte %d, %s", content, a.errs[0], e, record, offset, want)
		}
	}
	f("", 0, -1, 0, "empty")
	f(" \n", 0, -1, 2, "empty")
	f("{}", 0, -1, 0, "not an array")
	f(good, 0, -1, 0, "not an array")
	f("anomalies", 0, -1, 0, "not an array")
	f("\x00\x00\x00\x00", 0, -1, 0, "not an array")
	f("[", 0, -1, 1, "ends within")
	f("["+good, 1, -1, 1+n, "ends within")
	f("["+good+",", 1, 1, 2+n, "ends within")
	f("["+good+","+second[:20], 1, 1, 2+n+20, "ends within")
	f("["+good+"}", 1, -1, 1+n, "invalid character")
	f("["+good+","+"{\"func\":\x01}]", 1, 1, 2+n, "invalid character")
	f("["+good+" "+second+"]", 1, 1, 2+n, "comma")
	f("["+good+",]", 1, 1, 2+n, "invalid character")
	f("["+good+"]["+second+"]", 1, -1, 2+n, "data after the array")
	f("["+good+"]\x00", 1, -1, 2+n, "data after the array")
	f("["+good+", "+good+"]", 1, 1, 3+n, `duplicate record of event "3:7:1"`)
	f("["+good+", 5]", 1, 1, 3+n, "is not an object")
	f("["+good+",[]]", 1, 1, 2+n, "is not an object")
	f("["+good+",\n{}]", 1, 1, 3+n, "without entry, event_id, exit, fid, func, rid, runtime_exclusive, tid")
	f("["+strings.Replace(good, `"rid":3,`, "", 1)+"]", 0, 0, 1, "without rid")
	f("["+strings.Replace(good, `"exit":30`, `"exit":null`, 1)+"]", 0, 0, 1, "without exit")
	f("["+strings.Replace(good, `"3:7:1"`, `""`, 1)+"]", 0, 0, 1, "event_id is empty")
	f("["+strings.Replace(good, `"rid":3,`, `"rid":4,`, 1)+"]", 0, 0, 1, "rid is 4, want 3 as in the path")
	at := int64(strings.Index(good, `"f"`))
	f("["+good+","+strings.Replace(good, `"f"`, `7.5`, 1)+"]", 1, 1, 2+n+at, `func: "7.5" is not a string`)
	stack := `{"call_stack": [{"func":"f"}, {"func":"g","fid": "1"}]}`
	f("["+stack+"]", 0, 0, 1+int64(strings.Index(stack, `"1"`)), `call_stack: 1: fid: "\"1\"" is not a number`)
	f("["+strings.Repeat("[", 1e5), 0, 0, 1, "exceeded max depth")
}

func TestDuplicateEventsAreRejected(t *testing.T) {
	dir := t.TempDir()
	r := minimal(3, "3:7:1", `,"lost_time":1`)
	store(t, "["+r+"]", dir, "0", "3", "7.anomalies.json")
	store(t, "["+minimal(3, "3:7:2", "")+","+r+"]", dir, "0", "3", "9.normalexecs.json")
	store(t, "["+r+"]", dir, "0", "3", "10.anomalies.json")
	store(t, "["+r+"]", dir, "1", "3", "7.anomalies.json") // another program
	a := read(t, dir)
	if len(a.steps) != 3 || len(a.errs) != 2 {
		t.Fatalf("%d steps, want 3; errors %v, want 2", len(a.steps), a.errs)
	}
	for i, want := range []string{"9.normalexecs.json: record 1", "10.anomalies.json: record 0"} {
		if !strings.Contains(a.errs[i].Error(), want) {
			t.Errorf("got %v, want it to be %s", a.errs[i], want)
		}
	}
}

func TestOtherFilesAreSkippedAndNoted(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"7.normalexecs.json", "07.normalexecs.json", "-7.normalexecs.json", "7.json", "7.counters.json", "7.normalexecs.json.new",
		"normalexecs.json", "99999999999.normalexecs.json",
	} {
		store(t, "["+minimal(3, "3:7:1", "")+"]", dir, "0", "3", name)
	}
	store(t, "", dir, "0", "notes", "a")
	store(t, "", dir, "0", "2147483648", "a")
	store(t, "", dir, "0", "readme")
	store(t, "", dir, "anything", "may be here")
	if err := os.Mkdir(filepath.Join(dir, "0", "3", "8.anomalies.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := read(t, dir)
	if len(a.steps) != 1 || len(a.errs) > 0 {
		t.Errorf("%d steps, want 1; errors %v", len(a.steps), a.errs)
	}
	want := map[string]int64{"files or directories with other names than record files; not read": 11}
	if !maps.Equal(a.noted(), want) {
		t.Errorf("got %v, want %v", a.noted(), want)
	}
}

func TestSymbolicLinksAreFollowed(t *testing.T) {
	there := store(t, "["+minimal(3, "3:7:1", "")+"]", t.TempDir(), "7.normalexecs.json")
	file := store(t, "["+minimal(3, "3:8:1", "")+"]", filepath.Join(t.TempDir(), "file"))
	dir := t.TempDir()
	err := errors.Join(
		os.Mkdir(filepath.Join(dir, "0"), 0o755),
		os.Symlink(there, filepath.Join(dir, "0", "3")),
		os.Symlink(file, filepath.Join(there, "8.normalexecs.json")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if a := read(t, dir); len(a.steps) != 2 || len(a.errs) > 0 || len(a.noted()) > 0 {
		t.Errorf("%d steps, want 2; errors %v, notes %v", len(a.steps), a.errs, a.noted())
	}
}

func TestDirectoryWithoutRecordsIsAnError(t *testing.T) {
	f := func(dir string, want string) {
		t.Helper()
		a := read(t, dir)
		if len(a.steps) > 0 || len(a.errs) != 1 || !strings.Contains(a.errs[0].Error(), want) {
			t.Errorf("%d steps, errors %v, want one: %s", len(a.steps), a.errs, want)
		}
	}
	empty := t.TempDir()
	f(empty, "no files named PROGRAM/RANK/STEP")
	f(filepath.Join(empty, "x"), "no such file")
	f(store(t, "[]", t.TempDir(), "0", "a.json"), "no files named")
	f(store(t, "[]", filepath.Join(t.TempDir(), "file")), "not a directory")
	// A run without records is not an error.
	run := t.TempDir()
	if err := os.Mkdir(filepath.Join(run, "records"), 0o755); err != nil {
		t.Fatal(err)
	}
	if steps := clean(t, run); len(steps) > 0 {
		t.Errorf("%d steps, want none", len(steps))
	}
	// An empty list is a step.
	if steps := clean(t, store(t, "[]\n", run, "records", "0", "0", "1.anomalies.json")); len(steps) != 1 {
		t.Errorf("%d steps, want 1", len(steps))
	}
}

func TestUnreadableFileIsAnError(t *testing.T) {
	dir := store(t, "["+minimal(3, "3:8:1", "")+"]", t.TempDir(), "0", "3", "8.normalexecs.json")
	if err := os.Symlink("gone", filepath.Join(dir, "0", "3", "7.anomalies.json")); err != nil {
		t.Fatal(err)
	}
	if a := read(t, dir); len(a.steps) != 1 || len(a.errs) != 1 || !errors.Is(a.errs[0], fs.ErrNotExist) {
		t.Errorf("%d steps, errors %v", len(a.steps), a.errs)
	}
}

func TestReadingEndsWithContextOrCaller(t *testing.T) {
	dir := t.TempDir()
	for step := range 5 {
		store(t, "["+minimal(3, fmt.Sprintf("3:%d:1", step), "")+"]", dir, "0", "3", strconv.Itoa(step)+".normalexecs.json")
		store(t, "[", dir, "0", "3", strconv.Itoa(step)+".metadata.json")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	for s, err := range recordfile.Steps(ctx, dir, nil) {
		if s != nil && s.Step == 1 {
			cancel()
		}
		got = append(got, fmt.Sprint(s != nil, errors.Is(err, context.Canceled)))
	}
	if want := "true false, false false, true false, false false, false true"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for stop := range 10 {
		n := 0
		for range recordfile.Steps(t.Context(), dir, nil) {
			if n++; n > stop {
				break
			}
		}
		if n != stop+1 {
			t.Errorf("stopped after %d, want %d", n, stop+1)
		}
	}
	if _, err := recordfile.Global(ctx, dir, nil); err != nil {
		t.Errorf("without files: %v", err)
	}
}

func TestMemoryIsBoundedByOneStep(t *testing.T) {
	dir := t.TempDir()
	const steps, records = 30, 50
	for step := range steps {
		var b strings.Builder
		for i := range records {
			b.WriteByte("[,"[min(i, 1)])
			b.WriteString(minimal(3, fmt.Sprintf("3:%d:%d", step, i), fmt.Sprintf(
				`,"hostname":"%[1]d","call_stack":[{"func":"%[1]d"}],"algo_params":{"%[1]d":"%[2]s"}`, step*records+i, strings.Repeat("x", 3000))))
		}
		store(t, b.String()+"]", dir, "0", "3", strconv.Itoa(step)+".normalexecs.json")
	}
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var early, late uint64
	for s, err := range recordfile.Steps(t.Context(), dir, nil) {
		switch {
		case err != nil || len(s.Typical) != records:
			t.Fatalf("%v", err)
		case s.Step == 5:
			early = live()
		case s.Step == steps-1:
			late = live()
		}
	}
	// The reader holds event ids.
	if most := early + 100*steps*records; late > most {
		t.Errorf("%d bytes in the beginning, %d at the end, want no more than %d", early, late, most)
	}
}
