package upgrade_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/atomicfile"
	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
	"github.com/chimbuko/chimbuko/internal/store/upgrade"
	"github.com/chimbuko/chimbuko/internal/testkit/faultdisk"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// newRun returns a finished run with a store.
func newRun(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	info := provdb.NewInfo("1.0", "", map[string]string{"min-time": "<1ms & more>"})
	k, err := rundir.New(t.Context(), &rundir.Config{Dir: dir, Database: true}, info)
	if err != nil {
		t.Fatal(err)
	}
	info.State, info.Totals.Calls, info.EventRate = provdb.Finished, 1<<60+1, 0.1
	if err := errors.Join(k.End(t.Context(), info), k.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func infoPath(dir string) string { return filepath.Join(dir, runfiles.Info) }

func readFields(t *testing.T, dir string) (fields map[string]json.RawMessage) {
	t.Helper()
	text, err := os.ReadFile(infoPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// change replaces a field of run.json, or removes it.
func change(t *testing.T, dir, name, value string) {
	t.Helper()
	fields := readFields(t, dir)
	if fields[name] = json.RawMessage(value); value == "" {
		delete(fields, name)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, string(text))
}

func write(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(infoPath(dir), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRunWithoutFormatIsConverted(t *testing.T) {
	dir := newRun(t)
	want := readFields(t, dir)
	change(t, dir, "format", "")
	for _, read := range []func() error{
		func() error { _, err := runfiles.ReadInfo(dir); return err },
		func() error { _, err := rundir.FindStore(dir); return err },
	} {
		if err := read(); !errors.Is(err, fileformat.ErrOlder) || !strings.Contains(err.Error(), "run.json: ") ||
			!strings.Contains(err.Error(), "chimbuko upgrade") {
			t.Errorf("before the conversion: %v", err)
		}
	}
	changes := []upgrade.Change{{Name: infoPath(dir), From: 0, To: provdb.InfoFormat.Number}}
	if got, err := upgrade.Run(t.Context(), dir, true); err != nil || !reflect.DeepEqual(got, changes) {
		t.Fatalf("dry run: got %v, %v", got, err)
	}
	if readFields(t, dir)["format"] != nil {
		t.Error("the dry run changed run.json")
	}
	if got, err := upgrade.Run(t.Context(), dir, false); err != nil || !reflect.DeepEqual(got, changes) {
		t.Fatalf("got %v, %v", got, err)
	}
	if got := readFields(t, dir); !maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return sameJSON(t, a, b) }) {
		t.Errorf("run.json is\n%s\nwant\n%s", got, want)
	}
	if got, err := upgrade.Run(t.Context(), dir, false); err != nil || len(got) > 0 {
		t.Errorf("the second time: got %v, %v", got, err)
	}
	if _, err := rundir.FindStore(dir); err != nil {
		t.Error(err)
	}
}

// sameJSON compares the texts of numbers, too.
func sameJSON(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	var x, y any
	for text, v := range map[*json.RawMessage]*any{&a: &x, &b: &y} {
		d := json.NewDecoder(strings.NewReader(string(*text)))
		d.UseNumber()
		if err := d.Decode(v); err != nil {
			t.Fatal(err)
		}
	}
	return reflect.DeepEqual(x, y)
}

func TestUpgradeHandlesOtherPlaces(t *testing.T) {
	dir := newRun(t)
	for _, where := range []string{dir, filepath.Join(dir, duckstore.FileName)} {
		if got, err := upgrade.Run(t.Context(), where, false); err != nil || len(got) > 0 {
			t.Errorf("%s: got %v, %v", where, got, err)
		}
	}
	if err := os.Remove(infoPath(dir)); err != nil {
		t.Fatal(err)
	}
	if got, err := upgrade.Run(t.Context(), dir, false); err != nil || len(got) > 0 {
		t.Errorf("a store without run.json: got %v, %v", got, err)
	}
	f := func(where, want string) {
		t.Helper()
		if _, err := upgrade.Run(t.Context(), where, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", where, err, want)
		}
	}
	f(filepath.Join(dir, "none"), "no such file")
	f(t.TempDir(), "is not a run directory")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("not a database"), 0o600); err != nil {
		t.Fatal(err)
	}
	f(text, "not a provenance database of chimbuko")
	f("postgres://nobody@127.0.0.1:1/none?connect_timeout=1", "127.0.0.1:1")
}

func TestRunOfRecordFilesIsConverted(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, `{"state":"finished","version":"dev"}`)
	if got, err := upgrade.Run(t.Context(), dir, false); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	if info, err := runfiles.ReadInfo(dir); err != nil || info.State != provdb.Finished || info.Version != "dev" {
		t.Errorf("got %+v, %v", info, err)
	}
}

func TestOtherRunsAreNotChanged(t *testing.T) {
	dir := newRun(t)
	f := func(text string, want error, words string) {
		t.Helper()
		write(t, dir, text)
		for _, dryRun := range []bool{true, false} {
			changes, err := upgrade.Run(t.Context(), dir, dryRun)
			if len(changes) > 0 || err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), words) ||
				!strings.Contains(err.Error(), infoPath(dir)) {
				if !dryRun || want != nil { // a dry run does not decode all fields
					t.Errorf("%s: got %v, %v, want %v with %q", text, changes, err, want, words)
				}
			}
		}
		if after, err := os.ReadFile(infoPath(dir)); err != nil || string(after) != text {
			t.Errorf("%s: run.json is %s, %v", text, after, err)
		}
	}
	f(`{"format":2,"state":"finished"}`, fileformat.ErrNewer, "it has format 2, this program reads format 1 (install a newer chimbuko)")
	f(`{"format":-1,"state":"finished"}`, fileformat.ErrOlder, "it has format -1")
	f(`{"state":"running"}`, upgrade.ErrNotEnded, "finish it")
	f(`{"state":"incomplete"}`, upgrade.ErrNotEnded, "finish it")
	f(`{"state":"finished","totals":{"fu`, nil, "unexpected end of JSON")
	f(``, nil, "unexpected end of JSON")
	f(`null`, nil, "damaged")
	f(`{}`, nil, "damaged")
	f(`[]`, nil, "cannot unmarshal array")
	f(`{"state":"finished","format":"1"}`, nil, "cannot unmarshal string")
	f(`{"state":"finished","totals":[]}`, nil, "cannot unmarshal array")
}

