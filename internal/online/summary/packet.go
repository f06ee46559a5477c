package summary

import (
	"cmp"
	"fmt"
	"slices"
)

// Packet returns the packet of the run for the given schema, 1 or 2, and whether
// there was news. It takes the news: a second call without additions has none.
// Equal additions in equal order give equal bytes. createdMillis is the time now,
// in milliseconds since the epoch of Unix.
//
// Schema 1 is the documented one: anomaly_stats, which has everything about
// anomalies, and counter_stats. Schema 2 is what the last version of the original
// sent: the metrics lie beside anomaly_stats, a version and a time are at the top.
//
// anomaly_stats is there when there is news, that is when anything was received
// since the last packet, be it without anomalies; a rank is in its list only if
// it has anomalies since then, a function always. counter_stats is there once
// there are counters. In schema 2, anomaly_metrics is there when it has entries.
// Without news the packet has only what schema and counters put there.
//
// min_timestamp and max_timestamp are times of anomalies in the data of a rank,
// and times of the first and last step in metrics, as the schema says. _id is a
// number for each program, rank and function that stays the same during a run.
// Statistics of nothing are all 0.
func (l *Live) Packet(schema int, createdMillis int64) (packet []byte, news bool) {
	if schema != 1 && schema != 2 {
		panic(fmt.Sprintf("summary: packet of schema %d; there are 1 and 2", schema))
	}
	news = l.news
	w := &writer{b: make([]byte, 0, l.size+l.size/8+512)}
	w.open('{')
	if schema == 2 && len(l.fresh) > 0 {
		w.key("anomaly_metrics")
		l.writeMetrics(w)
	}
	if news {
		w.key("anomaly_stats")
		l.writeAnomalies(w, schema, createdMillis)
	}
	if len(l.counters.list) > 0 {
		w.key("counter_stats")
		l.writeCounters(w)
	}
	if schema == 2 {
		w.integer("created_at", createdMillis)
		w.integer("version", 2)
	}
	w.close('}')
	l.size = len(w.b)
	l.Discard()
	return w.b, news
}

func (l *Live) writeAnomalies(w *writer, schema int, createdMillis int64) {
	w.open('{')
	w.key("anomaly")
	l.writeRanks(w, schema)
	if schema == 1 {
		w.key("anomaly_metrics")
		l.writeMetrics(w)
	}
	w.integer("created_at", createdMillis)
	w.key("func")
	l.writeFunctions(w)
	w.close('}')
}

// writeRanks writes the ranks that have anomalies since the last packet.
func (l *Live) writeRanks(w *writer, schema int) {
	slices.SortStableFunc(l.steps, func(a, b liveStep) int {
		return cmp.Or(a.Compare(b.RankKey), cmp.Compare(a.step, b.step))
	})
	w.open('[')
	for rest := l.steps; len(rest) > 0; {
		k, n := rest[0].RankKey, 1
		for n < len(rest) && rest[n].RankKey == k {
			n++
		}
		w.open('{')
		w.key("data")
		w.open('[')
		for i := range rest[:n] {
			writeStep(w, schema, &rest[i])
		}
		w.close(']')
		w.key("key")
		w.rank(k)
		w.sums("stats", &l.ranks.get(k).steps)
		w.close('}')
		rest = rest[n:]
	}
	w.close(']')
}

func writeStep(w *writer, schema int, s *liveStep) {
	w.open('{')
	w.integer("app", int64(s.Program))
	w.integer("max_timestamp", int64(s.last))
	w.integer("min_timestamp", int64(s.first))
	w.integer("n_anomalies", int64(wholeNumber(s.scores.N)))
	w.summary("outlier_scores", s.scores.Summary())
	w.integer("rank", int64(s.Rank))
	if schema == 1 {
		w.key("stat_id")
		w.rank(s.RankKey)
	}
	w.integer("step", int64(s.step))
	w.close('}')
}

// writeMetrics writes the functions on ranks that have anomalies since the last
// packet.
func (l *Live) writeMetrics(w *writer) {
	slices.SortFunc(l.fresh, l.metrics.compare)
	w.open('[')
	for _, m := range l.fresh {
		name := `""` // of a function that was not added yet
		if f := l.functions.get(m.function); f != nil {
			name = f.quoted
		}
		w.open('{')
		w.integer("_id", int64(m.index))
		w.metrics("all_data", &m.all)
		w.integer("app", int64(m.Program))
		w.integer("fid", int64(m.function))
		w.raw("fname", name)
		w.metrics("new_data", m.fresh)
		w.integer("rank", int64(m.Rank))
		w.close('}')
	}
	w.close(']')
}

func (l *Live) writeFunctions(w *writer) {
	w.open('[')
	for _, f := range l.functions.inOrder() {
		w.open('{')
		w.integer("app", int64(f.Program))
		w.sums("exclusive", &f.Exclusive)
		w.integer("fid", int64(f.ID))
		w.sums("inclusive", &f.Inclusive)
		w.raw("name", f.quoted)
		w.sums("stats", &f.PerStep)
		w.close('}')
	}
	w.close(']')
}

func (l *Live) writeCounters(w *writer) {
	w.open('[')
	for _, c := range l.counters.inOrder() {
		w.open('{')
		w.integer("app", int64(c.Program))
		w.raw("counter", c.quoted)
		w.sums("stats", &c.Values)
		w.close('}')
	}
	w.close(']')
}
