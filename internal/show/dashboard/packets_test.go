package dashboard_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/show/legacy"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

const packetsRun = "/api/v1/runs/packets"

// servePackets starts a server of a run of packets.
func servePackets(t *testing.T, receive bool, token string) (address string, p *legacy.Packets) {
	t.Helper()
	tracetest.SkipShort(t, "starts a server")
	p = legacy.NewPackets("packets", "v1", receive)
	c := dashboard.Config{Config: insight.Config{Source: p, Run: "packets"}, Packets: p, Token: token, Tick: 10 * time.Millisecond}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(dashboard.New(c))
	t.Cleanup(s.Close)
	return s.URL, p
}

// samplePacket returns a packet of internal/show/legacy, or one of the original.
func samplePacket(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "legacy", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBothPacketSchemasGiveSameViews(t *testing.T) {
	var views [2]map[string]any
	for i, name := range []string{"packet-v1.json", "packet-v2.json"} {
		at, _ := servePackets(t, true, "")
		if a := do(t, at+"/api/anomalydata", samplePacket(t, name)); a.code != 201 || a.body != "{}" {
			t.Fatalf("%s: %d %s", name, a.code, a.body)
		}
		views[i] = make(map[string]any)
		for _, path := range []string{"/overview", "/heatmap?columns=10", "/functions", "/counters"} {
			views[i][path] = want[object](t, do(t, at+packetsRun+path, ""), 200)
		}
	}
	if !reflect.DeepEqual(views[0], views[1]) {
		t.Errorf("schema 1 %v\nschema 2 %v", views[0], views[1])
	}
}

func TestOriginalPacketIsShown(t *testing.T) {
	at, _ := servePackets(t, true, "")
	if a := do(t, at+"/api/anomalydata", samplePacket(t, "sample-packet-v2.json")); a.code != 201 {
		t.Fatalf("%d %s", a.code, a.body)
	}
	o := want[api.Overview](t, do(t, at+packetsRun+"/overview", ""), 200)
	if o.Figures.Anomalies == 0 || o.Figures.Ranks == 0 || o.Figures.Functions == 0 || o.Packets == nil || o.Packets.Taken != 1 ||
		len(o.Packets.Worst) == 0 {
		t.Errorf("got %+v, %+v", o.Figures, o.Packets)
	}
	if !strings.Contains(o.Verdict.Sentence, "anomal") || len(o.Notices) == 0 || !strings.Contains(o.Notices[0].Sentence, "no executions") {
		t.Errorf("got %+v, %+v", o.Verdict, o.Notices)
	}
	heat := want[api.Heatmap](t, do(t, at+packetsRun+"/heatmap", ""), 200)
	var cells float64
	for _, c := range heat.Cells {
		cells += c.Value
	}
	if heat.Metric != "anomalies" || int64(cells) > o.Figures.Anomalies || cells == 0 || int64(len(heat.Rows)) != o.Figures.Ranks {
		t.Errorf("%v in cells of %d rows, %d anomalies on %d ranks", cells, len(heat.Rows), o.Figures.Anomalies, o.Figures.Ranks)
	}
}

func TestRepeatedPacketChangesNothing(t *testing.T) {
	at, _ := servePackets(t, true, "")
	var before api.Overview
	for i := range 3 {
		do(t, at+"/api/anomalydata", samplePacket(t, "packet-v2.json"))
		o := want[api.Overview](t, do(t, at+packetsRun+"/overview", ""), 200)
		if o.Packets.Taken != int64(i+1) {
			t.Errorf("%d packets taken, want %d", o.Packets.Taken, i+1)
		}
		o.Packets = nil
		if i > 0 && !reflect.DeepEqual(o, before) {
			t.Errorf("got %+v, before %+v", o, before)
		}
		before = o
	}
}

func TestPacketsNeedNoTokenOnlyIfReceiving(t *testing.T) {
	body := samplePacket(t, "packet-v2.json")
	at, _ := servePackets(t, true, "secret")
	if a := do(t, at+"/api/anomalydata", body); a.code != 201 {
		t.Errorf("a packet: %d %s", a.code, a.body)
	}
	for _, path := range []string{packetsRun + "/overview", packetsRun + "/functions", "/api/v1/status", "/metrics"} {
		fails(t, do(t, at+path, ""), 401, "token")
	}
	fails(t, do(t, at+"/api/anomalydata", ""), 405, "POST")
	fails(t, do(t, at+"/api/anomalydata", body, "Sec-Fetch-Site: cross-site", "Origin: http://elsewhere"), 403, "another site")
	closed, _ := servePackets(t, false, "secret")
	fails(t, do(t, closed+"/api/anomalydata", body), 401, "token")
	fails(t, do(t, closed+"/api/anomalydata", body, "Authorization: Bearer secret"), 404, "nothing is at")
	stored, _ := serve(t, nil)
	fails(t, do(t, stored+"/api/anomalydata", body), 404, "nothing is at")
}

func TestInvalidPacketIsRejectedAndCounted(t *testing.T) {
	at, _ := servePackets(t, true, "")
	fails(t, do(t, at+"/api/anomalydata", `{"version":7}`), 400, "version 7")
	fails(t, do(t, at+"/api/anomalydata", `no json`), 400, "invalid character")
	fails(t, do(t, at+"/api/anomalydata", strings.Repeat(" ", 64<<20+1)), 413, "bytes at most")
	o := want[api.Overview](t, do(t, at+packetsRun+"/overview", ""), 200)
	if o.Packets.Refused != 3 || o.Packets.Taken != 0 || o.Packets.Problem == "" || o.State != api.Waiting {
		t.Errorf("got %+v in state %s", o.Packets, o.State)
	}
	s := want[api.Status](t, do(t, at+"/api/v1/status", ""), 200)
	if len(s.Health) != 1 || !strings.Contains(s.Health[0].Sentence, "3 packets") {
		t.Errorf("got %+v", s.Health)
	}
}

func TestDataMissingInPacketsIsNotFound(t *testing.T) {
	at, _ := servePackets(t, true, "")
	for _, path := range []string{"/findings", "/events", "/events/0:1:2/evidence", "/flame", "/functions/0:1", "/metadata"} {
		fails(t, do(t, at+packetsRun+path, ""), 404, "counts of anomalies only")
	}
	fails(t, do(t, at+packetsRun+"/sql", `{"sql":"SELECT 1"}`), 404, "counts of anomalies only")
	fails(t, do(t, at+"/api/v1/runs/another/overview", ""), 404, "not the one")
	runs := want[object](t, do(t, at+"/api/v1/runs", ""), 200)
	if runs["watched"] != "packets" {
		t.Errorf("got %v", runs)
	}
}

func TestFunctionsOfPacketsHavePagesAndOrders(t *testing.T) {
	at, _ := servePackets(t, true, "")
	var functions []string
	for i := range 25 {
		functions = append(functions, fmt.Sprintf(`{"app":0,"fid":%d,"name":"f%02d <b>","stats":{"accumulate":%d},"exclusive":{"count":%d,"mean":2},"inclusive":{"count":1,"mean":%d}}`, i, i, i%5, 100-i, i))
	}
	packet := `{"anomaly_stats":{"created_at":9,"anomaly":[],"func":[` + strings.Join(functions, ",") + `]},"created_at":9,"version":2}`
	if a := do(t, at+"/api/anomalydata", packet); a.code != 201 {
		t.Fatalf("%d %s", a.code, a.body)
	}
	for order, first := range map[string]string{
		"lost": "f04 <b>", "anomalies": "f04 <b>", "calls": "f00 <b>", "exclusive": "f00 <b>",
		"inclusive": "f24 <b>", "name": "f00 <b>",
	} {
		seen := make(map[string]bool)
		for cursor := ""; ; {
			table := want[api.FunctionTable](t, do(t, at+packetsRun+"/functions?limit=7&order="+order+"&cursor="+cursor, ""), 200)
			if cursor == "" && table.Rows[0].Function != first || table.Total != 25 {
				t.Errorf("%s: %s is first of %d, want %s", order, table.Rows[0].Function, table.Total, first)
			}
			for _, r := range table.Rows {
				seen[r.Function] = true
			}
			if cursor = table.Next; cursor == "" {
				break
			}
		}
		if len(seen) != 25 {
			t.Errorf("%s: %d functions in all pages", order, len(seen))
		}
	}
	fails(t, do(t, at+packetsRun+"/functions?order=odd", ""), 400, "(want anomalies")
	if found := want[page](t, do(t, at+packetsRun+"/search?q=F07", ""), 200); len(found.Rows) != 1 {
		t.Errorf("found %v", found.Rows)
	}
}

// FuzzPackets sends any packet to a server and requests all views.
func FuzzPackets(f *testing.F) {
	for _, name := range []string{"packet-v1.json", "packet-v2.json", "sample-packet-v2.json"} {
		f.Add([]byte(samplePacket(f, name)))
	}
	f.Add([]byte(`{"anomaly_stats":{"created_at":1,"anomaly":[{"key":"0:1","data":[{"n_anomalies":1,"min_timestamp":7,"max_timestamp":9},{"n_anomalies":1,"step":2}]}]}}`))
	f.Add([]byte(`{"anomaly_stats":{"created_at":1,"anomaly":[{"key":"0:1","data":[{"n_anomalies":9223372036854775807,"min_timestamp":0,"max_timestamp":9223372036854775807}]}],"func":[{"exclusive":{"count":1e308,"mean":1e308}}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p := legacy.NewPackets("packets", "v1", true)
		h := dashboard.New(dashboard.Config{Config: insight.Config{Source: p, Run: "packets"}, Packets: p})
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/api/anomalydata", bytes.NewReader(body))
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != 201 && w.Code != 400 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		for _, path := range []string{
			"/overview", "/heatmap?columns=7&rows=3", "/heatmap?from=1&to=2", "/functions", "/counters",
			"/search?q=a", "/pipeline",
		} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+packetsRun+path, nil))
			if w.Code != 200 {
				t.Fatalf("%s after %s: %d %s", path, body, w.Code, w.Body)
			}
		}
	})
}
