package findings_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestAnomaliesBecomeFindings(t *testing.T) {
	r := run(t, `
		w1 0 - 100..200 90
		w2 1 - 100..220 110
		a1 2 group 110..225 100
		a2 3 group 112..225 98
		w3 1 - 800..880 70
		other 4 - 300..400 50`)
	r.Begin, r.End = 1, 1001
	for i := range r.Anomalies {
		a := &r.Anomalies[i]
		a.Func = strings.TrimRight(a.Event, "0123456789")
		a.Path = "main > " + a.Func
		a.Host = fmt.Sprintf("node%d", a.Rank/2)
		if a.Wait != blame.Nothing {
			a.Kind = provenance.CommWait
		}
	}
	found := findings.Conclude(r, blame.Find(r), nil)
	over := func(parts ...int) []int64 {
		counts := make([]int64, 20)
		for _, p := range parts {
			counts[p]++
		}
		return counts
	}
	want := []provenance.Finding{
		{
			Number: 1, Func: "w", Path: "main > w", Kind: provenance.Slow, Role: provenance.Culprit, Anomalies: 3, LostTime: 270, Longest: 120,
			Ranks: []trace.Rank{0, 1}, Hosts: []string{"node0"}, WorstRank: 1, WorstTime: 180, First: 100, Last: 880, OverTime: over(1, 1, 15),
			Example: "w2", Waits: 2, WaitRanks: 2, WaitTime: 198,
		},
		{
			Number: 2, Func: "other", Path: "main > other", Kind: provenance.Slow, Anomalies: 1, LostTime: 50, Longest: 100,
			Ranks: []trace.Rank{4}, Hosts: []string{"node2"}, WorstRank: 4, WorstTime: 50, First: 300, Last: 400, OverTime: over(5),
			Example: "other",
		},
		{
			Number: 3, Func: "a", Path: "main > a", Kind: provenance.CommWait, Role: provenance.Victim, Cause: 1, Anomalies: 2, LostTime: 198,
			Longest: 115,
			Ranks:   []trace.Rank{2, 3}, Hosts: []string{"node1"}, WorstRank: 2, WorstTime: 100, First: 110, Last: 225, OverTime: over(2, 2),
			Example: "a1",
		},
	}
	for i := range max(len(want), len(found.Findings)) {
		if i >= len(found.Findings) || i >= len(want) || !reflect.DeepEqual(found.Findings[i], want[i]) {
			t.Errorf("finding %d:\n got %+v\nwant %+v", i+1, found.Findings[min(i, len(found.Findings)-1)], want[min(i, len(want)-1)])
		}
	}
	one := trace.Rank(1)
	links := []provenance.Link{
		{EventID: "w1", RID: 0, Finding: 1, Role: provenance.Culprit, Culprit: "w2"},
		{EventID: "w2", RID: 1, Finding: 1, Role: provenance.Culprit, Waits: 2, WaitRanks: 2, WaitTime: 198},
		{EventID: "a1", RID: 2, Finding: 3, Role: provenance.Victim, Culprit: "w2", LateRank: &one, Hops: 1},
		{EventID: "a2", RID: 3, Finding: 3, Role: provenance.Victim, Culprit: "w2", LateRank: &one, Hops: 1},
		{EventID: "w3", RID: 1, Finding: 1},
		{EventID: "other", RID: 4, Finding: 2},
	}
	if !reflect.DeepEqual(found.Links, links) {
		t.Errorf("links:\n got %+v\nwant %+v", found.Links, links)
	}
}

