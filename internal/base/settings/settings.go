// Package settings gives values to the flags of a command from a TOML file and from
// environment variables.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/text"
)

const (
	envPrefix     = "CHIMBUKO_"
	envConfig     = envPrefix + "CONFIG"
	originDefault = "default"
)

// IsSetting reports whether files and environment variables can set a flag: all but
// --help, --config and hidden ones.
func IsSetting(f *pflag.Flag) bool {
	return f.Name != "help" && f.Name != "config" && !f.Hidden
}

// EnvName returns the environment variable of a flag.
func EnvName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Apply sets the flags that the command line did not set to the value in the TOML file,
// or else in the environment. If file is empty, it reads the one that CHIMBUKO_CONFIG
// names, if any. It ignores settings that this command does not have but that isKnown
// reports, and does not parse a value that another overrides. It returns the origin of
// each flag's value, and all errors in file and environment as one. Call it only once:
// flags that it sets are Changed.
func Apply(fs *pflag.FlagSet, file string, environ []string, isKnown func(name string) bool) (origin map[string]string, err error) {
	a := applier{fs: fs, isKnown: isKnown, origin: make(map[string]string), lines: make(map[string]int)}
	fs.VisitAll(func(f *pflag.Flag) {
		switch {
		case !IsSetting(f):
		case f.Changed:
			a.origin[f.Name] = "flag --" + f.Name
		default:
			a.origin[f.Name] = originDefault
		}
	})
	variables := make(map[string]string)
	for _, v := range environ {
		if name, value, ok := strings.Cut(v, "="); ok && strings.HasPrefix(name, envPrefix) {
			variables[name] = value
		}
	}
	from := "flag --config"
	if file == "" {
		file, from = variables[envConfig], "environment variable "+envConfig
	}
	delete(variables, envConfig)
	if file != "" {
		a.applyFile(file, from)
	}
	a.applyEnvironment(variables)
	return a.origin, errors.Join(a.errs...)
}

type applier struct {
	fs      *pflag.FlagSet
	isKnown func(name string) bool
	origin  map[string]string // of all settings
	lines   map[string]int    // of settings in the file
	errs    []error
}

func (a *applier) errorf(where, format string, args ...any) {
	a.errs = append(a.errs, fmt.Errorf("%s: %w", where, fmt.Errorf(format, args...)))
}

func (a *applier) applyFile(file, from string) {
	content, err := os.ReadFile(file)
	if err != nil {
		a.errorf(from, "%w", err)
		return
	}
	entries, err := parse(string(content))
	if parseErr, ok := errors.AsType[toml.ParseError](err); ok {
		a.errorf(fmt.Sprintf("%s:%d", file, parseErr.Position.Line), "%s", parseErr.Message)
	} else if err != nil {
		a.errorf(file, "%w", err)
	}
	for _, e := range entries {
		where := fmt.Sprintf("%s:%d", file, e.line)
		flag, first := a.fs.Lookup(e.name), a.lines[e.name]
		switch {
		case a.origin[e.name] == "" && a.isKnown(e.name):
			continue
		case a.origin[e.name] == "":
			a.errorf(where, "unknown setting %q", e.name)
			continue
		case first > 0:
			a.errorf(where, "%s is set in line %d already", e.name, first)
			continue
		}
		a.lines[e.name] = e.line
		texts, err := flagTexts(flag, e.value)
		if err == nil && a.origin[e.name] == originDefault {
			err = set(a.fs, flag, texts)
			a.origin[e.name] = where
		}
		if err != nil {
			a.errorf(where, "%s: %w", e.name, err)
		}
	}
}

func (a *applier) applyEnvironment(variables map[string]string) {
	flags := make(map[string]string, len(a.origin))
	for name := range a.origin {
		flags[EnvName(name)] = name
	}
	for _, v := range slices.Sorted(maps.Keys(variables)) {
		where := "environment variable " + v
		name, ok := flags[v]
		switch {
		case !ok && a.isKnown(strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(v, envPrefix), "_", "-"))):
		case !ok:
			a.errorf(where, "no setting has this name")
		case a.lines[name] == 0 && a.origin[name] == originDefault:
			a.origin[name] = where
			if err := a.fs.Set(name, variables[v]); err != nil {
				a.errorf(where, "%w", err)
			}
		}
	}
}

// entry is a value of a TOML file under the name of a flag.
type entry struct {
	name  string
	line  int
	value any
}

// parse returns the values of a TOML text in the order of lines. The name of a key in a
// table begins with that of the table and a '-'.
func parse(content string) ([]entry, error) {
	var top map[string]toml.Primitive
	meta, err := toml.Decode(content, &top)
	if err != nil {
		return nil, err
	}
	entries, err := flatten(nil, &meta, "", top)
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.name, b.name))
	})
	return entries, err
}

