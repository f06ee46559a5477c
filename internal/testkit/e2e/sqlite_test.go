package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/testkit/sqlitetest"
)

// TestEvidenceOfSQLiteTraces opens the page of runs of Nsight Systems and rocprofv3. The evidence of a kernel that took long shows
// its stream, the thread that launched it, and the launch.
func TestEvidenceOfSQLiteTraces(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(t *testing.T, path string, p *sqlitetest.Program){
		"Nsight": func(t *testing.T, path string, p *sqlitetest.Program) {
			sqlitetest.Nsight(t, path, sqlitetest.Nsight3, p)
		},
		"rocpd": func(t *testing.T, path string, p *sqlitetest.Program) {
			sqlitetest.Rocpd(t, path, sqlitetest.RocpdTracks, p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			if err := os.Mkdir(s.path("traces"), 0o755); err != nil {
				t.Fatal(err)
			}
			for rank := range 2 {
				p := &sqlitetest.Program{Rank: rank, World: 2, Steps: 400, Slow: map[int]bool{100 + rank: true, 300: true}}
				write(t, filepath.Join(s.path("traces"), fmt.Sprintf("rank%d.db", rank)), p)
			}
			must(t, "analyze", s.path("traces"), "--out", s.run)
			var anomalies []struct {
				Event    string `json:"event_id"`
				Function string `json:"function"`
			}
			if err := json.Unmarshal([]byte(must(t, "anomalies", s.run, "--format", "json")), &anomalies); err != nil {
				t.Fatal(err)
			}
			view := start(t, "view", s.run, "--http", "127.0.0.1:0")
			page := browse(t, view.address())
			kernels := 0
			for _, a := range anomalies {
				if strings.HasPrefix(a.Function, "gemm") {
					kernels++
					checkLaunch(t, fetch[api.Evidence](page, "api/v1/runs/run/events/"+a.Event+"/evidence"))
				}
			}
			if kernels != 4 {
				t.Errorf("%d kernels took long, want 4: %+v", kernels, anomalies)
			}
			view.interrupt()
		})
	}
}

// checkLaunch checks the evidence of a kernel: the lanes of its stream and of its thread, and the arrow between them.
func checkLaunch(t *testing.T, e api.Evidence) {
	t.Helper()
	if len(e.Lanes) != 2 || !strings.Contains(e.Lanes[0].Name, "stream 7") || len(e.Arrows) != 1 || e.GPU == nil {
		t.Fatalf("lanes %+v, arrows %+v, GPU %+v", e.Lanes, e.Arrows, e.GPU)
	}
	host := ""
	for _, c := range e.Lanes[1].Calls {
		host += " " + c.Function
	}
	if !strings.Contains(host, "train") || !strings.Contains(host, "LaunchKernel") {
		t.Errorf("the thread of the host has%s", host)
	}
	// The launch is 90 us before the kernel.
	if a := e.Arrows[0]; a.Kind != "launch" || a.FromLane != 1 || a.ToLane != 0 || a.To != 0 || a.From > -80 || a.From < -100 {
		t.Errorf("the arrow is %+v", a)
	}
}
