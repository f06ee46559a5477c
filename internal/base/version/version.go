// Package version has the version of the programs. The file VERSION is its only source: packages, wheels and recipes
// have the same.
package version

import (
	_ "embed"
	"strings"
)

//go:embed VERSION
var file string

// Number is the version, such as 1.0.0, or 1.1.0-dev between releases.
var Number = strings.TrimSpace(file)
