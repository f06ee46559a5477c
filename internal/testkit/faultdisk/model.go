package faultdisk

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sector is the unit in which disks write.
const sector = 512

// object is a file or directory.
type object struct {
	dir     bool
	synced  []byte   // content on the disk
	pending []change // of the content since, which may be on the disk
}

// change is a write, or sets the length if data is nil.
type change struct {
	at   int64
	data []byte
}

// apply returns content with a change.
func (c change) apply(content []byte) []byte {
	end := c.at + int64(len(c.data))
	if grow := end - int64(len(content)); grow > 0 {
		content = append(content, make([]byte, grow)...)
	}
	if c.data == nil {
		return content[:c.at]
	}
	copy(content[c.at:], c.data)
	return content
}

func (o *object) sync() {
	for _, c := range o.pending {
		o.synced = c.apply(o.synced)
	}
	o.pending = nil
}

// naming is a change of names.
type naming struct {
	op       string
	from, to string // to is the name that a create, mkdir, rename or link makes, from what a remove or rename removes
	object   *object
	synced   bool
}

// model is the state of a disk: contents and names that are on it for certain, and those that
// are in the cache of the operating system.
type model struct {
	names   map[string]*object // in the cache
	was     map[string]*object // by names before a rename
	before  map[string]*object // at the beginning
	log     []naming           // since
	journal int                // those that a file system with a journal has written
}

// load reads the content of a directory, all of which is on the disk.
func (m *model) load(dir string, skip func(string) bool) error {
	*m = model{names: map[string]*object{}, was: map[string]*object{}}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		name, relErr := filepath.Rel(dir, path)
		if err != nil || relErr != nil || skip(name) {
			return err
		}
		o := &object{dir: e.IsDir()}
		if e.Type().IsRegular() {
			o.synced, err = os.ReadFile(path)
		}
		m.names[name] = o
		return err
	})
	m.before = maps.Clone(m.names)
	return err
}

// file returns the file of a name, also of one that it had until just now.
func (m *model) file(name string) *object {
	if o := m.names[name]; o != nil {
		return o
	}
	return m.was[name]
}

func (m *model) change(name string, c change) {
	if o := m.file(name); o != nil {
		o.pending = append(o.pending, c)
	}
}

// name makes a change of names.
func (m *model) name(n naming) {
	switch n.op {
	case "create":
		n.object = new(object)
	case "mkdir":
		n.object = &object{dir: true}
	default:
		if n.object = m.file(n.from); n.object == nil {
			return
		}
		m.was[n.from] = n.object
	}
	m.log = append(m.log, n)
	n.apply(m.names)
}

func (n *naming) apply(names map[string]*object) {
	if n.op == "remove" || n.op == "rename" {
		if names[n.from] == n.object {
			delete(names, n.from)
		}
	}
	if n.op == "rename" && n.object.dir {
		for _, path := range slices.Collect(maps.Keys(names)) {
			if rest, below := strings.CutPrefix(path, n.from+"/"); below {
				names[n.to+"/"+rest] = names[path]
				delete(names, path)
			}
		}
	}
	if n.op != "remove" {
		names[n.to] = n.object
	}
}

// sync makes a file or directory durable.
func (m *model) sync(name string) {
	o := m.file(name)
	if o == nil {
		return
	}
	o.sync()
	for i := range m.log {
		n := &m.log[i]
		if filepath.Dir(n.from) == name || filepath.Dir(n.to) == name {
			n.synced = n.synced || o.dir
		}
	}
	m.journal = len(m.log)
}

// Order is the order in which a file system writes changes to the disk.
type Order int

// Orders of changes.
const (
	// Ordered writes changes of names in the order of the program, and a sync of any file those before
	// it, as ext4, XFS and Btrfs do. Writes to a file are complete and in order.
	Ordered Order = iota
	// Journal writes names like Ordered, but the data of files in any order and in part.
	Journal
	// Arbitrary also writes changes of names in any order. Only a sync of their directory makes them
	// durable.
	Arbitrary
)

// afterLoss returns a possible state of a disk after a loss of power: all synced data, and some of
// the changes since, in any order and in part. Without random it holds none of them.
func (m *model) afterLoss(random *rand.Rand, order Order) map[string]*object {
	names := maps.Clone(m.before)
	written := m.journal
	if random != nil {
		written += random.IntN(len(m.log) - m.journal + 1)
	}
	for i := range m.log {
		n := &m.log[i]
		if order != Arbitrary && i < written || order == Arbitrary && (n.synced || random != nil && random.IntN(2) == 0) {
			n.apply(names)
		}
	}
	lost := make(map[*object]*object) // a file may have several names
	for _, path := range slices.Sorted(maps.Keys(names)) {
		o := names[path]
		if lost[o] == nil {
			lost[o] = o.afterLoss(random, order)
		}
		names[path] = lost[o]
	}
	return names
}

// afterLoss returns the file with none, all or some of its pending changes.
func (o *object) afterLoss(random *rand.Rand, order Order) *object {
	content := slices.Clone(o.synced)
	kept := 0 // none, some, all
	if random != nil {
		kept = random.IntN(3)
	}
	if order == Ordered && kept == 1 {
		kept, o.pending = 2, o.pending[:random.IntN(len(o.pending)+1)]
	}
	for _, c := range o.pending {
		switch {
		case kept == 0 || kept == 1 && random.IntN(2) == 0:
			continue
		case kept == 1 && len(c.data) > sector && random.IntN(2) == 0:
			c.data = c.data[:sector*(1+random.IntN(len(c.data)/sector))]
		}
		content = c.apply(content)
	}
	return &object{dir: o.dir, synced: content}
}

// LosePower replaces the content of the directory by a possible state of the disk after a power
// failure at the end of the last Run: all synced data, and for seeds other than 0 some of the other
// changes. Skipped files stay.
func (d *Disk) LosePower(seed uint64, order Order) error {
	var random *rand.Rand
	if seed != 0 {
		random = rand.New(rand.NewPCG(seed, 1))
	}
	names := d.state.afterLoss(random, order)
	var dirs []string
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(d.dir, path)
		switch {
		case err != nil || relErr != nil || d.skip(name):
			return err
		case e.IsDir():
			dirs = append(dirs, path)
			return nil
		}
		return os.Remove(path)
	})
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) {
		_ = os.Remove(dir) // unless it has skipped files
	}
	for _, path := range slices.Sorted(maps.Keys(names)) { // directories before their files
		full := filepath.Join(d.dir, path)
		if names[path].dir {
			err = os.MkdirAll(full, 0o700)
		} else if err = os.MkdirAll(filepath.Dir(full), 0o700); err == nil {
			err = os.WriteFile(full, names[path].synced, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
