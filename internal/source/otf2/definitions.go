package otf2

import (
	"fmt"
	"math/bits"
	"path"
	"strconv"
)

// The types of global definitions that are read.
const (
	clockProperties = 5
	stringDef       = 10
	attributeDef    = 11
	systemTreeNode  = 12
	locationGroup   = 13
	locationDef     = 14
	regionDef       = 15
	groupDef        = 18
	metricMember    = 19
	metricClass     = 20
	metricInstance  = 21
	commDef         = 22
	parameterDef    = 23
	callingContext  = 34
)

// Types of locations, groups of locations, and groups.
const (
	cpuThread     = 1
	accelerator   = 2 // stream
	metricSource  = 3 // it has only metrics
	process       = 1
	commLocations = 4
	commGroup     = 5
)

// mpi is the number of MPI among the paradigms.
const mpi = 4

// artificial is the role of regions that no program has, such as the time in which a GPU is idle.
const artificial = 31

// location is a thread or a GPU stream.
type location struct {
	id     uint64
	name   string
	kind   byte
	events uint64
	group  uint32
}

type group struct {
	kind, paradigm byte
	members        []uint64
}

// node is a part of the machine.
type node struct{ name, class, parent uint32 }

// locations is a group of locations: a process, or a context of a GPU.
type locations struct {
	name, parent uint32 // parent is a node
	kind         byte
	creator      uint32 // the process of a context
}

type region struct {
	name, file uint32
	line       uint32
	role       byte
}

// definitions are the global definitions of an archive. Texts are numbers of strings until all are known.
type definitions struct {
	resolution uint64 // ticks per second
	offset     uint64 // of the first event, in ticks
	epoch      uint64 // time of offset since the epoch of Unix in nanoseconds, or the greatest number

	strings   map[uint32]string
	nodes     map[uint32]node
	processes map[uint32]locations
	places    []location
	names     []uint32 // of places
	regions   map[uint32]region
	groups    map[uint32]group
	comms     map[uint32]uint32   // their groups
	members   map[uint32]uint32   // names of metrics
	classes   map[uint32][]uint32 // members of classes of metrics
	instances map[uint32]uint32   // their classes
	contexts  map[uint32]uint32   // regions of calling contexts

	attributes map[uint32]uint32 // their names
	parameters map[uint32]uint32 // their names
	marks      marks
}

// readDefinitions reads the file of global definitions. After an error, the definitions are those before it.
func readDefinitions(file string, announced *anchor) (*definitions, error) {
	c, err := openChunks(file, announced.defChunk)
	if err != nil {
		return nil, err
	}
	defer c.close()
	d := &definitions{
		resolution: 1e9, epoch: 1<<64 - 1,
		strings: make(map[uint32]string), nodes: make(map[uint32]node), processes: make(map[uint32]locations),
		regions: make(map[uint32]region), groups: make(map[uint32]group), comms: make(map[uint32]uint32),
		members: make(map[uint32]uint32), classes: make(map[uint32][]uint32), instances: make(map[uint32]uint32),
		contexts: make(map[uint32]uint32), attributes: make(map[uint32]uint32), parameters: make(map[uint32]uint32),
	}
	defer d.findMarks()
	records := uint64(0)
	for ; ; records++ {
		t, ok := c.record()
		if !ok {
			break
		}
		c.begin()
		d.add(t, &c.cursor)
		c.finish()
	}
	for i, name := range d.names {
		d.places[i].name = d.strings[name]
	}
	switch {
	case c.err != nil:
		return d, c.err
	case records < announced.definitions:
		return d, fmt.Errorf("%s: only %d of %d definitions", file, records, announced.definitions)
	case uint64(len(d.places)) < announced.locations:
		return d, fmt.Errorf("%s: only %d of %d locations", file, len(d.places), announced.locations)
	case d.resolution == 0:
		return d, fmt.Errorf("%s: the clock has no resolution", file)
	}
	return d, nil
}

