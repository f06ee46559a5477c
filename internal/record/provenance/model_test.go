package provenance_test

import (
	"encoding/json"
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestTypicalTimeOfAnyModel(t *testing.T) {
	f := func(params string, value, count float64, ok bool) {
		t.Helper()
		m := provenance.ReadModel(json.RawMessage(params))
		v, n, got := m.Typical()
		if v != value || n != count || got != ok {
			t.Errorf("%s: got %v of %v (%v), want %v of %v (%v)", params, v, n, got, value, count, ok)
		}
	}
	f(`{"histogram":{"Histogram Bin Counts":[1,3,1],"Histogram Bin Edges":[4,5,6,7]},"internal_global_threshold":3}`, 5, 5, true)
	f(`{"histogram":{"Histogram Bin Counts":[1,0,8,1],"Histogram Bin Edges":[0,1,100,180,200]}}`, 140, 10, true)
	f(`{"histogram":{"Bin Counts":[1.0,2,1],"First edge":10,"Bin width":4,"Min":10,"Max":22}}`, 16, 4, true)
	f(`{"accumulate":0,"count":563,"kurtosis":2,"maximum":9,"mean":54.5,"minimum":0,"skewness":1,"stddev":7}`, 54.5, 563, true)
	f(``, 0, 0, false)
	f(`null`, 0, 0, false)
	f(`[]`, 0, 0, false)
	f(`{}`, 0, 0, false)
	f(`{"count":0,"mean":0,"stddev":0}`, 0, 0, false)
	f(`{"histogram":{}}`, 0, 0, false)
	f(`{"histogram":{"Histogram Bin Counts":[],"Histogram Bin Edges":[]}}`, 0, 0, false)
	f(`{"histogram":{"Histogram Bin Counts":[0],"Histogram Bin Edges":[1,2]}}`, 0, 0, false)
	f(`{"histogram":{"Histogram Bin Counts":[1,1],"Histogram Bin Edges":[1,2]}}`, 0, 0, false)
	f(`{"histogram":{"Histogram Bin Counts":[1,-1],"Histogram Bin Edges":[1,2,3]}}`, 0, 0, false)
	f(`{"histogram":{"Histogram Bin Counts":[1,1],"Histogram Bin Edges":[1,3,2]}}`, 0, 0, false)
	f(`{"histogram":{"Histogram Bin Counts":[1e308,1e308],"Histogram Bin Edges":[1,2,3]}}`, 0, 0, false)
	f(`{"histogram":{"Bin Counts":[1,1],"First edge":1,"Bin width":1e308}}`, 0, 0, false)
}

func TestModelReadsBothHistogramLayouts(t *testing.T) {
	f := func(params string, want ...float64) {
		t.Helper()
		m := provenance.ReadModel(json.RawMessage(params))
		ok := len(m.Counts) > 0
		got, err := json.Marshal(append(m.Edges, m.Counts...))
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(want); string(got) != string(text) || ok != (len(want) > 0) {
			t.Errorf("%s: got %s (%v), want %s", params, got, ok, text)
		}
	}
	f(`{"histogram":{"Histogram Bin Counts":[5,7],"Histogram Bin Edges":[1,2,4]}}`, 1, 2, 4, 5, 7)
	f(`{"histogram":{"Bin Counts":[5,7],"First edge":1,"Bin width":1.5}}`, 1, 2.5, 4, 5, 7)
	f(`{"count":1,"mean":2,"stddev":3}`)
	f(`null`)
}
