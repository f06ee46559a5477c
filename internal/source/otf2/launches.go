package otf2

import (
	"math"
	"strings"
)

// Names of definitions by which programs link launches with kernels.
const (
	callsiteName  = "callsite id"     // parameter of Score-P for CUDA and HIP: the call path of the launch, at launches and kernels
	streamName    = "CUDA_STREAM_REF" // attribute of Score-P for CUDA: the stream, at the entry of launches
	taskName      = "GUID"            // attribute of APEX: the task, at every entry
	launchingName = "Parent GUID"     // attribute of APEX: the task that created it
)

// marks are the numbers of definitions that link launches with kernels; undefined if the archive lacks
// them.
type marks struct {
	callsite                uint32 // parameter
	stream, task, launching uint32 // attributes
	any                     bool   // the archive has one of the attributes
}

// findMarks sets the marks, once all names are known.
func (d *definitions) findMarks() {
	d.marks = marks{callsite: undefined, stream: undefined, task: undefined, launching: undefined}
	for id, name := range d.parameters {
		if d.strings[name] == callsiteName {
			d.marks.callsite = id
		}
	}
	for id, name := range d.attributes {
		switch d.strings[name] {
		case streamName:
			d.marks.stream = id
		case taskName:
			d.marks.task = id
		case launchingName:
			d.marks.launching = id
		default:
			continue
		}
		d.marks.any = true
	}
}

// attributes are the values of an attribute list that link launches. Missing ones are none.
type attributes struct{ stream, task, launching uint64 }

// none is the value of a missing attribute, and the stream of work that runs in several streams.
const none = math.MaxUint64

// Types of attributes that are not compressed numbers.
const (
	typeNone   = 0
	typeUint8  = 1
	typeUint16 = 2
	typeInt8   = 5
	typeInt16  = 6
)

// readAttributes reads the attribute list of the next event.
func (l *lane) readAttributes(r *Reader, c *cursor) {
	m := &r.archive.defs.marks
	if !m.any {
		return
	}
	l.given, l.attributed = attributes{none, none, none}, true
	for n := c.number(); n > 0 && c.more(); n-- {
		id := l.maps[mapAttribute].of(c.id())
		var v uint64
		switch c.byte() {
		case typeNone:
		case typeUint8, typeInt8:
			c.skip(1)
		case typeUint16, typeInt16:
			c.skip(2)
		case typeFloat:
			c.skip(4)
		case typeDouble:
			c.skip(8)
		default:
			v = c.number()
		}
		switch id {
		case undefined:
		case m.stream:
			l.given.stream = v
		case m.task:
			l.given.task = v
		case m.launching:
			l.given.launching = v
		}
	}
}

// callsite identifies launches that start kernels in order: those of a call path, in a stream. Without call paths, the path is 0.
type callsite struct{ path, stream uint64 }

// launches counts the launches and kernels of a callsite.
type launches struct {
	number   uint64 // of the callsite
	launched uint64
	started  uint64
	by       *lane // that launches
}

// linker numbers launches and kernels, so that those that belong together have the same number. The n-th kernel of a callsite
// belongs to its n-th launch.
type linker struct {
	sites   map[callsite]*launches
	streams map[uint64]uint64 // that of the kernels of a call path, or none if there are several
	lost    map[uint64]bool   // call paths with a launch whose place in the order is unknown
	only    uint64            // the only stream of the rank, or none
	refers  map[uint32]bool   // regions of the host, whether their entries have the attribute of a stream
}

// maxCallsites limits the memory for callsites.
const maxCallsites = 1 << 16

// newLinker returns the linker of a reader.
func (r *Reader) newLinker() *linker {
	k := &linker{
		sites: make(map[callsite]*launches), streams: make(map[uint64]uint64), lost: make(map[uint64]bool), only: none,
		refers: make(map[uint32]bool),
	}
	n := 0
	for _, l := range r.lanes {
		if l.kind == accelerator {
			k.only = l.id
			n++
		}
	}
	if n < 2 {
		return k
	}
	k.only = none
	marks := &r.archive.defs.marks
	for _, l := range r.lanes {
		if l.kind == accelerator && marks.callsite != undefined {
			k.findStreams(r, l)
		}
	}
	for path, stream := range k.streams {
		if stream == none && marks.stream == undefined {
			k.lost[path] = true
		}
	}
	return k
}

