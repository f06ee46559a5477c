package layers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

const module = "github.com/chimbuko/chimbuko/"

func TestLayersImportOnlyDownwards(t *testing.T) {
	table, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations(parseTable(string(table)), imports(t)) {
		t.Error(v)
	}
}

func TestLayersTestCanFail(t *testing.T) {
	table := parseTable("| layer | package | owns |\n| 0 | `low`, `lower` | x |\n| 3 | `high` | x |\n| 7 | `cmd/prog` | x |")
	f := func(pkg, imported string, want ...string) {
		t.Helper()
		got := violations(table, map[string][]string{pkg: {imported}})
		if !slices.Equal(got, want) {
			t.Errorf("%s imports %s: got %q, want %q", pkg, imported, got, want)
		}
	}
	f("high", "low")
	f("cmd/prog", "high")
	f("low", "high", "low (layer 0) imports high (layer 3)")
	f("low", "lower", "low (layer 0) imports lower (layer 0)")
	f("new", "low", "new is not in the table of layers")
}

// violations returns what imports of packages break the table.
func violations(layer map[string]int, imports map[string][]string) (bad []string) {
	for pkg, imported := range imports {
		own, ok := layer[pkg]
		if !ok {
			bad = append(bad, pkg+" is not in the table of layers")
			continue
		}
		for _, i := range imported {
			if other, ok := layer[i]; !ok || other >= own {
				bad = append(bad, fmt.Sprintf("%s (layer %d) imports %s (layer %d)", pkg, own, i, other))
			}
		}
	}
	slices.Sort(bad)
	return bad
}

// parseTable reads lines such as "| 1 | `bp`, `sst` | what it owns |".
func parseTable(text string) map[string]int {
	layer := make(map[string]int)
	name := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue
		}
		for _, m := range name.FindAllStringSubmatch(cells[2], -1) {
			layer[m[1]] = n
		}
	}
	return layer
}

// imports gets the packages of the module and their imports from the Go tool
// of it, tests left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	tracetest.SkipShort(t, "starts the go command")
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", module+"...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	short := func(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, module), "internal/") }
	found := make(map[string][]string)
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		own := []string{}
		for _, i := range pkg.Imports {
			if strings.HasPrefix(i, module) {
				own = append(own, short(i))
			}
		}
		found[short(pkg.ImportPath)] = own
	}
	if len(found) < 5 {
		t.Fatalf("go list found only %d packages", len(found))
	}
	return found
}
