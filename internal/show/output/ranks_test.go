package output_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
)

// rankRow returns a row of ranks that were slow from 9.1 s on, if saved is positive.
func rankRow(ratio float64, saved float64, peers int, of ...trace.Rank) ranks.Row {
	role, share, n := 1, saved/1e7, int64(len(of))
	useful, wait, lost := 9e6, 1e6, 2500.
	r := ranks.Row{
		Ranks: of, Host: "node0", Role: &role, Peers: &peers, Units: n, HaveData: n, Useful: &useful, Wait: &wait, Lost: &lost, Ratio: &ratio,
		Saved: &saved, Share: &share,
	}
	if saved > 0 {
		from := 9.1
		r.Pattern, r.From, r.Slow = provenance.Since, &from, 1
	}
	return r
}

// rankText returns ranks as a table.
func rankText(t *testing.T, l output.RankList) string {
	t.Helper()
	l.All = max(l.All, int64(len(l.Rows)))
	var b strings.Builder
	if err := l.Answer().Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRanksShowEfficiencyAndSlowRanks(t *testing.T) {
	efficiency := []provenance.Efficiency{{Entire: true, To: 10, Ranks: 6, Parallel: 0.874, LoadBalance: 0.93, Communication: 0.94}}
	none := ranks.Row{Ranks: []trace.Rank{5}, Units: 1}
	l := output.RankList{By: "rank", Efficiency: efficiency, List: ranks.List{
		Rows: []ranks.Row{rankRow(1.31, 1_400_000, 4, 3), rankRow(1, 0, 4, 0), none}, All: 6, Empty: 1,
	}}
	want := `87 % efficient: load balance 93 %, communication 94 %

RANK  HOST   ROLE  USEFUL  WAIT    LOST TO FINDINGS  RATIO  SLOW          IF LIKE PEERS
3     node0  1     9.00 s  1.00 s  2.50 ms           1.31   since 9.10 s  run 14.0 % shorter (1.40 s)
0     node0  1     9.00 s  1.00 s  2.50 ms           1.00   no            the same
5     –      –     –       –       –                 –      –             –

and 3 more rows: give a larger --limit

Some ranks have no data to compare (–). They may be slow, too.
`
	if got := rankText(t, l); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	text, err := json.Marshal(l.Answer().JSON)
	const row = `{"program":0,"ranks":[5],"tid":null,"host":"","role":null,"peers":null,"units":1,"units_with_data":0,"slow_units":0,` +
		`"useful_us":null,"wait_us":null,"lost_us":null,"ratio":null,"pattern":"","from_s":null,"to_s":null,"saved_us":null,"saved_share":null}`
	if err != nil || !strings.HasSuffix(string(text), row+`],"all_rows":6,"empty_rows":1}`) ||
		!strings.HasPrefix(string(text), `{"by":"rank","efficiency":[{"pid":0,"entire":true,`) {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestRanksReportWeakEvidence(t *testing.T) {
	efficiency := []provenance.Efficiency{{Entire: true, To: 100}, {PID: 1, Entire: true}}
	text := rankText(t, output.RankList{By: "rank", Efficiency: efficiency, List: ranks.List{
		Rows: []ranks.Row{rankRow(1.8, 1_000_000, 1, 1), rankRow(1.2, 0, 1, 0)},
	}})
	for _, want := range []string{
		"program 0: 0 % efficient", "\nprogram 1: ", "PROGRAM  RANK", "1.80   since 00:00:09, weak evidence", "1.20   unclear",
		"Weak evidence: some have only 1 peer.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	only := ranks.Row{Ranks: []trace.Rank{0}, Peers: new(int), Units: 1}
	alone := rankText(t, output.RankList{By: "rank", List: ranks.List{Rows: []ranks.Row{only}}})
	if !strings.Contains(alone, "efficiency unknown") || !strings.Contains(alone, "Some have no peers") {
		t.Errorf("got\n%s", alone)
	}
}

func TestHostsWithoutSomeDataAreNotHealthy(t *testing.T) {
	fine, partly := rankRow(1, 0, 7, 0, 1, 2, 3), rankRow(1, 0, 7, 4, 5, 6, 7)
	partly.HaveData, partly.Host = 3, "node1"
	rows := []ranks.Row{rankRow(1.5, 100_000, 7, 8, 9), fine, partly}
	text := rankText(t, output.RankList{By: "host", List: ranks.List{Rows: rows}})
	for _, want := range []string{
		"HOST   RANKS  ROLE", "node0  8-9 ", "since 9.10 s (1 of 2)", "node0  0-3    1     9.00 s  1.00 s  2.50 ms           1.00   no  ",
		"no, as far as known (1 without data)", "They may be slow, too.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
