package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/children"
)

func TestConcentrationIsWhereMostIsLost(t *testing.T) {
	// Each anomaly is rank@time:lost, of which a host has four ranks.
	f := func(anomalies, want string) {
		t.Helper()
		var all []demoAnomaly
		for text := range strings.FieldsSeq(anomalies) {
			var a demoAnomaly
			if _, err := fmt.Sscanf(text, "%d@%d:%d", &a.rank, &a.entry, &a.lost); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			a.host = fmt.Sprintf("node%d", a.rank/4)
			all = append(all, a)
		}
		p := concentration(demoFunction{}, all)
		slices.Sort(p.hosts)
		if got := fmt.Sprintf("%s ranks %s: %d lost %d since %d", strings.Join(p.hosts, ","), rankList(p.ranks), p.anomalies, p.lost, p.first); got != want {
			t.Errorf("%s\n got %s\nwant %s", anomalies, got, want)
		}
	}
	f("5@10:100", "node1 ranks 5: 1 lost 100 since 10")
	f("0@1:2 5@2:3 5@10:100 5@20:90 6@30:9", "node1 ranks 5: 3 lost 193 since 10")
	f("0@1:90 5@10:100", "node0,node1 ranks 0,5: 2 lost 190 since 1")
	f("0@1:1 1@2:1 5@3:1", "node0,node1 ranks 0-1,5: 3 lost 3 since 1")
	f("0@1:0 5@3:0", "node0,node1 ranks 0,5: 2 lost 0 since 1")
}

func TestGatherOrdersPlacesByLostTime(t *testing.T) {
	row := func(program int64, function string, rank, lost, entry int64) []any {
		return []any{program, function, rank, "here", lost, entry, fmt.Sprintf("%d:0:%d", rank, entry)}
	}
	rows := [][]any{row(0, "f", 0, 5, 1), row(1, "f", 0, 50, 2), row(0, "g", 1, 20, 3), row(0, "g", 2, 20, 4)}
	var r demoResult
	if err := r.gather(rowsOf(nil, rows).All); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range r.places {
		got = append(got, fmt.Sprintf("%d %s %d", p.function.program, p.function.name, p.lost))
	}
	if want := []string{"1 f 50", "0 g 40", "0 f 5"}; !slices.Equal(got, want) || r.all != 4 || r.worst.id != "0:0:2" {
		t.Errorf("got %v, want %v; %d anomalies, the worst %s", got, want, r.all, r.worst.id)
	}
}

func TestTroublesAreReadWhileTheyAreWritten(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		found, err := readTroubles([]byte(text))
		var got []string
		for _, x := range found {
			got = append(got, x.Name)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q:\n got %v, %v\nwant %v", text, got, err, want)
		}
	}
	f("")
	f(`{"trouble":"a","ki`)
	f(`{"trouble":"a","kind":"burst"}`)
	f(`{"trouble":"a","kind":"burst"}`+"\n", "a")
	f(`{"trouble":"a"}`+"\n"+`{"trouble":"b"}`+"\n"+`{"call":"0:0:1","trouble":"a"}`+"\n"+`{"ca`, "a", "b")
	if _, err := readTroubles([]byte(`{"trouble":1}` + "\n")); err == nil {
		t.Error("what is no trouble is read as one")
	}
}

func TestAPictureIsDrawnOverTheOneBefore(t *testing.T) {
	var b bytes.Buffer
	v := &demoView{w: &b, picture: true}
	lines := func(text string) func(io.Writer) { return func(w io.Writer) { fmt.Fprint(w, text) } }
	v.draw(lines("one\ntwo\n"))
	v.draw(lines("three\n"))
	v.print(lines("after\n"))
	v.draw(lines("four\n"))
	v.clear()
	v.clear()
	const want = "\x1b[?7lone\ntwo\n\x1b[?7h" + "\r\x1b[2A\x1b[J\x1b[?7lthree\n\x1b[?7h" + "\r\x1b[1A\x1b[Jafter\n" + "\x1b[?7lfour\n\x1b[?7h" + "\r\x1b[1A\x1b[J"
	if b.String() != want {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
}

func TestOutputThatCannotBeWrittenEndsTheDemo(t *testing.T) {
	ctx, fail := context.WithCancelCause(t.Context())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	v := newDemoView(&Env{Stdout: w}, fail)
	v.print(func(w io.Writer) { fmt.Fprint(w, "text") })
	if err := context.Cause(ctx); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the demo ends with %v", err)
	}
}

func TestTextIsWrappedAndCut(t *testing.T) {
	long := wrapped(strings.Repeat("word and ", 40) + strings.Repeat("x", 100))
	for line := range strings.Lines(long) {
		if n := len(line) - 1; n > demoWidth && !strings.HasPrefix(line, "x") || n == 0 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if got := strings.Join(strings.Fields(long), " "); got != strings.Repeat("word and ", 40)+strings.Repeat("x", 100) {
		t.Errorf("words are lost: %q", got)
	}
	if got := shortName("f(ä, ö) [{file.c} {1,2}]", 6); got != "f(ä, …" {
		t.Errorf("got %q", got)
	}
}

func TestProcessesOfADemoGetNoSettings(t *testing.T) {
	got := childEnviron([]string{"A=1", "CHIMBUKO_SIGMA=3", "TMPDIR=/there", "HOME=/home"}, "/here")
	if want := []string{"A=1", "HOME=/home", "TMPDIR=/here"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTheEndOfALogIsShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := func(text, want string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := children.LastLines(path, oneLine); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f("", "  (empty)\n")
	f("a\nb", "  a\n  b\n")
	f(strings.Repeat("line\n", 10_000)+"last\n", strings.Repeat("  line\n", 7)+"  last\n")
	f("\x1b[31m"+strings.Repeat("ä", 300)+"\n", "   [31m"+strings.Repeat("ä", 197)+"…\n")
	if got := children.LastLines(path+"x", oneLine); !strings.Contains(got, "no such file") {
		t.Errorf("got %q", got)
	}
}

func TestTimesOfTroublesAreToldSinceTheStart(t *testing.T) {
	began := time.UnixMicro(1_000_000)
	for at, want := range map[trace.Micros]string{3_345_678: "+2.3 s", 900_000: "+0.0 s"} {
		if got := sinceText(at, began); got != want {
			t.Errorf("%d: got %q, want %q", at, got, want)
		}
	}
}
