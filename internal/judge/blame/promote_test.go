package blame_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestPromotesCandidatesThatExplainWaits(t *testing.T) {
	f := func(what, anomalies, want string) {
		t.Helper()
		t.Run(what, func(t *testing.T) {
			r := run(t, anomalies)
			var got []string
			for _, i := range blame.Promote(r) {
				got = append(got, r.Anomalies[i].Event)
			}
			if got := strings.Join(got, " "); got != want {
				t.Errorf("promoted %q, want %q", got, want)
			}
		})
	}
	f("sender of a late message", `
		slow 0 - 0..1000 900 usual 0.001
		recv 1 ranks 100..1010 900 <0/1@1005`, "slow")
	f("rank that is late for a collective call", `
		slow 2 - 0..1000 900 usual 0.001
		w0 0 group 100..1010 900
		w1 1 group 120..1010 880`, "slow")
	f("largest of several", `
		slow 0 - 0..1000 900 usual 0.001
		slower 1 - 0..1900 1800 usual 0.001
		w2 2 group 50..1910 1800`, "slower")
	f("waits in between", `
		slow 0 - 0..1000 900 usual 0.001
		between 1 ranks 100..1010 900 <0/1@1005 usual 0.2
		recv 2 ranks 120..1020 890 <1/1@1015`, "slow between")
	f("not if one of the ranks is often as late", `
		slow 0 - 0..1000 900 usual 0.03
		recv 1 ranks 100..1010 900 <0/1@1005`, "")
	f("not without a flagged wait", `
		slow 0 - 0..1000 900 usual 0.001
		recv 1 ranks 100..1010 900 <0/1@1005 usual 0.001
		later 0 - 990000..1000000 9000`, "")
	f("without a flagged wait, but with one that cost much", `
		slow 0 - 0..1000 900 usual 0.001
		recv 1 ranks 100..1010 900 <0/1@1005 usual 0.001
		later 0 - 800000..810000 9000`, "slow recv")
	f("not if it lost too little", `
		slow 0 - 0..1000 100 usual 0.001
		recv 1 ranks 100..1010 900 <0/1@1005`, "")
	f("not if a flagged call explains the wait", `
		slow 0 - 0..1000 900
		other 0 - 50..90 30 usual 0.001
		recv 1 ranks 100..1010 900 <0/1@1005`, "")
	f("usual wait for a flagged call", `
		slow 0 - 0..1000 900
		recv 1 ranks 100..1010 900 <0/1@1005 usual 0.2`, "recv")
	f("usual waits for one another, begun by a flagged call", `
		slow 0 - 0..1000 900
		between 1 ranks 100..1010 900 <0/1@1005 usual 0.2
		recv 2 ranks 120..1020 890 <1/1@1015 usual 0.2`, "between recv")
	f("not without a flagged wait if the call cost little", `
		slow 0 - 0..1000 300 usual 0.001
		recv 1 ranks 100..1010 900 <0/1@1005 usual 0.001
		later 0 - 800000..810000 9000`, "")
	f("not a usual wait for a call that is often as long", `
		slow 0 - 0..1000 900 usual 0.03
		recv 1 ranks 100..1010 900 <0/1@1005 usual 0.2`, "")
	f("not if others left the collective call long before", `
		slow 0 - 0..1000 900 usual 0.001
		recv 1 ranks 200000..200900 890 <0/1@200890`, "")
}

