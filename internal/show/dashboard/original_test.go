package dashboard_test

import (
	"cmp"
	"net/url"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
)

// execution has the compared fields of a document.
type execution struct {
	ID       string  `json:"event_id"`
	Rank     int64   `json:"rid"`
	FID      int     `json:"fid"`
	Step     int64   `json:"io_step"`
	Entry    int64   `json:"entry"`
	Severity float64 `json:"outlier_severity"`
	Score    float64 `json:"outlier_score"`
	Total    int64   `json:"runtime_total"`
}

func TestExecutionsAnswerAsTheOriginal(t *testing.T) {
	at, _ := serve(t, nil)
	records := storetest.Records(numRecords+numRecords/4, 1)[:numRecords]
	for _, c := range []struct {
		query string
		keep  func(r *provenance.Record) bool
	}{
		{"pid=0&rid=7&step1=0&step2=9", func(r *provenance.Record) bool { return r.RID == 7 }},
		{"pid=0&rid=7&step1=1&step2=1&fid=-1&severity=-1&score=-1", func(r *provenance.Record) bool { return r.RID == 7 && r.IOStep == 1 }},
		{"pid=0&fid=22&step1=0&step2=1&order=desc", func(r *provenance.Record) bool { return r.FID == 22 && r.IOStep <= 1 }},
		{"pid=0&rid=-1&fid=22&step1=0&step2=9&severity=5", func(r *provenance.Record) bool { return r.FID == 22 && r.OutlierSeverity >= 5000 }},
		{"pid=0&fid=22&step1=0&step2=9&severity=2&score=12", func(r *provenance.Record) bool {
			return r.FID == 22 && r.OutlierSeverity >= 2000 && r.OutlierScore >= 12
		}},
		{"pid=0&fid=22&rid=12&step1=0&step2=9", func(r *provenance.Record) bool { return r.FID == 22 && r.RID == 12 }},
		{"pid=3&rid=7&step1=0&step2=9", func(*provenance.Record) bool { return false }},
		{"pid=0&step1=0&step2=9", func(*provenance.Record) bool { return false }},
	} {
		got := want[struct{ Exec []execution }](t, do(t, at+"/events/query_executions_pdb?"+c.query, ""), 200)
		var ids []string
		var wanted []*provenance.Record
		for _, r := range records {
			if c.keep(r) && r.Status != provenance.Withdrawn && r.RuntimeTotal >= 1000 {
				wanted = append(wanted, r)
			}
		}
		slices.SortStableFunc(wanted, func(a, b *provenance.Record) int { return cmp.Compare(a.Entry, b.Entry) })
		q, _ := url.ParseQuery(c.query)
		if q.Get("order") == "desc" {
			slices.Reverse(wanted)
		}
		for _, e := range got.Exec {
			ids = append(ids, e.ID)
		}
		var expected []string
		for _, r := range wanted {
			expected = append(expected, r.EventID)
		}
		if got.Exec == nil || !slices.Equal(ids, expected) {
			t.Errorf("%s:\ngot  %v\nwant %v", c.query, ids, expected)
		}
	}
}

func TestInvalidExecutionsQueriesAreRejected(t *testing.T) {
	at, _ := serve(t, nil)
	path := at + "/events/query_executions_pdb"
	fails(t, do(t, path, ""), 400, "no parameters given")
	fails(t, do(t, path+"?pid=-1&rid=-1", ""), 400, "no parameters given")
	fails(t, do(t, path+"?rid=3", ""), 400, "step1 and step2")
	fails(t, do(t, path+"?pid=0&rid=x&step1=0&step2=1", ""), 400, "rid")
	fails(t, do(t, path+"?pid=0.5&rid=1&step1=0&step2=1", ""), 400, "pid")
	fails(t, do(t, path+"?pid=0&rid=1&step1=0&step2=1", `{"a":1}`), 405, "GET")
}
