package otf2

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Archive is an open archive.
type Archive struct {
	Path    string       // of the anchor file
	Creator string       // the program that wrote it
	Version string       // of the library that wrote it
	Ranks   []trace.Rank // in order
	Unit    trace.Unit
	Program trace.Program

	anchor *anchor
	defs   *definitions
	places []place // by rank and thread
	ranks  map[uint64]trace.Rank
	world  []uint64 // locations of the ranks of MPI
	err    error    // that ended the definitions early
	epoch  int64    // of the first event, in nanoseconds
	known  mapping  // regions that are defined
}

// place is a location of a rank.
type place struct {
	rank   trace.Rank
	thread trace.Thread
	host   string
	gpu    *trace.GPU
	*location
}

// Open reads the definitions of an archive, given its anchor file. Events are read by Steps.
func Open(path string) (*Archive, error) {
	anchor, err := readAnchor(path)
	if err != nil {
		return nil, err
	}
	a := &Archive{Path: path, Creator: anchor.creator, Version: anchor.Version(), anchor: anchor, Unit: trace.Nanosecond}
	a.defs, a.err = readDefinitions(a.base()+".def", anchor)
	if a.defs == nil {
		return nil, a.err
	}
	if len(a.defs.places) == 0 {
		return nil, cmp.Or(a.err, fmt.Errorf("%s: the archive has no locations", path))
	}
	if a.defs.resolution == 1e6 {
		a.Unit = trace.Microsecond
	}
	if a.epoch = int64(a.defs.epoch); a.defs.epoch > 1<<63-1 {
		a.epoch = int64(scale(a.defs.offset, a.defs.resolution))
	}
	a.number()
	if a.place(); len(a.places) == 0 {
		return nil, cmp.Or(a.err, fmt.Errorf("%s: no location has events", path))
	}
	return a, nil
}

// number numbers the regions like the archive, but replaces far numbers by the next near ones: EZTrace divides all numbers
// among its processes.
func (a *Archive) number() {
	a.known.closed = true
	next := uint32(0)
	for _, id := range slices.Sorted(maps.Keys(a.defs.regions)) {
		number := id
		if id >= firstFar && next < firstFar {
			number = next
			a.defs.regions[number] = a.defs.regions[id]
			delete(a.defs.regions, id)
		}
		a.known.set(id, number)
		next = number + 1
	}
}

// base returns the path of the archive without the extension.
func (a *Archive) base() string { return strings.TrimSuffix(a.Path, filepath.Ext(a.Path)) }

// file returns the path of a file of a location.
func (a *Archive) file(l *location, extension string) string {
	return filepath.Join(a.base(), strconv.FormatUint(l.id, 10)+extension)
}

// place numbers ranks and threads. A rank is a process: the one with that number in MPI or, without MPI, in the order of
// definitions. GPU streams belong to the process that created them.
func (a *Archive) place() {
	d := a.defs
	for _, g := range d.groups {
		if g.kind == commLocations && (g.paradigm == mpi || g.paradigm == 0) && len(g.members) > len(a.world) {
			a.world = g.members
		}
	}
	byGroup := make(map[uint32]trace.Rank)
	of := make(map[uint64]*location, len(d.places))
	for i := range d.places {
		of[d.places[i].id] = &d.places[i]
	}
	for rank, id := range a.world {
		if l := of[id]; l != nil {
			if _, ok := byGroup[l.group]; !ok {
				byGroup[l.group] = trace.Rank(rank)
			}
		}
	}
	next := trace.Rank(len(a.world))
	a.ranks = make(map[uint64]trace.Rank)
	for i := range d.places {
		l := &d.places[i]
		if l.events == 0 && !a.exists(l) {
			continue
		}
		owner := l.group
		if p := d.processes[owner]; p.kind != process && p.creator != undefined {
			owner = p.creator
		}
		rank, ok := byGroup[owner]
		if !ok {
			rank = next
			byGroup[owner] = rank
			next++
		}
		p := place{rank: rank, host: d.host(d.processes[owner]), location: l}
		if l.kind == accelerator {
			p.gpu = &trace.GPU{Device: d.strings[d.processes[l.group].name], Stream: l.name}
		}
		a.ranks[l.id] = rank
		a.places = append(a.places, p)
	}
	slices.SortStableFunc(a.places, func(p, q place) int { return cmp.Compare(p.rank, q.rank) })
	for i := range a.places {
		if p := &a.places[i]; i > 0 && p.rank == a.places[i-1].rank {
			p.thread = a.places[i-1].thread + 1
		} else {
			a.Ranks = append(a.Ranks, p.rank)
		}
	}
}

