package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Ranks returns the number of ranks of all programs.
func (s *Scenario) Ranks() (n int) {
	for i := range s.Programs {
		n += s.Programs[i].Ranks
	}
	return n
}

// Find returns the program of a trouble and its index, or nil if it does not exist.
func (s *Scenario) Find(t *Trouble) (*Program, int) {
	for i := range s.Programs {
		if t.Program == "" || s.Programs[i].Name == t.Program {
			return &s.Programs[i], i
		}
	}
	return nil, 0
}

// Host returns the host of a rank. Ranks are spread evenly, in blocks.
func (p *Program) Host(rank int) string { return p.Hosts[rank*p.usedHosts()/p.Ranks] }

// usedHosts returns the number of hosts with ranks, which are the first.
func (p *Program) usedHosts() int { return min(len(p.Hosts), p.Ranks) }

// Concerns returns the ranks of a trouble.
func (p *Program) Concerns(t *Trouble) []int {
	if t.Kind == SlowLink {
		ranks := slices.Clone(t.Link)
		slices.Sort(ranks)
		return ranks
	}
	var ranks []int
	everywhere := len(t.Ranks) == 0 && len(t.Hosts) == 0
	for r := range p.Ranks {
		if everywhere || slices.Contains(t.Ranks, r) || slices.Contains(t.Hosts, p.Host(r)) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// needs are the keys that a kind of trouble requires.
var needs = map[TroubleKind][]string{
	SlowCall:       {"functions", "chance", "effect"},
	SlowMode:       {"functions", "chance", "effect"},
	ExcessWork:     {"functions", "chance", "factor"},
	RareCall:       {"functions", "caller", "chance"},
	SlowRank:       {"ranks", "effect"},
	SlowHost:       {"hosts", "effect"},
	SlowLink:       {"link", "extra"},
	OSNoise:        {"period", "extra"},
	MemoryPressure: {"factor"},
	IOStall:        {"functions", "effect"},
	GPUClockDrop:   {"functions", "factor"},
	LevelShift:     {"functions", "factor"},
	Drift:          {"functions", "factor", "to"},
	HugeValue:      {"functions", "value"},
	Burst:          {"functions", "count", "effect"},
}

// special are keys that only some kinds of trouble have.
var special = []struct {
	key string
	of  []TroubleKind
}{
	{"chance", []TroubleKind{SlowCall, SlowMode, ExcessWork, RareCall}},
	{"caller", []TroubleKind{RareCall}},
	{"link", []TroubleKind{SlowLink}},
	{"period", []TroubleKind{OSNoise}},
	{"random", []TroubleKind{OSNoise}},
	{"count", []TroubleKind{Burst, RareCall}},
}

func (t *Trouble) check(s *Scenario) error {
	p, _ := s.Find(t)
	if p == nil {
		return fmt.Errorf("program = %q does not exist", t.Program)
	}
	wants, ok := needs[t.Kind]
	if !ok {
		return fmt.Errorf("unknown kind %q (want one of %v)", t.Kind, slices.Sorted(maps.Keys(needs)))
	}
	var bad problems
	given := map[string]bool{
		"functions": len(t.Functions) > 0, "ranks": len(t.Ranks) > 0, "hosts": len(t.Hosts) > 0,
		"chance": t.Chance > 0, "link": len(t.Link) > 0, "period": t.PeriodSeconds > 0, "count": t.Count > 0,
		"random": t.Random, "caller": t.Caller != "",
		"to": t.ToSeconds > 0, "factor": t.Factor > 0, "extra": t.Extra != nil, "value": t.Value != nil,
		"effect": t.Factor > 0 || t.Extra != nil || t.Value != nil,
	}
	for _, want := range wants {
		if given[want] {
			continue
		}
		if want == "effect" {
			want = "factor, extra or value"
		}
		bad.add("%s needs %s", t.Kind, want)
	}
	for _, s := range special {
		if given[s.key] && !slices.Contains(s.of, t.Kind) {
			bad.add("%s is for %s", s.key, join(s.of))
		}
	}
	effects := 0
	for _, e := range []string{"factor", "extra", "value"} {
		if given[e] {
			effects++
		}
	}
	if effects > 1 {
		bad.add("only one of factor, extra and value can be given")
	}
	bad.checkPlace(t, p)
	bad.checkNumbers(t)
	switch {
	case len(bad) > 0:
	case t.Kind == ExcessWork:
		bad.checkExcess(t, p)
	case t.Kind == RareCall:
		bad.checkRare(t, p)
	}
	return bad.err()
}

func join(kinds []TroubleKind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// checkExcess checks that the affected functions can make many times their calls: these
// only compute, so that no rank waits for others that do not take part.
func (l *problems) checkExcess(t *Trouble, p *Program) {
	if t.Factor < 2 {
		l.add("factor = %v: excess-work makes at least twice the calls", t.Factor)
	}
	n := size{p: p, extents: make(map[string]extent)}
	for _, key := range t.Functions {
		f := p.Functions[key]
		if f.Kind != Compute || len(f.Calls) == 0 {
			l.add("function %q must have calls and no kind", key)
			continue
		}
		called := make(map[string]bool)
		if err := p.noWaits(f.Calls, called); err != nil {
			l.add("function %q %w", key, err)
		}
		for _, other := range t.Functions {
			if called[other] {
				l.add("function %q calls %q, which is affected, too", key, other)
			}
		}
		if e, err := n.function(t.Name, key); err == nil && float64(e.calls)*t.Factor > maxOps {
			l.add("function %q makes more than %d calls", key, maxOps)
		}
	}
}

// checkRare checks that the trouble itself makes all calls of its functions, which only compute.
func (l *problems) checkRare(t *Trouble, p *Program) {
	if f, ok := p.Functions[t.Caller]; !ok || f.Kind != Compute || len(f.Calls) == 0 {
		l.add("caller %q must be a function with calls and without kind", t.Caller)
	}
	for _, key := range t.Functions {
		if f := p.Functions[key]; f.Kind != Compute || len(f.Calls) > 0 {
			l.add("function %q must have neither calls nor kind", key)
		}
		if p.calls(key) {
			l.add("function %q is also called without the trouble", key)
		}
		name := func(key string) string { return cmp.Or(p.Functions[key].Name, key) }
		for other := range p.Functions {
			if other != key && name(other) == name(key) {
				l.add("functions %q and %q have the same name", key, other)
			}
		}
	}
	if t.Factor > 0 || t.Extra != nil || t.Value != nil {
		l.add("rare-call takes no factor, extra or value")
	}
}

// calls reports whether the program calls a function.
func (p *Program) calls(key string) bool {
	lists := [][]string{p.Setup, p.Body, p.Finish}
	for _, f := range p.Functions {
		if f.Kernel == key {
			return true
		}
		lists = append(lists, f.Calls)
	}
	return slices.ContainsFunc(slices.Concat(lists...), func(call string) bool {
		called, _, _ := ParseCall(call)
		return called == key
	})
}

func (l *problems) checkPlace(t *Trouble, p *Program) {
	if t.Kind == SlowLink {
		if len(t.Link) != 0 && (len(t.Link) != 2 || t.Link[0] == t.Link[1]) {
			l.add("link = %v, wants two different ranks", t.Link)
		}
		if len(t.Ranks) > 0 || len(t.Hosts) > 0 || len(t.Functions) > 0 {
			l.add("slow-link takes link, not ranks, hosts or functions")
		}
	}
	for _, r := range slices.Concat(t.Ranks, t.Link) {
		if r < 0 || r >= p.Ranks {
			l.add("%s has no rank %d; it has 0 to %d", p.Name, r, p.Ranks-1)
		}
	}
	for _, h := range t.Hosts {
		if !slices.Contains(p.Hosts[:p.usedHosts()], h) {
			l.add("%s has no rank on a host %q", p.Name, h)
		}
	}
	for _, key := range t.Functions {
		if _, ok := p.Functions[key]; !ok {
			l.add("%s has no function %q", p.Name, key)
		}
	}
	hasCounter := func(c Counter) bool { return c.Name == t.Counter }
	if t.Counter != "" && !slices.ContainsFunc(p.Counters, hasCounter) {
		l.add("%s has no counter %q", p.Name, t.Counter)
	}
	if t.Counter == "" && t.Reading != 0 {
		l.add("reading = %v needs a counter", t.Reading)
	}
}

func (l *problems) checkNumbers(t *Trouble) {
	l.inRange("from", t.FromSeconds*1e6)
	l.inRange("to", t.ToSeconds*1e6)
	l.inRange("period", t.PeriodSeconds*1e6)
	l.inRange("factor", t.Factor)
	l.inRange("reading", t.Reading)
	if t.FromSeconds < 0 || t.ToSeconds != 0 && t.ToSeconds <= t.FromSeconds {
		l.add("from = %v, to = %v: to must be after from, and from not negative", t.FromSeconds, t.ToSeconds)
	}
	if t.Factor < 0 || !(t.Chance >= 0 && t.Chance <= 1) || t.Count < 0 || t.PeriodSeconds < 0 {
		l.add("factor, count and period cannot be negative, and chance must be from 0 to 1")
	}
	if t.PeriodSeconds > 0 && t.PeriodSeconds < shortest {
		l.add("period = %v is below %v", t.PeriodSeconds, shortest)
	}
	for _, e := range []struct {
		key string
		d   *Distribution
	}{{"extra", t.Extra}, {"value", t.Value}} {
		if e.d == nil {
			continue
		}
		l.in(e.key, e.d.check(true))
		if e.d.IsZero() {
			l.add("%s is empty, wants a distribution such as { fixed = 5000 }", e.key)
		}
	}
}
