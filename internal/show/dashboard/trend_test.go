package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/compare"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// nightlyStore returns runs of a program, one per night. From the third on, its function
// interpolate is slower, and loses time to anomalies; the last run is running.
func nightlyStore(t testing.TB, runs int) provdb.Store {
	t.Helper()
	s := emptyStore(t)
	for night := 1; night <= runs; night++ {
		if err := addNight(t, s, night, night == runs); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func addNight(t testing.TB, s provdb.Store, night int, live bool) error {
	run := provdb.Run{Name: fmt.Sprintf("nightly-%02d", night), State: provdb.Running, Started: time.Unix(1_700_000_000+int64(night)*86400, 0)}
	var err error
	if run.ID, err = s.CreateRun(t.Context(), run); err != nil {
		return err
	}
	b := new(provdb.Batch)
	profile := func(name string, fid int, calls, us float64) {
		sum := stats.Summary{Accumulate: us, Count: calls, Mean: us / calls}
		b.Functions = append(b.Functions, provenance.FuncStats{
			FID: fid, Name: name,
			RuntimeProfile: provenance.RuntimeProfile{Exclusive: sum, Inclusive: sum},
		})
	}
	slow := night >= 3
	times := map[bool]float64{false: 2e6, true: 4.2e6}
	profile("main", 1, 1, 5e6)
	profile("interpolate", 2, 1000, times[slow]+float64(night)*1000)
	profile("interpolate", 3, 1000, times[slow]) // another number of the same name
	for i := range int32(4 * night) {
		if r := (&provenance.Record{
			EventID: fmt.Sprintf("0:%d:%d", i, i), FID: 2, Func: "interpolate", Hostname: "node00", IOStep: i, Kind: "slow",
			Entry: 1_700_000_000_000_000, Exit: 1_700_000_000_001_000, RuntimeExclusive: 1000, RuntimeTotal: 1000, LostTime: 30_000,
			Status: "confirmed",
		}); slow {
			b.Anomalies = append(b.Anomalies, r)
		}
	}
	if err := s.Write(t.Context(), run.ID, b); err != nil || live {
		return err
	}
	run.State, run.Finished = provdb.Finished, run.Started.Add(time.Hour)
	return s.UpdateRun(t.Context(), run)
}

func TestTrendNamesFirstSlowRun(t *testing.T) {
	store := nightlyStore(t, 6)
	kept := comparableOf(t, store, "nightly-01")
	at, _ := serve(t, func(c *dashboard.Config, p *pipeline) {
		c.Run, p.reader = "nightly-05", store
		c.References = []compare.Reference{{Where: "first.baseline", Baseline: kept}, {Where: "elsewhere", Reader: filled(t)}}
	})
	trend := want[api.Trend](t, do(t, at+"/api/v1/compare/trend?name=nightly", ""), 200)
	var ids []string
	var sums []*comparison.Sums
	for _, r := range trend.Runs {
		ids = append(ids, r.ID)
		sums = append(sums, comparableOf(t, store, r.Name).Sums()) // as a baseline has them
	}
	if want := []string{"0:nightly-01", "0:nightly-02", "0:nightly-03", "0:nightly-04", "0:nightly-05"}; !slices.Equal(ids, want) {
		t.Fatalf("%q", ids)
	}
	if want := "interpolate is 2.1 × slower since nightly-03: 4.20 ms per call instead of 2.00 ms. interpolate loses 600 ms to anomalies " +
		"since nightly-03, and nothing in nightly-02."; trend.Verdict.Sentence != want || trend.Verdict.Level != api.LevelBad {
		t.Errorf("%+v, want %q", trend.Verdict, want)
	}
	if len(trend.Notices) != 1 || !strings.Contains(trend.Notices[0].Sentence, "1 run, unfinished or incomplete") {
		t.Errorf("%+v", trend.Notices)
	}
	all := comparison.Over(sums, nil, 12)
	for i, s := range trend.Time {
		if !reflect.DeepEqual(s.Values, all.Time[i].Values) || !reflect.DeepEqual(s.Counts, all.Time[i].Counts) ||
			*s.Since != *all.Time[i].Since || s.Function != all.Time[i].Function {
			t.Errorf("%+v, want %+v", s, all.Time[i])
		}
	}
	if s := trend.Lost[1]; len(trend.Time) != 2 || len(trend.Lost) != 2 || s.Counts[3] != 16 || *s.Values[3] != 480_000 ||
		s.Since.Run != 2 || s.Since.Before != 1 || s.Since.Change != comparison.New {
		t.Errorf("%+v", s)
	}
	if r := trend.Runs[4]; r.Lost != 600_000 || r.Anomalies != 20 || r.Calls != 2001 || r.Exclusive != 13_405_000 ||
		r.LostPercent != 100*0.6/13.405 {
		t.Errorf("%+v", r)
	}

	everywhere := want[api.Trend](t, do(t, at+"/api/v1/compare/trend", ""), 200)
	if len(everywhere.Runs) != 5 || len(want[api.Trend](t, do(t, at+"/api/v1/compare/trend?name=nobody", ""), 200).Runs) != 0 {
		t.Errorf("%+v", everywhere.Runs) // including running ones
	}
	one := want[api.Trend](t, do(t, at+"/api/v1/compare/trend?name=nightly-01", ""), 200)
	if len(one.Runs) != 1 || one.Verdict.Level != api.LevelUnknown || len(one.Time) != 1 {
		t.Errorf("%+v", one)
	}
	if few := want[api.Trend](t, do(t, at+"/api/v1/compare/trend?limit=0&program=0", ""), 200); len(few.Time) != 1 ||
		few.Verdict != trend.Verdict {
		t.Errorf("%+v", few)
	}
	fails(t, do(t, at+"/api/v1/compare/trend?a=0:nightly-01", ""), 400, `unknown parameter "a"`)
	fails(t, do(t, at+"/api/v1/compare/trend", "x"), 405, "use GET")
}

// Data of finished runs are cached; only new ones are queried.
func TestTrendHasNewestRuns(t *testing.T) {
	store := nightlyStore(t, comparison.MaxTrend+4)
	at, _ := serve(t, func(c *dashboard.Config, p *pipeline) { c.Run, p.reader = "nightly-05", store })
	for range 2 {
		trend := want[api.Trend](t, do(t, at+"/api/v1/compare/trend", ""), 200)
		if len(trend.Runs) != comparison.MaxTrend || trend.Runs[0].Name != "nightly-04" || len(trend.Notices) != 2 ||
			!strings.Contains(trend.Notices[0].Sentence, "newest 50") {
			t.Errorf("%d runs from %s, %+v", len(trend.Runs), trend.Runs[0].Name, trend.Notices)
		}
	}
}

func BenchmarkTrend(b *testing.B) {
	p := &pipeline{status: someStatus(), reader: nightlyStore(b, comparison.MaxTrend+1)}
	for _, fresh := range []bool{false, true} {
		b.Run(map[bool]string{false: "again", true: "first"}[fresh], func(b *testing.B) {
			server := func() http.Handler {
				return dashboard.New(dashboard.Config{Config: insight.Config{Source: p, Run: "nightly-05"}})
			}
			h := server()
			for b.Loop() {
				if fresh {
					h = server()
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "http://localhost/api/v1/compare/trend", nil))
				if w.Code != http.StatusOK {
					b.Fatalf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
}
