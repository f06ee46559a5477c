package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Validate returns all errors of the scenario. It checks troubles only if the rest is
// valid.
func (s *Scenario) Validate() error {
	var bad problems
	if s.Steps < 1 || s.Steps > maxRounds || s.Iterations < 1 || s.Iterations > maxRounds {
		bad.add("steps = %d, iterations = %d: both must be from 1 to %d", s.Steps, s.Iterations, maxRounds)
	}
	if s.Start.Unix() < 0 || s.Start.Year() > 2200 {
		bad.add("start = %v is not between 1970 and 2200", s.Start)
	}
	if !(s.NotableMicros >= 0) || !(s.NotableShare >= 0) {
		bad.add("notable_us = %v, notable_share = %v: neither can be negative", s.NotableMicros, s.NotableShare)
	}
	if len(s.Programs) == 0 {
		bad.add("no [[program]]")
	}
	before := make(map[string]*Program)
	for i := range s.Programs {
		p := &s.Programs[i]
		if p.Name == "" || strings.ContainsAny(p.Name, "/\\\x00") || before[p.Name] != nil {
			bad.add("program %d: name = %q is empty, contains slashes or is repeated", i+1, p.Name)
		}
		bad.in("program "+p.Name, p.check(before))
		before[p.Name] = p
	}
	if len(bad) > 0 {
		return bad.err()
	}
	names := make(map[string]bool)
	for i := range s.Troubles {
		t := &s.Troubles[i]
		if t.Name == "" || names[t.Name] {
			bad.add("trouble %d: name = %q is empty or repeated", i+1, t.Name)
		}
		names[t.Name] = true
		bad.in("trouble "+t.Name, t.check(s))
	}
	return bad.err()
}

func (p *Program) check(before map[string]*Program) error {
	var bad problems
	if p.Ranks < 1 || p.Ranks > maxRanks {
		bad.add("ranks = %d is not from 1 to %d", p.Ranks, maxRanks)
	}
	if len(p.Hosts) == 0 {
		bad.add("hosts is empty")
	}
	hosts := make(map[string]bool)
	for i, h := range p.Hosts {
		if h == "" || strings.ContainsAny(h, "/\\\x00") || hosts[h] {
			bad.add("host %d: %q is empty, contains slashes or is repeated", i+1, h)
		}
		hosts[h] = true
	}
	if !(p.Latency > 0) || p.Latency > largest || !(p.Bandwidth > 0) {
		bad.add("latency_us = %v, bytes_per_us = %v: both must be above 0, and latency_us at most %v", p.Latency, p.Bandwidth, largest)
	}
	bad.checkCounters(p)
	computes := make(map[string]bool)
	for _, key := range slices.Sorted(maps.Keys(p.Functions)) {
		f := p.Functions[key]
		if key == "" || strings.ContainsAny(key+f.Name, "\x00") {
			bad.add("function %q: the name is empty or contains a zero byte", key)
		}
		bad.in("function "+key, f.check(p, before, computes))
	}
	if len(p.Body) == 0 {
		bad.add("body is empty")
	}
	if len(bad) > 0 {
		return bad.err()
	}
	n := size{p: p, extents: make(map[string]extent)}
	for _, l := range []struct {
		name  string
		calls []string
	}{{"setup", p.Setup}, {"body", p.Body}, {"finish", p.Finish}} {
		if _, err := n.list(l.name, l.calls); err != nil {
			bad = append(bad, err)
		}
	}
	return bad.err()
}

func (l *problems) checkCounters(p *Program) {
	names := make(map[string]bool)
	for i := range p.Counters {
		c := &p.Counters[i]
		if c.Name == "" || strings.ContainsAny(c.Name, "\x00") || names[c.Name] {
			l.add("counter %d: name = %q is empty, contains a zero byte or is repeated", i+1, c.Name)
		}
		names[c.Name] = true
		if !(c.Seconds >= shortest) || c.Seconds*1e6 > largest {
			l.add("counter %s: seconds = %v is not from %v to %v", c.Name, c.Seconds, shortest, largest/1e6)
		}
		l.in("counter "+c.Name+": value", c.Value.check(true))
	}
}

