package provdb_test

import (
	"encoding/json"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func TestNumbersOutsideOfJSONAreNull(t *testing.T) {
	f := func(doc, want string) {
		t.Helper()
		got, err := provdb.MarshalValue(json.RawMessage(doc))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", doc, got, err, want)
		}
	}
	f(`[1,NaN,-NaN,Infinity,-Infinity,-2]`, `[1,null,null,null,null,-2]`)
	f(`{"NaN":NaN,"a\"Infinity":"-Infinity\\","c":[[Infinity]]}`, `{"NaN":null,"a\"Infinity":"-Infinity\\","c":[[null]]}`)
	f(`NaN`, `null`)
	f(`{"a": 1}`, `{"a":1}`)
	f(`[NaN,`, `"[NaN,"`)
	f(`["NaN\`, `"[\"NaN\\"`)
	f(``, `""`)
}
