package legacy_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/testkit/packettest"
)

func TestPacketReplacesInvalidNamesAndNumbers(t *testing.T) {
	l := summary.NewLive()
	packettest.AddFunction(l, packettest.Function(0, 0, "a\xffb\x00\"\\\u2028", 1), packettest.Sums(0))
	odd := packettest.Scores(1)
	odd.Mean, odd.M2, odd.Max, odd.Min = math.NaN(), 1, math.Inf(1), math.Inf(-1)
	l.AddStep(&summary.StepReport{Scores: odd})
	b, _ := encode(l, 1, 1)
	var p packet
	if err := json.Unmarshal(b, &p); err != nil || p.Stats.Func[0].Name != "a\ufffdb\x00\"\\\u2028" {
		t.Fatalf("%v in %s", err, b)
	}
	if !strings.Contains(string(b), `"maximum":1.7976931348623157e+308,"mean":0.0,"minimum":-1.7976931348623157e+308`) {
		t.Errorf("got %s", b)
	}
}

func TestPacketHasExactStatistics(t *testing.T) {
	for _, values := range [][]uint64{
		nil,
		{0},
		{0, 0, 0},
		{7},
		{7, 7},
		{1, 2, 3},
		{math.MaxUint64},
		{math.MaxUint64, math.MaxUint64, math.MaxUint64},
		{1 << 40, 1<<40 + 1},
		{0, 0, 0, 9},
		{1e15, 3},
	} {
		l := summary.NewLive()
		packettest.AddCounter(l, 0, "c", packettest.Sums(values...))
		if got, want := next(t, l).Counters[0].Stats, packettest.Sums(values...).Summary(); got != want {
			t.Errorf("%v: got %+v, want %+v", values, got, want)
		}
	}
}

func TestUnknownSchemaPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a packet of schema 3 was made")
		}
	}()
	encode(summary.NewLive(), 3, 1)
}
