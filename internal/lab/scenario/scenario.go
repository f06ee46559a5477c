// Package scenario describes made-up parallel programs and the trouble planted
// in them: call trees with times of every shape, messages, threads, GPU
// streams, counters, hosts. A scenario is a TOML file; some are built in.
// Package simulate runs them. docs/scenarios.md explains every key.
//
// Times are microseconds, but where a name says seconds.
package scenario

import "time"

// Scenario is a workflow of programs, and what is wrong with it.
type Scenario struct {
	Name string `toml:"name"`
	// Text says in a sentence what the scenario is for.
	Text string `toml:"text"`
	// Seed makes the random numbers; the same seed gives the same run.
	Seed uint64 `toml:"seed"`
	// Start is when the programs begin; the zero time is 2026-01-01.
	Start time.Time `toml:"start"`
	// Steps is how many I/O steps each rank writes.
	Steps int `toml:"steps"`
	// Iterations is how many times the body runs in each step.
	Iterations int `toml:"iterations"`
	// NotableMicros and NotableShare are what a trouble must add to a call, as
	// a time and as a share of its usual time, for the call to be one that has
	// to be found. Less may be found.
	NotableMicros float64   `toml:"notable_us"`
	NotableShare  float64   `toml:"notable_share"`
	Programs      []Program `toml:"program"`
	Troubles      []Trouble `toml:"trouble"`
}

// Program is one program of the workflow, the same on all of its ranks.
type Program struct {
	Name  string `toml:"name"`
	Ranks int    `toml:"ranks"`
	// Hosts are the names of the nodes; ranks are placed on them in blocks.
	Hosts []string `toml:"hosts"`
	// Setup is called once at first, Body in each iteration, Finish at last:
	// names of functions, of which one with a number before it, as in
	// "3 smooth", is called so many times.
	Setup     []string            `toml:"setup"`
	Body      []string            `toml:"body"`
	Finish    []string            `toml:"finish"`
	Functions map[string]Function `toml:"functions"`
	// Latency is how long a message takes, and Bandwidth how many bytes of it
	// travel in a microsecond; 0 means 2 us and 10 000 bytes.
	Latency   float64 `toml:"latency_us"`
	Bandwidth float64 `toml:"bytes_per_us"`
	// Counters tell the state of the node, now and then.
	Counters []Counter `toml:"counter"`
}

// Kind is what a function does.
type Kind string

// The kinds of function.
const (
	Compute    Kind = ""            // takes time and calls others
	Exchange   Kind = "exchange"    // sends to neighbors and waits for theirs
	Collective Kind = "collective"  // waits for all ranks, or for those of its group
	Parallel   Kind = "parallel"    // calls on several threads at once, and waits for all
	Launch     Kind = "launch"      // starts a kernel on a GPU stream, and does not wait
	DeviceSync Kind = "device-sync" // waits for all streams
	Publish    Kind = "publish"     // lets other programs' Await of this iteration continue
	Await      Kind = "await"       // waits for Publish of another program
)

// Function is a function of a program. The key it stands under is what calls
// and troubles name it by.
type Function struct {
	Kind Kind `toml:"kind"`
	// Name is what stands in the trace, if that is other than the key.
	Name string `toml:"name"`
	// Time is the function's own, without that of those it calls. Of those
	// that wait it is what comes on top.
	Time Distribution `toml:"time"`
	// Calls are the functions that it calls, as in Program.Body.
	Calls []string `toml:"calls"`
	// Every has it called in one of so many iterations only.
	Every int `toml:"every"`
	// Message draws a size in bytes for times and messages that follow.
	Message *Distribution `toml:"message"`
	// Counters are read whenever the function is entered.
	Counters map[string]Distribution `toml:"counters"`

	Neighbors []int  `toml:"neighbors"` // exchange: distances to those it sends to, around the end
	Group     int    `toml:"group"`     // collective: how many ranks next to each other; 0: all
	Threads   int    `toml:"threads"`   // parallel: how many
	Kernel    string `toml:"kernel"`    // launch: the function that runs on the GPU
	Stream    int    `toml:"stream"`    // launch: where
	From      string `toml:"from"`      // await: the program, which stands before this one
}

