package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// maxPacket bounds the bytes of a packet.
const maxPacket = 64 << 20

// packetRoutes are the paths of a run of which there are packets only. Where they hold
// nothing the answer says so.
func (s *server) packetRoutes() http.Handler {
	mux := http.NewServeMux()
	get := func(pattern string, h http.Handler) { mux.Handle(pattern, only(http.MethodGet, h)) }
	get("/healthz", http.HandlerFunc(s.healthz))
	get("/metrics", http.HandlerFunc(s.metrics))
	get("/api/v1/status", s.answer(s.status))
	get("/api/v1/runs", s.answer(s.runs))
	const run = "/api/v1/runs/{run}"
	get(run+"/pipeline", s.answer(s.pipeline))
	get(run+"/stream", http.HandlerFunc(s.stream))
	get(run+"/overview", s.ofPackets(func(p *Packets, q *params) (any, error) {
		columns := int(q.integer("columns", usualColumns, 1, maxColumns))
		_ = q.integer("issues", usualWorst, 0, maxWorst) // there are none
		return p.overview(columns), q.done()
	}))
	get(run+"/heatmap", s.ofPackets((*Packets).heatmap))
	get(run+"/functions", s.ofPackets((*Packets).functionTable))
	get(run+"/counters", s.ofPackets((*Packets).counterList))
	get(run+"/search", s.ofPackets((*Packets).search))
	mux.Handle(run+"/", s.answer(func(*http.Request) (any, error) { return nil, notInPackets }))
	if s.Packets.receive {
		mux.Handle(packetsPath, only(http.MethodPost, http.HandlerFunc(s.takePacket)))
	}
	mux.Handle("/", s.pageOr(nothingThere))
	return mux
}

// packetsPath is where the original's parameter server sends packets.
const packetsPath = "/api/anomalydata"

var notInPackets = &problem{
	http.StatusNotFound, "packets of statistics hold counts of anomalies only: no executions, call paths, hosts, or what was usual",
	"analyze the traces with chimbuko analyze or ad, and chimbuko view shows all of it",
}

// ofPackets turns a function that answers from packets into a handler.
func (s *server) ofPackets(f func(p *Packets, q *params) (any, error)) http.Handler {
	return s.answer(func(r *http.Request) (any, error) {
		if err := s.watched(r.PathValue("run")); err != nil {
			return nil, err
		}
		s.Packets.mu.Lock()
		defer s.Packets.mu.Unlock()
		return f(s.Packets, newParams(r))
	})
}

// takePacket takes a packet, and answers as the original does.
func (s *server) takePacket(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPacket))
	var packet *summary.Packet
	if err == nil {
		packet, err = summary.ReadPacket(body)
	}
	if err != nil {
		s.Packets.Refuse(err)
		status, hint := http.StatusBadRequest, "docs/api.md says what is taken"
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status, hint = http.StatusRequestEntityTooLarge, fmt.Sprintf("a packet has %d bytes at most", maxPacket)
		}
		writeProblem(w, r, &problem{status, err.Error(), hint})
		return
	}
	s.Packets.Take(packet)
	s.board.wake()
	writeJSON(w, r, http.StatusCreated, struct{}{})
}

// seconds is a time since the first anomaly.
func (p *Packets) seconds(t trace.Micros) float64 { return float64(t-p.begin) / 1e6 }

