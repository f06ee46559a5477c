package kineto_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/profile"
)

// document returns the document of a rank whose process has a pid: an operator at 10 µs, and a kernel.
func document(info string, base, pid int) string {
	return fmt.Sprintf(`{%s"baseTimeNanoseconds": %d, "traceEvents": [
		{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"python"}},
		{"ph":"X","cat":"cpu_op","name":"op of %[3]d","pid":%[3]d,"tid":%[3]d,"ts":10,"dur":2},
		{"ph":"X","cat":"kernel","name":"kernel of %[3]d","pid":0,"tid":7,"ts":11,"dur":2}]}`, info, base, pid)
}

func TestRanksThatShareAFile(t *testing.T) {
	const base = 1e18
	rank := func(n int) string { return fmt.Sprintf(`"distributedInfo": {"rank": %d, "world_size": 2}, `, n) }
	op := func(rank, pid, ns int) string {
		return fmt.Sprintf("0 %d.0 %d enter op of %d\n0 %[1]d.0 %[4]d exit op of %[3]d\n", rank, ns, pid, ns+2000)
	}
	gpu := func(rank, pid, ns int) string {
		return fmt.Sprintf("0 %d.1 %d enter kernel of %d\n0 %[1]d.1 %[4]d exit kernel of %[3]d\n", rank, ns+1000, pid, ns+3000)
	}
	cut := document(rank(0), base, 70)
	cut = cut[:strings.Index(cut, `"dur":2}]}`)]
	more := func(pid, ts int) string {
		return fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"op of %[1]d","pid":%[1]d,"tid":%[1]d,"ts":%d,"dur":2}`, pid, ts)
	}
	for _, c := range []struct {
		name, text string
		want       string
		counts     map[tally.Kind]int64
	}{
		{
			"one after another", document(rank(1), base, 70) + "\n" + document(rank(0), base, 80),
			op(1, 70, 0) + gpu(1, 70, 0) + op(0, 80, 0) + gpu(0, 80, 0), nil,
		},
		{
			"same pid in containers", document(rank(1), base, 70) + document(rank(0), base, 70),
			op(1, 70, 0) + gpu(1, 70, 0) + op(0, 70, 0) + gpu(0, 70, 0), nil,
		},
		{
			"the same rank twice", document(rank(0), base, 70) + document(rank(0), base+20000, 70),
			op(0, 70, 0) + op(0, 70, 20000) + gpu(0, 70, 0) + gpu(0, 70, 20000),
			map[tally.Kind]int64{tally.DocumentJoined: 1},
		},
		{
			"unknown ranks", document("", base, 70) + document(rank(0), base, 80) + document("", base, 90),
			op(1, 70, 0) + gpu(1, 70, 0) + op(0, 80, 0) + gpu(0, 80, 0) + op(2, 90, 0) + gpu(2, 90, 0),
			map[tally.Kind]int64{tally.RankAssumed: 2},
		},
		{
			"in turns", // the second begins within the kernel of the first, and the first continues before the second ends
			cut + strings.TrimSuffix(document(rank(1), base, 80), "]}") + "," + more(70, 20) + "]}" + more(80, 30) + "," + more(70, 40) + "]}",
			op(0, 70, 0) + op(0, 70, 10000) + op(0, 70, 30000) + op(1, 80, 0) + op(1, 80, 20000) + gpu(1, 80, 0),
			map[tally.Kind]int64{tally.DocumentCut: 1, tally.DocumentJoined: 1, tally.PartUnreadable: 2},
		},
		{
			"a rank that is known too late", document(rank(0), base, 70) +
				strings.TrimSuffix(document("", base, 80), "}") + `, "distributedInfo": {"rank": 0}}`,
			op(0, 70, 0) + gpu(0, 70, 0),
			map[tally.Kind]int64{tally.RankRepeated: 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var counts tally.Tally
			var lines []string
			files := openAll(t, write(t, "all.json", c.text), profile.Options{})
			for _, f := range files {
				got, err := dump(t, f, &counts)
				if err != nil {
					t.Error(err)
				}
				lines = append(lines, got...)
			}
			if got := strings.Join(lines, "\n") + "\n"; got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			for k := range tally.NumKinds {
				if got, want := counts.Count(k), c.counts[k]; got != want {
					t.Errorf("%s is %d, want %d", k.Name(), got, want)
				}
			}
			if n := len(files[0].Gaps); n < len(c.counts) {
				t.Errorf("%d places of %d kinds of damage", n, len(c.counts))
			}
		})
	}
}

// TestRanksThatShareAFileShareMemory reads many ranks that write in turns.
func TestRanksThatShareAFileShareMemory(t *testing.T) {
	const ranks, rounds = 8, 4000
	var b strings.Builder
	for r := range ranks {
		b.WriteString(document(fmt.Sprintf(`"distributedInfo": {"rank": %d}, `, r), 1e18, 100+r))
	}
	for i := range rounds {
		fmt.Fprintf(&b, `{"ph":"X","cat":"cpu_op","name":"f","pid":%d,"tid":1,"ts":%d,"dur":1}`, 100+i%ranks, rounds-i)
	}
	files := openAll(t, write(t, "all.json", b.String()), profile.Options{MaxEvents: 16, Temp: t.TempDir()})
	if len(files) != ranks {
		t.Fatalf("got %d files", len(files))
	}
	total := 0
	for _, f := range files {
		r, err := f.Steps(new(tally.Tally))
		if err != nil {
			t.Fatal(err)
		}
		for {
			s, err := r.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			total += s.Funcs
		}
	}
	if want := 2 * (rounds + 2*ranks); total != want {
		t.Errorf("got %d entries and exits, want %d", total, want)
	}
}
