package dashboard_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
)

// The state changes during the requests.
func TestConcurrentRequests(t *testing.T) {
	at, p := serve(t, func(c *dashboard.Config, _ *pipeline) {
		c.Token, c.Queries = "secret", dashboard.Rate{PerMinute: 60_000, Burst: 1000}
	})
	paths := []string{
		"/healthz", "/metrics", "/api/v1/status", "/api/v1/runs", monday, monday + "/snapshot", monday + "/pipeline", monday + "/top?by=host",
		monday + "/events?limit=3&order=time", monday + "/functions?limit=5", monday + "/functions/0:9", monday + "/counters", monday +
			"/metadata",
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := openStream(t, at+monday+"/stream", "Authorization: Bearer secret", "Last-Event-ID: 1")
			for j := range 2 * len(paths) {
				path := paths[(i+j)%len(paths)]
				if a := do(t, at+path, "", "Authorization: Bearer secret"); a.code != 200 {
					t.Errorf("%s: %d %s", path, a.code, a.body)
				}
				if j%13 == 0 { // each starts a process
					countBySQL(t, at)
				}
				p.set(func(p *pipeline) { p.status.Run.State = api.States[j%5]; p.status.Run.Name = fmt.Sprint(i, j) })
				s.next(t)
			}
		})
	}
	wg.Wait()
}

// countBySQL repeats a query while too many others are running.
func countBySQL(t *testing.T, at string) {
	t.Helper()
	for {
		a := do(t, at+monday+"/sql", `{"sql": "SELECT count(*) FROM anomalies"}`, "Authorization: Bearer secret")
		switch {
		case a.code == 200:
			return
		case a.code != 503 || a.header.Get("Retry-After") == "":
			t.Errorf("%d %s", a.code, a.body)
			return
		}
	}
}
