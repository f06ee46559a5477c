package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// valid has something of everything.
const valid = `steps = 10
iterations = 2

[[program]]
name = "sim"
ranks = 8
hosts = ["node00", "node01"]
setup = ["init"]
body = ["2 step"]
finish = ["final"]

[program.functions]
init = { time = { normal = [100, 5] } }
final = { kind = "collective", group = 4 }
step = { calls = ["halo", "loop", "start", "wait", "put", "outer"] }
outer = { part = [0.5, 1], calls = ["twice"] }
twice = { calls = ["2 init"] }
halo = { kind = "exchange", neighbors = [-1, 1] }
loop = { kind = "parallel", threads = 4, calls = ["3 work"] }
work = { time = { fixed = 7 }, counters = { flops = { uniform = [1, 9] } } }
start = { kind = "launch", kernel = "kern", stream = 1 }
kern = { time = { modes = [{ weight = 1, fixed = 5 }, { weight = 2, fixed = 9 }] } }
wait = { kind = "device-sync" }
put = { kind = "publish", every = 2, message = { fixed = 100 } }
lost = { time = { fixed = 3 } }

[[program.counter]]
name = "memory"
seconds = 0.5
value = { fixed = 10 }

[[program]]
name = "ana"
ranks = 2
body = ["get"]

[program.functions]
get = { kind = "await", from = "sim" }

[[trouble]]
name = "one"
kind = "slow-call"
functions = ["work"]
chance = 0.1
factor = 3

[[trouble]]
name = "two"
kind = "memory-pressure"
hosts = ["node01"]
from = 1
to = 2
factor = 3
counter = "memory"
reading = 99

[[trouble]]
name = "three"
kind = "slow-link"
link = [2, 3]
extra = { fixed = 1000 }
`

