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
	f("the largest of several", `
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
		recv 1 ranks 100..1010 900 <0/1@1005 usual 0.001`, "")
	f("not if it lost too little", `
		slow 0 - 0..1000 100 usual 0.001
		recv 1 ranks 100..1010 900 <0/1@1005`, "")
	f("not if a flagged call explains the wait", `
		slow 0 - 0..1000 900
		other 0 - 50..90 30 usual 0.001
		recv 1 ranks 100..1010 900 <0/1@1005`, "")
	f("not if others left it behind long ago", `
		slow 0 - 0..1000 900 usual 0.001
		recv 1 ranks 200000..200900 890 <0/1@200890`, "")
}

// The records that remain have roles without the other candidates, in any order.
func TestPromotedCandidatesHaveRoles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		r := new(blame.Run)
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
		part, other := new(blame.Run), new(blame.Run)
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

func TestRecordSaysThatItExplainsWaits(t *testing.T) {
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
