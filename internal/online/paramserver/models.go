package paramserver

import (
	"container/list"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// entry is a model and its encoding.
type entry struct {
	id      uint32
	path    callpath.Hash           // 0 for all paths
	paths   callpath.Sample[*entry] // only if path is 0
	model   outlier.Model
	version uint64 // of the models when it last changed
	encoded []byte // immutable
	changed bool   // since encoded
	place   *list.Element
}

// entry returns the model of a function, or of one of its paths. It adds a missing one, or returns
// nil if the function has too many paths.
func (s *State) entry(id uint32, path callpath.Hash) *entry {
	all := s.models[id]
	if all == nil {
		all = s.newEntry(id, 0)
		s.models[id] = all
	}
	if path == 0 {
		return all
	}
	if e, ok := all.paths.Get(path); ok || !all.paths.Keeps(path) {
		return e
	}
	e, level := s.newEntry(id, path), all.paths.Level()
	kept := all.paths.Put(path, e, s.drop)
	if all.paths.Level() > level {
		s.touch(all)
	}
	if !kept {
		s.drop(path, e)
		return nil
	}
	return e
}

func (s *State) newEntry(id uint32, path callpath.Hash) *entry {
	e := &entry{id: id, path: path}
	e.place = s.byVersion.PushFront(e) // not in a version yet
	return e
}

// drop removes the model of a path.
func (s *State) drop(_ callpath.Hash, e *entry) {
	s.byVersion.Remove(e.place)
	if e.changed {
		s.changed = slices.DeleteFunc(s.changed, func(c *entry) bool { return c == e })
	}
}

// learn adds the models of a function.
func (s *State) learn(id uint32, l *summary.Learned) {
	e := s.entry(id, 0)
	e.paths.Raise(l.Level, s.drop)
	s.mergeModel(id, 0, &l.Model)
	for path, m := range l.Paths {
		s.mergeModel(id, path, &m)
	}
}

// mergeModel adds a model of a function, or of one of its paths.
func (s *State) mergeModel(id uint32, path callpath.Hash, m *outlier.Model) {
	if e := s.entry(id, path); e != nil {
		e.model.Merge(m)
		s.touch(e)
	}
}

// touch marks a model as changed.
func (s *State) touch(e *entry) {
	if !e.changed {
		e.changed = true
		s.changed = append(s.changed, e)
	}
	s.stale = true
}

// refresh makes a new version of the changed models if it is due or immediately is set.
func (s *State) refresh(now time.Time, immediately bool) {
	if !s.stale || !immediately && now.Sub(s.versionTime) < s.cfg.Refresh {
		return
	}
	s.versionTime, s.stale = now, false
	if len(s.changed) > 0 {
		s.version++
		clear(s.replies)
		for _, e := range s.changed {
			e.changed, e.version = false, s.version
			e.encoded = e.model.AppendBinary(make([]byte, 0, len(e.encoded)+16))
			s.byVersion.MoveToBack(e.place)
		}
		s.changed = s.changed[:0]
	}
	for _, n := range s.nodes {
		n.included = n.Last
	}
}

// Field numbers of messages that are encoded by hand.
const (
	replyModels = 6
	modelID     = 1
	modelModel  = 2
	modelPath   = 3
	modelLevel  = 4
)

const (
	maxReplies  = 64 // in the cache
	modelHeader = 36 // most bytes before the encoding of a model
)

// since returns the models newer than a version, encoded as a part of a
// protocol.ExchangeReply. Requests with the same version share the bytes, which
// must not be changed.
func (s *State) since(version uint64) []byte {
	if part, ok := s.replies[version]; ok {
		return part
	}
	size := 0
	for e := range s.newerThan(version) {
		size += len(e.encoded) + modelHeader
	}
	part := make([]byte, 0, size)
	for e := range s.newerThan(version) {
		part = e.appendTo(part, replyModels)
	}
	if len(s.replies) < maxReplies {
		s.replies[version] = part
	}
	return part
}

// newerThan yields the models newer than a version.
func (s *State) newerThan(version uint64) func(yield func(*entry) bool) {
	return func(yield func(*entry) bool) {
		for el := s.byVersion.Back(); el != nil; el = el.Prev() {
			if e := el.Value.(*entry); e.version <= version || !yield(e) {
				return
			}
		}
	}
}

// appendTo appends a protocol.Model as a field of a message.
func (e *entry) appendTo(b []byte, field protowire.Number) []byte {
	size := protowire.SizeTag(modelID) + protowire.SizeVarint(uint64(e.id)) +
		protowire.SizeTag(modelModel) + protowire.SizeBytes(len(e.encoded))
	level := uint64(e.paths.Level())
	if e.path != 0 {
		size += protowire.SizeTag(modelPath) + protowire.SizeFixed64()
	}
	if level != 0 {
		size += protowire.SizeTag(modelLevel) + protowire.SizeVarint(level)
	}
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	b = protowire.AppendTag(b, modelID, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(e.id))
	b = protowire.AppendTag(b, modelModel, protowire.BytesType)
	b = protowire.AppendBytes(b, e.encoded)
	if e.path != 0 {
		b = protowire.AppendTag(b, modelPath, protowire.Fixed64Type)
		b = protowire.AppendFixed64(b, uint64(e.path))
	}
	if level != 0 {
		b = protowire.AppendTag(b, modelLevel, protowire.VarintType)
		b = protowire.AppendVarint(b, level)
	}
	return b
}

// Models returns copies of the models of this shard by the ids of functions.
func (s *State) Models() map[uint32]summary.Learned {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[uint32]summary.Learned, len(s.models))
	for id, e := range s.models {
		l := summary.Learned{Model: e.model.Clone(), Level: e.paths.Level()}
		for path, p := range e.paths.Sorted() {
			l.Set(path, p.model.Clone())
		}
		all[id] = l
	}
	return all
}
