package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
)

// trouble is a compiled trouble.
type trouble struct {
	*scenario.Trouble
	from, to int64 // to may be never
	ranks    []bool
	extra    scenario.Sampler
	value    scenario.Sampler
	period   int64
	silent   bool // draws its random numbers, and has no effect
}

const never = 1<<63 - 1

func newTrouble(s *scenario.Scenario, t *scenario.Trouble, start int64) *trouble {
	p, _ := s.Find(t)
	out := &trouble{
		Trouble: t, from: start + int64(t.FromSeconds*1e6), to: never,
		ranks: make([]bool, p.Ranks), period: int64(t.PeriodSeconds * 1e6),
		extra: t.Extra.Sampler(), value: t.Value.Sampler(),
	}
	if t.ToSeconds > 0 {
		out.to = start + int64(t.ToSeconds*1e6)
	}
	for _, r := range p.Concerns(t) {
		out.ranks[r] = true
	}
	return out
}

// concerns reports whether the trouble affects the time of a function.
func (t *trouble) concerns(key string, f *scenario.Function) bool {
	switch t.Kind {
	case scenario.OSNoise, scenario.SlowLink, scenario.ExcessWork:
		return false // affect times elsewhere
	}
	if len(t.Functions) > 0 {
		return slices.Contains(t.Functions, key)
	}
	return f.Kind == scenario.Compute
}

// strength returns the strength of the trouble at a time, from 0 to 1.
func (t *trouble) strength(now int64) float64 {
	if now < t.from {
		return 0
	}
	switch t.Kind {
	case scenario.Drift:
		return min(1, float64(now-t.from)/float64(t.to-t.from))
	case scenario.MemoryPressure:
		if t.to == never {
			return 1
		}
		if now >= t.to {
			return 0
		}
		x := float64(now-t.from) / float64(t.to-t.from)
		return min(1, 4*x, 4*(1-x))
	}
	if now >= t.to {
		return 0
	}
	return 1
}

// apply returns the changed own time of a call, and whether the trouble affects it.
// used counts the affected calls of the rank.
func (t *trouble) apply(own, now, bytes int64, used *int64, r *rand.Rand) (int64, bool) {
	strength := t.strength(now)
	if strength == 0 {
		return own, false
	}
	switch t.Kind {
	case scenario.SlowCall, scenario.SlowMode:
		if r.Float64() >= t.Chance {
			return own, false
		}
	case scenario.IOStall, scenario.HugeValue:
		if *used > 0 {
			return own, false
		}
	case scenario.Burst:
		if *used >= int64(t.Count) {
			return own, false
		}
	}
	*used++
	var changed int64
	switch {
	case t.Value != nil:
		changed = t.value.Draw(r, bytes)
	case t.Extra != nil:
		changed = own + t.extra.Draw(r, bytes)
	default:
		changed = scenario.Bounded(float64(own) * (1 + (t.Factor-1)*strength))
	}
	if t.silent {
		return own, false
	}
	return changed, true
}

// interruptions returns how often OS noise interrupts a rank that runs from now on for
// the time own. Of random noise, left is the time that the rank runs until the next one;
// 0: not known yet.
func (t *trouble) interruptions(now, own int64, left *int64, r *rand.Rand) (n int) {
	end := min(now+own, t.to)
	if !t.Random {
		tick := t.from
		if now > tick {
			tick += (now - tick + t.period - 1) / t.period * t.period
		}
		for ; tick < end; tick += t.period {
			n++
		}
		return n
	}
	for run := end - max(now, t.from); run > 0; n++ {
		if *left == 0 {
			*left = 1 + int64(r.ExpFloat64()*float64(t.period))
		}
		if *left > run {
			*left -= run
			break
		}
		run -= *left
		*left = 0
	}
	return n
}

// isLasting reports whether the trouble becomes the normal state, so that no call is
// anomalous because of it.
func (t *trouble) isLasting() bool { return t.Kind == scenario.LevelShift || t.Kind == scenario.Drift }

// wholeRun reports whether the trouble lasts from the start of the run to its end.
func (t *trouble) wholeRun() bool { return t.FromSeconds == 0 && t.ToSeconds == 0 }

