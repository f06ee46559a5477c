package cli

import (
	"bytes"
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
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/online/supervise"
)

const (
	envPrefix     = supervise.EnvPrefix
	envConfig     = envPrefix + "CONFIG"
	originDefault = "default"
)

// isSetting reports whether a flag can be set in a file and the environment,
// too: all can but those that ask for help, name the file, or are not for people.
func isSetting(f *pflag.Flag) bool {
	return f.Name != "help" && f.Name != "config" && !f.Hidden
}

// envName is the environment variable of a flag.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// applySettings gives a value to the flags that the command line did not set:
// that of the TOML file, else that of the environment, else their default
// stays. The file may be "", then it is the one that CHIMBUKO_CONFIG names, if
// any. It returns where the value of each flag came from, and all that is
// wrong in file and environment as one error; what only another command knows
// is passed over. A value that another overrides is not tried. A flag that was set is Changed after that, so it must be
// called only once.
func applySettings(fs *pflag.FlagSet, file string, environ []string) (origin map[string]string, err error) {
	s := settings{fs: fs, origin: make(map[string]string), inFile: make(map[string]int)}
	fs.VisitAll(func(f *pflag.Flag) {
		switch {
		case !isSetting(f):
		case f.Changed:
			s.origin[f.Name] = "flag --" + f.Name
		default:
			s.origin[f.Name] = originDefault
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
		s.applyFile(file, from)
	}
	s.applyEnvironment(variables)
	return s.origin, errors.Join(s.faults...)
}

// settingOfAnother reports whether a command knows the setting, so that one file
// serves all of them.
func settingOfAnother(name string) bool {
	env := new(Env)
	for _, cmd := range []*cobra.Command{newAnalyzeCmd(env), newRunCmd(env), newServeCmd(env), newADCmd(env)} {
		if f := cmd.Flags().Lookup(name); f != nil && isSetting(f) && !f.Hidden {
			return true
		}
	}
	return false
}

type settings struct {
	fs     *pflag.FlagSet
	origin map[string]string // of all flags that are settings
	inFile map[string]int    // settings of the file and the lines they stand in
	faults []error
}

func (s *settings) fault(where, format string, args ...any) {
	s.faults = append(s.faults, fmt.Errorf("%s: %w", where, fmt.Errorf(format, args...)))
}

func (s *settings) applyFile(file, from string) {
	text, err := os.ReadFile(file)
	if err != nil {
		s.fault(from, "%w", err)
		return
	}
	given, err := readTOML(text)
	if parse, ok := errors.AsType[toml.ParseError](err); ok {
		s.fault(fmt.Sprintf("%s:%d", file, parse.Position.Line), "%s", parse.Message)
		return
	}
	if err != nil {
		s.fault(file, "%w", err)
		return
	}
	for _, g := range given {
		where := fmt.Sprintf("%s:%d", file, g.line)
		if s.origin[g.name] == "" {
			if !settingOfAnother(g.name) {
				s.fault(where, "unknown setting %q", g.name)
			}
			continue
		}
		if first, twice := s.inFile[g.name]; twice {
			s.fault(where, "%s is set in line %d already", g.name, first)
			continue
		}
		s.inFile[g.name] = g.line
		flag := s.fs.Lookup(g.name)
		texts, err := flagTexts(flag, g.value)
		if err == nil && s.origin[g.name] == originDefault {
			err = setFlag(s.fs, flag, texts)
			s.origin[g.name] = where
		}
		if err != nil {
			s.fault(where, "%s: %w", g.name, err)
		}
	}
}

func (s *settings) applyEnvironment(variables map[string]string) {
	flags := make(map[string]string, len(s.origin))
	for name := range s.origin {
		flags[envName(name)] = name
	}
	for _, v := range slices.Sorted(maps.Keys(variables)) {
		where := "environment variable " + v
		name, ok := flags[v]
		if !ok {
			if !settingOfAnother(strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(v, envPrefix), "_", "-"))) {
				s.fault(where, "no setting has this name")
			}
			continue
		}
		if _, ok := s.inFile[name]; ok || s.origin[name] != originDefault {
			continue
		}
		s.origin[name] = where
		if err := s.fs.Set(name, variables[v]); err != nil {
			s.fault(where, "%w", err)
		}
	}
}

// fileSetting is a value of a TOML file under the name of a flag.
type fileSetting struct {
	name  string
	line  int
	value any
}

// readTOML returns the values of a TOML text in the order of lines. Keys in
// tables have the table's name before them, joined with '-'.
func readTOML(text []byte) ([]fileSetting, error) {
	var top map[string]toml.Primitive
	meta, err := toml.NewDecoder(bytes.NewReader(text)).Decode(&top)
	if err != nil {
		return nil, err
	}
	found, err := flattenTOML(nil, &meta, "", top)
	slices.SortFunc(found, func(a, b fileSetting) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.name, b.name))
	})
	return found, err
}

