// Package release checks the programs, archives and packages that make dist builds, and that all of them have the same version.
package release

import (
	"debug/elf"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// Glibc is the version of glibc that release programs may need: 2.Glibc.
const Glibc = 28

// The parts of glibc, which every system has.
var glibcLibrary = regexp.MustCompile(`^(lib(c|m|dl|rt|pthread|resolv|util)\.so\.\d+|ld-linux.*\.so\.\d+)$`)

var glibcVersion = regexp.MustCompile(`^GLIBC_2\.(\d+)(\.\d+)?$`)

// Missing returns the libraries and symbol versions that a program needs and that a system with only glibc 2.minor lacks.
func Missing(program string, minor int) ([]string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	if !slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_DYNAMIC }) {
		return nil, nil // statically linked
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	needs, err := f.DynamicVersionNeeds()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	var missing []string
	for _, name := range libraries {
		if !glibcLibrary.MatchString(name) {
			missing = append(missing, name)
		}
	}
	for _, library := range needs {
		for _, needed := range library.Needs {
			if !provides(library.Name, needed.Dep, minor) {
				missing = append(missing, needed.Dep)
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing), nil
}

// provides reports whether a library of glibc 2.minor has a symbol version. Those of other libraries count with the library.
func provides(library, version string, minor int) bool {
	if !glibcLibrary.MatchString(library) {
		return true
	}
	m := glibcVersion.FindStringSubmatch(version)
	if m == nil {
		return false // such as GLIBC_PRIVATE, or GLIBC_ABI_DT_RELR of 2.36
	}
	n, err := strconv.Atoi(m[1])
	return err == nil && n <= minor
}
