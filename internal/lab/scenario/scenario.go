// Package scenario describes simulated parallel programs and the troubles planted in
// them: call trees with distributions of times, messages, threads, GPU streams,
// counters, hosts. A scenario is a TOML file; some are built in. Package simulate runs
// them. docs/scenarios.md explains every key.
//
// Times are in microseconds, unless the name has seconds.
package scenario

import "time"

// Scenario is a workflow of programs and its troubles.
type Scenario struct {
	Name string `toml:"name"`
	// Text is the purpose of the scenario, in a sentence.
	Text string `toml:"text"`
	// Seed is the seed of the random numbers; the same seed gives the same run.
	Seed uint64 `toml:"seed"`
	// Start is the start of the programs; the zero time means 2026-01-01.
	Start time.Time `toml:"start"`
	// Steps is the number of I/O steps that each rank writes.
	Steps int `toml:"steps"`
	// Iterations is the number of times that the body runs in each step.
	Iterations int `toml:"iterations"`
	// NotableMicros and NotableShare are the least that a trouble must add to a call, as
	// a time and as a share of its usual time, for the call to be required to be found.
	NotableMicros float64   `toml:"notable_us"`
	NotableShare  float64   `toml:"notable_share"`
	Programs      []Program `toml:"program"`
	Troubles      []Trouble `toml:"trouble"`
}

// Program is one program of the workflow, the same on all of its ranks.
type Program struct {
	Name  string `toml:"name"`
	Ranks int    `toml:"ranks"`
	// Hosts are the names of the nodes, which hold ranks in blocks.
	Hosts []string `toml:"hosts"`
	// Setup is called once at the start, Body in each iteration, Finish at the end. They
	// are names of functions; "3 smooth" calls smooth three times.
	Setup     []string            `toml:"setup"`
	Body      []string            `toml:"body"`
	Finish    []string            `toml:"finish"`
	Functions map[string]Function `toml:"functions"`
	// Latency is that of a message, and Bandwidth is in bytes per microsecond; 0 means
	// 2 us and 10,000 bytes per microsecond.
	Latency   float64 `toml:"latency_us"`
	Bandwidth float64 `toml:"bytes_per_us"`
	// Counters describe the state of the node.
	Counters []Counter `toml:"counter"`
}

// Kind is the kind of a function.
type Kind string

// The kinds of function.
const (
	Compute    Kind = ""            // takes time and calls others
	Exchange   Kind = "exchange"    // sends to neighbors and waits for their messages
	Collective Kind = "collective"  // waits for all ranks, or for those of its group
	Parallel   Kind = "parallel"    // calls functions on several threads at once, and waits for all
	Launch     Kind = "launch"      // starts a kernel on a GPU stream without waiting
	DeviceSync Kind = "device-sync" // waits for all streams
	Publish    Kind = "publish"     // lets other programs' Await of this iteration continue
	Await      Kind = "await"       // waits for Publish of another program
)

// Function is a function of a program. Calls and troubles refer to it by its key.
type Function struct {
	Kind Kind `toml:"kind"`
	// Name is the name in the trace, if it differs from the key.
	Name string `toml:"name"`
	// Time is the function's own time, without calls and waits.
	Time Distribution `toml:"time"`
	// Calls are the functions that it calls, as in Program.Body.
	Calls []string `toml:"calls"`
	// Every n calls it in one of n iterations only.
	Every int `toml:"every"`
	// Part is the part of the iterations that call it, as two shares of their number; nil
	// means all.
	Part []float64 `toml:"part"`
	// RankPart is the part of the ranks that call it, as two shares of their number; nil means
	// all.
	RankPart []float64 `toml:"rank_part"`
	// Spread is how much longer the slowest rank may take than the fastest, as a share. Each
	// rank has a constant factor from 1 to 1 + Spread, chosen at random.
	Spread float64 `toml:"spread"`
	// Message is the size in bytes that later times and messages depend on.
	Message *Distribution `toml:"message"`
	// Counters are read at each entry of the function.
	Counters map[string]Distribution `toml:"counters"`

	Neighbors []int  `toml:"neighbors"` // exchange: distances to the receivers, with wraparound
	Group     int    `toml:"group"`     // collective: number of adjacent ranks; 0: all
	Threads   int    `toml:"threads"`   // parallel: number of threads
	Kernel    string `toml:"kernel"`    // launch: the function that runs on the GPU
	Stream    int    `toml:"stream"`    // launch: the GPU stream
	From      string `toml:"from"`      // await: a program defined before this one
}

