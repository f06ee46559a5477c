package activity

import (
	"cmp"
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// maxGroups is the greatest number of groups of ranks in a matrix of messages.
const maxGroups = 64

// Traffic is the number of messages between two groups of ranks, and their bytes.
type Traffic struct {
	Messages, Bytes uint64 // Bytes includes only messages of known size
}

// pair is the groups of sender and receiver.
type pair struct{ from, to uint32 }

// matrix contains the messages of a program by sender and receiver. If there are too many ranks, neighbors form a group.
type matrix struct {
	shift uint8 // binary logarithm of the number of ranks of a group
	cells map[pair]Traffic
}

func (s *Sketch) matrix(program trace.Program) *matrix {
	m := s.messages[program]
	if m == nil {
		m = &matrix{cells: make(map[pair]Traffic)}
		s.messages[program] = m
	}
	return m
}

func (m *matrix) add(from, to uint32, t Traffic) {
	for max(from, to)>>m.shift >= maxGroups {
		m.widenTo(m.shift + 1)
	}
	m.addTo(pair{from >> m.shift, to >> m.shift}, t)
}

func (m *matrix) addTo(p pair, t Traffic) {
	sum := m.cells[p]
	sum.Messages += t.Messages
	sum.Bytes += t.Bytes
	m.cells[p] = sum
}

func (m *matrix) widenTo(shift uint8) {
	if shift <= m.shift {
		return
	}
	by, old := shift-m.shift, m.cells
	m.shift, m.cells = shift, make(map[pair]Traffic)
	for p, t := range old {
		m.addTo(pair{p.from >> by, p.to >> by}, t)
	}
}

func (m *matrix) merge(o *matrix) {
	m.widenTo(o.shift)
	for p, t := range o.cells {
		m.add(p.from<<o.shift, p.to<<o.shift, t)
	}
}

func (m *matrix) clone() *matrix { return &matrix{m.shift, maps.Clone(m.cells)} }

// sorted returns the pairs in order.
func (m *matrix) sorted() []pair {
	return slices.SortedFunc(maps.Keys(m.cells), func(a, b pair) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
}

// AddMessages adds messages of a rank to others. It ignores ranks that cannot exist.
func (s *Sketch) AddMessages(from trace.RankKey, sent []Sent) {
	for i := range sent {
		if to := sent[i].To; from.Rank >= 0 && to >= 0 {
			s.matrix(from.Program).add(uint32(from.Rank), uint32(to), sent[i].Traffic)
		}
	}
}

// Message is the traffic from some ranks to others.
type Message struct {
	From, To trace.Rank // first rank of each group
	Traffic
}

// Messages returns the messages of a program by sender and receiver, and the number of ranks of each group.
func (s *Sketch) Messages(program trace.Program) (all []Message, group int) {
	m := s.messages[program]
	if m == nil {
		return nil, 1
	}
	for _, p := range m.sorted() {
		all = append(all, Message{trace.Rank(p.from << m.shift), trace.Rank(p.to << m.shift), m.cells[p]})
	}
	return all, 1 << m.shift
}