func flatten(entries []entry, meta *toml.MetaData, prefix string, table map[string]toml.Primitive) (_ []entry, err error) {
	for key, p := range table {
		var value any
		if err := meta.PrimitiveDecode(p, &value); err != nil {
			return nil, err
		}
		if _, ok := value.(map[string]any); ok {
			var inner map[string]toml.Primitive
			if err := meta.PrimitiveDecode(p, &inner); err != nil {
				return nil, err
			}
			if entries, err = flatten(entries, meta, prefix+key+"-", inner); err != nil {
				return nil, err
			}
			continue
		}
		refused, _ := errors.AsType[toml.ParseError](meta.PrimitiveDecode(p, &refuser{}))
		entries = append(entries, entry{prefix + key, refused.Position.Line, value})
	}
	return entries, nil
}

// refuser fails to decode, because only errors have the line of a value.
type refuser struct{}

func (refuser) UnmarshalTOML(any) error { return errors.New("refused") }

// Kinds of values in messages.
const (
	kindBool   = "a boolean"
	kindInt    = "an integer"
	kindFloat  = "a number"
	kindString = "a string"
)

// flagKind returns the kind of the TOML value, or of its elements, that sets a flag.
func flagKind(f *pflag.Flag) string {
	t := strings.TrimSuffix(strings.TrimSuffix(f.Value.Type(), "Slice"), "Array")
	switch {
	case t == "bool":
		return kindBool
	case t == "count", strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return kindInt
	case strings.HasPrefix(t, "float"):
		return kindFloat
	}
	return kindString
}

// flagTexts returns a TOML value as texts that a flag parses: the elements of a flag
// with several values, else one text.
func flagTexts(f *pflag.Flag, value any) ([]string, error) {
	elements := []any{value}
	if _, ok := f.Value.(pflag.SliceValue); ok {
		if elements, ok = value.([]any); !ok {
			shown, kind := describe(value)
			return nil, fmt.Errorf("%s is %s, not an array", shown, kind)
		}
	}
	want := flagKind(f)
	texts := make([]string, 0, len(elements))
	for _, e := range elements {
		shown, kind := describe(e)
		if kind != want && (kind != kindInt || want != kindFloat) {
			return nil, fmt.Errorf("%s is %s, not %s", shown, kind, want)
		}
		texts = append(texts, fmt.Sprint(e))
	}
	return texts, nil
}

// describe returns a TOML value and its kind for a message.
func describe(value any) (shown, kind string) {
	switch v := value.(type) {
	case bool:
		return strconv.FormatBool(v), kindBool
	case int64:
		return strconv.FormatInt(v, 10), kindInt
	case float64:
		return fmt.Sprint(v), kindFloat
	case string:
		return strconv.Quote(v), kindString
	case []any, []map[string]any:
		return "the value", "an array"
	case map[string]any:
		return "the value", "a table"
	}
	return "the value", "a date or a time"
}

// set replaces the value of a flag.
func set(fs *pflag.FlagSet, f *pflag.Flag, texts []string) error {
	list, ok := f.Value.(pflag.SliceValue)
	if !ok {
		return fs.Set(f.Name, texts[0])
	}
	f.Changed = true
	return list.Replace(texts) // Set would split at commas, and append
}

// Print writes the values of all flags as TOML that Apply reads, with their origins as
// comments. Errors stick to w.
func Print(w io.Writer, fs *pflag.FlagSet, origin map[string]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fs.VisitAll(func(f *pflag.Flag) {
		if IsSetting(f) {
			fmt.Fprintf(t, "%s = %s\t# %s\n", f.Name, flagTOML(f), text.SingleSpaced(cmp.Or(origin[f.Name], originDefault)))
		}
	})
	_ = t.Flush() // errors stick to w
}

// flagTOML returns the value of a flag in TOML.
func flagTOML(f *pflag.Flag) string {
	format := quote
	if flagKind(f) != kindString {
		format = func(number string) string { return strings.ToLower(strings.TrimPrefix(number, "+")) } // inf, not +Inf
	}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		var values []string
		for _, v := range list.GetSlice() {
			values = append(values, format(v))
		}
		return "[" + strings.Join(values, ", ") + "]"
	}
	value := f.Value.String()
	if strings.HasPrefix(f.Value.Type(), "stringTo") { // a map prints brackets that it does not parse
		value = strings.TrimSuffix(strings.TrimPrefix(value, "["), "]")
	}
	return format(value)
}

func quote(s string) string {
	line, err := toml.Marshal(map[string]string{"x": s})
	if err != nil {
		return strconv.Quote(s)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(line)), "x = ")
}