func TestRunInUseIsRefused(t *testing.T) {
	dir := newRun(t)
	change(t, dir, "format", "")
	s, err := duckstore.Open(t.Context(), filepath.Join(dir, duckstore.FileName), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := upgrade.Run(t.Context(), dir, false); len(got) > 0 || !errors.Is(err, provdb.ErrInUse) {
		t.Errorf("got %v, %v", got, err)
	}
	if readFields(t, dir)["format"] != nil {
		t.Error("run.json was changed")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := upgrade.Run(t.Context(), dir, false); err != nil || len(got) != 1 {
		t.Errorf("after the end: got %v, %v", got, err)
	}
}

func TestConversionSurvivesFailingDisk(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	const old = `{"state":"finished","version":"dev","totals":{"functions":7}}`
	if dir := faultdisk.Dir(); dir != "" {
		if err := atomicfile.Write(infoPath(dir), []byte(old), 0o644); err != nil {
			t.Fatal(err)
		}
		fmt.Println("begun")
		if _, err := upgrade.Run(t.Context(), dir, false); err != nil {
			t.Fatal(err)
		}
		fmt.Println("done")
		return
	}
	faultdisk.Torture(t, 8, faultdisk.Arbitrary, func(t *testing.T, after faultdisk.Aftermath) {
		if !strings.Contains(after.Output, "begun\n") {
			return
		}
		_, err := runfiles.ReadInfo(after.Dir)
		if strings.Contains(after.Output, "done\n") && err != nil || err != nil && !errors.Is(err, fileformat.ErrOlder) {
			t.Errorf("after the fault: %v", err)
		}
		if _, err := upgrade.Run(t.Context(), after.Dir, false); err != nil {
			t.Error(err)
		}
		if info, err := runfiles.ReadInfo(after.Dir); err != nil || info.Totals.Functions != 7 {
			t.Errorf("after the repetition: %+v, %v", info, err)
		}
	})
}
