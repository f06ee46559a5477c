package bus

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// FuzzParts reads any text as the header of a part, and puts parts together that
// come in any order: those of messages that are cut by the package, and one with
// that header. What becomes whole is what was sent, and all sequences are accounted
// for.
func FuzzParts(f *testing.F) {
	f.Add("0 2 10", []byte("\x00\x01\x02"))
	f.Add("1 3 268435456", []byte("\x02\x01\x00\x05\x04\x03\x80\x81"))
	f.Add("0 2 18446744073709551617", []byte("\x10\x11\x12\x20\x00\x01\x40"))
	f.Add("1 2 5", []byte("\x05\x05\x04\x04\x03\x03\xff\x00\x01\x02"))
	f.Add("0  2 5", []byte(nil))
	f.Fuzz(func(t *testing.T, header string, script []byte) {
		if p, err := parsePart(header); err == nil {
			if p.String() != header || p.count < 2 || p.index >= p.count || p.index < 0 || p.total < p.count || p.total > MaxMessage {
				t.Fatalf("%q was read as %+v", header, p)
			}
		}
		if len(script) <= 300 {
			checkLedger(t, header, script)
		}
	})
}

// checkLedger follows a script: each byte sends a part, or a message of its own,
// acknowledges, or lets time pass.
func checkLedger(t *testing.T, header string, script []byte) {
	const size, patience = 16, 10 * time.Second
	l := newLedger(patience, 3*size)
	now := time.Unix(0, 0)
	var seq uint64
	stored := make(map[uint64][]byte) // what the stream holds
	send := func(id, header string, data []byte) {
		seq++
		stored[seq] = data
		h := nats.Header{jetstream.MsgIDHeader: {id}}
		if header != "" {
			h[partHeader] = []string{header}
		}
		l.add(item{Msg: &nats.Msg{Header: h, Data: data}, seq: seq}, now)
	}
	for _, op := range script {
		switch {
		case op < 0x40: // a part of one of eight messages of two to nine parts
			n := int(op >> 3)
			parts := split(bytesOf(uint64(n), size*(n+1)+1), size)
			p := part{index: int(op&7) % len(parts), count: len(parts), total: size*(n+1) + 1}
			send(partID(fmt.Sprint(n), p), p.String(), parts[p.index])
		case op < 0x60:
			send("small", "", []byte{op})
		case op < 0x80:
			send("3 0/0", header, make([]byte, op&0x1f))
		case op < 0xc0 && len(l.ready) > 0:
			checkHanded(t, l, stored)
		case op < 0xe0 && len(l.out) > 0:
			l.acknowledge(l.out[int(op)%len(l.out)].Seq)
			floor := l.floor()
			gone := slices.Clone(l.done)
			l.deleted(floor, gone)
			for s := range stored {
				if s < floor || slices.Contains(gone, s) {
					delete(stored, s)
				}
			}
		default:
			now = now.Add(patience/3 + 1)
			l.giveUp(now)
		}
		checkNeeded(t, l, stored)
	}
}

// checkHanded loads and hands out the next message.
func checkHanded(t *testing.T, l *ledger, stored map[uint64][]byte) {
	m := l.ready[0]
	for i, s, missing := m.missing(); missing; i, s, missing = m.missing() {
		m.parts[i] = piece{seq: s, size: len(stored[s]), data: stored[s]}
		l.held += len(stored[s])
	}
	got := l.hand()
	if m.parts == nil {
		return
	}
	var n uint64
	if _, err := fmt.Sscan(got.ID, &n); err != nil || len(got.Data) != m.shape.total {
		t.Fatalf("message %q has %d bytes, want %d", got.ID, len(got.Data), m.shape.total)
	}
	if want := bytesOf(n, 16*int(n+1)+1); len(want) == len(got.Data) && m.shape.count == int(n)+2 && n != 3 && !bytes.Equal(got.Data, want) {
		t.Fatalf("message %d has changed", n)
	}
}

// checkNeeded checks that the stream still holds what is needed, and that each
// sequence is either needed or done.
func checkNeeded(t *testing.T, l *ledger, stored map[uint64][]byte) {
	seen := make(map[uint64]bool)
	least, held := uint64(math.MaxUint64), 0
	use := func(seqs []uint64, needed bool) {
		for _, s := range seqs {
			if _, ok := stored[s]; !ok || seen[s] {
				t.Fatalf("sequence %d: stored is %v, used before is %v", s, ok, seen[s])
			}
			if seen[s] = true; needed {
				least = min(least, s)
			}
		}
	}
	for _, m := range slices.AppendSeq(slices.Concat(l.ready, l.out), maps.Values(l.open)) {
		use(m.sequences(nil), true)
		for _, one := range m.parts {
			held += len(one.data)
		}
	}
	use(l.done, false)
	if len(seen) != len(stored) {
		t.Fatalf("%d messages are stored, and %d known", len(stored), len(seen))
	}
	if floor := l.floor(); floor > least {
		t.Fatalf("all below %d can be deleted, but %d is needed", floor, least)
	}
	if held != l.held {
		t.Fatalf("%d bytes are held, and %d counted", held, l.held)
	}
}
