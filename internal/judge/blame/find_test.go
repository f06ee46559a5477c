package blame_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// anomaly reads one of the form
//
//	NAME rank[.thread][@program] WAIT entry..exit lost [<partner/tag@time] [>partner/tag@time] [gpu] [calls] [after time] [left NAME time] [usual share]
//
// in which a usual one is a candidate, and WAIT is -, ranks, group, device, threads or program.
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
		case "promoted":
			a.Usual = true
		case "usual":
			i++
			a.Candidate = true
			scan(words[i], "%g", &a.Share)
		case "left":
			a.Left = words[i+1]
			scan(words[i+2], "%d", &a.InStep)
			i += 2
		default:
			a.Last = &blame.Message{Sent: w[0] == '>'}
			scan(w[1:], "%d/%d@%d", &a.Last.Partner, &a.Last.Tag, &a.Last.Time)
		}
	}
	return a
}

// run reads anomalies, one per line; a line that begins with send is a message: send
// from>to/tag@time until time. The line "ranks N" is the number of ranks.
func run(t testing.TB, text string) *blame.Run {
	t.Helper()
	r := new(blame.Run)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		var s blame.Send
		if ranks := 0; strings.HasPrefix(line, "ranks ") {
			if _, err := fmt.Sscanf(line, "ranks %d", &ranks); err != nil {
				t.Fatal(err)
			}
			r.Ranks = map[trace.Program]int{0: ranks}
			continue
		}
		switch n, _ := fmt.Sscanf(line, "send %d>%d/%d@%d until %d", &s.From, &s.To, &s.Tag, &s.Time, &s.Until); {
		case n == 5:
			r.Sends = append(r.Sends, s)
		case line != "":
			r.Anomalies = append(r.Anomalies, anomaly(t, line))
		}
	}
	return r
}

