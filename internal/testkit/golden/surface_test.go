package golden

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/cli"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

var update = flag.Bool("update", false, "add new lines to the lists of testdata/golden, and record the answers about its runs again")

func TestMain(m *testing.M) { os.Exit(tracetest.MainWithoutRace(m)) }

// checkList compares lines with the list in a file, of which they may lack none. New ones are added with -update.
func checkList(t *testing.T, name string, lines []string) {
	t.Helper()
	path := tracetest.Root("testdata", "golden", name)
	text, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	recorded := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(lines)
	lines = slices.Compact(lines)
	for _, line := range recorded {
		if line != "" && !slices.Contains(lines, line) {
			t.Errorf("%s: the program no longer has: %s\nSee docs/compatibility.md. If its rules permit that, remove the line from the file.", name, line)
		}
	}
	if t.Failed() {
		return
	}
	added := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(recorded, line) })
	switch {
	case len(added) == 0:
	case *update:
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Logf("%s: a release will add with -update:\n%s", name, strings.Join(added, "\n"))
	}
}

// commands returns all commands that users see, by their names without that of the program.
func commands(cmd *cobra.Command) (all []*cobra.Command) {
	if cmd.Hidden || cmd.HasParent() && (cmd.Name() == "help" || cmd.Name() == "completion") {
		return nil
	}
	all = append(all, cmd)
	for _, sub := range cmd.Commands() {
		all = append(all, commands(sub)...)
	}
	return all
}

func root() *cobra.Command { return cli.Root(&cli.Env{Stdout: io.Discard, Stderr: io.Discard}) }

func TestCommandsAndFlagsRemain(t *testing.T) {
	var lines []string
	for _, cmd := range commands(root()) {
		lines = append(lines, strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		for _, alias := range cmd.Aliases {
			lines = append(lines, cmd.CommandPath()+" has the alias "+alias)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			line := fmt.Sprintf("%s --%s %s, default %q", cmd.CommandPath(), f.Name, f.Value.Type(), f.DefValue)
			if f.Shorthand != "" {
				line += ", also -" + f.Shorthand
			}
			lines = append(lines, line)
		})
	}
	checkList(t, "commands.txt", lines)
}

// behind are the tables behind the views of docs/sql.md, which may change.
const behind = "executions paths path_profiles models final_models samples profiles function_names numbering schema_version"

func TestViewsAndColumnsRemain(t *testing.T) {
	s, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), "x.duckdb"), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // only read from
	rows, err := s.Query(t.Context(), `SELECT table_name, column_name, data_type FROM information_schema.columns
		WHERE table_catalog = 'prov' AND NOT list_contains(string_split($1, ' '), table_name)`, behind)
	if err != nil {
		t.Fatal(err)
	}
	all, err := rows.Collect()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, row := range all {
		lines = append(lines, fmt.Sprintf("%s.%s %s", row...))
	}
	checkList(t, "sql.txt", lines)
}

// parse returns the files of a package, without tests.
func parse(t *testing.T, dir ...string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(tracetest.Root(dir...), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// source returns an expression as it is written.
func source(t *testing.T, e ast.Expr) string {
	t.Helper()
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), e); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestFieldsOfAnswersRemain(t *testing.T) {
	var lines []string
	for _, f := range parse(t, "internal", "show", "api") {
		for _, d := range f.Decls {
			types, ok := d.(*ast.GenDecl)
			if !ok || types.Tok != token.TYPE {
				continue
			}
			for _, spec := range types.Specs {
				named := spec.(*ast.TypeSpec) //nolint:forcetypeassert // declarations of types have only these
				if of, ok := named.Type.(*ast.StructType); ok && named.Name.IsExported() {
					for _, field := range of.Fields.List {
						lines = append(lines, fieldLine(t, named.Name.Name, field)...)
					}
				}
			}
		}
	}
	if len(lines) < 100 {
		t.Fatalf("only %d fields", len(lines))
	}
	checkList(t, "fields.txt", lines)
}

// fieldLine describes a field of a struct as JSON has it.
func fieldLine(t *testing.T, of string, f *ast.Field) []string {
	t.Helper()
	if len(f.Names) == 0 && f.Tag == nil {
		return []string{of + " has the fields of " + source(t, f.Type)}
	}
	tag := ""
	if f.Tag != nil {
		text, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			t.Fatal(err)
		}
		tag = reflect.StructTag(text).Get("json")
	}
	name, options, _ := strings.Cut(tag, ",")
	if name == "-" || len(f.Names) > 0 && !f.Names[0].IsExported() {
		return nil
	}
	if name == "" && len(f.Names) > 0 {
		name = f.Names[0].Name
	}
	optional := ""
	if strings.Contains(options, "omit") {
		optional = ", optional"
	}
	return []string{fmt.Sprintf("%s.%s %s%s", of, name, source(t, f.Type), optional)}
}

// routes returns the methods and patterns of all routes of a stored run.
func routes(t *testing.T) (all []string) {
	t.Helper()
	prefixes := map[string]string{"base": "/api/v1/", "run": "/api/v1/runs/{run}"}
	var pattern func(e ast.Expr) (string, bool)
	pattern = func(e ast.Expr) (string, bool) {
		switch e := e.(type) {
		case *ast.Ident:
			p, ok := prefixes[e.Name]
			return p, ok
		case *ast.BasicLit:
			p, err := strconv.Unquote(e.Value)
			return p, err == nil
		case *ast.BinaryExpr:
			x, okX := pattern(e.X)
			y, okY := pattern(e.Y)
			return x + y, okX && okY
		}
		return "", false
	}
	for _, f := range parse(t, "internal", "show", "dashboard") {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 {
				return true
			}
			name := source(t, call.Fun)
			if name != "get" && name != "mux.Handle" {
				return true
			}
			p, ok := pattern(call.Args[0])
			if arg := source(t, call.Args[0]); !ok && arg != "pattern" && arg != "legacy.Path" {
				t.Errorf("unknown route %s", arg)
			}
			if !ok || strings.HasSuffix(p, "/") { // the page, and what packets lack
				return true
			}
			method := "GET"
			for _, m := range []string{"Put", "Post"} {
				if strings.Contains(source(t, call.Args[1]), "http.Method"+m) {
					method = strings.ToUpper(m)
				}
			}
			all = append(all, method+" "+p)
			return true
		})
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestRoutesRemain(t *testing.T) {
	all := routes(t)
	if len(all) < 30 {
		t.Fatalf("only %d routes", len(all))
	}
	checkList(t, "routes.txt", all)
}
