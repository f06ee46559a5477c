package callpath

import (
	"cmp"
	"strings"
)

// NamedEntry is a path in a list. It follows its parent in the list.
type NamedEntry struct {
	Parent int32  // index in the list; -1 if none
	Name   string // name of its last function; OtherName for Other
	Sums
}

// Profile is a Tree whose functions have names.
type Profile struct {
	tree    *Tree
	names   []string
	numbers map[string]uint32
	entries []Entry // scratch
}

// NewProfile returns a profile with at most limit paths.
func NewProfile(limit int) *Profile {
	return &Profile{tree: New(limit), numbers: make(map[string]uint32)}
}

// Merge adds a list of paths that were folded below depth. It retains only the names.
func (p *Profile) Merge(depth int, list []NamedEntry) {
	p.entries = p.entries[:0]
	for i := range list {
		p.entries = append(p.entries, Entry{list[i].Parent, p.number(list[i].Name), list[i].Sums})
	}
	p.tree.Merge(depth, p.entries)
}

// MergeProfile adds all paths of o.
func (p *Profile) MergeProfile(o *Profile) {
	p.entries = o.tree.Append(p.entries[:0], nil)
	for i := range p.entries {
		if e := &p.entries[i]; e.Func != Other {
			e.Func = p.number(o.names[e.Func])
		}
	}
	p.tree.Merge(o.tree.Depth(), p.entries)
}

// number returns the number of a function, and assigns one if the function is new.
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

// Append appends the paths with calls and all their parents to an empty list. Parents precede their children; otherwise the
// order is unspecified.
func (p *Profile) Append(list []Entry) []Entry { return p.tree.Append(list, nil) }

// Depth returns the depth below which paths are folded.
func (p *Profile) Depth() int { return p.tree.Depth() }

// Reset removes all calls and keeps the paths.
func (p *Profile) Reset() { p.tree.Reset() }
