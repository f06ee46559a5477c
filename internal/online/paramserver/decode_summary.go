package paramserver

import (
	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// readSummary decodes a protocol.Summary.
func (x *request) readSummary(r *reader, b []byte) {
	for f, b := r.next(b); f.tag != 0; f, b = r.next(b) {
		switch f.tag {
		case 1<<3 | text:
			x.readProfile(r, f.content)
		case 2<<3 | text:
			x.readRank(r, f.content)
		case 3<<3 | text:
			x.readFound(r, f.content)
		case 4<<3 | text:
			x.readCounter(r, f.content)
		case 5<<3 | text:
			x.readPaths(r, f.content)
		}
	}
}

func (x *request) readProfile(r *reader, b []byte) {
	p := grow(&x.profiles)
	*p = profileDelta{}
	for f, b := r.next(b); f.tag != 0; f, b = r.next(b) {
		switch f.tag {
		case 1<<3 | number:
			p.id = uint32(f.value)
		case 2<<3 | text:
			r.readSums(&p.Exclusive, f.content)
		case 3<<3 | text:
			r.readSums(&p.Inclusive, f.content)
		case 4<<3 | text:
			r.readSums(&p.anomalies, f.content)
		}
	}
}

func (x *request) readRank(r *reader, b []byte) {
	k := grow(&x.ranks)
	*k = rankDelta{}
	for f, b := r.next(b); f.tag != 0; f, b = r.next(b) {
		switch f.tag {
		case 1<<3 | number:
			k.Program = trace.Program(f.value)
		case 2<<3 | number:
			k.Rank = trace.Rank(f.value)
		case 3<<3 | text:
			r.readSums(&k.anomalies, f.content)
		}
	}
}

// readFound decodes a step with anomalies, of which there are few.
func (x *request) readFound(r *reader, b []byte) {
	m := new(protocol.StepReport)
	if err := proto.Unmarshal(b, m); err != nil {
		r.fail("step with anomalies")
		return
	}
	x.found = append(x.found, r.stepReport(m))
}

func (x *request) readCounter(r *reader, b []byte) {
	c := grow(&x.counters)
	*c = counterDelta{}
	for f, b := r.next(b); f.tag != 0; f, b = r.next(b) {
		switch f.tag {
		case 1<<3 | number:
			c.program = trace.Program(f.value)
		case 2<<3 | text:
			c.name = f.content
		case 3<<3 | text:
			r.readSums(&c.values, f.content)
		}
	}
}

// name fills in the names of functions; not all need be known.
func (x *request) name(index *Index) error {
	names := index.all()
	known := func(id uint32) error {
		if int64(id) >= int64(len(names)) {
			return refuse("no function has the number %d", id)
		}
		return nil
	}
	for i := range x.models {
		if err := known(x.models[i].id); err != nil {
			return err
		}
	}
	for i := range x.profiles {
		p := &x.profiles[i]
		if err := known(p.id); err != nil {
			return err
		}
		p.ID, p.Program, p.Name = int(p.id), names[p.id].Program, names[p.id].Name
	}
	for i := range x.paths {
		for _, e := range x.paths[i].list {
			if err := known(e.Func); err != nil && e.Func != callpath.Other {
				return err
			}
		}
	}
	for _, step := range x.found {
		for i := range step.Functions {
			if err := known(uint32(step.Functions[i].Function)); err != nil {
				return err
			}
		}
	}
	return nil
}