// overview is the run in numbers. The lock is held.
func (p *Packets) overview(columns int) *api.Overview {
	o := &api.Overview{
		Run: p.name, State: p.state(), Notices: []api.Notice{}, Issues: []api.Issue{}, Programs: []api.Program{}, Slowest: []api.Slowest{},
		Strip: api.Strip{Series: []api.Layer{}}, Live: !p.over, Length: math.Max(0, p.seconds(p.end)), Packets: p.pageInfo(),
	}
	if p.begin > 0 {
		o.Began = time.UnixMicro(int64(p.begin)).UTC()
	}
	programs := make(map[trace.Program]int64)
	for process, r := range p.ranks {
		programs[process.Program]++
		o.Figures.Anomalies += r.anomalies()
	}
	for program, ranks := range programs {
		o.Programs = append(o.Programs, api.Program{Program: int64(program), Ranks: ranks})
	}
	slices.SortFunc(o.Programs, func(a, b api.Program) int { return cmp.Compare(a.Program, b.Program) })
	var calls int64
	for _, f := range p.functions {
		calls += wholeOf(f.Exclusive.Count)
	}
	f := &o.Figures
	f.Provisional, f.Ranks, f.Functions, f.Calls = true, int64(len(p.ranks)), int64(len(p.functions)), positive(calls)
	if o.Length > 0 {
		f.AnomaliesPerHour = float64(f.Anomalies) / o.Length * 3600
		o.Strip = p.strip(columns)
	}
	o.Verdict = p.verdict(o)
	if p.info.Taken == 0 {
		o.Notices = append(o.Notices, api.Notice{Level: api.LevelUnknown, Topic: "packets", Sentence: "No packet has come yet" + p.howToSend()})
	}
	o.Notices = append(o.Notices, api.Notice{Level: api.LevelUnknown, Topic: "packets", Sentence: "This is made of packets of statistics: they count anomalies by rank, step and function, but hold no executions, so nothing can be said of lost time, hosts, causes or evidence"})
	if p.info.Refused > 0 {
		o.Notices = append(o.Notices, api.Notice{Level: api.LevelWatch, Topic: "packets", Sentence: counted(p.info.Refused, "packet") + " made no sense and was left out: " + p.info.Problem})
	}
	if p.info.LeftOut > 0 {
		o.Notices = append(o.Notices, api.Notice{Level: api.LevelWatch, Topic: "packets", Sentence: "There was no room for " + grouped(p.info.LeftOut) + " entries of packets"})
	}
	return o
}

// howToSend says where packets are taken.
func (p *Packets) howToSend() string {
	if !p.receive {
		return ""
	}
	return ": give the parameter server -ws_addr http://THIS-HOST:PORT" + packetsPath + ", or chimbuko serve --stats-url"
}

// verdict is the run in a sentence.
func (p *Packets) verdict(o *api.Overview) api.Verdict {
	n := o.Figures.Anomalies
	switch {
	case p.info.Taken == 0:
		return api.Verdict{Level: api.LevelUnknown, Sentence: "No packets of statistics yet"}
	case n == 0:
		return api.Verdict{Level: api.LevelGood, Sentence: "No anomalies in " + counted(p.info.Taken, "packet")}
	}
	some := int64(0)
	for _, r := range p.ranks {
		if r.anomalies() > 0 {
			some++
		}
	}
	text := fmt.Sprintf("%s anomalies on %s", grouped(n), counted(some, "rank"))
	if n == 1 {
		text = "1 anomaly on 1 rank"
	}
	if len(o.Packets.Totals) > 0 {
		f := o.Packets.Totals[0]
		text += fmt.Sprintf("; most in %s (%s)", shortName(f.Function), grouped(f.Anomalies))
	}
	return api.Verdict{Level: api.LevelWatch, Sentence: text}
}

// pageInfo is what the page shows of packets as such.
func (p *Packets) pageInfo() *api.PacketsInfo {
	info := p.info
	info.Worst, info.Totals = []api.PacketWorst{}, []api.PacketsCount{}
	for key, m := range p.metrics {
		w := api.PacketWorst{
			Program: int64(key.Program), Rank: int64(key.Rank), Function: m.Name, Anomalies: wholeOf(m.Count.Accumulate),
			Time: wholeOf(m.Severity.Accumulate), Longest: wholeOf(m.Severity.Maximum), Score: finite(m.Score.Maximum),
		}
		info.Time += w.Time
		info.Worst = amongFirst(info.Worst, w, func(a, b api.PacketWorst) int {
			return cmp.Or(cmp.Compare(b.Anomalies, a.Anomalies), cmp.Compare(b.Time, a.Time), cmp.Compare(a.Program, b.Program), cmp.Compare(a.Rank, b.Rank), strings.Compare(a.Function, b.Function))
		})
	}
	for _, f := range p.functions {
		if n := wholeOf(f.Anomalies.Accumulate); n > 0 {
			info.Totals = amongFirst(info.Totals, api.PacketsCount{Program: int64(f.Program), Function: f.Name, Anomalies: n, Calls: wholeOf(f.Exclusive.Count)}, func(a, b api.PacketsCount) int {
				return cmp.Or(cmp.Compare(b.Anomalies, a.Anomalies), cmp.Compare(a.Program, b.Program), strings.Compare(a.Function, b.Function))
			})
		}
	}
	return &info
}

