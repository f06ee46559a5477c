package output

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Status writes the state of the analyzers and services of a run, and of its ranks: the
// worst, or all. Errors stick to w.
func Status(w io.Writer, st *api.Status, all bool) {
	t := st.Totals
	expected := ""
	if t.RanksExpected > 0 {
		expected = fmt.Sprintf(" of %d", t.RanksExpected)
	}
	fmt.Fprintf(w, "%s: %s, started %s ago\n", st.Run.Name, st.Run.State, st.Run.Now.Sub(st.Run.Started).Round(time.Second))
	fmt.Fprintf(w, "%d%s ranks, %d ended; %s steps, %s events, %s calls of %d functions; %s flagged, %s records stored\n\n", t.Ranks,
		expected, t.RanksEnded, text.Int(t.Steps), text.Int(t.Events), text.Int(t.Calls), t.Functions, text.Int(t.Anomalies),
		text.Int(t.RecordsStored))
	if v := st.Verdict; v != nil {
		fmt.Fprintf(w, "%s: %s\n\n", v.Level, text.SingleSpaced(v.Sentence))
	}
	nodes(w, st)
	writeRanks(w, st, all)
	for i := range st.Shards {
		s := &st.Shards[i]
		fmt.Fprintf(w, "parameters %s: %s exchanges (%.0f/s, %s repeated, %s refused), p99 %s, %d models, version %d\n", s.Name,
			text.Int(s.Exchanges), s.ExchangesPerSecond, text.Int(s.Repeated), text.Int(s.Refused), text.Duration(s.Latency.P99*1e6), s.Models,
			s.Version)
	}
	if s := st.Store; s != nil {
		fmt.Fprintf(w, "store (%s): %s records (%.0f/s), %d messages pending (%s)\n", s.Kind, text.Int(s.Records), s.RecordsPerSecond,
			s.PendingMessages, text.Bytes(s.PendingBytes))
	}
	if s := st.Sender; s != nil {
		fmt.Fprintf(w, "statistics: %d packets sent, %d pending, %d retries\n", s.Sent, s.Pending, s.Retries)
	}
	for i := range st.Nodes {
		for _, t := range st.Nodes[i].Tallies {
			fmt.Fprintf(w, "%s: %s: %s %s\n", st.Nodes[i].Name, t.Severity, text.Int(t.Count), t.Sentence)
		}
	}
	for _, h := range st.Health {
		if !h.OK {
			fmt.Fprintf(w, "%s: %s: %s\n", h.Severity, h.Part, h.Sentence)
		}
	}
}

var (
	nodeColumns = columns("analyzer state ranks:int steps behind events/s outbox deferred:int exchange_us:float memory heard")
	rankColumns = columns("rank host step:int behind flagged state")
)

// nodes writes a line per analyzer.
func nodes(w io.Writer, st *api.Status) {
	if len(st.Nodes) == 0 {
		return
	}
	_ = writeTable(w, rowsOf(nodeColumns, st.Nodes, func(n *api.Node) []any { // errors stick to w
		return []any{
			n.Name, n.State, n.Ranks, text.Int(n.StepsRead), lagText(n.Behind), text.Number(n.EventsPerSecond), text.Bytes(n.OutboxBytes),
			n.Drops, n.Exchange.Last * 1e6, text.Bytes(n.RSS), st.Run.Now.Sub(n.LastHeard).Round(100*time.Millisecond).String() + " ago",
		}
	}))
}

func lagText(seconds float64) string { return fmt.Sprintf("%.1f s", seconds) }

// writeRanks writes a line per rank, those that are furthest behind or have most anomalies first.
func writeRanks(w io.Writer, st *api.Status, all bool) {
	const most = 20
	list := slices.SortedStableFunc(slices.Values(st.Ranks), func(a, b api.Rank) int {
		return cmp.Or(cmp.Compare(b.Behind, a.Behind), cmp.Compare(b.Anomalies, a.Anomalies))
	})
	if len(list) == 0 {
		return
	}
	if !all {
		list = list[:min(most, len(list))]
	}
	fmt.Fprintln(w)
	_ = writeTable(w, rowsOf(rankColumns, list, func(r *api.Rank) []any { // errors stick to w
		state := "reading"
		if r.Ended {
			state = "ended"
		}
		return []any{fmt.Sprintf("%d:%d", r.Program, r.Rank), r.Host, r.Step, lagText(r.Behind), text.Int(r.Anomalies), state}
	}))
	if more := len(st.Ranks) - len(list); more > 0 {
		fmt.Fprintf(w, "… and %d more (--all)\n", more)
	}
	fmt.Fprintln(w)
}
