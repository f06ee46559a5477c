package settings

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func unknown(string) bool { return false }

// knobs are the values of flags of all kinds.
type knobs struct {
	window    int
	ratio     float64
	threshold float64
	name      string
	sync      time.Duration
	quiet     bool
	ignore    []string
	function  []string
	ranks     []int
	labels    map[string]string
	config    string
}

func newKnobs() (*knobs, *pflag.FlagSet) {
	k := &knobs{}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	fs.IntVar(&k.window, "window", 5, "")
	fs.Float64Var(&k.ratio, "ratio", 0.5, "")
	fs.Float64Var(&k.threshold, "hbos-threshold", 0.99, "")
	fs.StringVar(&k.name, "name", "none", "")
	fs.DurationVar(&k.sync, "sync", time.Second, "")
	fs.BoolVar(&k.quiet, "quiet", false, "")
	fs.StringSliceVar(&k.ignore, "ignore", []string{"x"}, "")
	fs.StringArrayVar(&k.function, "function", nil, "")
	fs.IntSliceVar(&k.ranks, "ranks", []int{1, 2}, "")
	fs.StringToStringVar(&k.labels, "labels", nil, "")
	fs.StringVar(&k.config, "config", "", "")
	fs.Bool("help", false, "")
	return k, fs
}

func TestPrecedenceOfFlagFileAndEnvironment(t *testing.T) {
	k, fs := newKnobs()
	if err := fs.Parse([]string{"--window=1", "--ignore", "flag"}); err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, `window = 2 # the flag wins
ratio = 2
ignore = ["file"]
function = ["a, b", "c"]`, t.TempDir(), "conf.toml")
	origin, err := Apply(fs, file, []string{
		"HOME=/", "CHIMBUKO_WINDOW=3", "CHIMBUKO_RATIO=3", "CHIMBUKO_SYNC=3s", "CHIMBUKO_RANKS=3,4", "CHIMBUKO_HBOS_THRESHOLD=0.3",
		"CHIMBUKO_CONFIG=not-read.toml",
	}, unknown)
	if err != nil {
		t.Fatal(err)
	}
	want := knobs{
		window: 1, ratio: 2, threshold: 0.3, name: "none", sync: 3 * time.Second, ignore: []string{"flag"},
		function: []string{"a, b", "c"}, ranks: []int{3, 4},
	}
	if !reflect.DeepEqual(*k, want) {
		t.Errorf("got  %+v\nwant %+v", *k, want)
	}
	wantOrigin := map[string]string{
		"window": "flag --window", "ignore": "flag --ignore", "ratio": file + ":2", "function": file + ":4",
		"hbos-threshold": "environment variable CHIMBUKO_HBOS_THRESHOLD", "sync": "environment variable CHIMBUKO_SYNC",
		"ranks": "environment variable CHIMBUKO_RANKS", "name": "default", "quiet": "default", "labels": "default",
	}
	if !maps.Equal(origin, wantOrigin) {
		t.Errorf("got  %v\nwant %v", origin, wantOrigin)
	}
	if !fs.Changed("ratio") || !fs.Changed("function") || fs.Changed("name") {
		t.Error("Changed does not match the flags that were set")
	}
}

func TestFileSetsAllKindsOfFlags(t *testing.T) {
	k, fs := newKnobs()
	file := writeFile(t, `
name = "a # \"b\""
quiet = true
sync = "1m30s"
ratio = 1e3
ignore = []
labels = "a=1,b=2"
ranks = [
  7, # seven
  8,
]
[hbos]
threshold = 0.7
`, t.TempDir(), "conf.toml")
	origin, err := Apply(fs, "", []string{"CHIMBUKO_CONFIG=" + file}, unknown)
	if err != nil {
		t.Fatal(err)
	}
	want := knobs{
		window: 5, ratio: 1000, threshold: 0.7, name: `a # "b"`, sync: 90 * time.Second, quiet: true,
		ignore: []string{}, ranks: []int{7, 8}, labels: map[string]string{"a": "1", "b": "2"},
	}
	if !reflect.DeepEqual(*k, want) {
		t.Errorf("got  %+v\nwant %+v", *k, want)
	}
	if got, want := origin["hbos-threshold"], file+":13"; got != want {
		t.Errorf("threshold came from %s, want %s", got, want)
	}
}

func TestTableKeysAreJoined(t *testing.T) {
	f := func(text string) {
		t.Helper()
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		n := fs.Int("a-b-c", 0, "")
		file := writeFile(t, text, t.TempDir(), "conf.toml")
		if origin, err := Apply(fs, file, nil, unknown); err != nil || *n != 7 || origin["a-b-c"] != file+":2" {
			t.Errorf("%q: got %d from %s, error %v", text, *n, origin["a-b-c"], err)
		}
	}
	f("\na-b-c = 7")
	f("[a.b]\nc = 7")
	f("[a]\nb.c = 7")
	f("[a]\nb = {c = 7}")
	f("[a-b]\nc = 7")
	f("\na.'b-c' = 7")
}