func TestLastingChangesAreFindings(t *testing.T) {
	r := run(t, "slow 0 - 100..200 90")
	r.Begin, r.End = 50, 1000
	found := findings.Conclude(r, blame.Find(r), []summary.Change{
		{Program: 1, Function: "solve", Kind: "shift", Since: 500, Before: 10, After: 30, Calls: 40},
		{Function: "better", Kind: "drift", Since: 600, Before: 30, After: 10, Calls: 7},
	})
	want := []string{"1 shift solve 800 40 10 30 500..1000", "2 slow slow 90 1 0 0 100..200", "3 drift better 0 7 30 10 600..1000"}
	var got []string
	for _, x := range found.Findings {
		got = append(got, fmt.Sprintf("%d %s %s %d %d %g %g %d..%d", x.Number, x.Kind, x.Func, x.LostTime, x.Anomalies, x.Before, x.After,
			x.First, x.Last))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(found.Links) != 1 {
		t.Errorf("got %d links, want 1", len(found.Links))
	}
}

// spread returns slow calls of 10 us at these times of a run of a second.
func spread(rank trace.Rank, times ...trace.Micros) *blame.Run {
	r := &blame.Run{End: 1_000_000, Begin: 1}
	for i, at := range times {
		r.Anomalies = append(r.Anomalies, blame.Anomaly{
			Event: fmt.Sprint(i), Rank: rank, Func: "f", Path: "f", Kind: provenance.Slow, Entry: at, Exit: at + 10, Lost: 5,
		})
	}
	return r
}

func TestBurst(t *testing.T) {
	every := func(n int, from, step trace.Micros) (times []trace.Micros) {
		for i := range n {
			times = append(times, from+trace.Micros(i)*step)
		}
		return times
	}
	f := func(what string, r *blame.Run, kind provenance.AnomalyKind, trend provenance.Trend) {
		t.Helper()
		found := findings.Conclude(r, blame.Find(r), nil)
		if len(found.Findings) != 1 || found.Findings[0].Kind != kind || found.Findings[0].Trend != trend {
			t.Errorf("%s: got %+v, want %s, %q", what, found.Findings, kind, trend)
		}
	}
	f("five in a row", spread(0, every(5, 300_000, 100)...), provenance.Burst, provenance.Fewer)
	f("four are too few", spread(0, every(4, 300_000, 100)...), provenance.Slow, "")
	f("twice five in a row", spread(0, append(every(5, 100_000, 100), every(5, 900_000, 100)...)...), provenance.Burst, provenance.Steady)
	f("for a tenth of the run", spread(0, every(20, 500_000, 5_000)...), provenance.Burst, provenance.More)
	f("for a third of the run", spread(0, every(70, 500_000, 5_000)...), provenance.Slow, provenance.More)
	f("now and then", spread(0, every(20, 1, 50_000)...), provenance.Slow, provenance.Steady)
	f("mostly in a row", spread(0, append(every(19, 600_000, 100), 100)...), provenance.Burst, provenance.More)
	f("half of them in a row", spread(0, append(every(10, 100, 40_000), every(10, 600_000, 100)...)...), provenance.Slow, provenance.Steady)

	ranks := spread(0, every(8, 300_000, 100)...)
	for i := range ranks.Anomalies {
		ranks.Anomalies[i].Rank = trace.Rank(i)
	}
	f("one on each of eight ranks", ranks, provenance.Slow, provenance.Fewer)

	f("nothing is known of the run", &blame.Run{Anomalies: spread(0, 7).Anomalies}, provenance.Slow, "")
}

func TestManyAnomaliesAreFewFindings(t *testing.T) {
	r := many(1000, 50, 20)
	found := findings.Conclude(r, blame.Find(r), nil)
	if len(r.Anomalies) < 50_000 || len(found.Findings) > 20 {
		t.Errorf("%d anomalies became %d findings", len(r.Anomalies), len(found.Findings))
	}
	if first := found.Findings[0]; first.Func != "compute" || first.WaitRanks != 999 || first.WorstRank != 500 {
		t.Errorf("got %+v", first)
	}
}

// many returns the anomalies of a program in which rank 500 is slow: of so many ranks
// all others wait for it in each of so many iterations, in which it makes so many
// slow calls; its neighbors also wait for its messages.
func many(ranks, iterations, slow int) *blame.Run {
	r := new(blame.Run)
	const late = 500
	add := func(rank int, name string, wait blame.Wait, entry, exit trace.Micros, last *blame.Message) {
		r.Anomalies = append(r.Anomalies, blame.Anomaly{
			Event: fmt.Sprintf("%d:%d:%d", rank, entry, len(r.Anomalies)), Rank: trace.Rank(rank), Func: name, Path: "main > " + name,
			Host: fmt.Sprint("node", rank/64), Kind: provenance.Slow, Wait: wait, Entry: entry, Exit: exit, Lost: (exit - entry) * 9 / 10,
			Last: last,
		})
	}
	for i := range iterations {
		begin := trace.Micros(1_000_000 + i*10_000)
		for j := range slow {
			at := begin + trace.Micros(j*400)
			add(late, "compute", blame.Nothing, at, at+400, nil)
		}
		end := begin + trace.Micros(slow*400)
		add(late-1, "MPI_Waitall()", blame.Ranks, begin+50, end, &blame.Message{Partner: late, Time: end - 1})
		add(late+1, "MPI_Waitall()", blame.Ranks, begin+50, end, &blame.Message{Partner: late, Time: end - 1})
		for rank := range ranks {
			if rank != late && rank != late-1 && rank != late+1 {
				add(rank, "MPI_Allreduce()", blame.Group, begin+trace.Micros(100+rank%7), end+100+trace.Micros(rank%5), nil)
			}
		}
	}
	return r
}

func BenchmarkFind(b *testing.B) {
	for _, c := range []struct{ ranks, iterations, slow int }{{1000, 50, 20}, {1000, 5, 20}, {504, 100, 20}} {
		r := many(c.ranks, c.iterations, c.slow)
		b.Run(fmt.Sprint(len(r.Anomalies)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				blame.Find(r)
			}
			b.ReportMetric(float64(len(r.Anomalies))*float64(b.N)/b.Elapsed().Seconds(), "anomalies/s")
		})
	}
}

