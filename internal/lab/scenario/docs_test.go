package scenario_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns the part of the page under a heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut(page(t), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("docs/scenarios.md has no heading %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

func TestDocumentationListsBuiltInScenarios(t *testing.T) {
	var want strings.Builder
	for _, name := range scenario.Names() {
		s, _ := builtin(t, name)
		ranks := 0
		for i := range s.Programs {
			ranks += s.Programs[i].Ranks
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", name, spaced(ranks), spaced(calls(t, s)), s.Text)
	}
	var got strings.Builder
	for line := range strings.Lines(section(t, "## Built-in scenarios")) {
		if strings.HasPrefix(line, "| `") {
			got.WriteString(line)
		}
	}
	if got.String() != want.String() {
		t.Errorf("the list in docs/scenarios.md is\n%swant\n%s", got.String(), want.String())
	}
}

// spaced writes a number in groups of three.
func spaced(n int) string {
	if n < 10_000 {
		return fmt.Sprint(n)
	}
	if n < 1_000_000 {
		return fmt.Sprintf("%d %03d", n/1000, n%1000)
	}
	return fmt.Sprintf("%s %03d", spaced(n/1000), n%1000)
}

func TestDocumentationHasEveryKey(t *testing.T) {
	f := func(heading string, of ...reflect.Type) {
		t.Helper()
		text := section(t, heading)
		for _, typ := range of {
			for field := range typ.Fields() {
				key := field.Tag.Get("toml")
				if key != "" && !regexp.MustCompile("`[^`\n]*\\b"+key+"\\b[^`\n]*`").MatchString(text) {
					t.Errorf("%s of docs/scenarios.md does not mention `%s`", heading, key)
				}
			}
		}
	}
	f("## The scenario", reflect.TypeFor[scenario.Scenario]())
	f("## A program", reflect.TypeFor[scenario.Program](), reflect.TypeFor[scenario.Counter]())
	f("## A function", reflect.TypeFor[scenario.Function]())
	f("## A distribution", reflect.TypeFor[scenario.Distribution](), reflect.TypeFor[scenario.Mode]())
	f("## A trouble", reflect.TypeFor[scenario.Trouble]())
}

func TestDocumentationHasEveryKind(t *testing.T) {
	f := func(heading, kind string) {
		t.Helper()
		if !strings.Contains(section(t, heading), "\n| `"+kind+"` |") {
			t.Errorf("%s of docs/scenarios.md does not mention `%s`", heading, kind)
		}
	}
	for _, k := range []scenario.Kind{
		scenario.Exchange, scenario.Collective, scenario.Parallel, scenario.Launch,
		scenario.DeviceSync, scenario.Publish, scenario.Await,
	} {
		f("## A function", string(k))
	}
	for _, k := range []scenario.TroubleKind{
		scenario.SlowCall, scenario.SlowMode, scenario.ExcessWork,
		scenario.SlowRank, scenario.SlowHost, scenario.SlowLink, scenario.OSNoise, scenario.MemoryPressure,
		scenario.IOStall, scenario.GPUClockDrop, scenario.LevelShift, scenario.Drift, scenario.HugeValue, scenario.Burst,
	} {
		f("## A trouble", string(k))
		row := regexp.MustCompile("\n\\| `" + string(k) + "` \\|.*\\| (.*) \\|\n").FindStringSubmatch(section(t, "## A trouble"))
		each := (&scenario.Trouble{Kind: k}).Each()
		if row != nil && strings.HasPrefix(row[1], "each ") != each {
			t.Errorf("`%s` in docs/scenarios.md: %q is to be found; that it is each call is %v", k, row[1], each)
		}
	}
}

func TestDocumentedExampleIsValid(t *testing.T) {
	var text strings.Builder
	for line := range strings.Lines(section(t, "## A complete example")) {
		if code, ok := strings.CutPrefix(line, "    "); ok || line == "\n" {
			text.WriteString(code)
		}
	}
	s, err := scenario.Parse("example", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "first" || len(s.Programs) != 1 || len(s.Troubles) != 1 {
		t.Errorf("got %+v", s)
	}
}