// Counter is a number about a node that is read in intervals.
type Counter struct {
	Name    string       `toml:"name"` // without the prefix that TAU gives it
	Seconds float64      `toml:"seconds"`
	Value   Distribution `toml:"value"`
}

// Distribution is how a number varies; one of its shapes is given, or none for
// always 0. Numbers are rounded, and negative ones count as 0.
type Distribution struct {
	Fixed     *float64  `toml:"fixed"`
	Normal    []float64 `toml:"normal"`    // mean, standard deviation
	Lognormal []float64 `toml:"lognormal"` // median, standard deviation of the logarithm
	Uniform   []float64 `toml:"uniform"`   // lowest, highest
	Integers  []float64 `toml:"integers"`  // lowest, highest: whole numbers, each as likely
	Pareto    []float64 `toml:"pareto"`    // lowest, exponent: a heavy tail
	Modes     []Mode    `toml:"modes"`     // one of several
	// PerByte is added for each byte of the current message.
	PerByte float64 `toml:"per_byte"`
}

// Mode is one of several shapes.
type Mode struct {
	Weight float64 `toml:"weight"`
	Distribution
}

// TroubleKind is what goes wrong.
type TroubleKind string

// The kinds of trouble.
const (
	SlowCall       TroubleKind = "slow-call"       // single calls, by chance
	SlowRank       TroubleKind = "slow-rank"       // all that a rank does itself
	SlowHost       TroubleKind = "slow-host"       // all that the ranks of a host do
	SlowLink       TroubleKind = "slow-link"       // messages between two ranks
	OSNoise        TroubleKind = "os-noise"        // whatever runs when the period is over
	MemoryPressure TroubleKind = "memory-pressure" // rises to the factor and falls again, and a counter tells
	IOStall        TroubleKind = "io-stall"        // the next call of each rank
	GPUClockDrop   TroubleKind = "gpu-clock-drop"  // kernels, and a counter tells
	LevelShift     TroubleKind = "level-shift"     // from now on
	Drift          TroubleKind = "drift"           // more and more
	HugeValue      TroubleKind = "huge-value"      // the next call of each rank takes ages
	Burst          TroubleKind = "burst"           // a number of calls in a row
)

// Trouble is something that goes wrong, where and when.
type Trouble struct {
	Name    string      `toml:"name"`
	Kind    TroubleKind `toml:"kind"`
	Program string      `toml:"program"` // empty: the first
	// Ranks or Hosts are where; neither: everywhere.
	Ranks []int    `toml:"ranks"`
	Hosts []string `toml:"hosts"`
	// Functions are the keys of those that it concerns; none: all that compute.
	Functions []string `toml:"functions"`
	// FromSeconds and ToSeconds are when, since the start; To 0: to the end.
	FromSeconds float64 `toml:"from"`
	ToSeconds   float64 `toml:"to"`
	// What it does to a time: it becomes Factor times as long, it gets Extra on
	// top, or it becomes Value.
	Factor float64       `toml:"factor"`
	Extra  *Distribution `toml:"extra"`
	Value  *Distribution `toml:"value"`

	Chance        float64 `toml:"chance"` // slow-call: for each call
	Link          []int   `toml:"link"`   // slow-link: the two ranks
	PeriodSeconds float64 `toml:"period"` // os-noise
	Count         int     `toml:"count"`  // burst: calls of each rank
	// Counter is one of the program's, which reads Reading meanwhile.
	Counter string  `toml:"counter"`
	Reading float64 `toml:"reading"`
}

// Each reports whether each call that the trouble makes longer is to be found.
// Otherwise it lasts, and it suffices that it is found at all.
func (t *Trouble) Each() bool {
	switch t.Kind {
	case SlowCall, SlowLink, OSNoise, IOStall, HugeValue, Burst:
		return true
	}
	return false
}