func (f *Function) check(p *Program, before map[string]*Program, computes map[string]bool) error {
	var bad problems
	only := func(given bool, key, kinds string, of ...Kind) {
		if given && !slices.Contains(of, f.Kind) {
			bad.add("%s is for %s", key, kinds)
		}
	}
	only(len(f.Neighbors) > 0, "neighbors", "kind = \"exchange\"", Exchange)
	only(f.Group != 0, "group", "kind = \"collective\"", Collective)
	only(f.Threads != 0, "threads", "kind = \"parallel\"", Parallel)
	only(f.Kernel != "", "kernel", "kind = \"launch\"", Launch)
	only(f.Stream != 0, "stream", "kind = \"launch\"", Launch)
	only(f.RankPart != nil, "rank_part", "functions without kind and kind = \"launch\"", Compute, Launch)
	only(f.From != "", "from", "kind = \"await\"", Await)
	only(len(f.Calls) > 0, "calls", "functions without kind and kind = \"parallel\"", Compute, Parallel)
	switch f.Kind {
	case Compute, DeviceSync, Publish:
	case Exchange:
		bad.checkNeighbors(f)
	case Collective:
		if f.Group < 0 {
			bad.add("group = %d is negative; 0 means all ranks", f.Group)
		}
	case Parallel:
		if f.Threads < 1 || f.Threads > maxThreads {
			bad.add("threads = %d is not from 1 to %d", f.Threads, maxThreads)
		}
		if err := p.noWaits(f.Calls, computes); err != nil {
			bad = append(bad, err)
		}
	case Launch:
		if k, ok := p.Functions[f.Kernel]; !ok || k.Kind != Compute || len(k.Calls) > 0 {
			bad.add("kernel = %q must be a function without kind and calls", f.Kernel)
		}
		if f.Stream < 0 || f.Stream >= maxStreams {
			bad.add("stream = %d is not from 0 to %d", f.Stream, maxStreams-1)
		}
	case Await:
		if from := before[f.From]; from == nil {
			bad.add("from = %q must be a program defined before this one", f.From)
		} else if !from.publishes() {
			bad.add("from = %q has no function with kind = \"publish\"", f.From)
		}
	default:
		bad.add("unknown kind %q (want exchange, collective, parallel, launch, device-sync, publish or await)", f.Kind)
	}
	if f.Every < 0 {
		bad.add("every = %d is negative; 0 and 1 mean each iteration", f.Every)
	}
	bad.checkPart("part", f.Part)
	bad.checkPart("rank_part", f.RankPart)
	if f.RankPart != nil {
		if err := p.noWaits(f.Calls, make(map[string]bool)); err != nil {
			bad.add("rank_part: %w", err)
		}
	}
	if !(f.Spread >= 0 && f.Spread <= 10) {
		bad.add("spread = %v is not from 0 to 10", f.Spread)
	}
	bad.in("time", f.Time.check(true))
	if f.Message != nil {
		bad.in("message", f.Message.check(true))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Counters)) {
		d := f.Counters[name]
		if name == "" || strings.ContainsAny(name, "\x00") {
			bad.add("counter %q: the name is empty or contains a zero byte", name)
		}
		bad.in("counter "+name, d.check(true))
	}
	return bad.err()
}

// checkPart checks a part of iterations or ranks.
func (l *problems) checkPart(key string, part []float64) {
	if part != nil && (len(part) != 2 || !(0 <= part[0] && part[0] < part[1] && part[1] <= 1)) {
		l.add("%s = %v, wants two increasing shares from 0 to 1", key, part)
	}
}

func (l *problems) checkNeighbors(f *Function) {
	if len(f.Neighbors) == 0 || len(f.Neighbors) > maxNeighbors {
		l.add("an exchange needs 1 to %d neighbors, as in neighbors = [-1, 1]", maxNeighbors)
		return
	}
	for i, n := range f.Neighbors {
		switch {
		case n == 0:
			l.add("neighbor 0 is the rank itself")
		case n < -maxRanks || n > maxRanks:
			l.add("neighbor %d is not from %d to %d", n, -maxRanks, maxRanks)
		case slices.Contains(f.Neighbors[:i], n):
			l.add("neighbor %d is repeated", n)
		}
	}
}

func (p *Program) publishes() bool {
	for _, f := range p.Functions {
		if f.Kind == Publish {
			return true
		}
	}
	return false
}

// noWaits checks that called functions only compute. seen has those checked so far.
func (p *Program) noWaits(calls []string, seen map[string]bool) error {
	for _, call := range calls {
		key, _, err := ParseCall(call)
		if err != nil {
			return err
		}
		f, ok := p.Functions[key]
		if !ok || seen[key] {
			continue // size reports a missing function
		}
		seen[key] = true
		if f.Kind != Compute {
			return fmt.Errorf("calls %s, which has kind = %q (want functions without kind)", key, f.Kind)
		}
		if err := p.noWaits(f.Calls, seen); err != nil {
			return err
		}
	}
	return nil
}

// problems are errors, each with its place.
type problems []error

func (l *problems) add(format string, a ...any) { *l = append(*l, fmt.Errorf(format, a...)) }

// in adds err, or each of the errors that it joins, with its place. It ignores nil.
func (l *problems) in(place string, err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			l.in(place, e)
		}
		return
	}
	l.add("%s: %w", place, err)
}

func (l problems) err() error { return errors.Join(l...) }