// findStreams notes the call paths whose kernels run in a stream.
func (k *linker) findStreams(r *Reader, l *lane) {
	c, err := openChunks(r.archive.file(l.location, ".evt"), r.archive.anchor.eventChunk)
	if err != nil {
		return
	}
	defer c.close()
	for {
		t, ok := c.record()
		switch {
		case !ok:
			return
		case t == timestamp:
			c.u64()
		case isShort(t):
			c.number()
		default:
			c.begin()
			if path, ok := l.pathOf(r, t, &c.cursor); ok {
				if stream, ok := k.streams[path]; !ok && len(k.streams) < maxCallsites {
					k.streams[path] = l.id
				} else if ok && stream != l.id {
					k.streams[path] = none
				}
			}
			c.finish()
		}
	}
}

// pathOf returns the call path of a launch that a record has, or false.
func (l *lane) pathOf(r *Reader, t byte, c *cursor) (uint64, bool) {
	if t != parameterUint || r.archive.defs.marks.callsite == undefined {
		return 0, false
	}
	id := l.maps[mapParameter].of(c.id())
	path := c.number()
	return path, id == r.archive.defs.marks.callsite && c.err == nil
}

// site returns the counts of a callsite, nil if there are too many.
func (k *linker) site(path, stream uint64) *launches {
	s := k.sites[callsite{path, stream}]
	if s == nil && len(k.sites) < maxCallsites {
		s = &launches{number: uint64(len(k.sites)) + 1}
		k.sites[callsite{path, stream}] = s
	}
	return s
}

// launch returns the number of a launch, or false if its kernel cannot be determined. stream is none if it was not
// recorded.
func (k *linker) launch(l *lane, path, stream uint64) (uint64, bool) {
	if stream == none {
		stream = k.only
	}
	if of, ok := k.streams[path]; ok && stream == none {
		stream = of
	}
	if stream == none {
		k.lost[path] = true
	}
	if k.lost[path] {
		return 0, false
	}
	s := k.site(path, stream)
	if s == nil {
		return 0, false
	}
	if s.by == nil {
		s.by = l
	}
	if s.by != l { // the order of launches of several threads is that of times, which are not exact
		k.lost[path] = true
		return 0, false
	}
	s.launched++
	return s.number<<32 | s.launched&math.MaxUint32, true
}

// kernel returns the number of a kernel, or false if its launch cannot be determined.
func (k *linker) kernel(l *lane, path uint64) (uint64, bool) {
	s := k.site(path, l.id)
	if s == nil || k.lost[path] {
		return 0, false
	}
	s.started++
	return s.number<<32 | s.started&math.MaxUint32, true
}

// link adds the number that a launch or kernel of a call path has in common with the other.
func (l *lane) link(r *Reader, path, stream uint64) {
	var number uint64
	var ok bool
	if k := r.links(); l.kind == accelerator {
		number, ok = k.kernel(l, path)
	} else {
		number, ok = k.launch(l, path, stream)
	}
	if ok {
		l.count(r, correlation, number)
	}
}

// links returns the linker. It creates a missing one.
func (r *Reader) links() *linker {
	if r.linker == nil {
		r.linker = r.newLinker()
	}
	return r.linker
}

// linkEntered links the call of a region that has just begun, if the archive links calls by
// attributes.
func (l *lane) linkEntered(r *Reader, region uint32) {
	of := attributes{none, none, none}
	if l.attributed {
		of = l.given
	}
	l.stream = of.stream
	d := r.archive.defs
	switch m := &d.marks; {
	case of.launching != none && l.kind == accelerator:
		l.count(r, correlation, of.launching)
	case of.task != none && l.kind != accelerator && m.launching != undefined && d.launches(region):
		l.count(r, correlation, of.task)
	case m.stream == undefined || m.callsite != undefined: // only parameters link calls
	case l.kind == accelerator && d.regions[region].role != artificial:
		l.link(r, 0, none)
	case l.kind != accelerator && r.links().refersTo(region, of.stream):
		l.link(r, 0, of.stream)
	}
}

// refersTo reports whether the call of a region names a stream. If only some calls of a region do, the order of launches is unknown.
func (k *linker) refersTo(region uint32, stream uint64) bool {
	refers, known := k.refers[region]
	if known && refers != (stream != none) {
		k.lost[0] = true
	}
	if !known && len(k.refers) < maxCallsites {
		k.refers[region] = stream != none
	}
	return stream != none
}

// launches reports whether a region starts work on a GPU, by its name.
func (d *definitions) launches(id uint32) bool {
	name := d.strings[d.regions[id].name]
	return strings.Contains(name, "Launch") || strings.Contains(name, "Memcpy") || strings.Contains(name, "Memset")
}