// findings returns the kinds of finding that are right about the trouble, the best first.
func (t *trouble) findings() []truth.Finding {
	switch t.Kind {
	case scenario.SlowMode:
		return []truth.Finding{truth.Recurring}
	case scenario.ExcessWork:
		return []truth.Finding{truth.ExcessWork}
	case scenario.OSNoise:
		return []truth.Finding{truth.Interference}
	case scenario.SlowLink:
		return []truth.Finding{truth.Wait, truth.Change, truth.Outlier}
	case scenario.SlowRank, scenario.SlowHost, scenario.MemoryPressure, scenario.GPUClockDrop:
		if t.wholeRun() { // without time before it to compare with
			return []truth.Finding{truth.SlowPeer, truth.Recurring}
		}
		return []truth.Finding{truth.SlowPeer, truth.Change}
	case scenario.LevelShift, scenario.Drift:
		if slices.Contains(t.ranks, false) { // others are peers
			return []truth.Finding{truth.SlowPeer, truth.Change}
		}
		return []truth.Finding{truth.Change}
	case scenario.SlowCall:
		return []truth.Finding{truth.Outlier, truth.Recurring}
	}
	return []truth.Finding{truth.Outlier}
}

// truth returns the line of the trouble in the truth.
func (t *trouble) truth(p *program) *truth.Trouble {
	out := &truth.Trouble{
		Name: t.Name, Kind: string(t.Kind), Each: t.Each(), Program: trace.Program(p.index),
		From: trace.Ticks(t.from), Functions: []string{}, Findings: t.findings(),
		Informational: t.Kind == scenario.SlowMode && t.wholeRun() && !slices.Contains(t.ranks, false),
	}
	if len(p.all) > 1 {
		out.Programs = p.all
	}
	if t.to != never && t.Kind != scenario.Drift {
		out.To = trace.Ticks(t.to)
	}
	for r, in := range t.ranks {
		if !in {
			continue
		}
		out.Ranks = append(out.Ranks, trace.Rank(r))
		if h := p.Host(r); !slices.Contains(out.Hosts, h) {
			out.Hosts = append(out.Hosts, h)
		}
	}
	for _, key := range t.Functions {
		if id, ok := p.ids[key]; ok {
			out.Functions = append(out.Functions, p.funcs[id])
		}
	}
	if t.Kind == scenario.SlowLink {
		out.Functions = []string{waitFunction}
	}
	out.Text = t.text(out)
	if t.Kind == scenario.ExcessWork && t.Chance == 1 {
		out.Functions = append(out.Functions, t.called(p)...)
	}
	return out
}

// called returns the names of the functions that the functions of the trouble call: if all calls make more of these, they are
// called more often on the whole.
func (t *trouble) called(p *program) (names []string) {
	for _, key := range t.Functions {
		for _, call := range p.Functions[key].Calls {
			called, _, _ := scenario.ParseCall(call)
			if id, ok := p.ids[called]; ok && !slices.Contains(names, p.funcs[id]) {
				names = append(names, p.funcs[id])
			}
		}
	}
	return names
}

var kindTexts = map[scenario.TroubleKind]string{
	scenario.SlowCall: "now and then a call is slow", scenario.SlowMode: "a share of the calls is slow, all the time",
	scenario.ExcessWork: "now and then it makes many times its usual calls", scenario.RareCall: "is called now and then",
	scenario.SlowRank: "computes slowly",
	scenario.SlowHost: "computes slowly", scenario.SlowLink: "messages between the two ranks are late",
	scenario.OSNoise: "the system takes the processor away in intervals", scenario.MemoryPressure: "memory runs short",
	scenario.IOStall: "a write or read hangs", scenario.GPUClockDrop: "the GPU runs at a lower clock",
	scenario.LevelShift: "takes longer from then on", scenario.Drift: "takes longer and longer",
	scenario.HugeValue: "one call takes extremely long", scenario.Burst: "several calls in a row are slow",
}

func (t *trouble) text(of *truth.Trouble) string {
	what := kindTexts[t.Kind]
	if len(of.Functions) > 0 && t.Kind != scenario.SlowLink {
		what = strings.Join(of.Functions, ", ") + ": " + what
	}
	if t.Factor > 0 {
		what += fmt.Sprintf(" (%g times)", t.Factor)
	}
	return what
}