// amongFirst puts a value in its place in a list that is in order, which stays short.
func amongFirst[T any](list []T, value T, order func(a, b T) int) []T {
	at, _ := slices.BinarySearchFunc(list, value, order)
	if at == packetsShown {
		return list
	}
	list = slices.Insert(list, at, value)
	return list[:min(len(list), packetsShown)]
}

// strip counts anomalies over time.
func (p *Packets) strip(columns int) api.Strip {
	width := p.columnWidth(0, p.end-p.begin, columns)
	counts := make([]int64, columns)
	for _, r := range p.ranks {
		for _, s := range r.steps {
			counts[max(0, min(int64(columns)-1, int64((s.First-p.begin)/width)))] += s.Anomalies
		}
	}
	return api.Strip{To: float64(width*trace.Micros(columns)) / 1e6, Series: []api.Layer{{Lost: make([]int64, columns), N: counts}}}
}

func (*Packets) columnWidth(from, to trace.Micros, columns int) trace.Micros {
	t := query.Timeline{From: from, To: to, Columns: columns}
	return t.ColumnWidth()
}

// heatmap is ranks times time: how many anomalies steps had that began then. Whatever
// metric is asked for, there is no other. The lock is held.
func (p *Packets) heatmap(q *params) (any, error) {
	h := q.heat()
	if err := q.done(); err != nil {
		return nil, err
	}
	ranks := make([]query.Placed, 0, len(p.ranks))
	for process := range p.ranks {
		if h.filter.Host == "" && (h.filter.Program == nil || *h.filter.Program == process.Program) {
			ranks = append(ranks, query.Placed{RankKey: process})
		}
	}
	sortPlaced(ranks)
	from, to := h.span(max(1, p.end-p.begin))
	width := p.columnWidth(from, to, h.columns)
	groups := groupRanks(ranks, min(h.rows, maxHeatCells/h.columns))
	heat := api.Heatmap{
		From: float64(from) / 1e6, To: float64(from+width*trace.Micros(h.columns)) / 1e6, Columns: h.columns, Metric: metricAnomalies,
		Rows: make([]api.HeatRow, 0, len(groups)), Cells: []api.HeatCell{},
	}
	for i, group := range groups {
		heat.Rows = append(heat.Rows, heatRow(group, nil))
		line := query.Line{Number: i, Lost: make([]int64, h.columns), Anomalies: make([]int64, h.columns)}
		for _, r := range group {
			for _, s := range p.ranks[r.RankKey].steps {
				if at := s.First - p.begin - from; at >= 0 && at < width*trace.Micros(h.columns) {
					line.Anomalies[at/width] += s.Anomalies
				}
			}
		}
		addLine(&heat, &line)
	}
	return heatmapJSON(&heat)
}

// functionTable are the functions, by what is known of their calls. The lock is held.
func (p *Packets) functionTable(q *params) (any, error) {
	limit, offset := q.limit(100, maxRows), int(q.integer("cursor", 0, 0, math.MaxInt32))
	program, name, order := q.program(), q.text("name"), q.word("order", "lost")
	if err := q.done(); err != nil {
		return nil, err
	}
	key, ok := packetOrders[order]
	if !ok {
		return nil, &query.ChoiceError{What: "order", Word: order, Among: []string{"anomalies", "calls", "exclusive", "inclusive", "lost", "name"}}
	}
	glob := outlier.Glob(cmp.Or(name, "*"))
	all := []api.FunctionRow{}
	for _, f := range p.functions {
		if (program == nil || *program == f.Program) && glob.MatchString(f.Name) {
			all = append(all, packetFunctionRow(f))
		}
	}
	slices.SortFunc(all, func(a, b api.FunctionRow) int {
		return cmp.Or(cmp.Compare(key(&b), key(&a)), cmp.Compare(a.Program, b.Program), strings.Compare(a.Function, b.Function), cmp.Compare(a.FID, b.FID))
	})
	table := api.FunctionTable{Rows: all[min(offset, len(all)):], Total: int64(len(all))}
	if len(table.Rows) > limit {
		table.Rows, table.Next = table.Rows[:limit], strconv.Itoa(offset+limit)
	}
	return table, nil
}

