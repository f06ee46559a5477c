package tau

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// learn reads the attributes of a step and appends the metadata among them to d.step.
func (d *Decoder) learn(attrs []bp.Attribute) {
	owners := d.owners(attrs)
	for i := range attrs {
		a := &attrs[i]
		if strings.HasPrefix(a.Name, attrMetadata) {
			d.learnMetadata(a)
			continue
		}
		word, number, ok := strings.Cut(a.Name, " ")
		switch word {
		case attrProgram, attrEventType, attrTimer, attrCounter:
		default:
			continue // not from TAU, or not needed
		}
		id, err := strconv.ParseUint(number, 10, 32)
		if !ok || err != nil {
			d.tally.Add(tally.AttributeMalformed, 1)
			continue
		}
		rank := trace.AnyRank
		if owner, ok := owners[a.Block]; ok && d.oneFile {
			rank = owner
		}
		switch word {
		case attrProgram:
			d.checkName(d.Names.DefineProgram(uint32(id), a.Text()))
		case attrEventType:
			d.defineType(uint32(id), a.Text())
		case attrTimer:
			d.checkName(d.Names.DefineFunc(rank, trace.FuncID(id), a.Text()))
		case attrCounter:
			d.checkName(d.Names.DefineCounter(rank, trace.CounterID(id), a.Text()))
		}
	}
}

// checkName counts a name that differs from the existing name of its number.
func (d *Decoder) checkName(same bool) {
	if !same {
		d.tally.Add(tally.NameConflict, 1)
	}
}

// defineType names an event type.
func (d *Decoder) defineType(id uint32, name string) {
	if old, ok := d.typeNames[id]; ok {
		d.checkName(old == name)
		return
	}
	d.typeNames[id] = name
	if id < uint32(len(d.kinds)) {
		d.kinds[id] = eventTypes[name]
	}
}

// owners returns the rank that wrote each block of attributes: the common rank of all
// metadata in the block. Blocks without metadata have no owner.
func (d *Decoder) owners(attrs []bp.Attribute) map[int]trace.Rank {
	if !d.oneFile || len(attrs) == 0 {
		return nil
	}
	owners := make(map[int]trace.Rank)
	for i := range attrs {
		m, ok := ParseMetadata(attrs[i].Name)
		if !ok || attrs[i].Block < 0 {
			continue
		}
		if owner, ok := owners[attrs[i].Block]; ok && owner != m.Rank {
			m.Rank = trace.AnyRank
		}
		owners[attrs[i].Block] = m.Rank
	}
	return owners
}

// ParseMetadata splits a name such as "MetaData:0:5:CUDA Stream". The key may contain
// colons. TAU sometimes concatenates two names; the last one is valid.
func ParseMetadata(name string) (m trace.Metadata, ok bool) {
	name = name[max(0, strings.LastIndex(name, attrMetadata)):]
	rest, ok := strings.CutPrefix(name, attrMetadata)
	if !ok {
		return m, false
	}
	rank, rest, ok1 := strings.Cut(rest, ":")
	thread, key, ok2 := strings.Cut(rest, ":")
	r, err1 := strconv.ParseInt(rank, 10, 32)
	t, err2 := strconv.ParseUint(thread, 10, 32)
	if !ok1 || !ok2 || err1 != nil || err2 != nil {
		return m, false
	}
	return trace.Metadata{Rank: trace.Rank(r), Thread: trace.Thread(t), Key: key}, true
}

func (d *Decoder) learnMetadata(a *bp.Attribute) {
	m, ok := ParseMetadata(a.Name)
	if !ok {
		d.tally.Add(tally.AttributeMalformed, 1)
		return
	}
	m.Program, m.Value = d.cfg.Program, a.Text()
	if d.cfg.Ranks == OverrideRank {
		m.Rank = d.cfg.Rank
	}
	d.step.Metadata = append(d.step.Metadata, m)
	gpu, _ := d.Names.GPU(m.Rank, m.Thread)
	switch m.Key {
	case keyDevice:
		gpu.Device = m.Value
	case keyContext:
		gpu.Context = m.Value
	case keyStream:
		gpu.Stream = m.Value
	default:
		return
	}
	d.Names.DefineGPU(m.Rank, m.Thread, gpu)
}

// RankInName returns the number at the end of tau-metrics-app-7.bp or of the contact
// file tau-metrics-app-7.bp.sst, or -1.
func RankInName(path string) int {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".sst"), ".bp")
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return -1
	}
	return n
}
