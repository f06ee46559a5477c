package paramserver

import (
	"container/list"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// entry is a model and its encoding.
type entry struct {
	id      uint32
	model   outlier.Model
	version uint64 // of the models when it last changed
	encoded []byte // immutable
	changed bool   // since encoded
	place   *list.Element
}

// entry returns the model of a function, new or not.
func (s *State) entry(id uint32) *entry {
	e := s.models[id]
	if e == nil {
		e = &entry{id: id}
		e.place = s.byVersion.PushFront(e) // in no version yet
		s.models[id] = e
	}
	return e
}

// touch marks a model as changed.
func (s *State) touch(e *entry) {
	if !e.changed {
		e.changed = true
		s.changed = append(s.changed, e)
	}
	s.stale = true
}

// refresh makes a new version of the models that changed, now or when it is due.
func (s *State) refresh(now time.Time, immediately bool) {
	if !s.stale || !immediately && now.Sub(s.made) < s.cfg.Refresh {
		return
	}
	s.made, s.stale = now, false
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
)

const (
	maxReplies  = 64 // in the cache
	modelHeader = 24 // most bytes before the encoding of a model
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
		part = appendModel(part, replyModels, e.id, e.encoded)
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

// appendModel appends a protocol.Model as a field of a message.
func appendModel(b []byte, field protowire.Number, id uint32, model []byte) []byte {
	size := protowire.SizeTag(modelID) + protowire.SizeVarint(uint64(id)) + protowire.SizeTag(modelModel) + protowire.SizeBytes(len(model))
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	b = protowire.AppendTag(b, modelID, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(id))
	b = protowire.AppendTag(b, modelModel, protowire.BytesType)
	return protowire.AppendBytes(b, model)
}

// Models returns copies of the models of this shard by the ids of functions.
func (s *State) Models() map[uint32]outlier.Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[uint32]outlier.Model, len(s.models))
	for id, e := range s.models {
		all[id] = e.model.Clone()
	}
	return all
}
