package truth_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
)

func write(t *testing.T, content string, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// jsonl returns troubles and calls as written by a Writer.
func jsonl(t *testing.T, troubles []truth.Trouble, calls []truth.Call) string {
	t.Helper()
	var b bytes.Buffer
	w := truth.NewWriter(&b)
	for i := range troubles {
		w.Trouble(&troubles[i])
	}
	for i := range calls {
		w.Call(&calls[i])
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// read returns the truth of one file.
func read(t *testing.T, content string) *truth.Truth {
	t.Helper()
	got, err := truth.Read([]string{write(t, content, t.TempDir(), "truth.0")})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func match(truth *truth.Truth, flags ...truth.Flag) *truth.Score {
	m := truth.Matcher()
	for i := range flags {
		m.Add(&flags[i])
	}
	return m.Score(1000)
}

// counts are planted/found/missed flagged=excused+other of a score.
func counts(s *truth.Score) string {
	return fmt.Sprintf("%d=%d+%d %d: %d excused, %d other", s.Planted, s.Found, s.Missed, s.Flagged, s.Excused, s.Other)
}

// The scene: rank 8 of program 1 calls f, in which calls are slow, each of which is to
// be found; ranks 8 and 9 are on a slow host from 1 s to 2 s, and rank 3 waits for it.
var (
	slowCall = truth.Trouble{
		Name: "a", Kind: "slow-call", Each: true, Program: 1, Hosts: []string{"node02"}, Ranks: []trace.Rank{8},
		Functions: []string{"f()"}, From: 0, To: 0, Text: "f is slow now and then.",
	}
	slowHost = truth.Trouble{
		Name: "b", Kind: "slow-host", Program: 1, Hosts: []string{"node02"}, Ranks: []trace.Rank{9, 8, 9},
		Functions: []string{}, From: 1e6, To: 2e6, Text: "All of node02 is slow.",
	}
)

func call(event string, trouble string, role truth.Role, entry trace.Ticks) truth.Call {
	var rank trace.Rank
	if _, err := fmt.Sscanf(event, "%d:", &rank); err != nil {
		panic(err)
	}
	return truth.Call{
		Event: event, Trouble: trouble, Role: role, Program: 1, Rank: rank, Thread: 2, Function: "f()",
		Entry: entry, Exit: entry + 50, Injected: 40,
	}
}

// flag is a flag on a call of 50 us, found at its exit.
func flag(event string, function string, entry trace.Ticks) truth.Flag {
	c := call(event, "", truth.Cause, entry)
	return truth.Flag{Program: 1, Rank: c.Rank, Event: event, Function: function, Entry: entry, Exit: c.Exit, Found: c.Exit}
}

func scene(t *testing.T) *truth.Truth {
	t.Helper()
	return read(t, jsonl(t, []truth.Trouble{slowCall, slowHost}, []truth.Call{
		call("8:0:10", "a", truth.Cause, 400),
		call("8:0:20", "a", truth.Cause, 300),
		call("3:0:30", "a", truth.Victim, 500),
		call("9:1:10", "b", truth.Cause, 1_100_000),
		call("9:1:20", "b", truth.Cause, 1_200_000),
		call("3:1:40", "b", truth.Victim, 1_100_010),
		call("8:1:50", "b", truth.Victim, 1_100_020),
	}))
}

func TestCallIsMatchedByEventOnly(t *testing.T) {
	f := func(want string, flags ...truth.Flag) {
		t.Helper()
		if got := counts(match(scene(t), flags...)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	found := flag("8:0:10", "f()", 400)
	f("2=0+2 0: 0 excused, 0 other")
	f("2=1+1 1: 0 excused, 0 other", found)
	f("2=2+0 2: 0 excused, 0 other", found, flag("8:0:20", "f()", 300))
	f("2=1+1 1: 0 excused, 0 other", flag("8:0:10", "g()", 777)) // whatever its other fields are
	f("2=0+2 1: 0 excused, 1 other", flag("8:0:11", "f()", 400)) // another event
	f("2=0+2 1: 0 excused, 1 other", flag("9:0:10", "f()", 400)) // another rank
	induced := flag("9:0:10", "f()", 400)
	induced.Induced = true
	f("2=0+2 1: 1 excused, 0 other", induced)
	other := found
	other.Program = 0
	f("2=0+2 1: 0 excused, 1 other", other)
	other = found
	other.Event = "first"
	f("2=0+2 1: 0 excused, 1 other", other)
	f("2=1+1 2: 1 excused, 0 other", found, found) // a second flag neither helps nor harms
}

func TestFlagsOnVictimsAndInRegionsAreExcused(t *testing.T) {
	f := func(excused bool, flags truth.Flag) {
		t.Helper()
		want := map[bool]string{true: "2=0+2 1: 1 excused, 0 other", false: "2=0+2 1: 0 excused, 1 other"}[excused]
		if got := counts(match(scene(t), flags)); got != want {
			t.Errorf("%+v: got %s, want %s", flags, got, want)
		}
	}
	f(true, flag("3:0:30", "f()", 500))        // a victim of a trouble of which each is demanded
	f(true, flag("3:1:40", "f()", 1_100_010))  // and of the other
	f(true, flag("9:1:10", "f()", 1_100_000))  // a cause
	f(true, flag("9:1:77", "any", 1_500_000))  // in the region
	f(true, flag("8:1:77", "any", 999_950))    // ends as it begins
	f(true, flag("8:1:77", "any", 2_000_000))  // begins as it ends
	f(false, flag("8:1:77", "any", 999_949))   // before
	f(false, flag("8:1:77", "any", 2_000_001)) // after
	f(false, flag("7:1:77", "any", 1_500_000)) // elsewhere
	f(false, flag("8:0:77", "f()", 600))       // in the region of a trouble of which each is demanded
	away := flag("9:1:77", "any", 1_500_000)
	away.Program = 2
	f(false, away)
}

func TestRegionHasFunctionsAndMayBeOpenEnded(t *testing.T) {
	host := slowHost
	host.To, host.Functions = 0, []string{"f()", "g(int) [{g.c} {1,0}]"}
	planted := read(t, jsonl(t, []truth.Trouble{host}, nil))
	f := func(excused int, function string, entry trace.Ticks) {
		t.Helper()
		if s := match(planted, flag("8:5:1", function, entry)); s.Excused != excused {
			t.Errorf("%s at %d: got %s, want %d excused", function, entry, counts(s), excused)
		}
	}
	f(1, "f()", 1_000_000)
	f(1, "f()", math.MaxInt64-50)
	f(1, "g(int) [{g.c} {1,0}]", 1_000_000)
	f(0, "g", 1_000_000)
	f(0, "f()", 999_000)
}

func TestTroubleScoreHasFlagsAndDelay(t *testing.T) {
	f := func(of int, want truth.TroubleScore, flags ...truth.Flag) {
		t.Helper()
		want.Trouble = []truth.Trouble{slowCall, slowHost}[of]
		if got := match(scene(t), flags...).Troubles[of]; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v:\n got %+v\nwant %+v", flags, got, want)
		}
	}
	const a, b = 0, 1
	f(a, truth.TroubleScore{Planted: 2, Victims: 1})
	f(b, truth.TroubleScore{Planted: 2, Victims: 2})
	// The first cause of a begins at 300, those of b do at 1.1 s.
	f(a, truth.TroubleScore{Planted: 2, Victims: 1, Found: 1, Seen: true, After: 150}, flag("8:0:10", "f()", 400))
	f(a, truth.TroubleScore{Planted: 2, Victims: 1, Found: 2, Seen: true, After: 50}, flag("8:0:10", "f()", 400), flag("8:0:20", "f()", 300))
	f(a, truth.TroubleScore{Planted: 2, Victims: 1}, flag("8:0:77", "f()", 600)) // none of its causes
	f(b, truth.TroubleScore{Planted: 2, Victims: 2, Found: 1, Seen: true, After: 400_050}, flag("8:1:77", "any", 1_500_000))
	f(b, truth.TroubleScore{Planted: 2, Victims: 2, Found: 2, Seen: true, After: 50}, flag("8:1:77", "any", 1_500_000),
		flag("9:1:10", "f()", 1_100_000))
	f(b, truth.TroubleScore{Planted: 2, Victims: 2}, flag("8:1:77", "any", 1_000_500)) // too early for its causes
	// A flag on a victim does not count as a flag of the trouble, even in its region.
	f(b, truth.TroubleScore{Planted: 2, Victims: 2, VictimsFlagged: 2}, flag("3:1:40", "f()", 1_100_010), flag("8:1:50", "f()", 1_100_020))

	late := flag("9:1:10", "f()", 1_100_000)
	late.Found = truth.AtEnd
	end := flag("0:9:1", "any", 3_099_950) // the run ends with it, at 3.1 s
	f(b, truth.TroubleScore{Planted: 2, Victims: 2, Found: 1, Seen: true, After: 2_000_000}, late, end)
	f(b, truth.TroubleScore{Planted: 2, Victims: 2, Found: 2, Seen: true, After: 100_050}, late, end, flag("9:1:20", "f()", 1_200_000))
}

func TestTroubleStartsNotBeforeFrom(t *testing.T) {
	planted := read(t, jsonl(t, []truth.Trouble{slowHost}, []truth.Call{call("8:0:1", "b", truth.Cause, 999_990)}))
	if got := match(planted, flag("8:0:1", "f()", 999_990)).Troubles[0]; !got.Seen || got.After != 40 {
		t.Errorf("got %+v, want it found after 40 us", got)
	}
}

func TestCallOfTwoTroublesCountsOnce(t *testing.T) {
	another := slowCall
	another.Name = "c"
	planted := read(t, jsonl(t, []truth.Trouble{slowCall, slowHost, another}, []truth.Call{
		call("8:0:1", "b", truth.Cause, 1_100_000),
		call("8:0:1", "a", truth.Cause, 1_100_000),
		call("8:0:1", "c", truth.Cause, 1_100_000),
		call("8:0:2", "a", truth.Victim, 1_100_000),
		call("8:0:2", "c", truth.Cause, 1_100_000),
	}))
	s := match(planted, flag("8:0:1", "f()", 1_100_000))
	if got, want := counts(s), "2=1+1 1: 0 excused, 0 other"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if want := []truth.Missed{{Rank: 8, Function: "f()", Entry: 1_100_000, Injected: 40, Trouble: "c"}}; !reflect.DeepEqual(s.MissedList,
		want) {
		t.Errorf("missed: got %+v, want %+v", s.MissedList, want)
	}
	for _, trouble := range s.Troubles {
		if trouble.Found != 1 {
			t.Errorf("trouble %s: %d found, want 1", trouble.Name, trouble.Found)
		}
	}
}

func TestRatios(t *testing.T) {
	f := func(recall, precision, f1, perMillion float64, flags ...truth.Flag) {
		t.Helper()
		s := match(scene(t), flags...)
		got, want := []float64{s.Recall, s.Precision, s.F1, s.OtherPerMillion}, []float64{recall, precision, f1, perMillion}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", counts(s), got, want)
		}
	}
	found, beside, excused := flag("8:0:10", "f()", 400), flag("7:0:1", "f()", 1), flag("3:0:30", "f()", 500)
	f(0, 1, 0, 0)
	f(0, 1, 0, 0, excused)
	f(0, 0, 0, 1000, beside)
	f(0.5, 1, 2.0/3, 0, found, excused)
	f(0.5, 0.5, 0.5, 1000, found, beside, excused)
	empty := match(read(t, ""), beside)
	if empty.Recall != 1 || empty.Precision != 0 || empty.F1 != 0 || len(empty.Troubles) != 0 {
		t.Errorf("nothing planted: %+v", empty)
	}
	if nothing := read(t, "").Matcher().Score(0); nothing.Recall != 1 || nothing.Precision != 1 || nothing.F1 != 1 ||
		nothing.OtherPerMillion != 0 {
		t.Errorf("nothing planted, nothing flagged: %+v", nothing)
	}
}

func TestTextFormatsAreMatchedByTime(t *testing.T) {
	planted := read(t, "# by hand\n1 7 f 100000 103000 2800\nTRUTH kind=gpu_slow kernel=k launch_us=500000 rank=1\n")
	f := func(found int, function string, entry trace.Ticks, launch ...trace.Ticks) {
		t.Helper()
		in := flag("1:0:0", function, entry)
		in.Exit = entry + 3000
		if len(launch) > 0 {
			in.Launched, in.LaunchEntry, in.LaunchExit = true, launch[0], launch[1]
		}
		if s := match(planted, in); s.Found != found || s.Planted != 2 || s.Other != 1-found {
			t.Errorf("%s at %d: %s, want %d found", function, entry, counts(s), found)
		}
	}
	f(1, "f(int) [{f.c} {1,0}]", 99_990)
	f(0, "f(int) [{f.c} {1,0}]", 90_000)
	f(0, "g(int)", 99_990)
	f(1, "k(float*)", 600_000)
	f(0, "k [sampled]", 600_000)
	f(0, "k(float*)", 800_000)
	f(1, "k(float*)", 800_000, 499_990, 500_010)
	f(1, "k(float*)", 800_000, 499_990, 0)
	f(0, "k(float*)", 600_000, 400_000, 400_010)
}

func TestFlagInBothFormatsCountsOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, jsonl(t, []truth.Trouble{slowHost}, nil), dir, "truth.jsonl")
	write(t, "8 7 f 1100000 1100050 40\n", dir, "truth.8")
	planted, err := truth.Read([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	in := flag("8:0:1", "f()", 1_100_000)
	if got, want := counts(match(planted, in, flag("8:0:2", "f()", 1_300_000))), "1=1+0 2: 1 excused, 0 other"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTruthServesManyMatchers(t *testing.T) {
	planted := scene(t)
	m := planted.Matcher()
	in := flag("8:0:10", "f()", 400)
	m.Add(&in)
	first, again := m.Score(1000), m.Score(1000)
	if !reflect.DeepEqual(first, again) || m.Flags() != 1 {
		t.Errorf("got %+v, then %+v of %d flags", first, again, m.Flags())
	}
	in = flag("8:0:20", "f()", 300)
	m.Add(&in)
	if got := m.Score(1000); got.Found != 2 {
		t.Errorf("after one more flag: %s", counts(got))
	}
	if got := match(planted); got.Found != 0 {
		t.Errorf("another matcher: %s", counts(got))
	}
}

func TestCallsMayBeInOtherFilesThanTheirTroubles(t *testing.T) {
	dir := t.TempDir()
	calls := write(t, jsonl(t, nil, []truth.Call{call("8:0:1", "a", truth.Cause, 1)}), dir, "truth.0.jsonl")
	troubles := write(t, "\n \n"+jsonl(t, []truth.Trouble{slowHost, slowCall}, nil), dir, "truth.troubles")
	for _, paths := range [][]string{{dir}, {calls, troubles}, {troubles, calls}, {filepath.Join(dir, "truth.*"), calls}} {
		got, err := truth.Read(paths)
		if err != nil || len(got.Troubles) != 2 || match(got).Planted != 1 {
			t.Errorf("%q: got %v and %+v", paths, err, got)
		}
	}
}

func TestReadReportsErrors(t *testing.T) {
	f := func(content, want string) {
		t.Helper()
		path := write(t, content, t.TempDir(), "truth.jsonl")
		_, err := truth.Read([]string{path})
		if err == nil || !strings.HasPrefix(err.Error(), path+":") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%.200s\n got %v\nwant %s:%s", content, err, path, want)
		}
	}
	trouble := jsonl(t, []truth.Trouble{slowCall}, nil)
	one := jsonl(t, nil, []truth.Call{call("8:0:1", "a", truth.Cause, 100)})
	with := func(line, from, to string) string {
		t.Helper()
		changed := strings.Replace(line, from, to, 1)
		if changed == line {
			t.Fatalf("no %s in %s", from, line)
		}
		return changed
	}
	f(trouble+"x", `:2: line is not a JSON object: invalid character 'x' looking for beginning of value`)
	f("\n\n{\n", `:3: line is not a JSON object: unexpected end of JSON input`)
	f(trouble+"[]", `:2: line is not a JSON object: json: cannot unmarshal array into Go value of type truth.line`)
	f(trouble+"null", `:2: "trouble" is missing`)
	f("{}", `:1: "trouble" is missing`)
	for _, name := range []string{"trouble", "kind", "each", "program", "hosts", "ranks", "functions", "from_us", "to_us", "text"} {
		f(with(trouble, `"`+name+`"`, `"new"`), fmt.Sprintf(`:1: %q is missing`, name))
	}
	for _, name := range []string{"trouble", "role", "program", "rank", "thread", "function", "entry_us", "exit_us", "injected_us"} {
		f(trouble+with(one, `"`+name+`"`, `"new"`), fmt.Sprintf(`:2: %q is missing`, name))
	}
	f(with(trouble, `"a"`, `null`), `:1: "trouble" is missing`)
	f(with(trouble, `"a"`, `""`), `:1: "trouble" is empty`)
	f(with(trouble, `"slow-call"`, `""`), `:1: "kind" is empty`)
	f(with(trouble, `"program":1`, `"program":-1`), `:1: "program" cannot be a number -1`)
	f(with(trouble, `"ranks":[8]`, `"ranks":[8,"9"]`), `:1: "ranks" cannot be a string`)
	f(with(trouble, `"from_us":0,"to_us":0`, `"from_us":9,"to_us":8`), `:1: the trouble ends before it begins`)
	f(trouble+trouble, `:2: trouble "a" is declared already`)

	f(trouble+with(one, `"cause"`, `"both"`), `:2: unknown role "both" (want cause or victim)`)
	f(trouble+with(one, `"exit_us":150`, `"exit_us":99`), `:2: the call ends before it begins`)
	f(trouble+with(one, `"trouble":"a"`, `"trouble":""`), `:2: "trouble" is empty`)
	for _, id := range []string{"", "8:0", "8:0:1:2", "8::1", "9:0:1", "8:-1:1", "8:0:4294967296", "x:0:1"} {
		f(trouble+with(one, "8:0:1", id), fmt.Sprintf(`:2: call %q is not an event of rank 8 (want rank:step:row)`, id))
	}
	f(trouble+one+"\n"+one, `:4: call 8:0:1 is in trouble "a" already`)
	f(trouble+one+with(one, `"trouble":"a"`, `"trouble":"b"`), `:3: no line declares trouble "b"`)
	f(trouble+with(one, "f()", strings.Repeat("x", 4<<20)), `:2: the line is too long: 4194304 bytes or more`)
	f("0 1 f 1 2 1\n# "+strings.Repeat("x", 64<<10), `:2: the line is too long: 65536 bytes or more`)
	f("0 1 f 1 2 1\n{}", `:2: 1 words, want 6: rank, iteration, function, entry_us, exit_us, injected_us; or TRUTH kind=KIND and more`)

	if _, err := truth.Read([]string{"no[where"}); !errors.Is(err, filepath.ErrBadPattern) {
		t.Errorf("a bad pattern: got %v", err)
	}
}

func TestReadIgnoresUnknownKeys(t *testing.T) {
	line := jsonl(t, []truth.Trouble{slowCall}, nil)
	got := read(t, strings.Replace(line, `"each"`, `"weight":{"of":[1]},"each"`, 1))
	if want := []truth.Trouble{slowCall}; !reflect.DeepEqual(got.Troubles, want) {
		t.Errorf("got %+v, want %+v", got.Troubles, want)
	}
}

func TestWriterRoundTrip(t *testing.T) {
	culprit := trace.Rank(-7)
	troubles := []truth.Trouble{slowCall, slowHost, {
		Name: `a "quoted" \ name`, Kind: "drift", Program: math.MaxUint32, Hosts: []string{"a", "b"},
		Ranks:     []trace.Rank{math.MinInt32, math.MaxInt32},
		Functions: []string{"\x00\n\r\t\x1f", "f<int&>(…) \u2028", "\U0001f600"}, From: math.MinInt64, To: math.MaxInt64,
	}}
	calls := []truth.Call{call("8:0:1", "a", truth.Cause, 5), {
		Event: "-1:2147483647:4294967295", Trouble: "b", Role: truth.Victim, Program: math.MaxUint32, Rank: -1, Thread: math.MaxUint32,
		Function: "operator\"\"_s", Entry: math.MinInt64, Exit: math.MaxInt64, Injected: -3, Culprit: &culprit,
	}}
	lines := strings.Split(strings.TrimSuffix(jsonl(t, troubles, calls), "\n"), "\n")
	if len(lines) != len(troubles)+len(calls) {
		t.Fatalf("got %d lines, want one for each: %q", len(lines), lines)
	}
	for i, want := range troubles {
		var got truth.Trouble
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v (%v)\nwant %+v", lines[i], got, err, want)
		}
	}
	for i, want := range calls {
		var got truth.Call
		if err := json.Unmarshal([]byte(lines[len(troubles)+i]), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v (%v)\nwant %+v", lines[len(troubles)+i], got, err, want)
		}
	}
	if got := read(t, strings.Join(lines, "\n")); !reflect.DeepEqual(got.Troubles, troubles) {
		t.Errorf("read\n got %+v\nwant %+v", got.Troubles, troubles)
	}
	if got := jsonl(t, []truth.Trouble{{Text: "a\xffb"}}, nil); !strings.Contains(got, `"text":"a\ufffdb"`) ||
		!strings.Contains(got, `"ranks":[]`) {
		t.Errorf("bytes that are no UTF-8, and nothing: got %s", got)
	}
}

// full is a writer that takes so many bytes.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errors.New("disk is full")
	}
	return len(b), nil
}

func TestWriterKeepsFirstError(t *testing.T) {
	disk := &full{left: 100_000}
	w := truth.NewWriter(disk)
	c := call("8:0:1", "a", truth.Cause, 5)
	for range 10_000 {
		w.Call(&c)
	}
	disk.left = 1 << 30
	for range 2 {
		if err := w.Flush(); err == nil || err.Error() != "disk is full" {
			t.Errorf("got %v, want that the disk is full", err)
		}
	}
	if disk.left != 1<<30 {
		t.Error("it was written to after an error")
	}
}

func BenchmarkWriterCall(b *testing.B) {
	w := truth.NewWriter(&full{left: math.MaxInt})
	culprit := trace.Rank(12)
	c := truth.Call{
		Event: "1023:4711:123456", Trouble: "slow host node0042", Role: truth.Victim, Rank: 1023,
		Function: "MPI_Allreduce() [{solver.cpp} {47,0}]",
		Entry:    1794703327316722, Exit: 1794703327318664, Injected: 1827, Culprit: &culprit,
	}
	b.ReportAllocs()
	for b.Loop() {
		w.Call(&c)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func BenchmarkRead(b *testing.B) {
	const calls = 10_000
	path := filepath.Join(b.TempDir(), "truth.jsonl")
	var content bytes.Buffer
	w := truth.NewWriter(&content)
	w.Trouble(&slowCall)
	for i := range calls {
		c := call(fmt.Sprintf("8:0:%d", i), "a", truth.Cause, trace.Ticks(i))
		w.Call(&c)
	}
	if err := errors.Join(w.Flush(), os.WriteFile(path, content.Bytes(), 0o600)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := truth.Read([]string{path}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(calls*float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
