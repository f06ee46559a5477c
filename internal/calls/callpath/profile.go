package callpath

import (
	"cmp"
	"strings"
)

// Named is a path in a list of them, in which it comes after that of its parent.
type Named struct {
	Parent int32  // place in the list; -1: none
	Name   string // of its last function; OtherName for Other
	Sums
}

// Profile is a Tree whose functions have names.
type Profile struct {
	tree    *Tree
	names   []string
	numbers map[string]uint32
	entries []Entry // scratch
}

// NewProfile returns a profile of at most so many paths.
func NewProfile(most int) *Profile {
	return &Profile{tree: New(most), numbers: make(map[string]uint32)}
}

// Merge adds a list of paths, deeper than depth of which were folded. It keeps
// nothing of the list but names.
func (p *Profile) Merge(depth int, list []Named) {
	p.entries = p.entries[:0]
	for i := range list {
		p.entries = append(p.entries, Entry{list[i].Parent, p.number(list[i].Name), list[i].Sums})
	}
	p.tree.Merge(depth, p.entries)
}

// MergeProfile adds all of another, which stays as it is.
func (p *Profile) MergeProfile(o *Profile) {
	p.entries = o.tree.Append(p.entries[:0], nil)
	for i := range p.entries {
		if e := &p.entries[i]; e.Func != Other {
			e.Func = p.number(o.names[e.Func])
		}
	}
	p.tree.Merge(o.tree.Depth(), p.entries)
}

// number is that of a function.
func (p *Profile) number(name string) uint32 {
	if name == OtherName {
		return Other
	}
	n, ok := p.numbers[name]
	if !ok {
		n = uint32(len(p.names))
		name = strings.Clone(name)
		p.names = append(p.names, name)
		p.numbers[name] = n
	}
	return n
}

// Name returns the name of a function.
func (p *Profile) Name(fn uint32) string {
	if fn == Other {
		return OtherName
	}
	return p.names[fn]
}

// Compare orders functions by their names.
func (p *Profile) Compare(a, b uint32) int { return cmp.Compare(p.names[a], p.names[b]) }

// Append appends the paths with calls, and all that lead to them, to a list that is
// empty, in no order but that of parents and children.
func (p *Profile) Append(list []Entry) []Entry { return p.tree.Append(list, nil) }

// Depth is that of the deepest paths which the profile distinguishes.
func (p *Profile) Depth() int { return p.tree.Depth() }

// Reset forgets all calls, and keeps the memory for the paths.
func (p *Profile) Reset() { p.tree.Reset() }
