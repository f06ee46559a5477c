package scenario

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// Names of random scenarios begin with RandomName, such as random-17, or with RandomPlaceName, such as random-place-17.
const (
	RandomName      = "random"
	RandomPlaceName = "random-place"
)

// Random returns the text of a random program, a different one for each seed: call tree, distributions of times, ranks, hosts and
// communication are random, and so are one to three troubles. Programs whose seed is divisible by 5 have no trouble. They were
// not tuned to any detector.
func Random(seed uint64) []byte {
	p := newRandomProgram(seed)
	b := p.text(RandomName, seed)
	for i := range pick(p, 1, 1, 2, 2, 3) {
		if seed%5 != 0 {
			fmt.Fprintf(b, "\n[[trouble]]\nname = \"trouble %d\"\n%s", i+1, p.trouble())
		}
	}
	return []byte(b.String())
}

// RandomPlace returns the text of the program of Random with another trouble: one of its functions is slow on one rank or one host,
// throughout the run, from some time on, or for a while. Programs whose seed is divisible by 5 have no trouble.
func RandomPlace(seed uint64) []byte {
	p := newRandomProgram(seed)
	b := p.text(RandomPlaceName, seed)
	if seed%5 != 0 {
		p.Rand = rand.New(rand.NewPCG(seed, 8))
		fmt.Fprintf(b, "\n[[trouble]]\nname = \"trouble\"\n%s", p.slowFunction())
	}
	return []byte(b.String())
}

// randomProgram is a program that is being made up.
type randomProgram struct {
	*rand.Rand
	ranks, hosts int
	unused       []int // names of functions
	functions    strings.Builder
	leaves       []*leaf
	exchanges    bool
	// Calls and time of an iteration of a rank, and length of the run.
	calls, time, seconds float64
	body                 []string
	steps, iterations    int
}

func newRandomProgram(seed uint64) *randomProgram {
	p := &randomProgram{Rand: rand.New(rand.NewPCG(seed, 7)), ranks: 2}
	p.ranks = pick(p, 2, 4, 4, 6, 8, 8, 12, 16, 16, 24, 32)
	p.hosts = min(max(p.ranks/pick(p, 1, 2, 4, 8, p.ranks), 1), 8)
	p.unused = p.Perm(len(verbs) * len(nouns))
	p.body = p.iteration()
	p.steps = pick(p, 20, 40, 60)
	p.iterations = max(2, int(p.between(120e3, 400e3)/float64(p.ranks)/p.calls)/p.steps)
	p.seconds = p.time * float64(p.steps*p.iterations) / 1e6
	return p
}

// text returns the text of the program without trouble.
func (p *randomProgram) text(name string, seed uint64) *strings.Builder {
	var b strings.Builder
	fmt.Fprintf(&b, "name = %q\ntext = \"a random program\"\nseed = %d\nsteps = %d\niterations = %d\n", name, seed, p.steps, p.iterations)
	fmt.Fprintf(&b, "\n[[program]]\nname = \"program\"\nranks = %d\nhosts = [%s]\nbody = [%s]\n\n[program.functions]\n", p.ranks,
		list(p.hosts, hostName), strings.Join(p.body, ", "))
	b.WriteString(p.functions.String())
	return &b
}

// leaf is a function that calls no others.
type leaf struct {
	name          string
	median, calls float64 // calls in an iteration
}

var (
	verbs = strings.Fields("advance apply build collide correct diffuse filter gather integrate limit map pack project relax scatter solve")
	nouns = strings.Fields("block cells edges field flux force grid halo level mesh norm particles rows stress velocity weights")
)

func (p *randomProgram) newName() string {
	n := p.unused[0]
	p.unused = p.unused[1:]
	return verbs[n/len(nouns)] + "_" + nouns[n%len(nouns)]
}

func pick[T any](p *randomProgram, of ...T) T { return of[p.IntN(len(of))] }

func (p *randomProgram) between(low, high float64) float64 { return low + (high-low)*p.Float64() }

func hostName(i int) string { return fmt.Sprintf("%q", fmt.Sprintf("node%02d", i)) }

func list(n int, of func(int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = of(i)
	}
	return strings.Join(all, ", ")
}

func (p *randomProgram) function(name, format string, args ...any) {
	fmt.Fprintf(&p.functions, "%q = { %s }\n", name, fmt.Sprintf(format, args...))
}