// All ranks wait and none computes. One of them continues first.
func TestHeldUpRankIsCulprit(t *testing.T) {
	f := func(what string, ranks int, anomalies, promoted, culprits string) {
		t.Helper()
		t.Run(what, func(t *testing.T) {
			r := run(t, anomalies)
			r.Ranks = map[trace.Program]int{0: ranks}
			part := &blame.Run{Ranks: r.Ranks}
			var got, guilty []string
			for _, i := range blame.Promote(r) {
				got, part.Anomalies = append(got, r.Anomalies[i].Event), append(part.Anomalies, r.Anomalies[i])
			}
			if got := strings.Join(got, " "); got != promoted {
				t.Errorf("promoted %q, want %q", got, promoted)
			}
			for i, l := range blame.Find(part) {
				if l.Role == provenance.Culprit {
					guilty = append(guilty, part.Anomalies[i].Event)
				} else if got := part.Anomalies[l.Culprit].Event; got != culprits {
					t.Errorf("%s waited for %q, want %q", part.Anomalies[i].Event, got, culprits)
				}
			}
			if got := strings.Join(guilty, " "); got != culprits {
				t.Errorf("culprits %q, want %q", got, culprits)
			}
		})
	}
	const messages = `
		held 0 ranks 90..1000 900 >1/1@95 usual 0.02
		recv 1 ranks 100..1010 890 <0/1@1005 usual 0.02
		w2 2 group 120..1020 890 usual 0.02
		w3 3 group 130..1020 880 usual 0.02`
	f("in a wait for messages", 4, messages, "held recv w2 w3", "held")
	f("not if a rank computes", 5, messages, "", "")
	f("not if the number of ranks is unknown", 0, messages, "", "")
	f("not if nobody is in a collective call", 3, `
		held 0 ranks 90..1000 900 >1/1@95 usual 0.02
		recv 1 ranks 100..1010 890 <0/1@1005 usual 0.02
		next 2 ranks 120..1020 890 <1/1@1015 usual 0.02`, "", "")
	f("not if it waited for one that computed", 3, `
		held 0 ranks 90..1000 900 <2/1@990 usual 0.02
		w1 1 group 120..1020 890 usual 0.02
		w2 2 group 980..1020 30 usual 0.02`, "", "")
	f("not if the transfer takes long as usual", 3, `
		held 0 ranks 90..1000 90 >1/1@95 usual 0.02
		recv 1 ranks 100..1010 890 <0/1@1005 usual 0.02
		w2 2 group 120..1020 890 usual 0.02`, "", "")
	f("not if another thread waits as well", 4, messages+`
		other 3.1 ranks 5000..5100 90 usual 0.02`, "", "")
	f("in a collective call that others have left", 3, `
		sync 0 group 90..1000 900 usual 0.02
		reduce 1 group 110..1010 890 left sync 108 usual 0.02
		reduce 2 group 120..1020 890 left sync 118 usual 0.02`, "sync reduce reduce", "sync")
}

// The records that remain have roles without the other candidates, in any order.
func TestPromotedCandidatesHaveRoles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		r := &blame.Run{Ranks: map[trace.Program]int{0: 4}}
		for k := range 60 {
			a := anomaly(t, "x 0 - 0..1 1")
			a.Event, a.Rank, a.Wait = string(rune('A'+k)), trace.Rank(rng.IntN(4)), blame.Wait(rng.IntN(3))
			a.Entry = 1 + trace.Ticks(rng.IntN(5000))
			a.Exit = a.Entry + 1 + trace.Ticks(rng.IntN(1500))
			a.Lost = a.Exit - a.Entry
			a.Candidate, a.Share = rng.IntN(3) > 0, rng.Float64()/50
			if a.Wait == blame.Ranks {
				a.Last = &blame.Message{Partner: trace.Rank(rng.IntN(4)), Time: a.Exit - 1}
			}
			r.Anomalies = append(r.Anomalies, a)
		}
		promoted := blame.Promote(r)
		part, other := &blame.Run{Ranks: r.Ranks}, &blame.Run{Ranks: r.Ranks}
		var names, again []string
		for i, a := range r.Anomalies {
			if !a.Candidate || slices.Contains(promoted, i) {
				part.Anomalies = append(part.Anomalies, a)
			}
			other.Anomalies = append(other.Anomalies, r.Anomalies[len(r.Anomalies)-1-i])
		}
		for i, l := range blame.Find(part) {
			if a := part.Anomalies[i]; a.Candidate && l.Role != provenance.Culprit && l.Role != provenance.Victim {
				t.Errorf("%s has no role", a.Event)
			}
		}
		for _, i := range promoted {
			names = append(names, r.Anomalies[i].Event)
		}
		for _, i := range blame.Promote(other) {
			again = append(again, other.Anomalies[i].Event)
		}
		slices.Sort(names)
		slices.Sort(again)
		if !slices.Equal(names, again) {
			t.Errorf("promoted %v, in another order %v", names, again)
		}
	}
}

func TestRecordStatesThatItExplainsWaits(t *testing.T) {
	s := load(t, "clean")
	s.Steps = 30
	found, _ := analyze(t, s)
	links := blame.Find(found)
	n := 0
	for i := range found.Anomalies {
		if a := &found.Anomalies[i]; a.Func == "write_snapshot" {
			n++
			if links[i].Role != provenance.Culprit || a.Status != provenance.Promoted {
				t.Errorf("%s: role %q, status %q", a.Event, links[i].Role, a.Status)
			}
		}
	}
	if n == 0 || n > 20 {
		t.Errorf("%d of about 480 snapshots explain waits", n)
	}
}
