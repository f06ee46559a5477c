package nsight_test

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/nsight"
	"github.com/chimbuko/chimbuko/internal/testkit/sqlitetest"
)

// mpiCalls are names of calls, by their numbers from 1.
var mpiCalls = []string{
	"MPI_Send", "MPI_Recv", "MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce", "MPI_Sendrecv", "MPI_Barrier", "MPI_Comm_dup",
}

const (
	mpiThread = 1<<48 | 77<<24 | 77
	world     = 100 // handles of communicators
	pair      = 200
)

// writeMPI writes an export with all tables of MPI, as the schema of Nsight Systems 2025 describes them.
func writeMPI(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rank1.sqlite")
	sql := []string{
		"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)", "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT)",
		"INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1000000000000)",
		"CREATE TABLE MPI_P2P_EVENTS (start INT, end INT, globalTid INT, textId INT, commHandle INT, tag INT, remoteRank INT, size INT, requestHandle INT)",
		"CREATE TABLE MPI_START_WAIT_EVENTS (start INT, end INT, globalTid INT, textId INT, requestHandle INT)",
		"CREATE TABLE MPI_COLLECTIVES_EVENTS (start INT, end INT, globalTid INT, textId INT, commHandle INT, rootRank INT, size INT, " +
			"recvSize INT, requestHandle INT)",
		"CREATE TABLE MPI_OTHER_EVENTS (start INT, end INT, globalTid INT, textId INT, commHandle INT)",
	}
	for i, name := range mpiCalls {
		sql = append(sql, fmt.Sprintf("INSERT INTO StringIds VALUES (%d, '%s')", i+1, name))
	}
	for _, s := range statements {
		sql = append(sql, strings.ReplaceAll(s, "TID", fmt.Sprint(mpiThread)))
	}
	sqlitetest.Write(t, path, sql...)
	return path
}

// messages returns the events of an export: time, kind and name, or partner, tag and size.
func messages(t *testing.T, path string) (lines []string, counts tally.Tally) {
	t.Helper()
	f := sqlitetest.Open(t, path, nsight.Format)[0]
	r, err := f.Steps(&counts)
	if err != nil {
		t.Fatal(err)
	}
	for {
		s, err := r.Next(t.Context())
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			return lines, counts
		}
		comms := 0
		for _, b := range s.Batches {
			for i := range b.Events {
				e := &b.Events[i]
				at := int64(e.Time) - 1000000000000
				switch e.Kind {
				case trace.Send, trace.Recv:
					comms++
					lines = append(lines, fmt.Sprintf("%d %v partner %d tag %d size %d", at, e.Kind, e.Partner(), e.Tag, int64(e.Value)))
				case trace.Count:
					name, _ := r.Names().Counter(b.Rank, e.Counter())
					lines = append(lines, fmt.Sprintf("%d %s = %d", at, name, e.Value))
				default:
					name, _ := r.Names().Func(b.Rank, e.Func())
					lines = append(lines, fmt.Sprintf("%d %v %s", at, e.Kind, name))
				}
			}
		}
		if comms != s.Comms {
			t.Errorf("a step has %d messages and counts %d", comms, s.Comms)
		}
	}
}

func TestMessagesOfMPI(t *testing.T) {
	path := writeMPI(t,
		"CREATE TABLE MPI_COMMUNICATORS (rank INT, commHandle INT, size INT)",
		fmt.Sprintf("INSERT INTO MPI_COMMUNICATORS VALUES (1, %d, 4), (1, %d, 2)", world, pair),
		"INSERT INTO MPI_P2P_EVENTS VALUES (100, 110, TID, 1, 100, 7, 2, 4096, NULL), (110, 150, TID, 2, 100, -1, 3, 64, NULL), "+
			// The same request is used twice.
			"(200, 205, TID, 3, 100, 5, 0, 800, 9), (206, 210, TID, 4, 100, 6, 2, 900, 10), (300, 305, TID, 3, 100, 5, 3, NULL, 9), "+
			// A partner in another communicator, one that does not exist, a call in both directions, one that has not ended.
			"(400, 410, TID, 1, 200, 1, 1, 32, NULL), (420, 430, TID, 1, 100, 1, -2, 32, NULL), (440, 450, TID, 7, 100, 1, 2, 32, NULL), "+
			"(490, NULL, TID, 2, 100, 1, 2, 32, NULL)",
		"INSERT INTO MPI_START_WAIT_EVENTS VALUES (220, 260, TID, 5, 9), (220, 260, TID, 5, 10), (310, 310, TID, 5, 9), (320, 330, TID, 5, 9)",
		"INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (500, 550, TID, 6, 100, NULL, 1024, 2048, NULL), (560, 570, TID, 8, 100, NULL, NULL, NULL, NULL)",
		"INSERT INTO MPI_OTHER_EVENTS VALUES (600, 610, TID, 9, 100)")
	got, counts := messages(t, path)
	want := []string{
		"100 enter MPI_Send", "100 send partner 2 tag 7 size 4096", "110 exit MPI_Send",
		"110 enter MPI_Recv", "149 recv partner 3 tag -1 size 64", "150 exit MPI_Recv",
		"200 enter MPI_Irecv", "205 exit MPI_Irecv", "206 enter MPI_Isend", "206 send partner 2 tag 6 size 900", "210 exit MPI_Isend",
		"220 enter MPI_Waitall", "259 recv partner 0 tag 5 size 800", "260 exit MPI_Waitall",
		"300 enter MPI_Irecv", "305 exit MPI_Irecv", "310 enter MPI_Waitall", "310 recv partner 3 tag 5 size -1", "310 exit MPI_Waitall",
		"320 enter MPI_Waitall", "330 exit MPI_Waitall",
		"400 enter MPI_Send", "410 exit MPI_Send", "420 enter MPI_Send", "430 exit MPI_Send", "440 enter MPI_Sendrecv", "450 exit MPI_Sendrecv",
		"500 enter MPI_Allreduce", "500 Bytes sent in collective call = 1024", "500 Bytes received in collective call = 2048", "550 exit MPI_Allreduce",
		"560 enter MPI_Barrier", "570 exit MPI_Barrier", "600 enter MPI_Comm_dup", "610 exit MPI_Comm_dup",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for kind, n := range map[tally.Kind]int64{tally.PartnerUnknown: 2, tally.EventsIgnored: 2, tally.ColumnsMissing: 0, tally.TimeImplausible: 0} {
		if got := counts.Count(kind); got != n {
			t.Errorf("%s is %d, want %d", kind.Name(), got, n)
		}
	}
}

// TestMessagesWithoutCommunicators takes ranks as they are if the export does not describe communicators.
func TestMessagesWithoutCommunicators(t *testing.T) {
	path := writeMPI(t, "INSERT INTO MPI_P2P_EVENTS VALUES (100, 110, TID, 1, 200, 7, 2, 4096, NULL)")
	got, counts := messages(t, path)
	if len(got) != 3 || got[1] != "100 send partner 2 tag 7 size 4096" || counts.Count(tally.PartnerUnknown) != 0 {
		t.Errorf("%q, %v", got, counts.Notes())
	}
}
