package legacy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/testkit/packettest"
)

var update = flag.Bool("update", false, "update the golden files; check the difference before committing")

func TestGoldenPackets(t *testing.T) {
	f := func(schema int, name string) {
		t.Helper()
		packet, news := encode(packettest.SmallRun(), schema, 1_794_705_610_476)
		if !news {
			t.Errorf("schema %d: no news", schema)
		}
		var got bytes.Buffer
		if err := json.Indent(&got, packet, "", "  "); err != nil {
			t.Fatalf("schema %d: %v in %s", schema, err, packet)
		}
		got.WriteByte('\n')
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("schema %d: got\n%s\nwant that of %s", schema, got.Bytes(), path)
		}
	}
	f(1, "packet-v1.json")
	f(2, "packet-v2.json")
}

// packet is as much of one as the tests look at.
type packet struct {
	Stats *struct {
		Anomaly []struct {
			Key  string
			Data []struct {
				Step     int
				Earliest int64 `json:"min_timestamp"`
				Latest   int64 `json:"max_timestamp"`
				N        int   `json:"n_anomalies"`
			}
			Stats stats.Summary
		}
		Metrics []metrics `json:"anomaly_metrics"`
		Func    []struct {
			FID                         int
			Name                        string
			Exclusive, Inclusive, Stats stats.Summary
		}
	} `json:"anomaly_stats"`
	Counters []struct {
		Counter string
		Stats   stats.Summary
	} `json:"counter_stats"`
	Metrics []metrics `json:"anomaly_metrics"`
}

type metrics struct {
	ID             int `json:"_id"`
	App, Rank, FID int
	FName          string
	New            period `json:"new_data"`
	All            period `json:"all_data"`
}

type period struct {
	First    int           `json:"first_io_step"`
	Last     int           `json:"last_io_step"`
	Earliest int64         `json:"min_timestamp"`
	Latest   int64         `json:"max_timestamp"`
	Count    stats.Summary `json:"count"`
	Score    stats.Summary `json:"score"`
	Severity stats.Summary `json:"severity"`
}

func next(t *testing.T, l *summary.Live) packet {
	t.Helper()
	b, _ := encode(l, 1, 1)
	var p packet
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return p
}

func TestPacketWithoutNewsHasOnlyCounters(t *testing.T) {
	l := summary.NewLive()
	f := func(schema int, want string) {
		t.Helper()
		if got, news := encode(l, schema, 77); news || string(got) != want {
			t.Errorf("schema %d: got %s, news %v, want %s", schema, got, news, want)
		}
	}
	f(1, `{}`)
	f(2, `{"created_at":77,"version":2}`)
	packettest.AddCounter(l, 0, "c", packettest.Sums())
	l.Discard()
	zero := `{"accumulate":0.0,"count":0.0,"kurtosis":0.0,"maximum":0.0,"mean":0.0,"minimum":0.0,"skewness":0.0,"stddev":0.0}`
	f(1, `{"counter_stats":[{"app":0,"counter":"c","stats":`+zero+`}]}`)
	f(2, `{"counter_stats":[{"app":0,"counter":"c","stats":`+zero+`}],"created_at":77,"version":2}`)
}

func TestPacketWithoutAnomaliesHasAllFunctions(t *testing.T) {
	l := packettest.SmallRun()
	l.Discard()
	l.AddRank(trace.RankKey{Program: 0, Rank: 3}, packettest.Sums(0))
	p := next(t, l)
	if p.Stats == nil || len(p.Stats.Anomaly) != 0 || p.Stats.Metrics == nil || len(p.Stats.Metrics) != 0 || len(p.Stats.Func) != 3 {
		t.Errorf("got %+v, want no ranks, no metrics and 3 functions", p.Stats)
	}
	l.AddRank(trace.RankKey{Program: 0, Rank: 3}, packettest.Sums(0))
	if b, _ := encode(l, 2, 1); strings.Contains(string(b), "anomaly_metrics") || !strings.Contains(string(b), `"anomaly":[]`) {
		t.Errorf("schema 2 has metrics, or lacks anomaly_stats: %s", b)
	}
}

