package analyzer_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
)

// delayLedger keeps the delays that an analyzer sends.
type delayLedger struct {
	*ledger
	sent *blame.Run
}

func (l delayLedger) Promote(_ context.Context, run *blame.Run) ([]int, error) {
	*l.sent = *run
	return nil, nil
}

// TestDelaysAreBounded has a function whose calls take very different times, none of them too long.
func TestDelaysAreBounded(t *testing.T) {
	p, rng := newProgram(), rand.New(rand.NewPCG(5, 5))
	p.enter(1)
	for i := range 30_000 {
		if i%1000 == 999 {
			p.step()
		}
		p.call(2, uint64(1000*math.Exp(rng.NormFloat64())))
	}
	p.exit(1)
	var sent blame.Run
	_, list := follow(t, delayLedger{newLedger(), &sent}, analyzer.Online{Find: inputsOf(p.write(t))})
	const most = 1 << 10
	delays := 0
	for i := range sent.Anomalies {
		a := &sent.Anomalies[i]
		if !a.Candidate {
			continue
		}
		delays++
		if a.Func != "work" || a.Share > 0.1 || a.Lost < 200 {
			t.Errorf("got delay %+v", a)
		}
		if _, ok := list.final[a.Event]; ok {
			t.Errorf("%s explains no wait, but is an anomaly", a.Event)
		}
	}
	if delays > most || delays < most-10 {
		t.Errorf("got %d delays, want about %d", delays, most)
	}
}

// TestStopsDoNotHideDelays has a function of 220 calls, of which trouble makes ten longer: too few calls to flag them by
// themselves. Their share alone would make it likely that one of four ranks is late by chance.
func TestStopsDoNotHideDelays(t *testing.T) {
	p, rng := newProgram(), rand.New(rand.NewPCG(1, 2))
	p.enter(1)
	for i := range 220 {
		time := 68_000 + 5000*rng.NormFloat64()
		if i%22 == 11 {
			time += 50_000
		}
		p.call(2, uint64(time))
	}
	p.exit(1)
	var sent blame.Run
	follow(t, delayLedger{newLedger(), &sent}, analyzer.Online{Find: inputsOf(p.write(t))})
	delays := 0
	for i := range sent.Anomalies {
		if a := &sent.Anomalies[i]; a.Candidate && a.Lost > 30_000 {
			if delays++; a.Share > 0.0125 {
				t.Errorf("a call that lost %d us has a chance of %.3f, want less than 0.0125", a.Lost, a.Share)
			}
		}
	}
	if delays == 0 {
		t.Error("no delays: all are anomalies")
	}
}

// TestDelaysLoseLittleIfLongCallsAreUsual has a function of a multigrid solver: one call in six is on the finest grid and takes most
// of the time. Five of them take 15 ms longer.
func TestDelaysLoseLittleIfLongCallsAreUsual(t *testing.T) {
	p, rng := newProgram(), rand.New(rand.NewPCG(3, 4))
	p.enter(1)
	for cycle := range 100 {
		time := 70_000.0
		for level := range 6 {
			late := 0
			if level == 0 && cycle%20 == 10 {
				late = 15_000
			}
			p.call(2, uint64(time*(1+0.1*rng.Float64()))+uint64(late))
			time /= 8
		}
	}
	p.exit(1)
	var sent blame.Run
	follow(t, delayLedger{newLedger(), &sent}, analyzer.Online{Find: inputsOf(p.write(t))})
	late := 0
	for i := range sent.Anomalies {
		switch a := &sent.Anomalies[i]; {
		case !a.Candidate:
			t.Errorf("a call of %d us is an anomaly", a.Exclusive)
		case a.Exclusive > 83_000:
			if late++; a.Lost < 10_000 || a.Lost > 25_000 {
				t.Errorf("a call that is 15 ms late lost %d us", a.Lost)
			}
		case a.Lost > 10_000:
			t.Errorf("a usual call of %d us lost %d us", a.Exclusive, a.Lost)
		}
	}
	if late != 5 {
		t.Errorf("got %d late delays, want 5", late)
	}
}