// show writes links: NAME>CULPRIT/HOPS for a victim, NAME>rank for one of which only
// the late rank is known, NAME! for a culprit and NAME!CULPRIT for one beside another.
func show(r *blame.Run, links []blame.Link) string {
	var all []string
	for i, l := range links {
		text := r.Anomalies[i].Event
		switch {
		case l.Role == provenance.Victim && l.Culprit >= 0:
			text += fmt.Sprintf(">%s/%d", r.Anomalies[l.Culprit].Event, l.Hops)
		case l.Role == provenance.Victim:
			text += fmt.Sprintf(">%d", l.Late)
		case l.Role == provenance.Culprit:
			text += "!"
			if l.Culprit >= 0 {
				text += r.Anomalies[l.Culprit].Event
			}
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestCulpritsAreFound(t *testing.T) {
	f := func(what, text, want string) {
		t.Helper()
		r := run(t, text)
		if got := show(r, blame.Find(r)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", what, got, want)
		}
		for range 5 { // in any order
			rand.Shuffle(len(r.Anomalies), func(i, j int) { r.Anomalies[i], r.Anomalies[j] = r.Anomalies[j], r.Anomalies[i] })
			rand.Shuffle(len(r.Sends), func(i, j int) { r.Sends[i], r.Sends[j] = r.Sends[j], r.Sends[i] })
			if got := show(r, blame.Find(r)); got != want {
				t.Fatalf("%s, in another order:\n got %s\nwant %s", what, got, want)
			}
		}
	}
	f("nothing", "", "")
	f("slow sender of a message", `
		slow 1 - 100..200 90
		wait 0 ranks 110..205 90 <1/0@203`,
		"slow! wait>slow/1")
	f("slow call that ended before the wait", `
		slow 1 - 100..200 90
		wait 0 ranks 250..345 90 <1/0@343`,
		"slow! wait>slow/1")
	f("slow call of an unrelated rank", `
		slow 2 - 100..200 90
		wait 0 ranks 110..205 90 <1/0@203`,
		"slow wait>1")
	f("slow call that lost too little", `
		slow 1 - 100..200 10
		wait 0 ranks 110..205 90 <1/0@203`,
		"slow wait>1")
	f("larger of two slow calls is the culprit", `
		small 1 - 100..150 40
		large 1 - 150..200 45
		wait 0 ranks 110..205 90 <1/0@203`,
		"large! small!large wait>large/1")
	f("follows waits", `
		slow 3 - 100..200 90
		c 2 ranks 110..205 90 <3/0@203
		b 1 ranks 115..210 90 <2/0@208
		a 0 ranks 120..215 90 <1/0@213`,
		"a>slow/3 b>slow/2 c>slow/1 slow!")
	f("stops at ranks that wait for each other", `
		a 0 ranks 100..200 90 <1/0@198
		b 1 ranks 100..190 90 <0/0@188`,
		"a>b/1 b!")
	f("ignores an earlier wait of the partner for the waiting rank", `
		b 1 ranks 100..190 90 <0/0@188
		a 0 ranks 300..400 90 <1/0@398
		c 2 ranks 320..410 90 <0/0@408`,
		"a! b>0 c>a/1")
	f("first of two ranks that exchange messages and leave together", `
		a 0 ranks 1000..2000 900 >1/0@1001
		b 1 ranks 1010..1999 900 >0/0@1011`,
		"a! b>a/1")
	f("first of two ranks that exchange messages, in the other order of ends", `
		a 0 ranks 1000..1999 900 >1/0@1001
		b 1 ranks 1010..2000 900 >0/0@1011`,
		"a! b>a/1")
	f("first of two ranks that wait together is held up", `
		ranks 2
		first 1 ranks 100..1000 890
		second 0 ranks 110..1000 880`,
		"first! second>first/1")
	f("first of two ranks whose messages were in transit is held up", `
		ranks 2
		first 1 ranks 100..1000 890 <0/7@998
		second 0 ranks 110..1002 890 <1/7@1000
		send 1>0/7@98 until 1100
		send 0>1/7@108 until 1100`,
		"first! second>first/1")
	f("first of three ranks that wait together is held up", `
		ranks 3
		first 1 ranks 100..1005 890
		second 0 ranks 110..1002 890
		third 2 ranks 130..1020 870`,
		"first! second>first/1 third>first/1")
	f("second of two ranks that wait together, whose waits are usual", `
		ranks 2
		first 1 ranks 100..1000 890 promoted
		second 0 ranks 110..1000 880 promoted`,
		"first>second/1 second!")
	f("only rank of a program, which waits", `
		ranks 1
		alone 0 ranks 100..1000 890 <0/7@998`,
		"alone>0")
	f("three ranks that wait for long messages in a ring", `
		ranks 3
		a 0 ranks 100..1000 890 <2/7@998
		b 1 ranks 110..1000 880 <0/7@998
		c 2 ranks 120..1000 870 <1/7@998
		send 0>1/7@98 until 1100
		send 1>2/7@108 until 1100
		send 2>0/7@118 until 1100`,
		"a! b! c!")
	f("message in transit between two ranks while a third works", `
		ranks 3
		first 1 ranks 100..1000 890 <0/7@998
		second 0 ranks 110..1002 890 <1/7@1000
		send 1>0/7@98 until 1100
		send 0>1/7@108 until 1100`,
		"first! second!")
	f("first of two ranks that wait together but leaves later", `
		ranks 2
		first 1 ranks 100..1100 990 <0/7@1098
		second 0 ranks 110..1000 880 <1/7@998
		send 1>0/7@98 until 1100
		send 0>1/7@108 until 1100`,
		"first! second!")
	f("rank that stays in a collective call after others have left", `
		sync 0 group 1000..2000 900
		reduce 1 group 1005..2003 900 left sync 1010`,
		"reduce>sync/1 sync!")
	f("rank that leaves a collective call with the others", `
		slow 1 - 1000..1950 900
		sync 0 group 1000..2000 900
		reduce 1 group 1960..2003 40 left sync 1999`,
		"reduce>slow/2 slow! sync>slow/1")
	f("message that was long in transit", `
		a 0 ranks 100..200 90 <1/7@198
		b 1 - 150..160 1
		send 1>0/7@95 until 300`,
		"a! b")
	f("message of the sender that is not the awaited one", `
		a 0 ranks 100..200 90 <1/7@198
		slow 1 - 100..190 85
		send 1>0/7@95 until 150`,
		"a>slow/1 slow!")
	f("wait for a rank whose message was long in transit", `
		a 0 ranks 100..200 90 <1/7@198
		b 2 ranks 110..210 90 <0/7@208
		send 1>0/7@95 until 300`,
		"a! b>a/1")
	f("ignores calls of the sender after sending", `
		a 0 ranks 100..200 90 <1/7@198
		slow 1 - 100..180 85
		more 1 - 181..199 40
		send 1>0/7@180 until 300`,
		"a>slow/1 more slow!")
	f("sender that is held up in the send, which began first", `
		send 1 ranks 100..1000 890 >0/7@102
		a 0 ranks 110..1010 890 <1/7@1005
		b 2 ranks 120..1020 890 <0/7@1015
		send 1>0/7@102 until 1100`,
		"a>send/1 b>send/2 send!")
	f("receiver that began before a send and leaves with it", `
		a 0 ranks 100..1010 890 <1/7@1005
		send 1 ranks 110..1002 890 >0/7@112
		send 1>0/7@112 until 1100`,
		"a! send>a/1")
	f("transit that begins when the send returns", `
		send 1 ranks 100..300 190 >0/7@102
		a 0 ranks 110..1010 890 <1/7@1005
		send 1>0/7@102 until 1100`,
		"a! send>0")
	f("send of another message", `
		send 1 ranks 100..1000 890 >0/8@102
		a 0 ranks 110..1010 890 <1/7@1005
		send 1>0/7@101 until 1100
		send 1>0/8@102 until 1100`,
		"a! send>0")
	f("sender that is held up after its message was received", `
		recv 0 ranks 90..400 290 <1/7@390
		send 1 ranks 100..1100 990 >0/7@102
		next 0 ranks 410..1210 790 <1/7@1205
		send 1>0/7@102 until 1300
		send 1>0/7@1203 until 1300`,
		"next>send/1 recv>1 send!")
	f("late receiver of a synchronous send", `
		slow 1 - 100..200 90
		ssend 0 ranks 110..205 90 >1/0@111`,
		"slow! ssend>slow/1")
	f("a collective call", `
		slow 2 - 100..200 90
		a 0 group 110..205 90
		a 1 group 112..205 90
		a 3 group 113..206 90`,
		"a>slow/1 a>slow/1 a>slow/1 slow!")
	f("a different rank is late each time", `
		slow1 0 - 100..200 90
		a 1 group 110..205 90
		a 2 group 110..205 90
		slow2 1 - 210..300 85
		b 0 group 215..305 85
		b 2 group 215..305 85`,
		"a>slow1/1 a>slow1/1 b>slow2/1 b>slow2/1 slow1! slow2!")
	f("ignores ranks that arrived early in a collective call", `
		slow 2 - 100..200 50
		worse 1 - 10..110 95
		a 0 group 105..205 90
		a 1 group 112..205 85`,
		"a>slow/1 a>slow/1 slow! worse")
	f("ignores calls before the ranks were synchronized", `
		slow 1 - 100..200 90
		pack 1 - 210..220 8
		wait 0 ranks 214..224 8 <1/0@222 after 205`,
		"pack! slow wait>pack/1")
	f("caller that is slow by itself", `
		caller 1 - 100..230 90 calls
		a 0 group 110..215 90
		a 2 group 110..215 90`,
		"a>caller/1 a>caller/1 caller!")
	f("call without children that had not ended", `
		slow 1 - 100..230 90
		a 0 group 110..215 90
		a 2 group 110..215 90`,
		"a a slow")
	f("GPU, its host, and a wait for the host", `
		kernel 1.3 - 90..200 80 gpu
		host 1.0 - 90..120 20
		sync 1.0 device 100..201 80
		a 0 group 110..210 80`,
		"a>kernel/2 host!kernel kernel! sync>kernel/1")
	f("kernels that share the GPU with a slower one, and a wait for them", `
		kernel 1.3 - 90..200 80 gpu
		shared 1.4 - 95..190 70 gpu
		shared 1.5 - 96..185 60 gpu
		sync 1.0 device 100..191 80`,
		"kernel! shared>kernel/1 shared>kernel/1 sync>kernel/2")
	f("kernel that is also slow by itself", `
		kernel 1.3 - 90..200 80 gpu
		slow 1.4 - 95..190 70 gpu
		slow 1.4 - 300..390 70 gpu
		other 2.4 - 95..190 70 gpu`,
		"kernel other slow slow")
	f("thread, its parallel region, and a wait for the region", `
		slow 1.3 - 105..190 80
		later 1.2 - 105..220 80
		region 1.0 threads 100..191 80
		a 0 group 110..200 80`,
		"a>slow/2 later region>slow/1 slow!")
	f("another program", `
		slow 6@0 - 100..200 90
		begin 0@1 program 105..210 85
		begin 1@1 program 105..210 85
		own 1@1 - 100..104 3`,
		"begin>slow/1 begin>slow/1 own slow!")
	f("no lost time", `
		slow 1 - 100..200 90
		fast 0 ranks 190..195 0 <1/0@194`,
		"fast slow")
	f("wait without messages", `
		slow 1 - 100..200 90
		a 0 ranks 110..205 90`,
		"a>slow/1 slow!")
	f("smaller group with more collective calls", `
		slow 3 - 100..200 95
		reduce 0 group 150..210 9
		reduce 1 group 150..210 9
		reduce 2 group 211..300 85`,
		"reduce>slow/1 reduce>slow/1 reduce>slow/1 slow!")
	f("call without an end", `
		open 1 - 100..0 0
		a 0 ranks 110..205 90 <1/0@203`,
		"a>1 open")
}

func TestCollectiveCallInWhichNobodyIsLateIsItsOwnCause(t *testing.T) {
	f := func(what string, ranks int, text, want string) {
		t.Helper()
		r := run(t, text)
		r.Ranks = map[trace.Program]int{0: ranks}
		if got := show(r, blame.Find(r)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", what, got, want)
		}
	}
	same := `
		a 0 group 100..200 90
		a 1 group 110..205 90
		a 2 group %d..201 50`
	f("all ranks arrive early in one call", 3, fmt.Sprintf(same, 140), "a! a! a!")
	f("the last rank arrives late", 3, fmt.Sprintf(same, 160), "a a a")
	f("a rank does not wait", 4, fmt.Sprintf(same, 140), "a a a")
	f("number of ranks unknown", 0, fmt.Sprintf(same, 140), "a a a")
	f("a late rank has a cause", 3, fmt.Sprintf(same, 160)+`
		slow 2 - 105..159 50`, "a a>slow/1 a>slow/1 slow!")
}

func TestAdd(t *testing.T) {
	stack := []provenance.StackEntry{{Func: "MPI_Waitall()"}, {Func: "step"}, {Func: "main"}}
	rec := &provenance.Record{
		PID: 1, RID: 4, TID: 2, EventID: "4:5:6", Func: "MPI_Waitall()", Hostname: "node01", CallStack: stack, Kind: provenance.CommWait,
		Entry: 100, Exit: 200, LostTime: 80, Status: provenance.Confirmed, IOStep: 6, IOStepStart: 150, IOStepEnd: 210,
		EventWindow: provenance.EventWindow{
			Execs: []provenance.WindowEntry{
				{StackEntry: provenance.StackEntry{Func: "MPI_Barrier()", Entry: 10, Exit: 20}},
				{StackEntry: provenance.StackEntry{Func: "MPI_Allreduce()", Entry: 30, Exit: 40}},
				{StackEntry: provenance.StackEntry{Func: "pack", Entry: 50, Exit: 60}},
				{StackEntry: provenance.StackEntry{Func: "MPI_Waitall()", Entry: 100, Exit: 200, EventID: "4:5:6"}},
				{StackEntry: provenance.StackEntry{Func: "MPI_Allreduce()", Entry: 300, Exit: 310}},
			},
			Comms: []provenance.CommEntry{
				{Exec: "4:5:1", Type: "SEND", Source: 4, Target: 5, Tag: 3, Timestamp: 55},
				{Exec: "4:5:6", Type: "RECV", Source: 5, Target: 4, Tag: 1, Timestamp: 190},
				{Exec: "4:5:6", Type: "RECV", Source: 3, Target: 4, Tag: 2, Timestamp: 150},
				{Exec: "4:5:6", Type: "SEND", Source: 4, Target: 3, Tag: 9, Timestamp: 195},
				{Exec: "4:5:9", Type: "RECV", Source: 9, Target: 4, Tag: 2, Timestamp: 350},
			},
		},
	}
	var r blame.Run
	r.Add(rec)
	withdrawn := *rec
	withdrawn.Status = provenance.Withdrawn
	r.Add(&withdrawn)
	want := blame.Anomaly{
		Event: "4:5:6", Program: 1, Rank: 4, Thread: 2, Host: "node01", Func: "MPI_Waitall()", Path: "main > step > MPI_Waitall()",
		Kind: provenance.CommWait, Wait: blame.Ranks, Entry: 100, Exit: 200, Lost: 80, InStep: 40, Left: "MPI_Allreduce()",
		Status: provenance.Confirmed, Recorded: true, StepTime: 60,
	}
	if len(r.Anomalies) != 1 || len(r.Withdrawn) != 1 || r.Anomalies[0].Last == nil || *r.Anomalies[0].Last != (blame.Message{Partner: 5, Tag: 1, Time: 190}) {
		t.Fatalf("got %+v", r.Anomalies)
	}
	got := r.Anomalies[0]
	if got.Last = nil; got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	sends := []blame.Send{
		{Program: 1, From: 4, To: 5, Tag: 3, Time: 55, Until: 300},
		{Program: 1, From: 4, To: 3, Tag: 9, Time: 195, Until: 300},
	}
	if !slices.Equal(r.Sends, sends) {
		t.Errorf("got  %+v\nwant %+v", r.Sends, sends)
	}
}

func TestWaitOf(t *testing.T) {
	for name, want := range map[string]blame.Wait{
		"MPI_Waitall()": blame.Ranks, "MPI_Allreduce()": blame.Group, "cudaDeviceSynchronize": blame.Device,
		"MPI_Isend()": blame.Nothing, "update_block": blame.Nothing, "begin_iteration": blame.Nothing,
		"OpenMP_Parallel_Region: main": blame.Threads, "omp_parallel solve": blame.Threads, "!$omp parallel @solve.f90:12": blame.Threads,
		"pthread_join": blame.Threads, "openmpi_helper": blame.Nothing,
		"adios2::BeginStep": blame.Program, "adios2::Engine::BeginStep(adios2::StepMode, float)": blame.Program,
		"adios2_begin_step": blame.Program,
		"adios2::EndStep":   blame.Nothing,
	} {
		if got := blame.WaitOf(name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}

// FuzzFind links anomalies of any kind and checks that the result is consistent and does
// not depend on their order.
func FuzzFind(f *testing.F) {
	f.Add(uint64(1), uint8(30))
	f.Add(uint64(2), uint8(200))
	f.Add(uint64(374), uint8(219)) // a kernel that waits for another one on its device
	f.Fuzz(func(t *testing.T, seed uint64, n uint8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		r := new(blame.Run)
		for i := range int(n) {
			a := blame.Anomaly{
				Event: fmt.Sprint(i), Program: trace.Program(rng.IntN(2)), Rank: trace.Rank(rng.IntN(4)), Thread: trace.Thread(rng.IntN(3)),
				Func: fmt.Sprint("f", rng.IntN(3)), Wait: blame.Wait(rng.IntN(6)), OnDevice: rng.IntN(4) == 0, Calls: rng.IntN(4) == 0,
				Entry: trace.Ticks(rng.IntN(1000)), Lost: trace.Ticks(rng.IntN(200)), InStep: trace.Ticks(rng.IntN(1000)),
			}
			a.Exit = a.Entry + trace.Ticks(rng.IntN(300)) - 10
			if rng.IntN(2) == 0 {
				a.Last = &blame.Message{
					Partner: trace.Rank(rng.IntN(4)), Sent: rng.IntN(3) == 0, Tag: int32(rng.IntN(2)),
					Time: trace.Ticks(rng.IntN(1300)),
				}
				r.Sends = append(r.Sends, blame.Send{
					From: trace.Rank(rng.IntN(4)), To: trace.Rank(rng.IntN(4)), Tag: int32(rng.IntN(2)),
					Time: trace.Ticks(rng.IntN(1300)), Until: 1500,
				})
			}
			r.Anomalies = append(r.Anomalies, a)
		}
		links := blame.Find(r)
		for i, l := range links {
			a := &r.Anomalies[i]
			switch {
			case l.Culprit == i || l.Culprit >= 0 && links[l.Culprit].Role != provenance.Culprit,
				l.Role == provenance.Victim && (a.Wait == blame.Nothing && !a.OnDevice || l.Hops < 1 || !l.Known),
				l.Role == "" && (l.Culprit >= 0 || l.Hops > 0):
				t.Fatalf("%+v: %+v", a, l)
			}
		}
		want := show(r, links)
		rng.Shuffle(len(r.Anomalies), func(i, j int) { r.Anomalies[i], r.Anomalies[j] = r.Anomalies[j], r.Anomalies[i] })
		rng.Shuffle(len(r.Sends), func(i, j int) { r.Sends[i], r.Sends[j] = r.Sends[j], r.Sends[i] })
		if got := show(r, blame.Find(r)); got != want {
			t.Fatalf("in another order:\n got %s\nwant %s", got, want)
		}
	})
}
