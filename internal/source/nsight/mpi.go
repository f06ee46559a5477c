package nsight

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/profile"
	"github.com/chimbuko/chimbuko/internal/source/sqlitefile"
)

// mpi reads the calls of MPI of an export, with their messages.
type mpi struct {
	*export
	sizes    map[int64]int64 // ranks of communicators by handle
	world    int64           // ranks of the largest; 0 if unknown
	requests map[request][]transfer
	waiting  int // requests
}

// request is a handle of an operation of a process that does not block.
type request struct{ pid, handle int64 }

// transfer is a message of a process.
type transfer struct {
	posted  int64 // when its call began
	partner int64
	tag     int64
	size    int64 // greater than trace.MaxSize if it is unknown
}

// maxRequests limits the receives without a wait so far, of 40 bytes each.
const maxRequests = 1 << 18

// maxCommunicators limits the communicators whose size is known.
const maxCommunicators = 1 << 12

// direction is the direction of the message of a call.
type direction uint8

const (
	none direction = iota // or both
	sends
	receives
	requests // the message arrives until the end of a wait
)

var directions = map[string]direction{
	"MPI_Send": sends, "MPI_Bsend": sends, "MPI_Ssend": sends, "MPI_Rsend": sends,
	"MPI_Isend": sends, "MPI_Ibsend": sends, "MPI_Issend": sends, "MPI_Irsend": sends,
	"MPI_Recv": receives, "MPI_Mrecv": receives, "MPI_Irecv": requests, "MPI_Imrecv": requests,
}