// packetOrders are the orders of functions, most first. What they lost is not known.
var packetOrders = map[string]func(f *api.FunctionRow) float64{
	"name": func(*api.FunctionRow) float64 { return 0 }, "lost": func(f *api.FunctionRow) float64 { return float64(f.Anomalies) },
	"anomalies": func(f *api.FunctionRow) float64 { return float64(f.Anomalies) }, "calls": func(f *api.FunctionRow) float64 { return float64(*f.Calls) },
	"exclusive": func(f *api.FunctionRow) float64 { return *f.Exclusive }, "inclusive": func(f *api.FunctionRow) float64 { return *f.Inclusive },
}

// packetFunctionRow is a row of the table. The original leaves sums of times out, so they
// are made of the mean.
func packetFunctionRow(f *summary.PacketFunction) api.FunctionRow {
	calls := wholeOf(f.Exclusive.Count)
	exclusive, inclusive := finite(f.Exclusive.Mean*f.Exclusive.Count), finite(f.Inclusive.Mean*f.Inclusive.Count)
	mean, longest, inclusiveMean := finite(f.Exclusive.Mean), finite(f.Exclusive.Maximum), finite(f.Inclusive.Mean)
	row := api.FunctionRow{
		ID: fmt.Sprintf("%d:%d", f.Program, f.FID), Program: int64(f.Program), FID: f.FID, Function: f.Name, Group: groupOf(f.Name, false), Calls: &calls,
		Exclusive: &exclusive, ExclusiveMean: &mean, ExclusiveMax: &longest, Inclusive: &inclusive, InclusiveMean: &inclusiveMean, Anomalies: wholeOf(f.Anomalies.Accumulate),
	}
	if calls > 0 {
		percent := 100 * float64(row.Anomalies) / float64(calls)
		row.AnomalousCalls = &percent
	}
	return row
}

// counterList are the counters, as those of a store are listed. The lock is held.
func (p *Packets) counterList(q *params) (any, error) {
	name, program, limit := q.text("name"), q.program(), q.limit(1000, maxRows)
	if err := q.done(); err != nil {
		return nil, err
	}
	glob := outlier.Glob(cmp.Or(name, "*"))
	var chosen []*summary.PacketCounter
	for _, c := range p.counters {
		if (program == nil || *program == c.Program) && glob.MatchString(c.Name) {
			chosen = append(chosen, c)
		}
	}
	slices.SortFunc(chosen, func(a, b *summary.PacketCounter) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), strings.Compare(a.Name, b.Name))
	})
	type row struct {
		Program int64   `json:"program"`
		Counter string  `json:"counter"`
		Values  int64   `json:"values"`
		Mean    float64 `json:"mean"`
		Stddev  float64 `json:"stddev"`
		Minimum float64 `json:"minimum"`
		Maximum float64 `json:"maximum"`
		Sum     float64 `json:"sum"`
	}
	list := struct {
		Rows []row `json:"rows"`
	}{[]row{}}
	for _, c := range chosen[:min(limit, len(chosen))] {
		s := &c.Stats
		list.Rows = append(list.Rows, row{int64(c.Program), c.Name, wholeOf(s.Count), finite(s.Mean), finite(s.Stddev), finite(s.Minimum), finite(s.Maximum), finite(s.Accumulate)})
	}
	return list, nil
}

// search looks for a part of the names of functions. The lock is held.
func (p *Packets) search(q *params) (any, error) {
	text, limit := strings.ToLower(strings.TrimSpace(q.text("q"))), q.limit(usualFound, maxFound)
	if err := q.done(); err != nil {
		return nil, err
	}
	found := api.FoundList{Rows: []api.Found{}}
	if text == "" {
		return found, nil
	}
	for _, f := range p.functions {
		if strings.Contains(strings.ToLower(f.Name), text) {
			found.Rows = append(found.Rows, api.Found{Kind: "function", Text: f.Name, Route: route("/functions", "name", f.Name)})
		}
	}
	slices.SortFunc(found.Rows, func(a, b api.Found) int {
		return cmp.Or(cmp.Compare(len(a.Text), len(b.Text)), strings.Compare(a.Text, b.Text))
	})
	found.Rows = found.Rows[:min(limit, len(found.Rows))]
	return found, nil
}

// packetsJSON is the overview for streams.
func (s *server) packetsJSON(context.Context) ([]byte, error) {
	s.Packets.mu.Lock()
	defer s.Packets.mu.Unlock()
	return marshal(s.Packets.overview(usualColumns))
}
