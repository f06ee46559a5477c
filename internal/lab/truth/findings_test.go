package truth_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
)

// record is the record of a run of two ranks in which rank 1 was stopped twice and rank 0 waited for a processor.
const record = `{"kind": "begin", "t": 5, "pids": {"0": 301, "1": 302}, "mode": "stall"}
{"kind": "delay", "rank": 0, "pid": 301, "start": 520000, "end": 540000, "wait_us": 9000}
{"kind": "delay", "rank": 0, "pid": 301, "start": 500000, "end": 520000, "wait_us": 3000}
{"kind": "stall", "rank": 1, "pid": 302, "start": 100000, "end": 200000, "ms": 100.0}
{"kind": "stall", "rank": 1, "pid": 302, "start": 300000, "end": 400000, "ms": 100.0}
{"kind": "delays", "total_wait_us": {"0": 12000}}
{"kind": "end", "t": 900000, "rc": 0}
`

// slow is a flag of a rank that lost all of its time.
func slow(rank trace.Rank, function string, entry, exit trace.Ticks) truth.Flag {
	return truth.Flag{
		Rank: rank, Event: fmt.Sprintf("%d:0:%d", rank, entry), Function: function, Entry: entry, Exit: exit, Found: exit, Lost: exit - entry,
	}
}

func culprit(f truth.Flag) truth.Flag {
	f.Culprit = true
	return f
}

func TestFlagsThatLostHalfOfAStopFindIt(t *testing.T) {
	f := func(want string, flags ...truth.Flag) {
		t.Helper()
		s := match(read(t, record), flags...).External
		if got := fmt.Sprintf("%d found, %d named of %d; %d outside, %d unexplained", s.Found, s.Named, s.Stops, s.Outside, s.Unexplained); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f("0 found, 0 named of 2; 0 outside, 0 unexplained")
	f("1 found, 0 named of 2; 0 outside, 0 unexplained", slow(1, "f", 150_000, 201_000))
	f("1 found, 1 named of 2; 0 outside, 0 unexplained", slow(1, "f", 150_000, 201_000), culprit(slow(1, "g", 120_000, 220_000)))
	f("0 found, 0 named of 2; 0 outside, 0 unexplained", culprit(slow(1, "f", 150_000, 190_000))) // too little
	f("0 found, 0 named of 2; 0 outside, 0 unexplained", culprit(slow(0, "MPI_Recv()", 100_000, 200_000)))
	f("0 found, 0 named of 2; 1 outside, 1 unexplained", slow(0, "MPI_Recv()", 150_000, 170_000)) // less than 30 % of the stop
}

func TestSchedulerRecordExplainsFlags(t *testing.T) {
	f := func(want int, flags ...truth.Flag) {
		t.Helper()
		s := match(read(t, record), flags...).External
		if s.Unexplained != want || s.Outside != len(flags) || s.UnexplainedPerMillion != 1000*float64(want) {
			t.Errorf("got %+v, want %d", s, want)
		}
	}
	f(0, slow(0, "f", 510_000, 530_000)) // 12 ms in two windows
	f(1, slow(0, "f", 500_000, 515_000)) // 3 ms in one
	f(1, slow(1, "f", 510_000, 530_000)) // on another rank
	f(0, slow(1, "MPI_Recv()", 510_000, 530_000))
	f(0, slow(1, "MPI Collective Sync", 510_000, 530_000))
	f(1, slow(0, "f", 600_000, 610_000))
}

func TestTroubleOfWholeMachineConcernsAllRanks(t *testing.T) {
	got := read(t, record+`{"kind":"iohog","rank":-1,"core":null,"start":500000,"end":700000}
{"kind":"slow","rank":0,"start":700000,"end":900000,"stopped_share":0.4}`)
	want := []string{"stall 1 [1] 100000", "stall 2 [1] 100000", "iohog 3 [0 1] 0", "slow 4 [0] 80000"}
	var list []string
	for _, x := range got.Troubles {
		list = append(list, fmt.Sprint(x.Name, " ", x.Ranks, " ", x.Lost))
	}
	if !slices.Equal(list, want) {
		t.Errorf("got %q, want %q", list, want)
	}
	if s := match(got, slow(0, "f", 600_000, 610_000)).External; s.Outside != 0 {
		t.Errorf("got %+v for a flag while the disk was busy", s)
	}
}

func TestRecordErrorsNameTheLine(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		_, err := truth.Read([]string{write(t, record+line, t.TempDir(), "truth.jsonl")})
		if err == nil || !strings.Contains(err.Error(), "truth.jsonl:8: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", line, err, want)
		}
	}
	f(`{"kind":"stall","rank":0,"start":1}`, `"end" is missing`)
	f(`{"kind":"stall","rank":0,"end":1}`, `"start" is missing`)
	f(`{"kind":"stall","start":1,"end":2}`, `"rank" is missing`)
	f(`{"kind":"stall","rank":-1,"start":1,"end":2}`, "rank -1 is negative")
	f(`{"kind":"stall","rank":0,"start":2,"end":1}`, "2 to 1 is not a time")
	f(`{"kind":"stall","rank":0,"start":-5,"end":1}`, "-5 to 1 is not a time")
	f(`{"kind":"stall","rank":"x","start":1,"end":2}`, `"rank" cannot be a string`)
	f(`{"kind":"slow","rank":0,"start":1,"end":2,"stopped_share":1.5}`, "stopped_share is 1.5")
	f(`{"kind":"delay","rank":0,"start":1,"end":2}`, `"wait_us" is missing`)
	f(`{"kind":"delay","rank":0,"start":1,"end":2,"wait_us":-1}`, "wait_us is -1")
	f(`{"kind":"begin","pids":{"zero":1}}`, `rank "zero" is not a valid integer`)
	f(`{"kind":"slow-call","start":1}`, `"trouble" is missing`)
}

