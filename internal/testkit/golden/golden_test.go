package golden

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/cli"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// versions returns the directories of earlier versions.
func versions(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(tracetest.Root("testdata", "golden", "*", "run.tar.zst"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no runs of earlier versions: %v", err)
	}
	for i := range all {
		all[i] = filepath.Dir(all[i])
	}
	return all
}

// lab is a run of an earlier version, with a model and a baseline.
type lab struct {
	dir string
	ids *strings.Replacer
	out int // files written so far
}

// unpack returns a copy of the run in a directory of an earlier version, converted to this version.
func unpack(t *testing.T, version string) *lab {
	t.Helper()
	l := &lab{dir: t.TempDir()}
	if err := os.CopyFS(l.dir, os.DirFS(tracetest.Unpack(t, filepath.Join(version, "run.tar.zst"), "."))); err != nil {
		t.Fatal(err)
	}
	l.run(t, "upgrade", l.path("run"))
	value := func(sql string) string {
		t.Helper()
		var rows []map[string]string
		if err := json.Unmarshal(l.run(t, "query", l.path("run"), sql, "--format", "json"), &rows); err != nil || len(rows) != 1 {
			t.Fatalf("%s: %v, %v", sql, rows, err)
		}
		return rows[0]["v"]
	}
	const worst = " AS v FROM anomalies WHERE status IS DISTINCT FROM 'withdrawn' ORDER BY lost_time DESC, event_id LIMIT 1"
	l.ids = strings.NewReplacer("{event}", value("SELECT event_id"+worst), "{func}", value("SELECT func"+worst),
		"{normal}", value("SELECT event_id AS v FROM normalexecs ORDER BY runtime_total DESC, event_id LIMIT 1"))
	return l
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

// run executes a command, which must succeed, and returns its output.
func (l *lab) run(t *testing.T, args ...string) []byte {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Version: "test", Commit: "none"}
	if code := cli.Run(t.Context(), env, args); code != 0 {
		t.Errorf("%q: exit code %d: %s", args, code, stderr.String())
	}
	return stdout.Bytes()
}

// command executes a case of a command and returns its answer, as JSON if it has one.
func (l *lab) command(t *testing.T, name string, args []string) any {
	t.Helper()
	words := append([]string{}, strings.Fields(name)...)
	out := ""
	for _, arg := range args {
		switch arg {
		case "RUN", "BASELINE", "MODELS":
			arg = l.path(strings.ToLower(arg))
		case "OUT":
			l.out++
			out = l.path(fmt.Sprint("out-", l.out))
			arg = out
		}
		words = append(words, l.ids.Replace(arg))
	}
	text := l.run(t, words...)
	if out != "" {
		if _, err := os.Stat(out); err != nil {
			t.Errorf("%s %q wrote nothing: %v", name, args, err)
		}
	}
	return l.decode(t, text, strings.Contains(strings.Join(args, " "), "--format csv"))
}

// decode returns JSON, or CSV as a list of objects; nil for other texts.
func (l *lab) decode(t *testing.T, text []byte, isCSV bool) (v any) {
	t.Helper()
	text = bytes.ReplaceAll(text, []byte(l.dir), []byte("DIR"))
	if !isCSV {
		if json.Unmarshal(text, &v) != nil {
			return nil
		}
		return v
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(lines) == 0 {
		t.Errorf("CSV of %d lines: %v", len(lines), err)
		return nil
	}
	rows := []any{}
	for _, line := range lines[1:] {
		row := make(map[string]any)
		for i, name := range lines[0] {
			row[name] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// page serves the page of the run until the test ends.
func (l *lab) page(t *testing.T) *viewer.Page {
	t.Helper()
	r, err := viewer.Open(t.Context(), l.path("run"), "", "test")
	if err != nil {
		t.Fatal(err)
	}
	o := viewer.Options{Listen: "127.0.0.1:0", Compare: []string{l.path("baseline")}}
	with, err := o.References(t.Context(), viewer.Subject{Name: r.Name, Version: "test", Place: r.Place, Reader: r.Reader()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.Serve(t.Context(), r, with, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the end of its context
		if err := errors.Join(p.Wait(), with.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// answer is the answer of a route.
type answer struct {
	status int
	kind   string
	text   []byte
}

// request sends a case of routeCases, and returns its answer and its address without names.
func (l *lab) request(t *testing.T, p *viewer.Page, words string) (a answer, method, path string) {
	t.Helper()
	method, rest, _ := strings.Cut(words, " ")
	where, body, _ := strings.Cut(rest, " ")
	if strings.HasPrefix(where, "R") {
		where = "api/v1/runs/run" + where[1:]
	}
	at, query, _ := strings.Cut(where, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		v[0] = l.ids.Replace(v[0])
	}
	parts := strings.Split(at, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(l.ids.Replace(part))
	}
	path = "/" + strings.Join(parts, "/")
	req, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(p.Address, "/")+path+"?"+values.Encode(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.Token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	a.status, a.kind = res.StatusCode, res.Header.Get("Content-Type")
	a.text, err = io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		t.Fatalf("%s: %v", words, err)
	}
	return a, method, path
}

// labels writes the label of a finding as version 1.0 did, and adds the keys of findings to the ids.
func (l *lab) labels(t *testing.T, p *viewer.Page) {
	t.Helper()
	var list struct {
		Rows []struct{ Key, Kind string }
	}
	a, _, _ := l.request(t, p, "GET R/findings")
	if err := json.Unmarshal(a.text, &list); err != nil || len(list.Rows) < 2 {
		t.Fatalf("%d findings, %v", len(list.Rows), err)
	}
	slow := ""
	for _, f := range list.Rows {
		if f.Kind == "slow-peer" {
			slow = f.Key
		}
	}
	l.ids = strings.NewReplacer("{key}", list.Rows[0].Key, "{slow}", slow, "{event}", l.ids.Replace("{event}"),
		"{func}", l.ids.Replace("{func}"), "{normal}", l.ids.Replace("{normal}"))
	text := fmt.Sprintf(`{"labels":[{"run":"run","key":%q,"state":"expected","note":"known","at":"2026-01-01T00:00:00Z"}]}`, list.Rows[1].Key)
	if err := os.WriteFile(l.path("run/labels.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRunsOfEarlierVersionsAnswerEveryQuery(t *testing.T) {
	tracetest.SkipShort(t, "starts a server")
	t.Chdir(tracetest.Root())
	for _, version := range versions(t) {
		t.Run(filepath.Base(version), func(t *testing.T) {
			l := unpack(t, version)
			answers := make(map[string]any)
			for name, cases := range commandCases {
				for _, args := range cases {
					answers[strings.Join(append([]string{name}, args...), " ")] = l.command(t, name, args)
				}
			}
			l.routeAnswers(t, answers)
			compareAnswers(t, filepath.Join(version, "answers.json.gz"), answers)
		})
	}
}

// routeAnswers adds the answers of all routes.
func (l *lab) routeAnswers(t *testing.T, answers map[string]any) {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	p := l.page(t)
	l.labels(t, p)
	var patterns http.ServeMux
	missing := make(map[string]bool)
	for _, route := range routes(t) {
		patterns.HandleFunc(route, nothing)
		missing[route] = route != streamRoute
	}
	for _, words := range routeCases {
		a, method, path := l.request(t, p, words)
		req, err := http.NewRequestWithContext(t.Context(), method, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, pattern := patterns.Handler(req)
		if missing[pattern] = false; pattern == "" || a.status != http.StatusOK || len(a.text) == 0 {
			t.Errorf("%s (%s): status %d: %.300s", words, pattern, a.status, a.text)
		}
		v := l.decode(t, a.text, strings.HasPrefix(a.kind, "text/csv"))
		if fields, ok := v.(map[string]any); ok && fields["host"] == host { // of the page
			fields["host"] = "HOST"
		}
		answers[words] = v
	}
	for route, without := range missing {
		if without {
			t.Errorf("routeCases has no request of %s", route)
		}
	}
}

func nothing(http.ResponseWriter, *http.Request) {}

func TestEveryCommandHasCase(t *testing.T) {
	for _, cmd := range commands(root()) {
		name := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), "chimbuko"))
		if len(commandCases[name]) == 0 && withoutRun[name] == "" {
			t.Errorf("chimbuko %s: add it to commandCases, or to withoutRun", name)
		}
	}
}

// volatile are the fields that depend on when and where the answers were recorded, and wording the fields with text for people. Of
// these, only the presence is compared.
var (
	volatile = []string{
		"started", "finished", "now", "at", "seconds", "events_per_second", "record_bytes", "reduction", "version", "build",
		"place", "where", "host_name", "commit", "process", "uptime_seconds", "since_seconds", "next", "settings", "traces",
	}
	wording = []string{
		"sentence", "hint", "why", "title", "summary", "note", "command", "support", "rest", "words", "text", "detail", "efficiency",
	}
)

// compareAnswers compares answers with recorded ones. They may have more fields.
func compareAnswers(t *testing.T, file string, answers map[string]any) {
	t.Helper()
	var now any
	text, err := json.Marshal(answers)
	if err == nil {
		err = json.Unmarshal(text, &now)
	}
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := readAnswers(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	lost, changed := differences("", recorded, now)
	for _, d := range lost {
		t.Error(d)
	}
	switch {
	case len(lost) > 0:
	case *update:
		if err := writeAnswers(file, text); err != nil {
			t.Fatal(err)
		}
	case len(changed) > 0:
		t.Errorf("answers about a stored run have changed; if that is intended, record them again with -update:\n%s",
			strings.Join(changed[:min(len(changed), 20)], "\n"))
	}
}

func readAnswers(file string) (v any, err error) {
	packed, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return v, json.NewDecoder(z).Decode(&v)
}

func writeAnswers(file string, text []byte) error {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = z.Write(text)
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	return os.WriteFile(file, packed.Bytes(), 0o644)
}

// brief returns the beginning of a value, and its length if it is a list.
func brief(v any) string {
	words := fmt.Sprintf("%.200s", fmt.Sprint(v))
	if list, ok := v.([]any); ok {
		words = fmt.Sprintf("list of %d: %s", len(list), words)
	}
	return words
}

// differences returns which fields of old are lost in current, and which values have changed.
func differences(at string, old, current any) (lost, changed []string) {
	switch old := old.(type) {
	case map[string]any:
		fields, ok := current.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s: %s, was an object", at, brief(current))}, nil
		}
		for _, name := range slices.Sorted(maps.Keys(old)) {
			v, ok := fields[name]
			switch {
			case !ok:
				lost = append(lost, fmt.Sprintf("%s.%s is missing", at, name))
			case slices.Contains(volatile, name) || slices.Contains(wording, name):
			default:
				l, c := differences(at+"."+name, old[name], v)
				lost, changed = append(lost, l...), append(changed, c...)
			}
		}
	case []any:
		list, ok := current.([]any)
		if !ok || len(list) != len(old) {
			return nil, []string{fmt.Sprintf("%s: %s, was %s", at, brief(current), brief(old))}
		}
		for i := range old {
			l, c := differences(fmt.Sprintf("%s[%d]", at, i), old[i], list[i])
			lost, changed = append(lost, l...), append(changed, c...)
		}
	case float64:
		if f, ok := current.(float64); !ok || math.Abs(f-old) > 1e-9*math.Abs(old) {
			changed = append(changed, fmt.Sprintf("%s: %v, was %v", at, current, old))
		}
	default:
		if !reflect.DeepEqual(old, current) {
			changed = append(changed, fmt.Sprintf("%s: %s, was %s", at, brief(current), brief(old)))
		}
	}
	return lost, changed
}

func TestDifferencesFindLostFieldsAndChangedValues(t *testing.T) {
	f := func(old, current string, lost, changed int) {
		t.Helper()
		var a, b any
		if err := errors.Join(json.Unmarshal([]byte(old), &a), json.Unmarshal([]byte(current), &b)); err != nil {
			t.Fatal(err)
		}
		if l, c := differences("", a, b); len(l) != lost || len(c) != changed {
			t.Errorf("%s, %s: lost %q, changed %q", old, current, l, c)
		}
	}
	f(`{"a":1,"b":[{"c":"x"}]}`, `{"a":1,"b":[{"c":"x","new":2}],"new":1}`, 0, 0)
	f(`{"a":1,"b":[{"c":"x"}]}`, `{"a":1,"b":[{"new":2}]}`, 1, 0)
	f(`{"a":1}`, `{"a":2}`, 0, 1)
	f(`{"a":0.1}`, `{"a":0.10000000000000001}`, 0, 0)
	f(`{"a":null}`, `{"a":1}`, 0, 1)
	f(`{"a":[1,2]}`, `{"a":[1]}`, 0, 1)
	f(`{"a":{}}`, `{"a":[]}`, 1, 0)
	f(`{"sentence":"old"}`, `{"sentence":"new"}`, 0, 0)
	f(`{"sentence":"old"}`, `{}`, 1, 0)
}

func TestModelsOfOtherFormatsAreRefused(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	t.Chdir(tracetest.Root())
	l := unpack(t, versions(t)[0])
	models, err := os.ReadFile(l.path("models"))
	if err != nil {
		t.Fatal(err)
	}
	f := func(number, want string) {
		t.Helper()
		other := bytes.Replace(models, []byte("models 6"), []byte("models "+number), 1)
		if err := os.WriteFile(l.path("other"), other, 0o600); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		env := &cli.Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr, Version: "test", Commit: "none"}
		args := []string{"analyze", "testdata/traces/ring-BP5", "--out", l.path("none"), "--load-model", l.path("other")}
		if code := cli.Run(t.Context(), env, args); code != 2 || !strings.Contains(stderr.String(), l.path("other")+": "+want) {
			t.Errorf("exit code %d: %s; want %q", code, stderr.String(), want)
		}
	}
	f("7", "written by a newer chimbuko: it has format 7, this program reads format 6 (install a newer chimbuko)")
	f("5", "written by an earlier chimbuko: it has format 5, this program reads format 6 (learn the models again")
}
