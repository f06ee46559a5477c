package storetest

import (
	"encoding/json"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// findings returns all kinds of findings.
func findings() []provenance.Finding {
	period, to := 2.5, 9.0
	return []provenance.Finding{
		{
			Number: 1, Kind: provenance.RecurringMode, Form: provenance.Burst, Status: provenance.Confirmed, Severity: provenance.Note, PID: 0,
			Func: "write()", Path: "main > checkpoint > write()", Role: provenance.Culprit, Ranks: []trace.Rank{3, 5},
			Hosts: []string{"node01", "it's \"2\""}, From: 1.5, To: &to, Calls: 4, OfCalls: 900, Expected: 10, Actual: 700_000, Period: &period,
			LostOwn: 2_742_053, LostCaused: 4_200_000, Lost: 6_942_053, Share: 0.25, Confidence: 0.99, Summary: "it's slow",
			Examples: []string{"5:41:210", "5:41:211"}, Longest: 892_578, WorstRank: 5, WorstTime: 2_000_000,
			First: 1 << 50, Last: 1<<50 + 9, Trend: provenance.More, OverTime: []int64{0, 3, 1}, Waits: 57, WaitRanks: 15,
		},
		{
			Number: 2, Kind: provenance.LastingChange, Form: provenance.Shift, Status: provenance.Provisional, Severity: provenance.Alarm,
			PID: math.MaxInt32, Func: "solve", Calls: 1000, LostOwn: 20_000, Lost: 20_000, First: 5, Last: 90, Expected: 10.5, Actual: 1e300,
		},
		{
			Number: 3, Kind: provenance.Waiting, Status: provenance.Withdrawn, Severity: provenance.Note, PID: 1, Func: "MPI_Barrier()",
			Path: "MPI_Barrier()", Role: provenance.Victim, Cause: 1, Calls: 57, LostOwn: 4_200_000, Lost: 4_200_000, Longest: 100,
			Ranks: []trace.Rank{-1, 0, 1}, Hosts: []string{}, WorstRank: -1, WorstTime: 9, First: 7, Last: 8, OverTime: []int64{57},
			Examples: []string{"-1:0:3"}, Reason: "usual now",
		},
	}
}

// links returns links of records, of all kinds in turn.
func links(of []*provenance.Record) []provenance.Link {
	var all []provenance.Link
	late := trace.Rank(-1)
	for i, r := range of {
		l := provenance.Link{PID: r.PID, RID: r.RID, EventID: r.EventID, Finding: 1 + i%3}
		switch i % 4 {
		case 1:
			l.Role, l.Culprit, l.CulpritPID, l.LateRank, l.Hops = provenance.Victim, of[i-1].EventID, of[i-1].PID, &late, 3
		case 2:
			l.Role, l.Waits, l.WaitRanks, l.WaitTime = provenance.Culprit, 57, 15, 1<<40
		case 3:
			l.Role, l.LateRank, l.Hops = provenance.Victim, &late, 1
		}
		all = append(all, l)
	}
	return all
}

const (
	findingSQL = `SELECT finding, kind, form, status, severity, program, "function", call_path, "role", cause, from_s, to_s, calls, of_calls,
		expected_us, actual_us, period_s, lost_own_us, lost_caused_us, lost_us, share, confidence, summary, reason, longest_us, worst_rank,
		worst_rank_lost_us, first_us, last_us, trend, waits, wait_ranks FROM findings WHERE run = $1 ORDER BY finding`
	listSQL = "SELECT ranks, hosts, over_time, examples FROM findings WHERE run = $1 ORDER BY finding"
	linkSQL = `SELECT finding, "role", culprit_pid, culprit_event_id, late_rid, hops, waits, wait_ranks, waits_lost_us
		FROM links WHERE run = $1 AND pid = $2 AND rid = $3 AND event_id = $4`
)

var findingTests = []test{
	{"stores findings", func(f *fixture) {
		f.write(&provdb.Batch{Findings: findings()})
		f.want([][]any{
			{
				int64(1), "recurring", "burst", "confirmed", "info", int64(0), "write()", "main > checkpoint > write()", "culprit", nil, 1.5, 9.0,
				int64(4), int64(900), 10.0, 700_000.0, 2.5, int64(2_742_053), int64(4_200_000), int64(6_942_053), 0.25, 0.99, "it's slow", nil,
				int64(892_578), int64(5), int64(2_000_000), int64(1 << 50), int64(1<<50 + 9), "more", int64(57), int64(15),
			},
			{
				int64(2), "change", "shift", "provisional", "alarm", int64(math.MaxInt32), "solve", "", nil, nil, 0.0, nil, int64(1000), int64(0),
				10.5, 1e300, nil, int64(20_000), int64(0), int64(20_000), 0.0, 0.0, "", nil, int64(0), nil, nil, int64(5), int64(90), nil,
				int64(0), int64(0),
			},
			{
				int64(3), "wait", nil, "withdrawn", "info", int64(1), "MPI_Barrier()", "MPI_Barrier()", "victim", int64(1), 0.0, nil, int64(57),
				int64(0), 0.0, 0.0, nil, int64(4_200_000), int64(0), int64(4_200_000), 0.0, 0.0, "", "usual now", int64(100), int64(-1), int64(9),
				int64(7), int64(8), nil, int64(0), int64(0),
			},
		}, findingSQL, int64(f.run))
		var got [][]any
		for _, row := range f.query(listSQL, int64(f.run)) {
			var lists []any
			for _, v := range row {
				lists = append(lists, decode(f, v.(json.RawMessage)))
			}
			got = append(got, lists)
		}
		want := `[[[3,5],["node01","it's \"2\""],[0,3,1],["5:41:210","5:41:211"]],[[],[],[],[]],[[-1,0,1],[],[57],["-1:0:3"]]]`
		if d := difference("", decode(f, encode(f, got)), decode(f, json.RawMessage(want))); d != "" {
			f.Errorf("lists%s", d)
		}
	}},
	{"stores links", func(f *fixture) {
		of := Records(5, 1)
		f.write(&provdb.Batch{Anomalies: of, Findings: findings(), Links: links(of)})
		row := func(i int, want ...any) {
			f.want([][]any{want}, linkSQL, int64(f.run), int64(of[i].PID), int64(of[i].RID), of[i].EventID)
		}
		row(0, int64(1), nil, nil, nil, nil, int64(0), int64(0), int64(0), int64(0))
		row(1, int64(2), "victim", int64(of[0].PID), of[0].EventID, int64(-1), int64(3), int64(0), int64(0), int64(0))
		row(2, int64(3), "culprit", nil, nil, nil, int64(0), int64(57), int64(15), int64(1<<40))
		row(3, int64(1), "victim", nil, nil, int64(-1), int64(1), int64(0), int64(0), int64(0))
	}},
	{"new findings replace all findings", func(f *fixture) {
		of := Records(5, 1)
		f.write(&provdb.Batch{Anomalies: of, Findings: findings(), Links: links(of)})
		f.write(&provdb.Batch{Findings: findings()[:1], Links: links(of[:2])})
		f.want([][]any{{int64(1), int64(2), int64(5)}}, "SELECT (SELECT count(*) FROM findings), (SELECT count(*) FROM links), (SELECT "+
			"count(*) FROM anomalies)")
	}},
	{"records remove findings, other documents do not", func(f *fixture) {
		other := f.createRun("other")
		of := Records(6, 1)
		for _, run := range []provdb.RunID{f.run, other} {
			f.writeTo(run, &provdb.Batch{Anomalies: of[:5], Findings: findings(), Links: links(of[:5])})
		}
		const counts = "SELECT (SELECT count(*) FROM findings WHERE run = $1), (SELECT count(*) FROM links WHERE run = $1)"
		f.write(&provdb.Batch{
			Functions: funcStats(), Counters: counterStats(), Models: adModels(),
			Metadata: []provdb.StepMetadata{stepMetadata(1, 2, "Hostname")},
		})
		f.update(provdb.Run{ID: f.run, State: provdb.Finished, Started: started})
		f.want([][]any{{int64(3), int64(5)}}, counts, int64(f.run))
		f.write(records(of[5]))
		f.want([][]any{{int64(0), int64(0)}}, counts, int64(f.run))
		f.want([][]any{{int64(3), int64(5)}}, counts, int64(other))
	}},
	{"unusual text of findings is stored, invalid numbers are rejected", func(f *fixture) {
		unusual := findings()[:1]
		unusual[0].Func, unusual[0].Hosts, unusual[0].Path = "a\x00b\xff", []string{"\x00"}, "x\ty"
		f.write(&provdb.Batch{Findings: append(unusual, findings()[0])}) // the last duplicate wins
		f.want([][]any{{"write()"}}, `SELECT "function" FROM findings`)
		f.write(&provdb.Batch{Findings: unusual})
		f.want([][]any{{provenance.Text("a\x00b\xff"), provenance.Text("x\ty")}}, `SELECT "function", call_path FROM findings`)
		for _, bad := range []provenance.Finding{
			{Number: 1, Expected: math.NaN()},
			{Number: 1, Actual: math.Inf(1)},
			{Number: 1, PID: math.MaxUint32},
		} {
			if err := f.store.Write(f.Context(), f.run, &provdb.Batch{Findings: []provenance.Finding{bad}}); err == nil {
				f.Errorf("%+v was stored", bad)
			}
		}
		if err := f.store.Write(f.Context(), f.run, &provdb.Batch{Links: []provenance.Link{{
			EventID:    "1:2:3",
			CulpritPID: math.MaxUint32,
		}}}); err == nil {
			f.Error("a link to an invalid program was stored")
		}
	}},
}
