package text_test

import (
	"math"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/text"
)

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{text.Int(0), "0"},
		{text.Whole(0.734), "73 %"},
		{text.Int(-1234567), "-1,234,567"},
		{text.Int(uint64(math.MaxUint64)), "18,446,744,073,709,551,615"},
		{text.Number(1234.5), "1,234"},
		{text.Number(-0.4), "0"},
		{text.Number(math.NaN()), "NaN"},
		{text.Number(math.Inf(1)), "+Inf"},
		{text.Number(2e15), "2e+15"},
		{text.ThreeDigits(9.99), "9.99"},
		{text.ThreeDigits(9.999), "10.0"},
		{text.ThreeDigits(99.99), "100"},
		{text.About(999_999), "999,999"},
		{text.About(1_500_000), "1.5 M"},
		{text.About(41_200_000), "41 M"},
		{text.Percent(0), "0 %"},
		{text.Percent(0.001), "< 0.01 %"},
		{text.Percent(0.5), "0.50 %"},
		{text.Percent(12.34), "12.3 %"},
		{text.Count(1, "call"), "1 call"},
		{text.Count(0, "call"), "0 calls"},
		{text.Count(1204, "call"), "1,204 calls"},
		{text.Count(2, "delay"), "2 delays"},
		{text.Count(2, "entry"), "2 entries"},
		{text.PathEnd("main > solve()"), "main > solve()"},
		{text.PathEnd("main > f [{a.c} {1,0}] > g(int) [{b.c} {2,0}-{4,1}] > MPI_Wait()"), "… > f > g(int) > MPI_Wait()"},
		{text.PathEnd("main > " + strings.Repeat("f", 60)), "main > " + strings.Repeat("f", 24) + "…" + strings.Repeat("f", 23)},
		{text.Bytes(999), "999 B"},
		{text.Bytes(1000), "1.0 kB"},
		{text.Bytes(999_960), "1.0 MB"},
		{text.Bytes(uint64(math.MaxUint64)), "18.4 EB"},
		{text.Duration(0), "0 us"},
		{text.Duration(0.85), "850 ns"},
		{text.Duration(-0.0125), "-12.5 ns"},
		{text.Duration(0.001), "1.00 ns"},
		{text.Duration(0.9997), "1.00 us"},
		{text.Duration(1.25), "1.25 us"},
		{text.Duration(12.34), "12.3 us"},
		{text.Duration(999.6), "1.00 ms"},
		{text.Duration(-1.5e6), "-1.50 s"},
		{text.Duration(1e16), "1e+10 s"},
		{text.Value(1234), "1,234"},
		{text.Value(0.25), "0.25"},
		{text.Offset(0), "0"},
		{text.Offset(1500), "+1.50 ms"},
		{text.Offset(-3), "-3 us"},
		{text.CoreTime(3_600_000_000), "1.0 core-h"},
		{text.CoreTime(1500), "1.50 ms"},
		{text.Clock(1.234, 10), "1.23 s"},
		{text.Clock(860, 3600), "00:14:20"},
		{text.Ranges([]int{7, 1, 0, 2}), "0-2,7"},
		{text.Ranges([]int32{0, 2, 4, 6, 8, 10, 12, 14, 16, 18}), "0,2,4,6,8,10,12,14,... (10)"},
		{text.Ranges([]int(nil)), ""},
		{text.Hosts([]string{"a", "", "Unknown"}), "a"},
		{text.Hosts([]string{"a", "b", "c", "d"}), "a and 3 other hosts"},
		{text.ShortName("f() [{a.c} {1,2}-{3,4}]"), "f"},
		{text.WithPlace("f(int) [{/src/heat2d.cpp} {31,0}]"), "f(int) heat2d.cpp:31"},
		{text.WithPlace("f() [{a.c} {1,2}-{3,4}]"), "f() a.c:1"},
		{text.WithPlace("f [{/lib/x.so}]"), "f x.so"},
		{text.WithPlace("f [{/lib/x.so} {0}]"), "f x.so:0"},
		{text.WithPlace("MPI_Send()"), "MPI_Send()"},
		{text.WithPlace("[{a.c} {1,2}]"), "[{a.c} {1,2}]"},
		{text.WithoutSources("main [{m.c} {1,0}] > f() [{a.c} {1,2}] > MPI_Send()"), "main > f() > MPI_Send()"},
		{text.ShellWord("runs/a-1.bp"), "runs/a-1.bp"},
		{text.ShellWord("my run's"), `'my run'\''s'`},
		{text.ShellWord("1=a/*"), "'1=a/*'"},
		{text.ShellWord(""), "''"},
		{text.ShortName("f(int)\n"), "f(int)"},
		{text.SingleSpaced(" a\t\x00b\n"), "a b"},
		{text.Shorten("abcdef", 5), "ab…ef"},
		{text.Shorten("äöü", 3), "äöü"},
		{text.Shorten("abc", 0), ""},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	if n := len([]rune(text.OneLine(strings.Repeat("ä", 100)))); n != 70 {
		t.Errorf("OneLine keeps %d characters, want 70", n)
	}
}

func TestSharesAddUp(t *testing.T) {
	f := func(want string, first float64, parts ...float64) {
		t.Helper()
		if got := strings.Join(text.Shares(first, parts), ", "); got != want {
			t.Errorf("%v and %v are %s, want %s", first, parts, got, want)
		}
	}
	f("73 %, 14 %, 9 %, 4 %", 0.73, 0.14, 0.09, 0.04)
	f("33 %, 23 %, 22 %, 22 %", 0.3333, 0.2223, 0.2222, 0.2222)
	f("67 %, 17 %, 16 %", 0.6666, 0.1667, 0.1667)
	f("50 %, 50 %, 0 %", 0.5, 0.498, 0.002)
	f("97.3 %, 1.9 %, 0.8 %", 0.973, 0.019, 0.008)
	f("100 %", 1)
	f("100.0 %, 0 %", 0.99999, 0.00001)
}