// iteration returns the calls of an iteration: one to three phases of computation, most of which end with communication.
func (p *randomProgram) iteration() (calls []string) {
	communicates := pick(p, "collective", "exchange", "both", "both", "seldom")
	for phase := range 1 + p.IntN(3) {
		for range 1 + p.IntN(3) {
			name, time := p.tree(p.IntN(4), 8000, 1)
			calls, p.time = append(calls, fmt.Sprintf("%q", name)), p.time+time
		}
		if (communicates == "exchange" || communicates == "both") && p.ranks > 2 {
			p.exchanges = true
			name := fmt.Sprintf("exchange_%d", phase)
			p.function(name, "kind = \"exchange\", neighbors = [%s], time = { normal = [8, 1] }, message = { fixed = %d }", pick(p, "1", "1, -1"),
				pick(p, 1024, 8192, 65536))
			calls = append(calls, fmt.Sprintf("%q", name))
		}
		every := 1
		if communicates == "seldom" {
			every = 10
		}
		if communicates == "collective" || communicates == "both" || communicates == "seldom" && phase == 0 {
			name := []string{"MPI_Allreduce()", "MPI_Barrier()", "MPI_Bcast()"}[phase]
			p.function(name, "kind = \"collective\", time = { normal = [12, 2] }, every = %d", every)
			calls = append(calls, fmt.Sprintf("%q", name))
		}
	}
	p.calls += float64(len(calls))
	return calls
}

// tree makes up a function that is called n times in an iteration, and those that it calls. It returns its name and about how
// long a call takes.
func (p *randomProgram) tree(depth int, longest, n float64) (name string, time float64) {
	name = p.newName()
	if depth == 0 || p.Float64() < 0.35 {
		return name, p.leaf(name, longest, n)
	}
	own := p.between(2, 60)
	time = own
	var calls []string
	for range 1 + p.IntN(3) {
		times := pick(p, 1, 1, 1, 2, 3, 4, 8, 16)
		callee, of := p.tree(depth-1, longest/2/math.Sqrt(float64(times)), n*float64(times))
		calls, time = append(calls, fmt.Sprintf("\"%d %s\"", times, callee)), time+of*float64(times)
	}
	p.function(name, "time = { normal = [%.0f, %.1f] }, calls = [%s]", own, 0.08*own, strings.Join(calls, ", "))
	p.calls += n
	return name, time
}

// leaf makes up a function that calls no others, and returns about how long a call takes.
func (p *randomProgram) leaf(name string, longest, n float64) (time float64) {
	median := min(max(15*math.Pow(1000, p.Float64()), 8), longest)
	shape, mean := p.shape(median)
	more, every := "", 1
	if p.Float64() < 0.08 {
		more = fmt.Sprintf(", spread = %.2f", p.between(0.02, 0.15))
	}
	if p.Float64() < 0.1 {
		every = 2 + p.IntN(19)
	}
	p.function(name, "time = { %s }, every = %d%s", shape, every, more)
	n /= float64(every)
	p.leaves = append(p.leaves, &leaf{name, median, n})
	p.calls += n
	return mean / float64(every)
}

// shape makes up a distribution, and returns about its mean.
func (p *randomProgram) shape(median float64) (text string, mean float64) {
	switch x := p.IntN(100); {
	case x < 30:
		return fmt.Sprintf("normal = [%.0f, %.1f]", median, max(1, median*p.between(0.01, 0.12))), median
	case x < 60:
		return fmt.Sprintf("lognormal = [%.0f, %.3f]", median, p.between(0.03, 0.2)), median
	case x < 72:
		return fmt.Sprintf("lognormal = [%.0f, %.3f]", median, p.between(0.2, 0.6)), 1.1 * median
	case x < 82:
		weight, factor := float64(1+p.IntN(9)), p.between(2, 6)
		return fmt.Sprintf("modes = [{ weight = %.0f, normal = [%.0f, %.1f] }, { weight = %.0f, lognormal = [%.0f, 0.06] }]", weight, median,
			0.05*median, 10-weight, factor*median), median * (weight + factor*(10-weight)) / 10
	case x < 90:
		return fmt.Sprintf("uniform = [%.0f, %.0f]", 0.7*median, 1.3*median), median
	case x < 95:
		return fmt.Sprintf("pareto = [%.0f, %.1f]", 0.8*median, p.between(3, 6)), 1.1 * median
	}
	return fmt.Sprintf("fixed = %.0f", median), median
}

