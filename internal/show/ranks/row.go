package ranks

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Row is a rank, host, thread, GPU or role compared with its peers. Values without data are nil.
type Row struct {
	Program trace.Program `json:"program"`
	Ranks   []trace.Rank  `json:"ranks"`
	Thread  *int64        `json:"tid"`  // nil for entire ranks
	Host    string        `json:"host"` // empty if there are several, or it is unknown
	Role    *int          `json:"role"` // nil if there are several
	Peers   *int          `json:"peers"`
	// Units is the number of ranks or threads in the row. HaveData of them have data, and Slow of them
	// were slower than their peers.
	Units    int64 `json:"units"`
	HaveData int64 `json:"units_with_data"`
	Slow     int64 `json:"slow_units"`
	// Times are sums over the units: useful, waiting, and lost by anomalies.
	Useful *float64 `json:"useful_us"`
	Wait   *float64 `json:"wait_us"`
	Lost   *float64 `json:"lost_us"`
	// Ratio is the time of the work of all units divided by that of equal work of peers.
	Ratio *float64 `json:"ratio"`
	// Pattern, From and To are when the costliest slow peer among the units was slow, in seconds since the
	// start of the run. Saved is the time that the run would save without that, and Share its share of the
	// run.
	Pattern provenance.Pattern `json:"pattern"`
	From    *float64           `json:"from_s"`
	To      *float64           `json:"to_s"`
	Saved   *float64           `json:"saved_us"`
	Share   *float64           `json:"saved_share"`

	worst *float64             // ratio of the units
	slow  *provenance.SlowPeer // the costliest, or nil
}

// List has the costliest rows of a table, and the numbers of all rows and of those without data.
type List struct {
	Rows  []Row `json:"rows"`
	All   int64 `json:"all_rows"`
	Empty int64 `json:"empty_rows"`
}

// Costliest returns the rows of a table that cost the most, then those with the greatest ratio. Rows without
// data are last.
func Costliest(d Data, p Params, limit int) *List {
	t := newTable(d, p)
	all := &List{Rows: []Row{}}
	for _, g := range t.group(t.units()) {
		r := t.row(g)
		if all.All++; r.HaveData == 0 {
			all.Empty++
		}
		all.Rows = append(all.Rows, r)
	}
	slices.SortStableFunc(all.Rows, func(a, b Row) int {
		return cmp.Or(compareOptional(b.Saved, a.Saved), compareOptional(b.Ratio, a.Ratio), cmp.Compare(a.Program, b.Program),
			cmp.Compare(a.Ranks[0], b.Ranks[0]), compareOptional(a.Thread, b.Thread))
	})
	all.Rows = all.Rows[:min(limit, len(all.Rows))]
	return all
}

// compareOptional compares values; nil is the least.
func compareOptional[T cmp.Ordered](a, b *T) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Compare(*a, *b)
}

// row returns the row of a group of units of one program.
func (t *table) row(group []unit) Row {
	r := Row{Program: group[0].Program, Host: group[0].host, Units: int64(len(group))}
	var useful, wait, lost trace.Ticks
	var time, expected float64
	roles := make(map[int]bool)
	best := -1
	for i := range group {
		u := &group[i]
		if r.Ranks = append(r.Ranks, u.Rank); u.host != r.Host {
			r.Host = ""
		}
		if at, ok := t.slowUnit(u); ok {
			if r.Slow++; best < 0 || at < best {
				best = at
			}
		}
		lost += t.Lost[LostKey{u.RankKey, u.tid()}]
		l := u.load
		if l == nil {
			continue
		}
		r.HaveData++
		roles[l.Role] = true
		useful, wait = useful+l.Useful, wait+l.Wait
		if r.Peers == nil || l.Peers < *r.Peers {
			r.Peers = &l.Peers
		}
		if l.Ratio == nil || *l.Ratio <= 0 {
			continue
		}
		time, expected = time+float64(l.Useful), expected+float64(l.Useful)/(*l.Ratio)
		if r.worst == nil || *l.Ratio > *r.worst {
			r.worst = l.Ratio
		}
	}
	slices.Sort(r.Ranks)
	r.Ranks = slices.Compact(r.Ranks)
	if tid := group[0].tid(); len(group) == 1 && tid != provenance.AllThreads {
		r.Thread = &tid
	}
	if r.HaveData == 0 {
		return r
	}
	micros := t.Peers.Unit.Micros
	r.Useful, r.Wait, r.Saved, r.Share = new(micros(useful)), new(micros(wait)), new(float64), new(float64)
	if t.Lost != nil {
		r.Lost = new(micros(lost))
	}
	if len(roles) == 1 {
		r.Role = &group[slices.IndexFunc(group, func(u unit) bool { return u.load != nil })].load.Role
	}
	switch {
	case len(group) == 1:
		r.Ratio = r.worst
	case expected > 0:
		r.Ratio = new(time / expected)
	}
	if best >= 0 {
		s := &t.Peers.Slow[best]
		r.slow, r.Pattern, r.From, r.To, r.Saved, r.Share = s, s.Pattern, &s.From, s.To, new(micros(s.Saved)), &s.Share
	}
	return r
}

