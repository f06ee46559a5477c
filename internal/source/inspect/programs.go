package inspect

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/sst"
)

// Programs numbers the programs of a workflow by the names of their traces: PROGRAM-RANK.bp,
// or PROGRAM.bp for a trace of all ranks. Names stand for different programs if two of them
// have traces of the same rank; otherwise all traces are of one program, whose ranks may run
// different executables. The zero value has no programs.
type Programs struct {
	numbers map[string]trace.Program
}

// Adopt takes over the numbers that other analyzers of the run assigned to names. It returns an
// error if a number differs.
func (p *Programs) Adopt(numbers map[string]trace.Program) error {
	for name, n := range numbers {
		if own, ok := p.numbers[name]; ok && own != n {
			return fmt.Errorf("%s is program %d for this analyzer and program %d for another (number the programs with --program)", name, own, n)
		}
	}
	if p.numbers == nil {
		p.numbers = make(map[string]trace.Program)
	}
	maps.Copy(p.numbers, numbers)
	return nil
}

// allRanks is the rank of a trace of all ranks.
const allRanks = -1

// programOf returns the program and the rank in the name of a trace or contact file. The rank
// is the number at its end.
func programOf(path string) (name string, rank int) {
	if filepath.Ext(path) == ".log" { // HOST-pidN.log
		return "nccl-inspector", allRanks
	}
	base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), sst.Suffix), ".bp")
	name = strings.TrimRight(base, "0123456789")
	rank, err := strconv.Atoi(base[len(name):])
	if err != nil {
		return base, allRanks
	}
	return strings.TrimRight(name, "-_."), rank
}

// ProgramNames returns the different names of programs of traces in order.
func ProgramNames(paths []string) []string {
	var names []string
	for _, p := range paths {
		name, _ := programOf(p)
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// AreSeveral reports whether traces are of several programs.
func AreSeveral(paths []string) bool {
	owners, shared := make(map[int]string), false
	for _, p := range paths {
		name, rank := programOf(p)
		if owner, ok := owners[rank]; ok && owner != name {
			return true
		}
		owners[rank] = name
		shared = shared || rank == allRanks
	}
	return shared && len(ProgramNames(paths)) > 1
}

// Add numbers the programs of traces that have no number yet, in order of their names. paths
// includes the traces of earlier calls.
func (p *Programs) Add(paths []string) {
	next := trace.Program(0)
	for _, n := range p.numbers {
		next = max(next, n+1)
	}
	several := next > 1 || AreSeveral(paths)
	_ = p.Adopt(nil) // creates the map
	for _, name := range ProgramNames(paths) {
		if _, ok := p.numbers[name]; ok {
			continue
		}
		if p.numbers[name] = 0; several {
			p.numbers[name] = next
			next++
		}
	}
}

// Of returns the program of a trace, or false if it has no number.
func (p *Programs) Of(path string) (trace.Program, bool) {
	name, _ := programOf(path)
	n, ok := p.numbers[name]
	return n, ok
}

// Numbers returns the numbers by name.
func (p *Programs) Numbers() map[string]trace.Program { return maps.Clone(p.numbers) }

// Names returns the names of several programs by number for people, without the prefix that
// TAU gives to its traces. It returns nil for one program.
func (p *Programs) Names() []string {
	var names []string
	for name, n := range p.numbers {
		names = append(names, make([]string, max(0, int(n)+1-len(names)))...)
		short, ok := strings.CutPrefix(name, "tau-metrics-")
		if !ok {
			short = strings.TrimPrefix(name, "tau-")
		}
		if names[n] == "" || short < names[n] {
			names[n] = short
		}
	}
	if len(names) < 2 {
		return nil
	}
	return names
}

// ProgramsText lists programs by number: 0 simulation, 1 analysis.
func ProgramsText(names []string) string {
	var list []string
	for n, name := range names {
		list = append(list, fmt.Sprint(n, " ", name))
	}
	return strings.Join(list, ", ")
}
