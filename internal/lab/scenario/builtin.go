package scenario

import (
	"embed"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

//go:embed builtin/*.toml
var files embed.FS

// Names returns the sorted names of the built-in scenarios.
func Names() []string {
	entries, err := files.ReadDir("builtin")
	if err != nil {
		panic(err) // the directory is part of the program
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".toml")
	}
	slices.Sort(names) // the files' order has "normal-few.toml" before "normal.toml"
	return names
}

// Builtin returns the text of a built-in scenario, or of a random one with the number at the end of its name.
func Builtin(name string) ([]byte, error) {
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		seed, err := strconv.ParseUint(name[i+1:], 10, 64)
		switch {
		case err != nil:
		case name[:i] == RandomName:
			return Random(seed), nil
		case name[:i] == RandomPlaceName:
			return RandomPlace(seed), nil
		}
	}
	text, err := files.ReadFile("builtin/" + name + ".toml")
	if err != nil {
		return nil, fmt.Errorf("unknown scenario %q (want %s, %s-NUMBER, or a file)", name, strings.Join(Names(), ", "), RandomName)
	}
	return text, nil
}

// Load parses a built-in scenario, or a file if the name has a dot or a separator. It
// also returns the text.
func Load(name string) (*Scenario, []byte, error) {
	read := Builtin
	if strings.ContainsAny(name, `./\`) {
		read = os.ReadFile
	}
	text, err := read(name)
	if err != nil {
		return nil, nil, err
	}
	s, err := Parse(name, text)
	return s, text, err
}
