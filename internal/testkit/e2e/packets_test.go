package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// ended returns how far a replay is that has not ended.
func ended(o *api.Overview) error {
	if o.State == api.Finished {
		return nil
	}
	return fmt.Errorf("%s, with %+v", o.State, o.Packets)
}

func TestPacketsAreShownLiveAndReplayed(t *testing.T) {
	t.Parallel()
	f := func(schema string) {
		t.Run("schema "+schema, func(t *testing.T) {
			t.Parallel()
			r := threeRanks(t)
			s := newScene(t)
			view := start(t, "view", "--receive", "--http", "127.0.0.1:0")
			page := browse(t, view.address())
			serve := s.serve("--ranks", "3", "--stats-dir", s.path("stats"), "--stats-url", page.at+"api/anomalydata", "--stats-period", "150ms",
				"--stats-schema", schema)
			s.services()
			ads := s.ads(r)
			s.replay(r, "4").succeed()
			succeed(append(ads, serve)...)
			o := outcomeOf(t, "", s.run)
			flagged := int64(o.statuses["confirmed"] + o.statuses["withdrawn"])
			live := fetch[api.Overview](page, "api/v1/runs/packets/overview")
			written := len(files(t, s.path("stats")))
			if live.Figures.Anomalies != flagged || live.Figures.Ranks == 0 || live.Packets == nil || live.Packets.Taken != int64(written) ||
				live.Packets.Refused != 0 || !live.Live {
				t.Errorf("%d were flagged and %d packets written; the page has %+v in %+v", flagged, written, live.Figures, live.Packets)
			}
			if code, body := page.get("api/v1/runs/packets/findings"); code != http.StatusNotFound || !strings.Contains(body, "no executions") {
				t.Errorf("findings: %d %s", code, body)
			}
			again := browse(t, start(t, "view", "--replay", s.path("stats"), "--speed", "0").address())
			var replayed api.Overview
			eventually(t, "the replay ends", func() error {
				replayed = fetch[api.Overview](again, "api/v1/runs/stats/overview")
				return ended(&replayed)
			})
			if !replayed.Packets.Replay || replayed.Packets.Taken != int64(written) || replayed.Packets.Total != int64(written) {
				t.Errorf("got %+v", replayed.Packets)
			}
			if !reflect.DeepEqual(replayed.Figures, live.Figures) || !reflect.DeepEqual(replayed.Packets.Worst, live.Packets.Worst) {
				t.Errorf("the replay has %+v, the page had %+v", replayed.Figures, live.Figures)
			}
			for _, path := range []string{"/heatmap?columns=20", "/functions", "/counters"} {
				_, want := page.get("api/v1/runs/packets" + path)
				if code, got := again.get("api/v1/runs/stats" + path); code != http.StatusOK || got != want {
					t.Errorf("%s: %d\n got %s\nwant %s", path, code, got, want)
				}
			}
		})
	}
	f("1")
	f("2")
}

func TestReplayReportsAndSkipsInvalidPackets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"pserver_output_stats_2.json":  `{"created_at":2000,"version":2,"anomaly_stats":{"created_at":2000,"anomaly":[{"key":"0:1","data":[{"n_anomalies":3,"min_timestamp":5,"max_timestamp":9}],"stats":{"accumulate":3}}],"func":[]}}`,
		"pserver_output_stats_10.json": `{"created_at":3000,"version":2,"anomaly_stats":{"created_at":3000,"anomaly":[{"key":"0:1","data":[],"stats":{"accumulate":4}}],"func":[]}}`,
		"pserver_output_stats_3.json":  `half of a pack`,
		"other.json":                   `{}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	view := start(t, "view", "--replay", dir, "--speed", "1000")
	page := browse(t, view.address())
	view.awaitLog("pserver_output_stats_3.json: read packet: ")
	var o api.Overview
	eventually(t, "the replay ends", func() error {
		o = fetch[api.Overview](page, "api/v1/runs/"+filepath.Base(dir)+"/overview")
		return ended(&o)
	})
	if o.Figures.Anomalies != 4 || o.Packets.Taken != 2 || o.Packets.Refused != 1 || o.Packets.Total != 3 {
		t.Errorf("got %+v of %+v", o.Figures, o.Packets)
	}
}