func TestAllErrorsAreReportedTogether(t *testing.T) {
	_, fs := newKnobs()
	if err := fs.Parse([]string{"--window=1"}); err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, `widow = 2
window = "ten"
sync = "soon"
config = "other.toml"
ratio = true
ignore = "a"
ranks = [1, "two"]
name = 2026-01-01
quiet = 1
function = [["a"]]
hbos-threshold = 1
[hbos]
threshold = 2
bins = 200
[[labels]]
a = 1
`, t.TempDir(), "conf.toml")
	_, err := Apply(fs, file, []string{"CHIMBUKO_NAM=x", "CHIMBUKO_HELP=1", "CHIMBUKO_WINDOW=ten", "CHIMBUKO_SYNC=never"}, unknown)
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		file + `:1: unknown setting "widow"`,
		file + `:2: window: "ten" is a string, not an integer`,
		file + `:3: sync: invalid argument "soon" for "--sync" flag: time: invalid duration "soon"`,
		file + `:4: unknown setting "config"`,
		file + `:5: ratio: true is a boolean, not a number`,
		file + `:6: ignore: "a" is a string, not an array`,
		file + `:7: ranks: "two" is a string, not an integer`,
		file + `:8: name: the value is a date or a time, not a string`,
		file + `:9: quiet: 1 is an integer, not a boolean`,
		file + `:10: function: the value is an array, not a string`,
		file + `:13: hbos-threshold is set in line 11 already`,
		file + `:14: unknown setting "hbos-bins"`,
		file + `:15: labels: the value is an array, not a string`,
		`environment variable CHIMBUKO_HELP: no setting has this name`,
		`environment variable CHIMBUKO_NAM: no setting has this name`,
	}
	got := strings.Split(err.Error(), "\n")
	for i := range max(len(got), len(want)) {
		g, w := append(got, make([]string, len(want))...)[i], append(want, make([]string, len(got))...)[i]
		if g != w {
			t.Errorf("error %d:\n got %s\nwant %s", i, g, w)
		}
	}
}

func TestErrorsNameVariableOrFile(t *testing.T) {
	f := func(file string, environ []string, want ...string) {
		t.Helper()
		_, fs := newKnobs()
		_, err := Apply(fs, file, environ, unknown)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s %q: got %v, want %q", file, environ, err, w)
			}
		}
	}
	f("", []string{"CHIMBUKO_WINDOW=ten", "CHIMBUKO_QUIET=perhaps"},
		`environment variable CHIMBUKO_WINDOW: invalid argument "ten"`, `environment variable CHIMBUKO_QUIET: invalid argument "perhaps"`)
	f("", []string{"CHIMBUKO_WINDOW="}, `environment variable CHIMBUKO_WINDOW: invalid argument ""`)
	f("missing.toml", []string{"CHIMBUKO_NONE=1"}, "flag --config: ", "missing.toml", "CHIMBUKO_NONE")
	f("", []string{"CHIMBUKO_CONFIG=missing.toml"}, "environment variable CHIMBUKO_CONFIG: ", "missing.toml")
	file := writeFile(t, "window = 1\nratio = = 2\n", t.TempDir(), "conf.toml")
	f(file, []string{"CHIMBUKO_NONE=1"}, file+":2: ", "CHIMBUKO_NONE")
	f(writeFile(t, "window = 1\nwindow = 2\n", t.TempDir(), "conf.toml"), nil, "conf.toml:2: ", "window")
	f(writeFile(t, "ranks = [9223372036854775808]\n", t.TempDir(), "conf.toml"), nil, "conf.toml:1: ", "out of range")

	_, fs := newKnobs()
	if _, err := Apply(fs, "", []string{"CHIMBUKO_CONFIG=", "CHIMBUKO", "PATH=CHIMBUKO_X=1"}, unknown); err != nil {
		t.Errorf("unexpected error: %v", err)
	}
}

func TestPrintedSettingsHaveOriginsAndRoundTrip(t *testing.T) {
	k, fs := newKnobs()
	if err := fs.Parse([]string{
		"--name", "tab\t\"quote\" # é\n", "--function=a,b", "--function=[c]", "--labels=b=2,a=1",
		"--ratio=+Inf",
	}); err != nil {
		t.Fatal(err)
	}
	origin, err := Apply(fs, "", []string{"CHIMBUKO_WINDOW=12"}, unknown)
	if err != nil {
		t.Fatal(err)
	}
	var first bytes.Buffer
	Print(&first, fs, origin)
	for _, want := range []string{
		"window = 12 # environment variable CHIMBUKO_WINDOW\n", "sync = \"1s\" # default\n", "function = [\"a,b\", \"[c]\"] # flag --function\n",
		"ratio = inf # flag --ratio\n", "hbos-threshold = 0.99 # default\n", "ranks = [1, 2] # default\n", "quiet = false # default\n",
	} {
		if got := strings.Join(strings.FieldsFunc(first.String(), func(r rune) bool { return r == ' ' }), " "); !strings.Contains(got, want) {
			t.Errorf("no line %q in\n%s", want, first.String())
		}
	}

	again, fs2 := newKnobs()
	file := writeFile(t, first.String(), t.TempDir(), "printed.toml")
	origin, err = Apply(fs2, file, nil, unknown)
	if err != nil {
		t.Fatalf("%v in\n%s", err, first.String())
	}
	if fmt.Sprintf("%+v", *again) != fmt.Sprintf("%+v", *k) {
		t.Errorf("after a round trip:\n got %+v\nwant %+v", *again, *k)
	}
	if len(origin) != 10 || !strings.HasPrefix(origin["window"], file+":") {
		t.Errorf("got origins %v", origin)
	}
}

func writeFile(t *testing.T, content string, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