// suspect returns a function with a considerable part of the time, of at least 60 us if possible.
func (p *randomProgram) suspect() *leaf {
	var large, some []*leaf
	for _, l := range p.leaves {
		if l.median*l.calls > 0.02*p.time {
			some = append(some, l)
			if l.median >= 60 {
				large = append(large, l)
			}
		}
	}
	switch {
	case len(large) > 0:
		return pick(p, large...)
	case len(some) > 0:
		return pick(p, some...)
	}
	return pick(p, p.leaves...)
}

// trouble makes up a trouble of any kind that a program can have.
func (p *randomProgram) trouble() string {
	kinds := []TroubleKind{
		SlowCall, SlowCall, SlowCall, SlowCall, SlowRank, SlowRank, SlowRank, SlowMode, IOStall, Burst, LevelShift, Drift, OSNoise,
	}
	if p.hosts > 1 {
		kinds = append(kinds, SlowHost, SlowHost, MemoryPressure)
	}
	if p.exchanges && p.ranks > 3 {
		kinds = append(kinds, SlowLink)
	}
	var b strings.Builder
	set := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	kind, f := pick(p, kinds...), p.suspect()
	from := p.between(0.1, 0.6) * p.seconds
	to := from + p.between(0.15, 0.4)*p.seconds
	set("kind = %q", kind)
	ranks := float64(p.ranks) // that it concerns
	switch x := p.Float64(); {
	case kind == SlowHost || kind == MemoryPressure || x < 0.2 && p.hosts > 1 && kind != SlowRank && kind != SlowLink:
		set("hosts = [%s]", hostName(p.IntN(p.hosts)))
		ranks /= float64(p.hosts)
	case kind == SlowRank || x < 0.7 && kind != SlowLink && kind != LevelShift && kind != Drift:
		set("ranks = [%d]", p.IntN(p.ranks))
		ranks = 1
	}
	far := func(low, high float64) float64 { return max(p.between(low, high), 1+400/f.median) }
	switch kind {
	case SlowCall:
		iterations := p.seconds * 1e6 / p.time
		set("functions = [%q]\nchance = %.3g\nfactor = %.1f", f.name, min(0.02, pick(p, 3., 8, 20, 60)/(iterations*f.calls*ranks)), far(3, 20))
	case SlowMode:
		set("functions = [%q]\nchance = %.3f\nfactor = %.1f", f.name, p.between(0.01, 0.06), far(3, 10))
	case SlowRank, SlowHost, MemoryPressure:
		set("factor = %.2f\nfrom = %.3f\nto = %.3f", p.between(1.25, 3), from, to)
	case IOStall:
		set("functions = [%q]\nfrom = %.3f\nextra = { normal = [%.0f, 100] }", f.name, from, p.between(0.005, 0.05)*p.seconds*1e6)
	case Burst:
		set("functions = [%q]\nfrom = %.3f\ncount = %d\nfactor = %.1f", f.name, from, pick(p, 5, 10, 30), far(4, 15))
	case LevelShift:
		set("functions = [%q]\nfrom = %.3f\nfactor = %.2f", f.name, from, p.between(1.5, 3))
	case Drift:
		set("functions = [%q]\nfrom = %.3f\nto = %.3f\nfactor = %.2f", f.name, from, min(from+0.4*p.seconds, 0.95*p.seconds), p.between(2, 4))
	case OSNoise:
		set("period = %.3f\nrandom = true\nextra = { normal = [%.0f, 150] }", max(0.001, p.between(0.003, 0.02)*p.seconds), p.between(600, 4000))
	case SlowLink:
		first := p.IntN(p.ranks - 1)
		set("link = [%d, %d]\nfrom = %.3f\nto = %.3f\nextra = { normal = [%.0f, 100] }", first, first+1, from, to, p.between(800, 4000))
	}
	return b.String()
}

// slowFunction makes up a function that is slow on one rank or host.
func (p *randomProgram) slowFunction() string {
	var b strings.Builder
	set := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	set("kind = %q\nfunctions = [%q]\nfactor = %.2f", LevelShift, p.suspect().name, p.between(1.25, 3))
	if p.hosts > 1 && p.Float64() < 0.5 {
		set("hosts = [%s]", hostName(p.IntN(p.hosts)))
	} else {
		set("ranks = [%d]", p.IntN(p.ranks))
	}
	from := p.between(0.1, 0.6) * p.seconds
	switch p.IntN(3) {
	case 1:
		set("from = %.3f", from)
	case 2:
		set("from = %.3f\nto = %.3f", from, from+p.between(0.15, 0.4)*p.seconds)
	}
	return b.String()
}
