package scenario

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed builtin/*.toml
var files embed.FS

// Names returns the names of the scenarios that are built in, sorted.
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

// Builtin returns the text of a scenario that is built in.
func Builtin(name string) ([]byte, error) {
	text, err := files.ReadFile("builtin/" + name + ".toml")
	if err != nil {
		return nil, fmt.Errorf("no scenario %q is built in; there are %s", name, strings.Join(Names(), ", "))
	}
	return text, nil
}