func flattenTOML(found []fileSetting, meta *toml.MetaData, prefix string, table map[string]toml.Primitive) ([]fileSetting, error) {
	for key, p := range table {
		var value any
		if err := meta.PrimitiveDecode(p, &value); err != nil {
			return nil, err
		}
		if _, ok := value.(map[string]any); !ok {
			found = append(found, fileSetting{prefix + key, lineTOML(meta, p), value})
			continue
		}
		var inner map[string]toml.Primitive
		err := meta.PrimitiveDecode(p, &inner)
		if err == nil {
			found, err = flattenTOML(found, meta, prefix+key+"-", inner)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// refuser refuses every value, because only errors tell the line of a value.
type refuser struct{}

func (refuser) UnmarshalTOML(any) error { return errors.New("refused") }

// lineTOML is the line in which a value stands.
func lineTOML(meta *toml.MetaData, p toml.Primitive) int {
	refusal, _ := errors.AsType[toml.ParseError](meta.PrimitiveDecode(p, &refuser{}))
	return refusal.Position.Line
}

// Kinds of values, as a message calls them.
const (
	kindBool   = "a boolean"
	kindInt    = "an integer"
	kindFloat  = "a number"
	kindString = "a string"
)

// flagKind is what a flag of that type, or each element of it, takes in TOML.
func flagKind(flagType string) string {
	switch strings.TrimSuffix(strings.TrimSuffix(flagType, "Slice"), "Array") {
	case "bool":
		return kindBool
	case "count", "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64":
		return kindInt
	case "float32", "float64":
		return kindFloat
	}
	return kindString
}

// flagTexts returns a value of TOML as the flag reads it: the elements of a
// flag that takes several, else one text.
func flagTexts(f *pflag.Flag, value any) ([]string, error) {
	kind := flagKind(f.Value.Type())
	if _, ok := f.Value.(pflag.SliceValue); !ok {
		text, err := scalarText(kind, value)
		return []string{text}, err
	}
	elements, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%s, not an array", describeTOML(value))
	}
	texts := make([]string, 0, len(elements))
	for _, e := range elements {
		text, err := scalarText(kind, e)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func scalarText(kind string, value any) (string, error) {
	switch v := value.(type) {
	case bool:
		if kind == kindBool {
			return strconv.FormatBool(v), nil
		}
	case int64:
		if kind == kindInt || kind == kindFloat {
			return strconv.FormatInt(v, 10), nil
		}
	case float64:
		if kind == kindFloat {
			return strconv.FormatFloat(v, 'g', -1, 64), nil
		}
	case string:
		if kind == kindString {
			return v, nil
		}
	}
	return "", fmt.Errorf("%s, not %s", describeTOML(value), kind)
}

// describeTOML says what a value is, for a message.
func describeTOML(value any) string {
	switch v := value.(type) {
	case bool:
		return fmt.Sprintf("%t is %s", v, kindBool)
	case int64:
		return fmt.Sprintf("%d is %s", v, kindInt)
	case float64:
		return fmt.Sprintf("%v is %s", v, kindFloat)
	case string:
		return fmt.Sprintf("%q is %s", v, kindString)
	case []any, []map[string]any:
		return "the value is an array"
	case map[string]any:
		return "the value is a table"
	}
	return "the value is a date or a time"
}

// setFlag replaces the value of a flag.
func setFlag(fs *pflag.FlagSet, f *pflag.Flag, texts []string) error {
	several, ok := f.Value.(pflag.SliceValue)
	if !ok {
		return fs.Set(f.Name, texts[0])
	}
	if err := several.Replace(texts); err != nil { // Set would split at commas and add to what is there
		return err
	}
	f.Changed = true
	return nil
}

// printSettings writes the values of all flags as TOML that applySettings
// reads, with a comment that says where each came from. Errors stick to w.
func printSettings(w io.Writer, fs *pflag.FlagSet, origin map[string]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fs.VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) {
			return
		}
		line, err := toml.Marshal(map[string]any{f.Name: flagTOML(f)})
		if err != nil { // no value of flagTOML does that
			fmt.Fprintf(t, "# %s: %v\n", f.Name, err)
			return
		}
		fmt.Fprintf(t, "%s\t# %s\n", bytes.TrimSpace(line), oneLine(cmp.Or(origin[f.Name], originDefault)))
	})
	_ = t.Flush() // errors stick to w
}

// flagTOML is the value of a flag as one for TOML.
func flagTOML(f *pflag.Flag) any {
	kind := flagKind(f.Value.Type())
	if several, ok := f.Value.(pflag.SliceValue); ok {
		values := []any{}
		for _, text := range several.GetSlice() {
			values = append(values, scalarTOML(kind, text))
		}
		return values
	}
	text := f.Value.String()
	if strings.HasPrefix(f.Value.Type(), "stringTo") { // maps print brackets that they do not read
		text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	}
	return scalarTOML(kind, text)
}

// scalarTOML turns the text of a flag's value into a value of that kind. A
// text that is none, which a flag should not have, stays one.
func scalarTOML(kind, text string) any {
	var value any
	var err error
	switch kind {
	case kindBool:
		value, err = strconv.ParseBool(text)
	case kindInt:
		value, err = strconv.ParseInt(text, 10, 64)
	case kindFloat:
		value, err = strconv.ParseFloat(text, 64)
	default:
		return text
	}
	if err != nil {
		return text
	}
	return value
}
