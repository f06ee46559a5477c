package pgstore

import (
	"bytes"
	"math"
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
)

// TestBlocksRejectContextBeyondTheirLimits writes records at the limits of blocks. Records beyond them keep their context as JSON; their
// neighbors are unchanged.
func TestBlocksRejectContextBeyondTheirLimits(t *testing.T) {
	f := func(name string, packed bool, change func(r *provenance.Record)) {
		t.Helper()
		s := newStore(t)
		run := newRun(t, s, "run")
		all := storetest.Records(3, 1)
		change(all[1])
		write(t, s, run, &provdb.Batch{Anomalies: all})
		got := query(t, s, "SELECT block IS NOT NULL, slot FROM executions WHERE rid = 1")
		if got[0][0] != packed {
			t.Errorf("%s: packed %v", name, got)
		}
		for _, r := range all {
			sameDocument(t, s, r)
		}
	}
	f("unchanged", true, func(*provenance.Record) {})
	f("no context", true, func(r *provenance.Record) {
		r.CallStack, r.CounterEvents, r.EventWindow = []provenance.StackEntry{}, []provenance.CounterEntry{}, provenance.EventWindow{
			Comms: []provenance.CommEntry{}, Execs: []provenance.WindowEntry{},
		}
	})
	f("far times", true, func(r *provenance.Record) {
		for i := range r.EventWindow.Execs {
			r.EventWindow.Execs[i].Entry -= 1 << 40
		}
	})
	f("zeros", true, func(r *provenance.Record) {
		for i := range r.EventWindow.Comms {
			c := &r.EventWindow.Comms[i]
			*c = provenance.CommEntry{
				Bytes: new(uint64), Exec: r.EventID, RID: r.RID, TID: r.TID, Source: r.RID, Target: r.RID, Timestamp: r.Entry, Type: "SEND",
			}
		}
	})
	f("borders of the split", true, func(r *provenance.Record) {
		for i, n := range []uint64{32767, 32768, 65535, 65536} {
			r.EventWindow.Comms[i].Bytes = &n
		}
		r.EventWindow.Comms[0].Tag, r.EventWindow.Comms[1].Tag = math.MinInt32, math.MaxInt32
	})
	f("unknown size and root", true, func(r *provenance.Record) {
		r.EventWindow.Comms[0].Bytes = nil
		r.EventWindow.Execs[0].ParentID = "root"
		r.EventWindow.Execs[1].Exit = 0
	})
	f("large message", false, func(r *provenance.Record) { r.EventWindow.Comms[0].Bytes = new(uint64(math.MaxUint64)) })
	f("large counter", false, func(r *provenance.Record) { r.CounterEvents[0].Value = math.MaxUint64 })
	f("other thread", false, func(r *provenance.Record) { r.CounterEvents[0].TID += 3 })
	f("other type", false, func(r *provenance.Record) { r.EventWindow.Comms[0].Type = "PUT" })
	f("id of another form", false, func(r *provenance.Record) { r.EventWindow.Execs[2].EventID = "x" })
}

// TestReplacedRecordsFreeBlocks replaces records, whose blocks go with the last of them.
func TestReplacedRecordsFreeBlocks(t *testing.T) {
	s := newStore(t)
	run := newRun(t, s, "run")
	all := storetest.Records(2*blockSize, 1)
	write(t, s, run, &provdb.Batch{Anomalies: all})
	expect(t, s, [][]any{{int64(2)}}, "SELECT count(*) FROM blocks")
	write(t, s, run, &provdb.Batch{Anomalies: all[:blockSize+1]})
	expect(t, s, [][]any{{int64(3)}}, "SELECT count(*) FROM blocks") // the second block still has others
	expect(t, s, [][]any{{int64(0)}}, "SELECT count(*) FROM blocks b WHERE NOT EXISTS (SELECT FROM executions e WHERE e.block = b.block)")
	for _, r := range all {
		sameDocument(t, s, r)
	}
	if err := s.DeleteRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	expect(t, s, [][]any{{int64(0)}}, "SELECT count(*) FROM blocks")
}

// sameDocument compares the stored document of an anomaly of the only run.
func sameDocument(t *testing.T, s *Store, r *provenance.Record) {
	t.Helper()
	var want bytes.Buffer
	if err := r.WriteJSON(&want); err != nil {
		t.Fatal(err)
	}
	got := query(t, s, "SELECT d.doc::text FROM anomalies_json d JOIN executions e USING (run, pid, rid, ev_step, ev_row) WHERE rid = $1 AND entry = $2",
		int32(r.RID), int64(r.Entry))
	if len(got) != 1 || !sameJSON(t, []byte(got[0][0].(string)), want.Bytes()) {
		t.Errorf("%s:\n got %v\nwant %s", r.EventID, got, &want)
	}
}