// Counter is a counter of a node that is read at intervals.
type Counter struct {
	Name    string       `toml:"name"` // without the prefix that TAU gives it
	Seconds float64      `toml:"seconds"`
	Value   Distribution `toml:"value"`
}

// Distribution is a distribution of numbers. At most one of its shapes is given; without
// one it is always 0. Numbers are rounded, and negative ones count as 0.
type Distribution struct {
	Fixed     *float64  `toml:"fixed"`
	Normal    []float64 `toml:"normal"`    // mean, standard deviation
	Lognormal []float64 `toml:"lognormal"` // median, standard deviation of the logarithm
	Uniform   []float64 `toml:"uniform"`   // lowest, highest
	Integers  []float64 `toml:"integers"`  // lowest, highest: uniform integers
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

// TroubleKind is the kind of a trouble.
type TroubleKind string

// The kinds of trouble.
const (
	SlowCall       TroubleKind = "slow-call"       // single calls, at random
	SlowMode       TroubleKind = "slow-mode"       // a share of the calls, at random, all the time
	ExcessWork     TroubleKind = "excess-work"     // single calls, at random, make more calls than usual
	RareCall       TroubleKind = "rare-call"       // single calls, at random, of functions that are not called otherwise
	SlowRank       TroubleKind = "slow-rank"       // all calls of a rank
	SlowHost       TroubleKind = "slow-host"       // all calls of the ranks of a host
	SlowLink       TroubleKind = "slow-link"       // messages between two ranks
	OSNoise        TroubleKind = "os-noise"        // the running call, periodically or at random
	MemoryPressure TroubleKind = "memory-pressure" // rises to the factor and falls again if it ends, with a counter
	IOStall        TroubleKind = "io-stall"        // the next call of each rank
	GPUClockDrop   TroubleKind = "gpu-clock-drop"  // kernels, with a counter
	LevelShift     TroubleKind = "level-shift"     // all later calls
	Drift          TroubleKind = "drift"           // later calls, increasingly
	HugeValue      TroubleKind = "huge-value"      // the next call of each rank takes extremely long
	Burst          TroubleKind = "burst"           // a number of consecutive calls
)

// Trouble is a planted trouble with its place, time and effect.
type Trouble struct {
	Name    string      `toml:"name"`
	Kind    TroubleKind `toml:"kind"`
	Program string      `toml:"program"` // empty: the first
	// Ranks or Hosts are its place; neither means everywhere.
	Ranks []int    `toml:"ranks"`
	Hosts []string `toml:"hosts"`
	// Functions are the keys of affected functions; empty means all of kind Compute.
	Functions []string `toml:"functions"`
	// FromSeconds and ToSeconds are relative to the start; To 0 means the end of the run.
	FromSeconds float64 `toml:"from"`
	ToSeconds   float64 `toml:"to"`
	// A time is multiplied by Factor, increased by Extra, or replaced by Value. The Factor
	// of excess-work multiplies the number of calls.
	Factor float64       `toml:"factor"`
	Extra  *Distribution `toml:"extra"`
	Value  *Distribution `toml:"value"`

	Chance        float64 `toml:"chance"` // slow-call, slow-mode, excess-work: for each call; rare-call: for each of the caller
	Caller        string  `toml:"caller"` // rare-call: the function that makes the calls
	Link          []int   `toml:"link"`   // slow-link: the two ranks
	PeriodSeconds float64 `toml:"period"` // os-noise
	Random        bool    `toml:"random"` // os-noise: the period is the mean of random ones
	Count         int     `toml:"count"`  // burst, rare-call: calls of each rank
	// Counter is one of the program's, which has the value Reading during the trouble.
	Counter string  `toml:"counter"`
	Reading float64 `toml:"reading"`
}

// Each reports whether each call that the trouble lengthens must be found. Otherwise the
// trouble lasts, and one flag suffices.
func (t *Trouble) Each() bool {
	switch t.Kind {
	case SlowCall, RareCall, SlowLink, OSNoise, IOStall, HugeValue, Burst:
		return true
	case ExcessWork:
		return t.Chance < 1
	}
	return false
}