// outlier is a listed finding of a function of program 1 on ranks, from 0 to 3 s.
func outlier(number int, function string, own trace.Ticks, ranks ...trace.Rank) truth.Report {
	return truth.Report{
		Number: number, Kind: truth.Outlier, Program: 1, Function: function, Ranks: ranks, To: 3e6, LostOwn: own, Share: 0.01, Listed: true,
		Summary: fmt.Sprint("finding ", number),
	}
}

// member is a flag of a finding that lost a time.
func member(finding int, event string, lost, entry trace.Ticks) truth.Flag {
	f := flag(event, "f()", entry)
	f.Finding, f.Lost = finding, lost
	return f
}

// describe returns lost and covered time, the finding and whether it names the place of each trouble, and the numbers of
// the findings outside.
func describe(s *truth.FindingScore) string {
	var b strings.Builder
	for _, x := range s.Troubles {
		fmt.Fprintf(&b, "%s: %d of %d, finding %d %v; ", x.Name, x.Covered, x.Lost, x.Finding, x.Named)
	}
	for _, x := range s.Others {
		fmt.Fprintf(&b, "outside %d", x.Number)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func TestFindingsCoverTroublesOfTheirKindAndPlace(t *testing.T) {
	f := func(want string, found []truth.Report, flags ...truth.Flag) {
		t.Helper()
		m := scene(t).Matcher()
		for i := range flags {
			m.Add(&flags[i])
		}
		if got := describe(m.Findings(found, map[trace.Program]int{1: 10})); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	one, two := member(1, "8:0:10", 30, 400), member(1, "8:0:20", 90, 300)
	f("a: 0 of 80, finding 0 false; b: 0 of 80, finding 0 false", nil)
	// The second lost more than was injected.
	f("a: 70 of 80, finding 1 true; b: 0 of 80, finding 0 false", []truth.Report{outlier(1, "f()", 120, 8)}, one, two)
	// The finding describes ten times as many calls as there are flags.
	f("a: 80 of 80, finding 1 true; b: 0 of 80, finding 0 false", []truth.Report{outlier(1, "f()", 300, 8)}, one)
	f("a: 0 of 80, finding 1 false; b: 0 of 80, finding 0 false", []truth.Report{outlier(1, "g()", 120, 8)}, one, two)
	// Kinds are unknown, so that interference may be right.
	f("a: 70 of 80, finding 1 true; b: 0 of 80, finding 0 false", []truth.Report{outlier(1, "", 120, 8)}, one, two)

	// All calls of the host are slow, and the flag is an extreme one.
	slow := outlier(1, "", 60, 8, 9)
	slow.Kind, slow.From, slow.To = truth.SlowPeer, 1_000_000, 1_500_000
	flags := []truth.Flag{member(1, "9:1:10", 80, 1_100_000)}
	f("a: 0 of 80, finding 0 false; b: 60 of 80, finding 1 true", []truth.Report{slow}, flags...)
	slow.From, slow.To = 0, 1_500_000 // longer: the flag says more
	f("a: 0 of 80, finding 0 false; b: 30 of 80, finding 1 true", []truth.Report{slow}, flags...)

	minor := outlier(1, "f()", 120, 8)
	minor.Listed = false
	f("a: 0 of 80, finding 0 false; b: 0 of 80, finding 0 false", []truth.Report{minor}, one, two)

	// Most of its time is on another rank.
	other := member(1, "3:0:99", 500, 400)
	f("a: 0 of 80, finding 1 false; b: 0 of 80, finding 0 false; outside 1", []truth.Report{outlier(1, "f()", 620, 3, 8)}, one, two, other)

	// Waits count for the finding of their cause, or else hide it.
	wait := member(2, "3:0:30", 500, 500)
	waits := outlier(2, "MPI_Recv()", 500, 3)
	waits.Kind = truth.Wait
	f("a: 30 of 80, finding 2 false; b: 0 of 80, finding 0 false", []truth.Report{outlier(1, "f()", 30, 8), waits}, one, wait)
	waits.Cause, waits.Listed = 1, false
	f("a: 30 of 80, finding 1 true; b: 0 of 80, finding 0 false", []truth.Report{outlier(1, "f()", 30, 8), waits}, one, wait)
}

func TestFindingMustBeOfRightKind(t *testing.T) {
	trouble := slowCall
	trouble.Findings, trouble.Lost = []truth.Finding{truth.Change}, 1000
	planted := read(t, jsonl(t, []truth.Trouble{trouble}, nil))
	f := func(want string, found truth.Report) {
		t.Helper()
		if got := describe(planted.Matcher().Findings([]truth.Report{found}, map[trace.Program]int{1: 2})); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	found := outlier(1, "f()", 900, 8)
	f("a: 0 of 1000, finding 1 true", found)
	found.Kind = truth.Change
	f("a: 900 of 1000, finding 1 true", found)
	found.Ranks = []trace.Rank{7, 8, 9}
	f("a: 0 of 1000, finding 0 false; outside 1", found)
	found.Ranks = nil // both
	f("a: 450 of 1000, finding 1 true", found)
	found.Ranks, found.Function = []trace.Rank{8}, "" // it is a change, although of no function
	f("a: 900 of 1000, finding 1 true", found)
	found.Kind = truth.Outlier
	f("a: 0 of 1000, finding 0 false; outside 1", found)

	trouble.Findings = []truth.Finding{truth.Outlier}
	planted = read(t, jsonl(t, []truth.Trouble{trouble}, nil))
	found = outlier(1, "f()", 900, 8)
	found.Kind = truth.Wait // of the trouble's function, and nobody knows why
	f("a: 900 of 1000, finding 1 true", found)
	found.Cause = 2
	f("a: 0 of 1000, finding 0 false", found)
}

func TestTroublesBelowMinimumLossDoNotCount(t *testing.T) {
	f := func(want string, least trace.Ticks) {
		t.Helper()
		m := scene(t).Matcher()
		m.LeastLoss = least
		if got := describe(m.Findings(nil, map[trace.Program]int{1: 10})); got != want {
			t.Errorf("%d us: got %s, want %s", least, got, want)
		}
	}
	both := "a: 0 of 80, finding 0 false; b: 0 of 80, finding 0 false"
	f(both, 0)
	f(both, 40)
	f("", 1000)
}

func TestMinorTroublesDoNotCount(t *testing.T) {
	f := func(want string, minor int, least trace.Ticks) {
		t.Helper()
		m := scene(t).Matcher()
		m.LeastCost = least
		s := m.Findings(nil, map[trace.Program]int{1: 10})
		if got := describe(s); got != want || s.Minor != minor {
			t.Errorf("%d us: got %s and %d minor ones, want %s and %d", least, got, s.Minor, want, minor)
		}
	}
	both := "a: 0 of 80, finding 0 false; b: 0 of 80, finding 0 false"
	f(both, 0, 0)
	f(both, 0, 80)
	f("", 2, 1000)
}

func TestFindingMatchesStopsByItsFlags(t *testing.T) {
	f := func(want string, flags ...truth.Flag) {
		t.Helper()
		m := read(t, record).Matcher()
		found := truth.Report{Number: 1, Kind: truth.Interference, Ranks: []trace.Rank{0, 1}, To: 3e6, Listed: true}
		for i := range flags {
			flags[i].Finding = 1
			found.LostOwn += flags[i].Lost
			m.Add(&flags[i])
		}
		if got := describe(m.Findings([]truth.Report{found}, map[trace.Program]int{0: 2})); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	stop := slow(1, "f", 110_000, 205_000)
	f("stall 1: 90000 of 100000, finding 1 true; stall 2: 0 of 100000, finding 0 false", stop)
	f("stall 1: 0 of 100000, finding 1 false; stall 2: 0 of 100000, finding 0 false", stop, slow(1, "g", 600_000, 800_000))
	// The scheduler's record explains the longer delay.
	f("stall 1: 15000 of 100000, finding 1 true; stall 2: 0 of 100000, finding 0 false", slow(1, "f", 110_000, 125_000),
		slow(0, "g", 510_000, 530_000))
	f("stall 1: 0 of 100000, finding 1 false; stall 2: 0 of 100000, finding 0 false", slow(1, "f", 110_000, 125_000),
		slow(0, "g", 610_000, 630_000))
}

func TestPlantedCallsOfTextFormatAreTroubles(t *testing.T) {
	m := read(t, "1 1 f 1000 2000 900\n1 2 f 5000 6000 800\n2 1 f 1000 2000 700\n").Matcher()
	flag := slow(1, "f() [{a.c} {1,0}]", 990, 2010)
	flag.Finding = 1
	m.Add(&flag)
	found := outlier(1, flag.Function, flag.Lost, 1)
	found.Program = 0
	got := m.Findings([]truth.Report{found}, map[trace.Program]int{0: 3})
	if want := "f on rank 1: 900 of 1700, finding 1 true; f on rank 2: 0 of 700, finding 0 false"; describe(got) != want {
		t.Errorf("got  %s\nwant %s", describe(got), want)
	}
	if want := (&truth.FindingScore{Lost: 2400, Covered: 900, Named: 1}); got.Lost != want.Lost || got.Covered != want.Covered || got.Named != want.Named {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestScoreWithoutRecordHasNoExternalScore(t *testing.T) {
	if s := match(scene(t), flag("8:0:10", "f()", 400)); s.External != nil || s.Findings != nil {
		t.Errorf("got %+v", s)
	}
	if s := match(read(t, record)); !reflect.DeepEqual(s.External, &truth.ExternalScore{Stops: 2}) {
		t.Errorf("got %+v", s.External)
	}
}
