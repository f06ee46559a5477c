package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/insight"

	"github.com/chimbuko/chimbuko/internal/show/flame"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/text"
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
	get(run+"/overview", s.ofPackets(func(p *params) func() (any, error) {
		of := p.overview() // there are no issues
		return func() (any, error) { return s.Packets.Overview(of.Columns), nil }
	}))
	get(run+"/heatmap", s.ofPackets(func(p *params) func() (any, error) {
		of := p.heatmap()
		return func() (any, error) { return s.Packets.Heatmap(of) }
	}))
	get(run+"/functions", s.ofPackets(func(p *params) func() (any, error) {
		of := p.functions()
		return func() (any, error) { return s.Packets.Functions(of) }
	}))
	get(run+"/counters", s.ofPackets(func(p *params) func() (any, error) {
		of := p.counters()
		return func() (any, error) { return s.Packets.Counters(of), nil }
	}))
	get(run+"/search", s.ofPackets(func(p *params) func() (any, error) {
		of := p.search()
		return func() (any, error) { return s.Packets.Search(of), nil }
	}))
	mux.Handle(run+"/", s.answer(func(*http.Request, *params) (any, error) { return nil, notInPackets }))
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

// ofPackets answers from packets. f reads the parameters and returns what answers.
func (s *server) ofPackets(f func(p *params) func() (any, error)) http.Handler {
	return s.answer(func(r *http.Request, p *params) (any, error) {
		if err := s.watched(r.PathValue("run")); err != nil {
			return nil, err
		}
		answer := f(p)
		if err := p.done(); err != nil {
			return nil, err
		}
		return answer()
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

// Overview returns the run in numbers.
func (p *Packets) Overview(columns int) *api.Overview {
	p.mu.Lock()
	defer p.mu.Unlock()
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
	f.Provisional, f.Ranks, f.Functions, f.Calls = true, int64(len(p.ranks)), int64(len(p.functions)), insight.Positive(calls)
	if o.Length > 0 {
		f.AnomaliesPerHour = float64(f.Anomalies) / o.Length * 3600
		o.Strip = p.strip(columns)
	}
	o.Verdict = p.verdict(o)
	if p.info.Taken == 0 {
		o.Notices = append(o.Notices, api.Notice{Level: api.LevelUnknown, Topic: "packets", Sentence: "No packet has come yet" + p.howToSend()})
	}
	o.Notices = append(o.Notices, api.Notice{
		Level: api.LevelUnknown, Topic: "packets",
		Sentence: "This is made of packets of statistics: they count anomalies by rank, step and function, but hold no executions, so " +
			"nothing can be said of lost time, hosts, causes or evidence",
	})
	if p.info.Refused > 0 {
		o.Notices = append(o.Notices, api.Notice{Level: api.LevelWatch, Topic: "packets", Sentence: text.Count(p.info.Refused, "packet") +
			" made no sense and was left out: " + p.info.Problem})
	}
	if p.info.LeftOut > 0 {
		o.Notices = append(o.Notices, api.Notice{Level: api.LevelWatch, Topic: "packets", Sentence: "There was no room for " +
			text.Int(p.info.LeftOut) + " entries of packets"})
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
		return api.Verdict{Level: api.LevelGood, Sentence: "No anomalies in " + text.Count(p.info.Taken, "packet")}
	}
	some := int64(0)
	for _, r := range p.ranks {
		if r.anomalies() > 0 {
			some++
		}
	}
	words := fmt.Sprintf("%s anomalies on %s", text.Int(n), text.Count(some, "rank"))
	if n == 1 {
		words = "1 anomaly on 1 rank"
	}
	if len(o.Packets.Totals) > 0 {
		f := o.Packets.Totals[0]
		words += fmt.Sprintf("; most in %s (%s)", text.ShortName(f.Function), text.Int(f.Anomalies))
	}
	return api.Verdict{Level: api.LevelWatch, Sentence: words}
}

// pageInfo is what the page shows of packets as such.
func (p *Packets) pageInfo() *api.PacketsInfo {
	info := p.info
	info.Worst, info.Totals = []api.PacketWorst{}, []api.PacketsCount{}
	for key, m := range p.metrics {
		w := api.PacketWorst{
			Program: int64(key.Program), Rank: int64(key.Rank), Function: m.Name, Anomalies: wholeOf(m.Count.Accumulate),
			Time: wholeOf(m.Severity.Accumulate), Longest: wholeOf(m.Severity.Maximum), Score: insight.Finite(m.Score.Maximum),
		}
		info.Time += w.Time
		info.Worst = amongFirst(info.Worst, w, func(a, b api.PacketWorst) int {
			return cmp.Or(cmp.Compare(b.Anomalies, a.Anomalies), cmp.Compare(b.Time, a.Time), cmp.Compare(a.Program, b.Program),
				cmp.Compare(a.Rank, b.Rank), strings.Compare(a.Function, b.Function))
		})
	}
	for _, f := range p.functions {
		if n := wholeOf(f.Anomalies.Accumulate); n > 0 {
			info.Totals = amongFirst(info.Totals, api.PacketsCount{
				Program: int64(f.Program), Function: f.Name, Anomalies: n,
				Calls: wholeOf(f.Exclusive.Count),
			}, func(a, b api.PacketsCount) int {
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

// Heatmap returns ranks times time: how many anomalies steps had that began then. Whatever
// metric is asked for, there is no other.
func (p *Packets) Heatmap(h insight.HeatmapParams) (*api.Heatmap, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ranks := make([]query.Placed, 0, len(p.ranks))
	for process := range p.ranks {
		if h.Filter.Host == "" && (h.Filter.Program == nil || *h.Filter.Program == process.Program) {
			ranks = append(ranks, query.Placed{RankKey: process})
		}
	}
	insight.SortPlaced(ranks)
	from, to := h.Span(max(1, p.end-p.begin))
	width := p.columnWidth(from, to, h.Columns)
	groups := insight.GroupRanks(ranks, min(h.Rows, insight.MaxHeatCells/h.Columns))
	heat := &api.Heatmap{
		From: float64(from) / 1e6, To: float64(from+width*trace.Micros(h.Columns)) / 1e6, Columns: h.Columns, Metric: insight.MetricAnomalies,
		Rows: make([]api.HeatRow, 0, len(groups)), Cells: []api.HeatCell{},
	}
	for i, group := range groups {
		heat.Rows = append(heat.Rows, insight.HeatRow(group, nil))
		line := query.Line{Number: i, Lost: make([]int64, h.Columns), Anomalies: make([]int64, h.Columns)}
		for _, r := range group {
			for _, s := range p.ranks[r.RankKey].steps {
				if at := s.First - p.begin - from; at >= 0 && at < width*trace.Micros(h.Columns) {
					line.Anomalies[at/width] += s.Anomalies
				}
			}
		}
		insight.AddLine(heat, &line)
	}
	return heat, nil
}

// Functions returns the functions, by what is known of their calls.
func (p *Packets) Functions(of insight.FunctionsParams) (*api.FunctionTable, error) {
	limit, offset, program, order := of.Limit, of.Offset, of.Program, cmp.Or(of.Order, "lost")
	key, ok := packetOrders[order]
	if !ok {
		return nil, &query.ChoiceError{What: "order", Word: order, Among: []string{
			"anomalies", "calls", "exclusive", "inclusive", "lost",
			"name",
		}}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	glob := outlier.Glob(cmp.Or(of.Name, "*"))
	all := []api.FunctionRow{}
	for _, f := range p.functions {
		if (program == nil || *program == f.Program) && glob.MatchString(f.Name) {
			all = append(all, packetFunctionRow(f))
		}
	}
	slices.SortFunc(all, func(a, b api.FunctionRow) int {
		return cmp.Or(cmp.Compare(key(&b), key(&a)), cmp.Compare(a.Program, b.Program), strings.Compare(a.Function, b.Function),
			cmp.Compare(a.FID, b.FID))
	})
	table := &api.FunctionTable{Rows: all[min(offset, len(all)):], Total: int64(len(all))}
	if len(table.Rows) > limit {
		table.Rows, table.Next = table.Rows[:limit], strconv.Itoa(offset+limit)
	}
	return table, nil
}

// packetOrders are the orders of functions, most first. What they lost is not known.
var packetOrders = map[string]func(f *api.FunctionRow) float64{
	"name": func(*api.FunctionRow) float64 { return 0 }, "lost": func(f *api.FunctionRow) float64 { return float64(f.Anomalies) },
	"anomalies": func(f *api.FunctionRow) float64 { return float64(f.Anomalies) },
	"calls":     func(f *api.FunctionRow) float64 { return float64(*f.Calls) },
	"exclusive": func(f *api.FunctionRow) float64 { return *f.Exclusive },
	"inclusive": func(f *api.FunctionRow) float64 { return *f.Inclusive },
}

// packetFunctionRow is a row of the table. The original leaves sums of times out, so they
// are made of the mean.
func packetFunctionRow(f *summary.PacketFunction) api.FunctionRow {
	calls := wholeOf(f.Exclusive.Count)
	exclusive, inclusive := insight.Finite(f.Exclusive.Mean*f.Exclusive.Count), insight.Finite(f.Inclusive.Mean*f.Inclusive.Count)
	mean, longest, inclusiveMean := insight.Finite(f.Exclusive.Mean), insight.Finite(f.Exclusive.Maximum), insight.Finite(f.Inclusive.Mean)
	row := api.FunctionRow{
		ID: fmt.Sprintf("%d:%d", f.Program, f.FID), Program: int64(f.Program), FID: f.FID, Function: f.Name, Group: flame.Group(f.Name, false),
		Calls:     &calls,
		Exclusive: &exclusive, ExclusiveMean: &mean, ExclusiveMax: &longest, Inclusive: &inclusive, InclusiveMean: &inclusiveMean,
		Anomalies: wholeOf(f.Anomalies.Accumulate),
	}
	if calls > 0 {
		percent := 100 * float64(row.Anomalies) / float64(calls)
		row.AnomalousCalls = &percent
	}
	return row
}

// Counters returns the counters, as those of a store are listed.
func (p *Packets) Counters(of insight.CountersParams) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	program := of.Program
	glob := outlier.Glob(cmp.Or(of.Name, "*"))
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
	for _, c := range chosen[:min(of.Limit, len(chosen))] {
		s := &c.Stats
		list.Rows = append(list.Rows, row{
			int64(c.Program), c.Name, wholeOf(s.Count), insight.Finite(s.Mean), insight.Finite(s.Stddev),
			insight.Finite(s.Minimum), insight.Finite(s.Maximum), insight.Finite(s.Accumulate),
		})
	}
	return list
}

// Search looks for a part of the names of functions.
func (p *Packets) Search(of insight.SearchParams) *api.FoundList {
	text := strings.ToLower(strings.TrimSpace(of.Text))
	found := &api.FoundList{Rows: []api.Found{}}
	if text == "" {
		return found
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.functions {
		if strings.Contains(strings.ToLower(f.Name), text) {
			found.Rows = append(found.Rows, api.Found{Kind: "function", Text: f.Name, Route: insight.Route("/functions", "name", f.Name)})
		}
	}
	slices.SortFunc(found.Rows, func(a, b api.Found) int {
		return cmp.Or(cmp.Compare(len(a.Text), len(b.Text)), strings.Compare(a.Text, b.Text))
	})
	found.Rows = found.Rows[:min(of.Limit, len(found.Rows))]
	return found
}

// packetsJSON is the overview for streams.
func (s *server) packetsJSON(context.Context) (json.RawMessage, error) {
	return api.Marshal(s.Packets.Overview(insight.UsualColumns))
}
