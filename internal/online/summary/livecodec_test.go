package summary_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/testkit/packettest"
)

func reread(t *testing.T, l *summary.Live) *summary.Live {
	t.Helper()
	r, err := summary.ReadLive(l.AppendBinary(nil))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDecodedLiveContinuesAsTheOriginal(t *testing.T) {
	later := func(l *summary.Live) {
		packettest.AddFunction(l, packettest.Function(4, 0, "solve<double>", 77), packettest.Sums(2))
		l.AddRank(trace.RankKey{Program: 0, Rank: 3}, packettest.Sums(2))
		l.AddStep(&summary.StepReport{
			RankKey: trace.RankKey{Rank: 3}, Step: 6, First: 9500, Last: 9900, Scores: packettest.Scores(3, 4),
			Functions: []summary.FunctionStats{{ID: 9, Anomalies: packettest.Anomaly(6, 9600, 9700, 3)}, {ID: 4, Anomalies: packettest.Anomaly(6, 9800, 9890, 4)}},
		})
	}
	a := packettest.SmallRun()
	b := reread(t, a)
	for i := range 3 {
		if got, want := contents(b), contents(a); !reflect.DeepEqual(got, want) {
			t.Errorf("round %d: got %+v,\nwant %+v", i, got, want)
		}
		later(a)
		b = reread(t, b)
		later(b)
	}
}

// contents returns what a picture shows, and takes its news.
func contents(l *summary.Live) []any {
	return []any{l.Functions(), l.Counters(), l.Ranks(), l.TakeNews()}
}

func TestEmptyLiveIsDecoded(t *testing.T) {
	if got, want := contents(reread(t, summary.NewLive())), contents(summary.NewLive()); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTruncatedLiveIsRefused(t *testing.T) {
	b := packettest.SmallRun().AppendBinary(nil)
	for n := range b {
		if l, err := summary.ReadLive(b[:n]); l != nil || !errors.Is(err, stats.ErrEncoding) {
			t.Errorf("%d of %d bytes: got %v, %v", n, len(b), l, err)
		}
	}
	if _, err := summary.ReadLive(append(b, 0)); !errors.Is(err, stats.ErrEncoding) {
		t.Errorf("one byte too many: got %v", err)
	}
}

func TestOtherVersionIsRefused(t *testing.T) {
	_, err := summary.ReadLive([]byte("chimbuko live 2\n\x00"))
	if !errors.Is(err, stats.ErrEncoding) || !strings.Contains(err.Error(), "live 1") {
		t.Errorf("got %v", err)
	}
}

func TestDecodingTakesMemoryInProportionToInput(t *testing.T) {
	b := []byte("chimbuko live 1\n\x00")
	b = binary.AppendUvarint(b, 1<<62) // functions
	b = append(b, 0, 0)
	b = binary.AppendUvarint(b, 1<<61) // length of a name
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := summary.ReadLive(b)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; err == nil || got > 1<<16 {
		t.Errorf("%d bytes took %d bytes of memory, %v", len(b), got, err)
	}
}

// FuzzReadLive reads a picture from any bytes. One that can be read can be
// written and read again.
func FuzzReadLive(f *testing.F) {
	f.Add([]byte{})
	f.Add(summary.NewLive().AppendBinary(nil))
	f.Add(packettest.SmallRun().AppendBinary(nil))
	discarded := packettest.SmallRun()
	discarded.Discard()
	f.Add(discarded.AppendBinary(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := summary.ReadLive(b)
		if err != nil {
			if l != nil || !errors.Is(err, stats.ErrEncoding) {
				t.Fatalf("refused with %v and %v", err, l)
			}
			return
		}
		written := l.AppendBinary(nil)
		again, err := summary.ReadLive(written)
		if err != nil {
			t.Fatalf("%x was written and is not read: %v", written, err)
		}
		if twice := again.AppendBinary(nil); !bytes.Equal(twice, written) {
			t.Fatalf("written %x, read and written %x", written, twice)
		}
		l.Functions()
		l.Counters()
		l.Ranks()
		if got, want := fmt.Sprint(again.TakeNews()), fmt.Sprint(l.TakeNews()); got != want { // as text, since NaN differs from itself
			t.Fatalf("news %s\nand %s", want, got)
		}
		again.AddStep(&summary.StepReport{Scores: packettest.Scores(1), Functions: []summary.FunctionStats{{Anomalies: packettest.Anomaly(1, 2, 3, 4)}}})
		if news := again.TakeNews(); !news.Any {
			t.Fatalf("after an addition: news %+v", news)
		}
	})
}