// broken replaces a part of the valid scenario, and returns the error.
func broken(t *testing.T, old, by string) string {
	t.Helper()
	if strings.Count(valid, old) == 0 {
		t.Fatalf("%q is not in the valid scenario", old)
	}
	_, err := scenario.Parse("bad.toml", []byte(strings.Replace(valid, old, by, 1)))
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestErrorsNamePlaceAndFix(t *testing.T) {
	f := func(old, by, want string) {
		t.Helper()
		got := broken(t, old, by)
		if !strings.HasPrefix(got, "bad.toml: ") || !strings.Contains(got, want) {
			t.Errorf("%s instead of %s:\n got %s\nwant %s", by, old, got, want)
		}
	}
	if _, err := scenario.Parse("good.toml", []byte(valid)); err != nil {
		t.Fatal(err)
	}

	// Not TOML, or not ours.
	f(`steps = 10`, `steps =`, "line 1: ")
	f(`steps = 10`, "steps = 10\nsteps = 11", "line 2: ")
	f(`ranks = 8`, `ranks = "8"`, "bad.toml: program.ranks is a TOML string, wants integer")
	f(`steps = 10`, `steps = 1.5`, "bad.toml: line 1: steps is a TOML float64, wants integer")
	f(`[[program]]`, `[program]`, "program")
	f(valid, "steps = 1\n[[program]]\nbody = 1", "bad.toml: line 3: program.body is a TOML int64, wants slice")
	f(`time = { fixed = 7 }`, `tyme = { fixed = 7 }`, "unknown keys: program.functions.work.tyme (docs/scenarios.md lists all)")
	f(`steps = 10`, "steps = 10\na = 1\nb = 1\nc = 1\nd = 1\ne = 1\nf = 1\ng = 1", "unknown keys: a, b, c, d, e, and 2 more")
	f(`steps = 10`, "steps = 10\nx = "+strings.Repeat("[", 17)+strings.Repeat("]", 17), "line 2: nested more than 16 deep")
	f(`steps = 10`, "steps = 10\n"+strings.Repeat("x.", 16)+"x = 1", "line 2: nested more than 16 deep")
	f(`steps = 10`, "steps = 10\n#"+strings.Repeat("x", 1<<20), "bytes (at most 1048576)")

	// The run.
	f(`steps = 10`, `steps = 0`, "steps = 0, iterations = 2: both must be from 1 to 1000000000")
	f(`steps = 10`, `steps = 1_000_000_001`, "both must be from 1 to 1000000000")
	f(`iterations = 2`, `iterations = -1`, "steps = 10, iterations = -1: both must be from 1 to 1000000000")
	f(`iterations = 2`, `iterations = 1_000_000_001`, "both must be from 1 to 1000000000")
	f(`steps = 10`, "steps = 10\nstart = 1969-12-31T00:00:00Z", "is not between 1970 and 2200")
	f(`steps = 10`, "steps = 10\nstart = 2201-01-01", "is not between 1970 and 2200")
	f(`steps = 10`, "steps = 10\nnotable_us = -1", "notable_us = -1, notable_share = 0.5: neither can be negative")
	f(`steps = 10`, "steps = 10\nnotable_share = nan", "notable_share = NaN: neither can be negative")
	f(valid, `steps = 1`, "no [[program]]")

	// Programs.
	f(`name = "sim"`, `name = ""`, `program 1: name = "" is empty, contains slashes or is repeated`)
	f(`name = "sim"`, `name = "a/b"`, `program 1: name = "a/b" is empty, contains slashes`)
	f(`name = "ana"`, `name = "sim"`, `program 2: name = "sim" is empty, contains slashes or is repeated`)
	f(`ranks = 8`, `ranks = 0`, "program sim: ranks = 0 is not from 1 to 1000000")
	f(`ranks = 8`, `ranks = 1_000_001`, "program sim: ranks = 1000001 is not from 1 to 1000000")
	f(`"node01"]`, `""]`, `program sim: host 2: "" is empty`)
	f(`"node01"]`, `"a\\b"]`, `host 2: "a\\b" is empty, contains slashes`)
	f(`"node01"]`, `"node00"]`, `host 2: "node00" is empty, contains slashes or is repeated`)
	f(`ranks = 8`, "ranks = 8\nlatency_us = -1", "program sim: latency_us = -1, bytes_per_us = 10000: both must be above 0")
	f(`ranks = 8`, "ranks = 8\nlatency_us = inf", "latency_us at most")
	f(`ranks = 8`, "ranks = 8\nbytes_per_us = -5", "bytes_per_us = -5: both must be above 0")
	f(`body = ["2 step"]`, `body = []`, "program sim: body is empty")
	f(`name = "memory"`, `name = ""`, `program sim: counter 1: name = "" is empty`)
	f(`value = { fixed = 10 }`, "value = { fixed = 10 }\n[[program.counter]]\nname = \"memory\"\nseconds = 1",
		`counter 2: name = "memory" is empty, contains a zero byte or is repeated`)
	f(`seconds = 0.5`, `seconds = 0`, "program sim: counter memory: seconds = 0 is not from 0.001 to")
	f(`seconds = 0.5`, `seconds = inf`, "counter memory: seconds = +Inf is not from 0.001 to")
	f(`value = { fixed = 10 }`, `value = { fixed = nan }`, "program sim: counter memory: value: fixed: NaN is not from")

	// Functions.
	f(`init = {`, "\"\" = {}\ninit = {", `program sim: function "": the name is empty or contains a zero byte`)
	f(`init = {`, `init = { name = "a\u0000",`, `function "init": the name is empty or contains a zero byte`)
	f(`init = {`, `init = { kind = "sleep",`, `program sim: function init: unknown kind "sleep" (want exchange, collective`)
	for _, part := range []string{"[]", "[0.5]", "[0, 1, 1]", "[0.5, 0.5]", "[-0.1, 1]", "[0, 1.5]", "[nan, 1]"} {
		f(`part = [0.5, 1]`, `part = `+part, `program sim: function outer: part = `)
		f(`part = [0.5, 1]`, `rank_part = `+part, `program sim: function outer: rank_part = `)
	}
	f(`wait = {`, `wait = { rank_part = [0, 1],`, `function wait: rank_part is for functions without kind and kind = "launch"`)
	f(`part = [0.5, 1], calls = ["twice"]`, `rank_part = [0.5, 1], calls = ["halo"]`, `function outer: rank_part: calls halo, which has kind`)
	f(`init = {`, `init = { spread = -0.1,`, `function init: spread = -0.1 is not from 0 to 10`)
	f(`init = {`, `init = { neighbors = [1],`, `function init: neighbors is for kind = "exchange"`)
	f(`init = {`, `init = { group = 2,`, `function init: group is for kind = "collective"`)
	f(`init = {`, `init = { threads = 2,`, `function init: threads is for kind = "parallel"`)
	f(`init = {`, `init = { kernel = "kern",`, `function init: kernel is for kind = "launch"`)
	f(`init = {`, `init = { stream = 1,`, `function init: stream is for kind = "launch"`)
	f(`init = {`, `init = { from = "sim",`, `function init: from is for kind = "await"`)
	f(`wait = {`, `wait = { calls = ["work"],`, `function wait: calls is for functions without kind and kind = "parallel"`)
	f(`neighbors = [-1, 1]`, `neighbors = []`, "function halo: an exchange needs 1 to 64 neighbors, as in neighbors = [-1, 1]")
	f(`neighbors = [-1, 1]`, `neighbors = [`+strings.Repeat("1, ", 65)+`]`, "an exchange needs 1 to 64 neighbors")
	f(`neighbors = [-1, 1]`, `neighbors = [0]`, "function halo: neighbor 0 is the rank itself")
	f(`neighbors = [-1, 1]`, `neighbors = [1, 2, 1]`, "function halo: neighbor 1 is repeated")
	f(`neighbors = [-1, 1]`, `neighbors = [-1_000_001]`, "neighbor -1000001 is not from -1000000 to 1000000")
	f(`group = 4`, `group = -4`, "function final: group = -4 is negative; 0 means all ranks")
	f(`threads = 4`, `threads = 0`, "function loop: threads = 0 is not from 1 to 1024")
	f(`threads = 4`, `threads = 1025`, "threads = 1025 is not from 1 to 1024")
	f(`"3 work"`, `"3 halo"`, `function loop: calls halo, which has kind = "exchange" (want functions without kind)`)
	f(`"3 work"`, `"init", "step"`, `function loop: calls halo, which has kind = "exchange"`)
	f(`"3 work"`, `"0 work"`, `function loop: "0 work": a function can be called from 1 to 1000000 times`)
	f(`kernel = "kern"`, `kernel = "corn"`, `function start: kernel = "corn" must be a function without kind and calls`)
	f(`kernel = "kern"`, `kernel = "halo"`, `kernel = "halo" must be a function without kind and calls`)
	f(`kernel = "kern"`, `kernel = "step"`, `kernel = "step" must be a function without kind and calls`)
	f(`stream = 1`, `stream = 64`, "function start: stream = 64 is not from 0 to 63")
	f(`stream = 1`, `stream = -1`, "stream = -1 is not from 0 to 63")
	f(`from = "sim"`, `from = "other"`, `program ana: function get: from = "other" must be a program defined before this one`)
	f(`from = "sim"`, `from = "ana"`, `from = "ana" must be a program defined before this one`)
	f(`put = { kind = "publish",`, `put = {`, `program ana: function get: from = "sim" has no function with kind = "publish"`)
	f(`every = 2`, `every = -2`, "function put: every = -2 is negative; 0 and 1 mean each iteration")
	f(`message = { fixed = 100 }`, `message = { fixed = inf }`, "function put: message: fixed: +Inf is not from")
	f(`flops = { uniform = [1, 9] }`, `flops = { uniform = [9, 1] }`, "function work: counter flops: uniform = [9 1], wants [lowest, highest]")
	f(`flops = {`, `"" = {`, `function work: counter "": the name is empty or contains a zero byte`)

	// Calls.
	f(`setup = ["init"]`, `setup = ["inti"]`, `program sim: setup calls "inti", which is not among the functions`)
	f(`finish = ["final"]`, `finish = ["x"]`, `program sim: finish calls "x", which is not among the functions`)
	f(`"loop", "start"`, `"lop", "start"`, `program sim: function step calls "lop", which is not among the functions`)
	f(`body = ["2 step"]`, `body = ["0 step"]`, `program sim: body: "0 step": a function can be called from 1 to 1000000 times`)
	f(`body = ["2 step"]`, `body = ["1000001 init"]`, `a function can be called from 1 to 1000000 times`)
	f(`init = {`, `init = { calls = ["init"],`, "program sim: function init: init > init calls itself")
	f(`init = {`, "a = { calls = [\"b\"] }\nb = { calls = [\"a\"] }\ninit = { calls = [\"a\"],", "function b: init > a > b > a calls itself")
	f(`body = ["2 step"]`, `body = ["600_000 init", "500000 init", "500001 init"]`, `body calls "600_000 init"`)
	f(`body = ["2 step"]`, `body = ["500000 init", "500001 init"]`, "program sim: body: an iteration has more than 1000000 calls")
	f(`body = ["2 step"]`, `body = ["45000 step"]`, "program sim: body: an iteration has more than 1000000 calls")
	f(`"3 work"`, `"250000 work"`, "program sim: function loop: an iteration has more than 1000000 calls")
	f(`"3 work"`, `"999999 work"`, "program sim: function loop: an iteration has more than 1000000 calls")

	// Troubles.
	f(`name = "one"`, `name = ""`, `trouble 1: name = "" is empty or repeated`)
	f(`name = "two"`, `name = "one"`, `trouble 2: name = "one" is empty or repeated`)
	f(`kind = "slow-call"`, `kind = "bad-luck"`, `trouble one: unknown kind "bad-luck" (want one of [burst drift excess-work gpu-clock-drop`)
	f(`kind = "slow-call"`, "kind = \"slow-call\"\nprogram = \"x\"", `trouble one: program = "x" does not exist`)
	f(`functions = ["work"]`, `functions = ["worx"]`, `trouble one: sim has no function "worx"`)
	f(`factor = 3`, `factor = 3`+"\nranks = [8]", "trouble one: sim has no rank 8; it has 0 to 7")
	f(`factor = 3`, `factor = 3`+"\nranks = [-1]", "trouble one: sim has no rank -1; it has 0 to 7")
	f(`hosts = ["node01"]`, `hosts = ["node02"]`, `trouble two: sim has no rank on a host "node02"`)
	f(`counter = "memory"`, `counter = "memroy"`, `trouble two: sim has no counter "memroy"`)
	f(`counter = "memory"`, ``, "trouble two: reading = 99 needs a counter")
	f(`link = [2, 3]`, `link = [2, 8]`, "trouble three: sim has no rank 8; it has 0 to 7")
	f(`link = [2, 3]`, `link = [2, 2]`, "trouble three: link = [2 2], wants two different ranks")
	f(`link = [2, 3]`, `link = [2]`, "trouble three: link = [2], wants two different ranks")
	f(`link = [2, 3]`, `link = [2, 3, 4]`, "trouble three: link = [2 3 4], wants two different ranks")
	f(`link = [2, 3]`, "link = [2, 3]\nranks = [2]", "trouble three: slow-link takes link, not ranks, hosts or functions")
	f(`factor = 3`, "factor = 3\nextra = { fixed = 1 }", "trouble one: only one of factor, extra and value can be given")
	f(`factor = 3`, "factor = 3\nfrom = -1", "trouble one: from = -1, to = 0: to must be after from, and from not negative")
	f("to = 2", "to = 0.5", "trouble two: from = 1, to = 0.5: to must be after from")
	f("to = 2", "to = 1", "trouble two: from = 1, to = 1: to must be after from")
	f("from = 1", "from = nan", "trouble two: from: NaN is not from")
	f("to = 2", "to = 1e300", "trouble two: to: 1e+306 is not from")
	f("factor = 3", "factor = inf", "trouble one: factor: +Inf is not from")
	f("factor = 3", "factor = -3", "trouble one: factor, count and period cannot be negative, and chance must be from 0 to 1")
	f("chance = 0.1", "chance = 1.1", "trouble one: factor, count and period cannot be negative, and chance must be from 0 to 1")
	f("to = 2", "to = 2\nchance = nan", "trouble two: factor, count and period cannot be negative, and chance must be from 0 to 1")
	f("to = 2", "to = 2\ncount = -1", "trouble two: factor, count and period cannot be negative")
	f("reading = 99", "reading = inf", "trouble two: reading: +Inf is not from")
	f(`kind = "slow-call"`, "kind = \"os-noise\"\nperiod = 1e-4", "trouble one: period = 0.0001 is below 0.001")
	f(`kind = "slow-call"`, "kind = \"os-noise\"\nperiod = inf", "trouble one: period: +Inf is not from")
	excess := func(functions, factor, want string) {
		t.Helper()
		const old = "kind = \"slow-call\"\nfunctions = [\"work\"]\nchance = 0.1\nfactor = 3"
		f(old, fmt.Sprintf("kind = \"excess-work\"\nfunctions = %s\nchance = 0.1\nfactor = %s", functions, factor), "trouble one: "+want)
	}
	excess(`["work"]`, "10", `function "work" must have calls and no kind`)
	excess(`["loop"]`, "10", `function "loop" must have calls and no kind`)
	excess(`["step"]`, "10", `function "step" calls halo, which has kind = "exchange" (want functions without kind)`)
	excess(`["twice"]`, "1.5", "factor = 1.5: excess-work makes at least twice the calls")
	excess(`["twice"]`, "400_000", `function "twice" makes more than 1000000 calls`)
	excess(`["outer", "twice"]`, "2", `function "outer" calls "twice", which is affected, too`)
	rare := func(caller, functions, more, want string) {
		t.Helper()
		const old = "kind = \"slow-call\"\nfunctions = [\"work\"]\nchance = 0.1\nfactor = 3"
		f(old, fmt.Sprintf("kind = \"rare-call\"\ncaller = %q\nfunctions = %s\nchance = 0.1\n%s", caller, functions, more), "trouble one: "+want)
	}
	rare("work", `["lost"]`, "", `caller "work" must be a function with calls and without kind`)
	rare("nobody", `["lost"]`, "", `caller "nobody" must be a function with calls and without kind`)
	rare("twice", `["twice"]`, "", `function "twice" must have neither calls nor kind`)
	rare("twice", `["work"]`, "", `function "work" is also called without the trouble`)
	rare("twice", `["lost"]`, "factor = 3", "rare-call takes no factor, extra or value")
	f("extra = { fixed = 1000 }", "extra = {}", "trouble three: extra is empty, wants a distribution such as { fixed = 5000 }")
	f("extra = { fixed = 1000 }", "extra = { pareto = [1, 0] }",
		"trouble three: extra: pareto = [1 0], wants [lowest above 0, exponent ≥ 0.5]")
	f("factor = 3", "value = { normal = [1] }", "trouble one: value: normal has 1 numbers, wants [mean, standard deviation ≥ 0]")
	for _, key := range []string{"chance = 0.5", "link = [1, 2]", "period = 1", "random = true", "count = 3"} {
		name, _, _ := strings.Cut(key, " ")
		f(`kind = "memory-pressure"`, "kind = \"memory-pressure\"\n"+key, "trouble two: "+name+" is for ")
	}
}

func TestRequiredKeysOfTroubleKinds(t *testing.T) {
	const head = "steps = 1\n[[program]]\nname = \"p\"\nranks = 4\nbody = [\"f\"]\n[program.functions]\nf = { calls = [\"g\"] }\ng = {}\nh = {}\n" +
		"[[trouble]]\nname = \"x\"\nkind = "
	keys := map[string]string{
		"functions": `functions = ["f"]`, "ranks": "ranks = [1]", "hosts": `hosts = ["node00"]`, "chance": "chance = 0.5",
		"link": "link = [0, 1]", "period": "period = 1", "count": "count = 3", "to": "to = 5", "caller": `caller = "f"`,
		"factor": "factor = 2", "extra": "extra = { fixed = 5 }", "value": "value = { fixed = 5 }",
		"factor, extra or value": "value = { fixed = 5 }",
	}
	f := func(kind string, needs ...string) {
		t.Helper()
		parse := func(without string) error {
			text := head + fmt.Sprintf("%q\n", kind)
			for _, n := range needs {
				if n != without {
					text += keys[n] + "\n"
				}
			}
			_, err := scenario.Parse("bad.toml", []byte(text))
			return err
		}
		if err := parse(""); err != nil {
			t.Errorf("%s with %q: %v", kind, needs, err)
		}
		for _, n := range needs {
			want := fmt.Sprintf("bad.toml: trouble x: %s needs %s", kind, n)
			if err := parse(n); err == nil || err.Error() != want {
				t.Errorf("%s without %s:\n got %v\nwant %s", kind, n, err, want)
			}
		}
	}
	f("slow-call", "functions", "chance", "factor, extra or value")
	f("slow-mode", "functions", "chance", "factor, extra or value")
	f("excess-work", "functions", "chance", "factor")
	f("slow-rank", "ranks", "factor, extra or value")
	f("slow-host", "hosts", "factor, extra or value")
	f("slow-link", "link", "extra")
	f("os-noise", "period", "extra")
	f("memory-pressure", "factor")
	f("io-stall", "functions", "factor, extra or value")
	f("gpu-clock-drop", "functions", "factor")
	f("level-shift", "functions", "factor")
	f("drift", "functions", "factor", "to")
	f("huge-value", "functions", "value")
	f("burst", "functions", "count", "factor, extra or value")
	keys["functions"] = `functions = ["h"]`
	f("rare-call", "functions", "caller", "chance")
}

func TestInvalidShapes(t *testing.T) {
	f := func(shape, want string) {
		t.Helper()
		got := broken(t, `time = { fixed = 7 }`, `time = { `+shape+` }`)
		want = "bad.toml: program sim: function work: time: " + want
		if !strings.HasPrefix(got, want) {
			t.Errorf("{ %s }:\n got %s\nwant %s", shape, got, want)
		}
	}
	f("fixed = nan", "fixed: NaN is not from -3.16224e+13 to 3.16224e+13")
	f("fixed = 1e14", "fixed: 1e+14 is not from")
	f("per_byte = inf", "per_byte: +Inf is not from")
	for _, pair := range []string{"normal", "lognormal", "uniform", "integers", "pareto"} {
		f(pair+" = []", pair+" has 0 numbers, wants [")
		f(pair+" = [1, 2, 3]", pair+" has 3 numbers, wants [")
		f(pair+" = [1, nan]", pair+": NaN is not from")
		f(pair+" = [1e20, 1]", pair+": 1e+20 is not from")
	}
	f("normal = [10, -1]", "normal = [10 -1], wants [mean, standard deviation ≥ 0]")
	f("lognormal = [0, 1]", "lognormal = [0 1], wants [median above 0, standard deviation of the logarithm from 0 to 5]")
	f("lognormal = [1, -1]", "lognormal = [1 -1], wants [median above 0")
	f("lognormal = [1, 6]", "lognormal = [1 6], wants [median above 0")
	f("uniform = [2, 1]", "uniform = [2 1], wants [lowest, highest]")
	f("integers = [2, 1]", "integers = [2 1], wants [lowest, highest, both integers]")
	f("integers = [1, 2.5]", "integers = [1 2.5], wants [lowest, highest, both integers]")
	f("integers = [0.5, 2]", "integers = [0.5 2], wants [lowest, highest, both integers]")
	f("pareto = [0, 2]", "pareto = [0 2], wants [lowest above 0, exponent ≥ 0.5]")
	f("pareto = [1, 0.4]", "pareto = [1 0.4], wants [lowest above 0")
	f("fixed = 1, normal = [1, 2]", "has more than one shape, wants one of fixed, normal")
	f("modes = []", "modes is empty")
	f("modes = [{ fixed = 1 }]", "mode 1: weight = 0 must be above 0")
	f("modes = [{ weight = 1, fixed = 1 }, { weight = inf, fixed = 1 }]", "mode 2: weight = +Inf must be above 0")
	f("modes = [{ weight = 1, uniform = [3, 1] }]", "mode 1: uniform = [3 1], wants [lowest, highest]")
	f("modes = [{ weight = 1, modes = [{ weight = 1, fixed = 2 }] }]", "mode 1: a mode cannot have modes")
}

func TestNestingIsLimitedInAnyOrder(t *testing.T) {
	chain := func(body string, n int) error {
		text := "steps = 1\n[[program]]\nname = \"p\"\nranks = 1\nbody = [" + body + "]\n[program.functions]\n"
		for i := range n {
			text += fmt.Sprintf("f%d = { calls = [\"f%d\"] }\n", i, i+1)
		}
		_, err := scenario.Parse("bad.toml", fmt.Appendf(nil, "%sf%d = {}\n", text, n))
		return err
	}
	for _, body := range []string{`"f0"`, `"f40", "f0"`, `"f40", "f20", "f0"`} {
		if err := chain(body, 63); err != nil {
			t.Errorf("body = [%s], 64 deep: %v", body, err)
		}
		if err := chain(body, 64); err == nil || !strings.Contains(err.Error(), "calls are nested more than 64 deep") {
			t.Errorf("body = [%s], 65 deep: %v", body, err)
		}
	}
}

func TestErrorsHavePlaces(t *testing.T) {
	got := broken(t, "ranks = 8", "ranks = 0\nlatency_us = -1")
	for line := range strings.Lines(got) {
		if !strings.HasPrefix(line, "bad.toml: program sim: ") {
			t.Errorf("%q does not name the place", line)
		}
	}
	if strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want two errors", got)
	}
	_, err := scenario.Parse("bad.toml", []byte("steps = 1\n"+strings.Repeat("[[program]]\n", 1000)))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 21 || !strings.HasSuffix(lines[20], " more errors") {
		t.Errorf("a thousand bad programs give %d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func TestHandMadeScenarioIsValidated(t *testing.T) {
	s, err := scenario.Parse("good.toml", []byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	s.Programs[0].Hosts = nil
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "program sim: hosts is empty") {
		t.Errorf("without hosts: %v", err)
	}
}

// hostileTexts returns texts that take a careless parser hours, or make it report errors
// without end.
func hostileTexts() map[string]string {
	size := tracetest.Cases(1<<18, 1<<15)
	fill := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	number := func(head, format string) string {
		b := []byte(head)
		for i := 0; len(b) < size; i++ {
			b = fmt.Appendf(b, format, i, i+1)
		}
		return string(b)
	}
	const program = "steps = 1\n[[program]]\nname = \"p\"\nranks = 1\nbody = [\"f0\"]\n[program.functions]\n"
	return map[string]string{
		"brackets":          fill("["),
		"inline tables":     "x = " + fill("{a = "),
		"over many lines":   fill("x = {a = [\n"),
		"dotted key":        fill("a."),
		"quoted keys":       fill(`"a".'b'.`),
		"after four quotes": `x = ["""a"""", ` + fill("{a = "),
		"quotes":            fill(`'`),
		"long keys":         number("", "a%[1]d.b.c.d.e.f.g.h.i.j.k = %[2]d\n"),
		"functions twofold": number(program, "f%[1]d = { calls = [\"f%[2]d\", \"f%[2]d\"] }\n"),
		"threads in a row": number(program+"f0 = {}\n", "p%[1]d = { kind = \"parallel\", threads = 1, calls = [\"c%[1]d\"] }\nc%[1]d = { "+
			"calls = [\"c%[2]d\"] }\n"),
		"neighbors": number(program+"f0 = { kind = \"exchange\", neighbors = [", "%[1]d, %[2]d, ") + "] }\n",
		"troubles":  number(program+"f0 = {}\n", "[[trouble]]\nname = \"%[1]d\"\nkind = \"burst\"\nhosts = [\"%[2]d\"]\n"),
	}
}

func TestHostileTextEndsWithShortError(t *testing.T) {
	for name, text := range hostileTexts() {
		if _, err := scenario.Parse(name, []byte(text)); err != nil && len(err.Error()) > 10_000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

func BenchmarkParseHostileText(b *testing.B) {
	for name, text := range hostileTexts() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = scenario.Parse(name, []byte(text)) // most have errors
			}
		})
	}
}