func BenchmarkConclude(b *testing.B) {
	r := many(1000, 50, 20)
	links := blame.Find(r)
	b.ReportAllocs()
	for b.Loop() {
		findings.Conclude(r, links, nil)
	}
	b.ReportMetric(float64(len(r.Anomalies))*float64(b.N)/b.Elapsed().Seconds(), "anomalies/s")
}

// anomaly reads one of the form
//
//	NAME rank[.thread][@program] WAIT entry..exit lost [<partner/tag@time] [>partner/tag@time] [gpu] [calls] [after time]
//
// in which WAIT is -, ranks, group, device, threads or program.
func anomaly(t testing.TB, text string) blame.Anomaly {
	t.Helper()
	words := strings.Fields(text)
	a := blame.Anomaly{Event: words[0], Func: words[0], Path: "main > " + words[0], Host: "node", Kind: provenance.Slow}
	scan := func(text, format string, into ...any) {
		if _, err := fmt.Sscanf(text, format, into...); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	place, program, ok := strings.Cut(words[1], "@")
	if ok {
		scan(program, "%d", &a.Program)
	}
	if rank, thread, ok := strings.Cut(place, "."); ok {
		place = rank
		scan(thread, "%d", &a.Thread)
	}
	scan(place, "%d", &a.Rank)
	a.Wait = blame.Wait(slices.Index([]string{"-", "ranks", "group", "device", "threads", "program"}, words[2]))
	scan(words[3], "%d..%d", &a.Entry, &a.Exit)
	scan(words[4], "%d", &a.Lost)
	for i := 5; i < len(words); i++ {
		switch w := words[i]; w {
		case "gpu":
			a.OnDevice = true
		case "calls":
			a.Calls = true
		case "after":
			i++
			scan(words[i], "%d", &a.InStep)
		default:
			a.Last = &blame.Message{Sent: w[0] == '>'}
			scan(w[1:], "%d/%d@%d", &a.Last.Partner, &a.Last.Tag, &a.Last.Time)
		}
	}
	return a
}

// run reads anomalies, one per line; a line that begins with send is a message: send
// from>to/tag@time until time.
func run(t testing.TB, text string) *blame.Run {
	t.Helper()
	r := new(blame.Run)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		var s blame.Send
		switch n, _ := fmt.Sscanf(line, "send %d>%d/%d@%d until %d", &s.From, &s.To, &s.Tag, &s.Time, &s.Until); {
		case n == 5:
			r.Sends = append(r.Sends, s)
		case line != "":
			r.Anomalies = append(r.Anomalies, anomaly(t, line))
		}
	}
	return r
}