func TestNewDataRestartWithEachPacket(t *testing.T) {
	m := next(t, packettest.SmallRun()).Stats.Metrics
	if len(m) != 2 || m[0].Rank != 3 || m[1].Rank != 12 || m[0].FID != 4 || m[0].FName != "solve<double>" {
		t.Fatalf("got %+v, want those of function 4 on ranks 3 and 12", m)
	}
	severity := packettest.Sums(5300).Summary()
	fresh := period{4, 4, 4000, 9500, packettest.Sums(1).Summary(), sum(packettest.Scores(0.125)), severity}
	if m[0].New != fresh {
		t.Errorf("new: got %+v,\nwant %+v", m[0].New, fresh)
	}
	all := period{1, 4, 1000, 9500, packettest.Sums(1, 1).Summary(), sum(packettest.Scores(12, 0.125)), packettest.Sums(110, 5300).Summary()}
	if m[0].All != all {
		t.Errorf("all: got %+v,\nwant %+v", m[0].All, all)
	}
	if m[1].New != m[1].All {
		t.Errorf("all data are new: got %+v and %+v", m[1].New, m[1].All)
	}
}

func sum(s stats.RunStats) stats.Summary { return s.Summary() }

func TestStepsInAnyOrder(t *testing.T) {
	l := summary.NewLive()
	for _, step := range []int32{5, 3, 9, 4, 9, 3} {
		at := trace.Ticks(step) * 1000
		l.AddStep(&summary.StepReport{
			RankKey: trace.RankKey{Rank: 1}, Step: step, First: at - 900, Last: at, Scores: packettest.Scores(1),
			Functions: []summary.FunctionStats{{ID: 2, Anomalies: packettest.Anomaly(step, at-20, at-10, 1)}},
		})
	}
	p := next(t, l).Stats
	if m := p.Metrics[0].All; m.First != 3 || m.Last != 9 || m.Earliest != 2100 || m.Latest != 9000 {
		t.Errorf("got %+v, want steps 3 to 9, times from the start of 3 to the end of 9", m)
	}
	last := 0
	for _, d := range p.Anomaly[0].Data {
		if d.Step < last || d.Earliest != int64(d.Step*1000-20) || d.Latest != int64(d.Step*1000-10) || d.N != 1 {
			t.Errorf("after step %d: got %+v, want the times of its anomaly", last, d)
		}
		last = d.Step
	}
}

func TestIDOfMetricsNeverChanges(t *testing.T) {
	l := summary.NewLive()
	ids := map[[3]int]int{}
	taken := map[int]bool{}
	for round := range int32(4) {
		for i := range 12 {
			rank := (i*7 + int(round)*5) % 12
			l.AddStep(&summary.StepReport{
				RankKey: trace.RankKey{Program: trace.Program(rank % 2), Rank: trace.Rank(rank)}, Step: round, Scores: packettest.Scores(1),
				Functions: []summary.FunctionStats{{ID: rank % 3, Anomalies: packettest.Anomaly(round, 1, 2, 1)}},
			})
		}
		for _, m := range next(t, l).Stats.Metrics {
			k := [3]int{m.App, m.Rank, m.FID}
			before, known := ids[k]
			if known && before != m.ID || !known && taken[m.ID] {
				t.Errorf("round %d: %v has id %d, before %d", round, k, m.ID, before)
			}
			ids[k], taken[m.ID] = m.ID, true
		}
	}
	if len(ids) != 12 {
		t.Errorf("%d have an id, want 12", len(ids))
	}
}

func TestMetricsOfUnknownFunctionHaveNoName(t *testing.T) {
	l := summary.NewLive()
	l.AddStep(&summary.StepReport{Scores: packettest.Scores(1), Functions: []summary.FunctionStats{{ID: 8, Anomalies: packettest.Anomaly(0, 1, 2, 1)}}})
	if m := next(t, l).Stats.Metrics; len(m) != 1 || m[0].FID != 8 || m[0].FName != "" {
		t.Errorf("got %+v, want function 8 without a name", m)
	}
}

func TestEqualAdditionsGiveEqualPackets(t *testing.T) {
	want, _ := encode(packettest.SmallRun(), 2, 5)
	for range 20 {
		if got, _ := encode(packettest.SmallRun(), 2, 5); !bytes.Equal(got, want) {
			t.Fatalf("got %s,\nwant %s", got, want)
		}
	}
}