// readMPI reads all calls of MPI.
func (n *export) readMPI() error {
	m := &mpi{export: n, sizes: make(map[int64]int64), requests: make(map[request][]transfer)}
	m.readCommunicators()
	for _, read := range []func() error{m.readMessages, m.readWaits, m.readCollectives, m.readOthers} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// readCommunicators reads the sizes of communicators. Of several with the same handle the smallest counts.
func (m *mpi) readCommunicators() {
	rows := m.Rows("MPI_COMMUNICATORS", "?commHandle", "?size")
	for rows != nil && rows.Next() && len(m.sizes) < maxCommunicators {
		handle, ok1 := rows.Int(0)
		size, ok2 := rows.Int(1)
		if !ok1 || !ok2 {
			continue
		}
		if known, ok := m.sizes[handle]; !ok || size < known {
			m.sizes[handle] = size
		}
		m.world = max(m.world, size)
	}
}

// call adds the call of a row whose columns 0 to 3 are start, end, globalTid and textId, and returns its name.
func (m *mpi) call(rows *sqlitefile.Rows) (name string, err error) {
	id, ok := rows.Int(3)
	text := m.Name(m.strings, id, ok, "MPI call")
	name = string(text)
	return name, m.addCall(rows, profile.Other, text, -1)
}

// readMessages reads calls that send or receive a message.
func (m *mpi) readMessages() error {
	rows := m.Rows("MPI_P2P_EVENTS", "start", "end", "globalTid", "?textId", "??tag", "??remoteRank", "??size", "??commHandle",
		"??requestHandle")
	if rows == nil {
		return nil
	}
	for rows.Next() {
		name, err := m.call(rows)
		if err != nil {
			return err
		}
		start, ok1 := rows.Int(0)
		end, ok2 := rows.Int(1)
		partner, ok3 := rows.Int(5)
		if !ok1 || !ok2 || !ok3 || end < start || partner < 0 { // not ended, or MPI_PROC_NULL
			continue
		}
		of := transfer{posted: start, partner: partner, size: trace.MaxSize + 1}
		of.tag, _ = rows.Int(4)
		if size, ok := rows.Int(6); ok && size >= 0 {
			of.size = size
		}
		if comm, ok := rows.Int(7); ok && m.sizes[comm] < m.world { // its ranks have other numbers
			m.Tally.Add(tally.PartnerUnknown, 1)
			continue
		}
		global, _ := rows.Int(2)
		switch directions[name] {
		case sends:
			err = m.addMessage(profile.Send, global, start, &of)
		case receives:
			err = m.addMessage(profile.Receive, global, max(start, end-1), &of)
		case requests:
			handle, ok := rows.Int(8)
			m.post(request{pidOf(global), handle}, of, ok)
		case none:
			m.Tally.Add(tally.PartnerUnknown, 1)
		}
		if err != nil {
			return err
		}
	}
	for _, posted := range m.requests {
		slices.SortFunc(posted, func(a, b transfer) int { return cmp.Compare(a.posted, b.posted) })
	}
	return nil
}

// post keeps a message until its wait is read.
func (m *mpi) post(r request, of transfer, ok bool) {
	if !ok || m.waiting == maxRequests {
		m.Tally.Add(tally.PartnerUnknown, 1)
		return
	}
	m.waiting++
	m.requests[r] = append(m.requests[r], of)
}

// addMessage adds a message of a thread at a time.
func (m *mpi) addMessage(kind profile.Kind, global, at int64, of *transfer) error {
	e := m.Begin(profile.Other, nil, at, at+of.size)
	e.Kind = kind
	e.Process, e.Thread = m.Number(pidOf(global)), m.Number(tidOf(global))
	e.Key = profile.MessageKey(trace.Rank(min(of.partner, maxRank)), int32(of.tag))
	return m.addTo(pidOf(global))
}

// maxRank limits the numbers of partners.
const maxRank = 1<<31 - 1

// readWaits reads calls that wait for requests. A call that waits for several has a row for each.
func (m *mpi) readWaits() error {
	rows := m.Rows("MPI_START_WAIT_EVENTS", "start", "end", "globalTid", "?textId", "??requestHandle")
	if rows == nil {
		return nil
	}
	var last [4]int64
	for rows.Next() {
		var row [4]int64
		for i := range row {
			row[i], _ = rows.Int(i)
		}
		if row == last {
			m.Tally.Add(tally.EventsIgnored, 1)
		} else if _, err := m.call(rows); err != nil {
			return err
		}
		last = row
		handle, ok := rows.Int(4)
		start, end, global := row[0], row[1], row[2]
		if !ok || end < start {
			continue
		}
		key := request{pidOf(global), handle}
		posted := m.requests[key]
		i, _ := slices.BinarySearchFunc(posted, start+1, func(of transfer, at int64) int { return cmp.Compare(of.posted, at) })
		if i == 0 {
			continue // it is for a message that was sent
		}
		if err := m.addMessage(profile.Receive, global, max(start, end-1), &posted[i-1]); err != nil {
			return err
		}
		m.requests[key] = posted[i:]
	}
	return nil
}

// readCollectives reads collective calls, with the bytes that they send and receive.
func (m *mpi) readCollectives() error {
	rows := m.Rows("MPI_COLLECTIVES_EVENTS", "start", "end", "globalTid", "?textId", "??size", "??recvSize")
	if rows == nil {
		return nil
	}
	for rows.Next() {
		if _, err := m.call(rows); err != nil {
			return err
		}
		start, ok := rows.Int(0)
		global, _ := rows.Int(2)
		for i, name := range []string{"Bytes sent in collective call", "Bytes received in collective call"} {
			size, known := rows.Int(4 + i)
			if !ok || !known || size <= 0 {
				continue
			}
			e := m.Begin(profile.Other, m.SetName(name), start, start)
			e.Kind, e.Duration = profile.Counter, size
			e.Process, e.Thread = m.Number(pidOf(global)), m.Number(tidOf(global))
			if err := m.addTo(pidOf(global)); err != nil {
				return err
			}
		}
	}
	return nil
}

// addTo adds the event, such as a message, to a process that already has the call.
func (m *mpi) addTo(pid int64) error {
	if m.Process(pid) == nil {
		return nil
	}
	return m.Add(pid)
}

// readOthers reads all other calls.
func (m *mpi) readOthers() error {
	rows := m.Rows("MPI_OTHER_EVENTS", "start", "end", "globalTid", "?textId")
	if rows == nil {
		return nil
	}
	for rows.Next() {
		if _, err := m.call(rows); err != nil {
			return err
		}
	}
	return nil
}
