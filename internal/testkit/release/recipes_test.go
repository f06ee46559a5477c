package release

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/version"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// scripts/source replaces the checksum.
const placeholder = `"0000000000000000000000000000000000000000000000000000000000000000"`

func TestRecipesHaveTheVersion(t *testing.T) {
	if strings.Contains(version.Number, "-") {
		t.Skip("SKIP: recipes are for releases")
	}
	for recipe, patterns := range map[string][]string{
		"spack/package.py":  {`\n    version\("(.*)", sha256=` + placeholder, `/download/v(.*?)/`, `/chimbuko-(.*)-source.tar.gz`},
		"conda/recipe.yaml": {`\n  version: "(.*)"`},
	} {
		for _, pattern := range patterns {
			if got := find(t, pattern, "packaging", recipe); got != version.Number {
				t.Errorf("packaging/%s: %s is %q, want %q", recipe, pattern, got, version.Number)
			}
		}
		if n := strings.Count(read(t, "packaging", recipe), placeholder); n != 1 {
			t.Errorf("packaging/%s has %d checksums to replace, want 1", recipe, n)
		}
	}
}

func TestSpackRecipeIsPython(t *testing.T) {
	python := tracetest.Python(t, "ast")
	run(t, python, "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", tracetest.Root("packaging", "spack", "package.py"))
}

// scripts/image-check builds and runs the image.
func TestContainerfileAddsTheArchive(t *testing.T) {
	text := read(t, "packaging", "Containerfile")
	m := regexp.MustCompile(`(?m)^ADD (\S+) /$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("the Containerfile adds no archive:\n%s", text)
	}
	file := strings.NewReplacer("${VERSION}", version.Number, "${TARGETARCH}", runtime.GOARCH).Replace(m[1])
	if _, err := os.Stat(filepath.Join(dist(t), file)); err != nil {
		t.Error(err)
	}
}
