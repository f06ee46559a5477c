package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// receiver takes packets of statistics. It answers 500 to every third request and
// is slow once.
type receiver struct {
	mu       sync.Mutex
	requests int
	packets  [][]byte // that were taken
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	switch {
	case err != nil || req.Method != http.MethodPost || req.Header.Get("Content-Type") != "application/json":
		http.Error(w, "not a packet", http.StatusBadRequest)
		return
	case r.requests == 5:
		<-time.After(700 * time.Millisecond) // that is slow
	case r.requests%3 == 1:
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	}
	r.packets = append(r.packets, body)
}

// closedAddress returns an address without listener.
func closedAddress(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tracetest.ReservePort(t)))
}

// open begins to receive at an address.
func (r *receiver) open(t testing.TB, address string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(r)
	_ = server.Listener.Close() // the default one
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
}

// files reads the packets of a directory in order.
func files(t testing.TB, dir string) (all [][]byte) {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for n := range found {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("pserver_output_stats_%d.json", n)))
		if err != nil {
			t.Fatalf("of %d packets: %v", len(found), err)
		}
		all = append(all, b)
	}
	return all
}

// flagged returns the number of anomalies in the packets: by rank and step, and by
// function.
func flagged(t testing.TB, packets [][]byte) (bySteps, byFunctions float64) {
	t.Helper()
	type anomalies struct {
		Anomaly []struct {
			Data []struct {
				Count float64 `json:"n_anomalies"`
			} `json:"data"`
		} `json:"anomaly"`
		Metrics []struct {
			New struct {
				Count struct {
					Accumulate float64 `json:"accumulate"`
				} `json:"count"`
			} `json:"new_data"`
		} `json:"anomaly_metrics"`
	}
	for _, b := range packets {
		var p struct {
			Stats     anomalies `json:"anomaly_stats"`
			anomalies           // of schema 2
		}
		if err := json.Unmarshal(b, &p); err != nil {
			t.Fatalf("%v in %s", err, tail(string(b)))
		}
		for _, rank := range append(p.Stats.Anomaly, p.Anomaly...) {
			for _, step := range rank.Data {
				bySteps += step.Count
			}
		}
		for _, m := range append(p.Stats.Metrics, p.Metrics...) {
			byFunctions += m.New.Count.Accumulate
		}
	}
	return bySteps, byFunctions
}

func TestStatisticsPacketsArriveInOrderDespiteFailures(t *testing.T) {
	t.Parallel()
	f := func(schema string) {
		t.Run("schema "+schema, func(t *testing.T) {
			t.Parallel()
			r := threeRanks(t)
			s := newScene(t)
			address := closedAddress(t)
			serve := s.serve("--ranks", "3", "--stats-dir", s.path("stats"), "--stats-url", "http://"+address+"/api/anomalydata",
				"--stats-period", "150ms", "--stats-schema", schema, "--stats-flush", "30s")
			s.services()
			ads, last := s.allButLast(r)
			replay := s.replay(r, "1")
			serve.awaitLog("refused") // the connection
			s.steps(6)
			var to receiver
			to.open(t, address)
			replay.succeed()
			succeed(append(ads, last(), serve)...)
			want := files(t, s.path("stats"))
			if len(want) < 5 || len(want) != len(to.packets) {
				t.Fatalf("%d packets were written and %d sent", len(want), len(to.packets))
			}
			for n := range want {
				if !bytes.Equal(bytes.TrimSpace(want[n]), bytes.TrimSpace(to.packets[n])) {
					t.Errorf("packet %d: %d bytes were sent and %d written", n, len(to.packets[n]), len(want[n]))
				}
			}
			if to.requests == len(to.packets) {
				t.Error("the receiver never failed")
			}
			o := outcomeOf(t, "", s.run)
			all := float64(o.statuses["confirmed"] + o.statuses["withdrawn"]) // those that were flagged at first
			if steps, functions := flagged(t, want); functions != all || schema == "1" && steps != all {
				t.Errorf("the packets have %v anomalies by step and %v by function; %v were flagged", steps, functions, all)
			}
			var info struct {
				Totals struct {
					Flagged float64 `json:"flagged"`
				} `json:"totals"`
			}
			if err := json.Unmarshal([]byte(s.read("run/run.json")), &info); err != nil || info.Totals.Flagged != all {
				t.Errorf("run.json has %v flagged, the records have %v: %v", info.Totals.Flagged, all, err)
			}
			sameStructure(t, schema, want)
		})
	}
	f("1")
	f("2")
}