func (a *Archive) exists(l *location) bool {
	_, err := os.Stat(a.file(l, ".evt"))
	return err == nil
}

// partner returns the rank of a member of a communicator, or -1 if it is unknown.
func (a *Archive) partner(comm, member uint32) trace.Rank {
	g, ok := a.defs.groups[a.defs.comms[comm]]
	if !ok || uint64(member) >= uint64(len(g.members)) {
		return -1
	}
	id := g.members[member]
	if g.kind == commGroup {
		if id >= uint64(len(a.world)) {
			return -1
		}
		id = a.world[id]
	}
	if rank, ok := a.ranks[id]; ok {
		return rank
	}
	return -1
}

// ticks returns a time in the unit of the archive.
func (a *Archive) ticks(time uint64) trace.Ticks {
	n := a.epoch + a.defs.nanoseconds(time)
	if a.Unit == trace.Microsecond {
		n /= 1000
	}
	return trace.Ticks(n)
}

// Events returns the number of events that the definitions announce.
func (a *Archive) Events() (n uint64) {
	for i := range a.places {
		n += a.places[i].events
	}
	return n
}

// Steps returns a reader of the events of a rank. It counts losses in t.
func (a *Archive) Steps(rank trace.Rank, t *tally.Tally) (*Reader, error) {
	r := &Reader{archive: a, rank: rank, tally: t, names: a.Names(), err: a.err}
	for i := range a.places {
		if p := &a.places[i]; p.rank == rank {
			r.lanes = append(r.lanes, &lane{place: p, stream: none})
		}
	}
	total := 0
	for _, l := range r.lanes {
		if err := r.open(l); err != nil {
			r.close()
			return nil, err
		}
		l.room = int(min(l.location.events, uint64(l.chunks.size)/2)) // no event takes less than two bytes
		total += l.room
	}
	for _, l := range r.lanes {
		l.room = min(l.room, int(stepEvents*(float64(l.room)/float64(total)))+1)
	}
	return r, nil
}

// Counters that have no definition.
const (
	bytesSent trace.CounterID = 1<<31 + iota
	bytesReceived
	bytesPut
	bytesGot
	bytesIO
	correlation
)

// flush is the region of time in which the library wrote its buffer to the file.
const flush = undefined - 1

// Names returns the names of all regions and metrics.
func (a *Archive) Names() trace.Names {
	n := trace.EmptyNames()
	n.DefineFunc(trace.AnyRank, undefined, "(undefined region)")
	n.DefineFunc(trace.AnyRank, flush, "(flush of the trace buffer)")
	for id := range a.defs.regions {
		if name, ok := a.defs.function(id); ok {
			n.DefineFunc(trace.AnyRank, trace.FuncID(id), name)
		}
	}
	for id, name := range a.defs.members {
		n.DefineCounter(trace.AnyRank, trace.CounterID(id), a.defs.strings[name])
	}
	n.DefineCounter(trace.AnyRank, bytesSent, "Bytes sent in collective call")
	n.DefineCounter(trace.AnyRank, bytesReceived, "Bytes received in collective call")
	n.DefineCounter(trace.AnyRank, bytesPut, "Bytes of remote put")
	n.DefineCounter(trace.AnyRank, bytesGot, "Bytes of remote get")
	n.DefineCounter(trace.AnyRank, bytesIO, "Bytes of I/O operation")
	n.DefineCounter(trace.AnyRank, correlation, "Correlation ID")
	for i := range a.places {
		if p := &a.places[i]; p.gpu != nil {
			n.DefineGPU(p.rank, p.thread, *p.gpu)
		}
	}
	return n
}

// Size returns the number of bytes of the files of a rank.
func (a *Archive) Size(rank trace.Rank) (n int64) {
	for i := range a.places {
		if p := &a.places[i]; p.rank == rank {
			n += sizeOf(a.file(p.location, ".def")) + sizeOf(a.file(p.location, ".evt"))
		}
	}
	if len(a.Ranks) > 0 && rank == a.Ranks[0] { // including the files that all ranks share
		n += sizeOf(a.Path) + sizeOf(a.base()+".def")
	}
	return n
}

// sizeOf returns the size of a file, or 0 if it does not exist.
func sizeOf(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}