// slowUnit returns the index of the costliest slow peer that includes a unit.
func (t *table) slowUnit(u *unit) (int, bool) {
	key := thread{u.RankKey, u.tid(), t.By == ByDevice}
	at, ok := t.slow[key]
	if !ok && t.By == ByDevice { // found for all GPUs of the rank
		key.tid = provenance.AllThreads
		at, ok = t.slow[key]
	}
	return at, ok
}

// pageRow returns the row of a group as the page shows it, with the worst ratio in each window.
func (t *table) pageRow(group []unit) api.RankRow {
	r := t.row(group)
	p := api.RankRow{
		Place: t.place(&r, group[0].host, group[len(group)-1].host), Program: int64(r.Program), FirstRank: int64(r.Ranks[0]),
		LastRank: int64(r.Ranks[len(r.Ranks)-1]),
		Ranks:    int64(len(r.Ranks)), Missing: r.Units - r.HaveData, Thread: r.Thread, Host: r.Host, Pattern: string(r.Pattern), From: r.From,
		To: r.To, Ratios: make([]*float64, len(t.answer.Windows)),
	}
	if r.Lost != nil && t.By != ByThread && t.By != ByDevice {
		p.Lost = r.Lost
	}
	if r.HaveData > 0 {
		p.Useful, p.Wait, p.Peers, p.Saved, p.Share = *r.Useful, *r.Wait, int64(*r.Peers), *r.Saved, *r.Share
	}
	if r.Role != nil {
		p.Role = *r.Role
	}
	if r.worst != nil {
		p.Ratio = roundRatio(r.worst)
	}
	if r.slow != nil {
		p.Finding, p.FindingKey = t.Finding(r.slow)
	}
	for i := range group {
		if l := group[i].load; l != nil {
			t.addRatios(&p, l.Windows)
		}
	}
	return p
}

// addRatios adds the ratios of a unit where they are the worst.
func (t *table) addRatios(r *api.RankRow, windows []provenance.LoadWindow) {
	for i := range windows {
		to := &r.Ratios[t.columns[micros(windows[i].From)]]
		if ratio := roundRatio(windows[i].Ratio); *to == nil || *ratio > **to {
			*to = ratio
		}
	}
}

// noRatio is the ratio of data that cannot be compared.
var noRatio = new(float64)

// roundRatio returns a ratio with two digits, which is enough for colors and keeps answers small.
func roundRatio(ratio *float64) *float64 {
	if ratio == nil {
		return noRatio
	}
	return new(max(0.01, math.Round(*ratio*100)/100))
}

// place names a row, whose units are on hosts from first to last.
func (t *table) place(r *Row, first, last string) string {
	words := "ranks " + text.Ranges(r.Ranks)
	if len(r.Ranks) == 1 {
		words = fmt.Sprintf("rank %d", r.Ranks[0])
	}
	switch {
	case t.By == ByHost && first == last && first == "":
		words = "unknown host"
	case t.By == ByHost && first == last:
		words = text.OneLine(first)
	case t.By == ByHost && first != "":
		words = text.OneLine(first) + " to " + text.OneLine(last)
	case t.By == ByRole && r.Role != nil:
		words = fmt.Sprintf("role %d", *r.Role)
	case t.By == ByRole:
		words = "no data"
	case r.Thread != nil && t.By == ByDevice:
		words += fmt.Sprintf(", GPU thread %d", *r.Thread)
	case r.Thread != nil:
		words += fmt.Sprintf(", thread %d", *r.Thread)
	}
	if t.programs {
		return fmt.Sprintf("program %d, %s", r.Program, words)
	}
	return words
}