// add adds a definition. Those of later versions have more fields at the end.
func (d *definitions) add(t byte, b *cursor) {
	switch t {
	case clockProperties:
		d.resolution, d.offset = b.number(), b.number()
		b.number() // length
		if b.more() {
			d.epoch = b.number()
		}
	case stringDef:
		id := b.id()
		d.strings[id] = b.text()
	case systemTreeNode:
		id := b.id()
		d.nodes[id] = node{name: b.id(), class: b.id(), parent: b.id()}
	case locationGroup:
		id := b.id()
		p := locations{name: b.id(), kind: b.byte(), parent: b.id(), creator: undefined}
		if b.more() {
			p.creator = b.id()
		}
		d.processes[id] = p
	case locationDef:
		l := location{id: b.number()}
		name := b.id()
		l.kind, l.events, l.group = b.byte(), b.number(), b.id()
		if len(d.places) == maxLocations {
			b.fail(fmt.Errorf("more than %d locations", maxLocations))
			return
		}
		d.places, d.names = append(d.places, l), append(d.names, name)
	case regionDef:
		id := b.id()
		r := region{name: b.id()}
		b.id()   // description
		b.byte() // type of version 1.0
		r.file, r.line = b.id(), b.id()
		if b.id(); b.more() { // after the last line
			b.id() // canonical name
			r.role = b.byte()
		}
		d.regions[id] = r
	case groupDef:
		d.addGroup(b)
	case metricMember:
		id := b.id()
		d.members[id] = b.id()
	case metricClass:
		id := b.id()
		members := make([]uint32, b.byte())
		for i := range members {
			members[i] = b.id()
		}
		d.classes[id] = members
	case metricInstance:
		id := b.id()
		d.instances[id] = b.id()
	case commDef:
		id := b.id()
		b.id() // name
		d.comms[id] = b.id()
	case callingContext:
		id := b.id()
		d.contexts[id] = b.id()
	case attributeDef:
		id := b.id()
		d.attributes[id] = b.id()
	case parameterDef:
		id := b.id()
		d.parameters[id] = b.id()
	}
}

// groupsOfOld has the kinds of groups by their numbers in versions before 1.2, in which all communicators are of MPI.
var groupsOfOld = [256]byte{4: commGroup, 6: commLocations}

// addGroup adds a group. Each member takes a byte at least.
func (d *definitions) addGroup(b *cursor) {
	id := b.id()
	b.id() // name
	old := b.byte()
	n := b.number()
	if n > uint64(b.end-b.pos) {
		b.fail(fmt.Errorf("a group of %d members in %d bytes", n, b.end-b.pos))
		return
	}
	g := group{kind: groupsOfOld[old], members: make([]uint64, n)}
	for i := range g.members {
		g.members[i] = b.number()
	}
	if b.more() {
		g.kind, g.paradigm = b.byte(), b.byte()
	}
	d.groups[id] = g
}

// function returns the name of a region, with its source if that is known.
func (d *definitions) function(id uint32) (string, bool) {
	r, ok := d.regions[id]
	if !ok {
		return "", false
	}
	name := d.strings[r.name]
	if file := d.strings[r.file]; file != "" && r.file != undefined && r.line > 0 && r.line != undefined {
		name += " [{" + path.Clean(file) + "} {" + strconv.FormatUint(uint64(r.line), 10) + ",0}]"
	}
	return name, true
}

// metric returns the members of a metric, which is a class or an instance of one.
func (d *definitions) metric(id uint32) []uint32 {
	if class, ok := d.instances[id]; ok {
		id = class
	}
	return d.classes[id]
}

// host returns the name of the node of a process: the innermost part of the machine of class "node", or else the innermost.
func (d *definitions) host(p locations) string {
	for id, depth := p.parent, 0; depth < maxDepth; depth++ {
		n, ok := d.nodes[id]
		if !ok {
			break
		}
		if d.strings[n.class] == "node" {
			return d.strings[n.name]
		}
		id = n.parent
	}
	return d.strings[d.nodes[p.parent].name]
}

// maxDepth is the greatest depth of the system tree.
const maxDepth = 32

// nanoseconds returns the time of ticks since the first event. Ticks before it are negative.
func (d *definitions) nanoseconds(ticks uint64) int64 {
	if ticks < d.offset {
		return -int64(scale(d.offset-ticks, d.resolution))
	}
	return int64(scale(ticks-d.offset, d.resolution))
}

// scale returns ticks in nanoseconds.
func scale(ticks, resolution uint64) uint64 {
	high, low := bits.Mul64(ticks, 1e9)
	if high >= resolution {
		return 1<<63 - 1
	}
	n, _ := bits.Div64(high, low, resolution)
	return min(n, 1<<63-1)
}
