package rundir_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

var _ insight.Labels = (*rundir.Labels)(nil)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// set stores a valid label.
func set(t *testing.T, l *rundir.Labels, run, key, state, note string) {
	t.Helper()
	if err := l.SetLabel(t.Context(), run, api.Label{Key: key, State: state, Note: note, At: noon}); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
}

// all returns the labels of a run as text.
func all(t *testing.T, l *rundir.Labels, run string) string {
	t.Helper()
	labels, err := l.Labels(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if labels[key].Key != key || !labels[key].At.Equal(noon) {
			t.Errorf("%s is %+v", key, labels[key])
		}
		lines = append(lines, key+" "+labels[key].State+" "+labels[key].Note)
	}
	return strings.Join(lines, "; ")
}

func TestLabelsPersistInRunDirectory(t *testing.T) {
	dir := t.TempDir()
	l := rundir.NewLabels(dir)
	if got := all(t, l, "monday"); got != "" {
		t.Errorf("at first: %s", got)
	}
	set(t, l, "monday", "a", api.LabelMuted, `<script>alert("é")</script>`)
	set(t, l, "monday", "b", api.LabelOpen, "to do\nsoon")
	set(t, l, "tuesday", "a", api.LabelExpected, "")
	const monday = `a muted <script>alert("é")</script>; b open to do` + "\nsoon"
	for name, l := range map[string]*rundir.Labels{"same": l, "another": rundir.NewLabels(dir)} {
		if got := all(t, l, "monday"); got != monday {
			t.Errorf("%s: %s", name, got)
		}
		if got := all(t, l, "tuesday"); got != "a expected " {
			t.Errorf("%s: %s", name, got)
		}
	}
	set(t, l, "monday", "a", api.LabelOpen, "")
	set(t, l, "monday", "b", api.LabelExpected, "done")
	if got := all(t, rundir.NewLabels(dir), "monday"); got != "b expected done" {
		t.Errorf("after a change: %s", got)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

func TestLabelsOfOtherProcessesAreRead(t *testing.T) {
	dir := t.TempDir()
	here, there := rundir.NewLabels(dir), rundir.NewLabels(dir)
	set(t, here, "r", "a", api.LabelMuted, "")
	set(t, there, "r", "b", api.LabelMuted, "")
	set(t, here, "r", "c", api.LabelMuted, "")
	for _, l := range []*rundir.Labels{here, there} {
		if got := all(t, l, "r"); got != "a muted ; b muted ; c muted " {
			t.Errorf("got %s", got)
		}
	}
	if err := os.Remove(filepath.Join(dir, "labels.json")); err != nil {
		t.Fatal(err)
	}
	if got := all(t, here, "r"); got != "" {
		t.Errorf("of a file that was removed: %s", got)
	}
}

func TestConcurrentLabelsAreAllStored(t *testing.T) {
	dir := t.TempDir()
	l := rundir.NewLabels(dir)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			err := l.SetLabel(t.Context(), "r", api.Label{Key: fmt.Sprintf("key-%d", i), State: api.LabelMuted, At: noon})
			labels, readErr := l.Labels(t.Context(), "r")
			if err = errors.Join(err, readErr); err != nil || len(labels) == 0 {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if labels, err := rundir.NewLabels(dir).Labels(t.Context(), "r"); err != nil || len(labels) != 40 {
		t.Errorf("%d labels, %v", len(labels), err)
	}
}

func TestInvalidLabelsAreRejected(t *testing.T) {
	l := rundir.NewLabels(t.TempDir())
	f := func(key, state, note, part string) {
		t.Helper()
		err := l.SetLabel(t.Context(), "r", api.Label{Key: key, State: state, Note: note})
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%.20q %q %.20q: got %v, want an error with %q", key, state, note, err, part)
		}
	}
	f("a", "closed", "", `unknown state "closed" (want open, muted, expected`)
	f("", "muted", "", "1 to 256 bytes")
	f(strings.Repeat("k", 257), "muted", "", "1 to 256 bytes")
	f("a\nb", "muted", "", "1 to 256 bytes")
	f("a\xff", "muted", "", "1 to 256 bytes")
	f("a", "muted", strings.Repeat("é", 1001), "2002 bytes (limit 2000)")
	f("a", "muted", "\x1b[31m", "not plain text")
	f("a", "muted", "\xff", "not plain text")
	set(t, l, strings.Repeat("r", 10), strings.Repeat("k", 256), "muted", strings.Repeat("é", 1000))
}

func TestNumberOfLabelsIsLimited(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString(`{"labels":[`)
	for i := range 10_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"run":"r","key":"k%d","state":"muted","note":"","at":"2026-03-04T12:00:00Z"}`, i)
	}
	b.WriteString("]}")
	if err := os.WriteFile(filepath.Join(dir, "labels.json"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	l := rundir.NewLabels(dir)
	err := l.SetLabel(t.Context(), "r", api.Label{Key: "one more", State: api.LabelMuted})
	if err == nil || !strings.Contains(err.Error(), "too many labels (limit 10000") {
		t.Errorf("got %v", err)
	}
	set(t, l, "r", "k7", api.LabelExpected, "replaced")
	set(t, l, "r", "k8", api.LabelOpen, "")
	set(t, l, "r", "one more", api.LabelMuted, "")
}

func TestDamagedLabelsFileIsNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "labels.json")
	for _, text := range []string{`{"labels":[`, `[]`, `{"labels":[{"key":"","state":"muted"}]}`, `{"labels":[{"key":"a","state":"gone"}]}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l := rundir.NewLabels(filepath.Dir(path))
		_, err := l.Labels(t.Context(), "r")
		setErr := l.SetLabel(t.Context(), "r", api.Label{Key: "a", State: api.LabelMuted})
		for _, err := range []error{err, setErr} {
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "correct or remove the file") {
				t.Errorf("%s: %v", text, err)
			}
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("the file is %s now, %v", now, err)
		}
	}
}
