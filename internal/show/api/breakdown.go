package api

// Breakdown is how the GPUs of the ranks of a run spent their time, and its collective operations.
type Breakdown struct {
	Times       GPUTimes    `json:"times"` // of ranks, without streams
	Collectives Collectives `json:"collectives"`
}

// GPUTimes is how the GPUs of ranks, or of their training steps, spent their time. Times are
// microseconds.
type GPUTimes struct {
	Rows  []GPUTime `json:"rows"`  // by program, rank and step
	More  int       `json:"more"`  // rows beyond the limit
	Steps bool      `json:"steps"` // rows are training steps
	Notes []Tally   `json:"notes"` // missing or inexact data
}

// GPUTime is a row of GPUTimes. Total is the sum of Compute, ExposedCommunication, ExposedMemory and
// Idle; Idle is the sum of the three waits.
type GPUTime struct {
	Program int64  `json:"program"`
	Rank    int64  `json:"rank"`
	Host    string `json:"host,omitempty"` // if known
	Step    *int64 `json:"step,omitempty"`
	// Start is the start of the step on the host, or of the first activity of the rank, in
	// microseconds since the epoch. From is the same time in seconds since the start of the run, if
	// known.
	Start float64  `json:"start_us"`
	From  *float64 `json:"from_s,omitempty"`
	Total float64  `json:"total_us"`
	// Compute, Communication and Memory are the times during which such activities ran. They may overlap.
	Compute              float64      `json:"compute_us"`
	Communication        float64      `json:"communication_us"`
	Memory               float64      `json:"memory_us"`
	ExposedCommunication float64      `json:"exposed_communication_us"` // without computation
	ExposedMemory        float64      `json:"exposed_memory_us"`        // without computation and communication
	Overlap              float64      `json:"overlap_us"`               // of communication with computation
	Idle                 float64      `json:"idle_us"`
	HostWait             float64      `json:"host_wait_us"`
	KernelWait           float64      `json:"kernel_wait_us"`
	OtherWait            float64      `json:"other_wait_us"`
	Streams              []StreamTime `json:"streams,omitempty"` // of a rank
}

// StreamTime is how a stream of a GPU spent its time.
type StreamTime struct {
	Thread     int64   `json:"tid"`            // of the trace
	Name       string  `json:"name,omitempty"` // as in the trace, if it has one
	Activities int64   `json:"activities"`
	Busy       float64 `json:"busy_us"`
	HostWait   float64 `json:"host_wait_us"`
	KernelWait float64 `json:"kernel_wait_us"`
	OtherWait  float64 `json:"other_wait_us"`
	Overlap    float64 `json:"overlap_us"` // time during which an activity overlapped the previous one
}

// RankSteps is how the GPUs of a rank spent their time, in all and in each training step.
type RankSteps struct {
	Rank  GPUTime   `json:"rank"`
	Steps []GPUTime `json:"steps"` // in order of time
	More  int       `json:"more"`  // steps beyond the limit
}

// Collectives are the collective operations of a run, compared over ranks. Times are microseconds.
type Collectives struct {
	Rows   []Collective `json:"rows"`   // the one with the longest total latency first
	More   int          `json:"more"`   // rows beyond the limit
	Clocks []Clock      `json:"clocks"` // by program and rank
	Notes  []Tally      `json:"notes"`  // operations that were not compared
}

// Collective is a row of Collectives.
type Collective struct {
	Program   int64  `json:"program"`
	Operation string `json:"operation"`
	Group     string `json:"process_group"`
	Size      int64  `json:"group_size"`
	Seen      int64  `json:"ranks_seen"` // the most ranks of an execution that recorded it
	Bytes     int64  `json:"bytes"`
	DType     string `json:"dtype"`
	Calls     int64  `json:"calls"`
	// Latency is the shortest duration of an execution over its ranks.
	MeanLatency float64 `json:"mean_latency_us"`
	MaxLatency  float64 `json:"max_latency_us"`
	// Skew is the time from the first to the last arrival; nil if only one rank recorded it.
	MeanSkew  *float64   `json:"mean_skew_us" tstype:"number | null,required"`
	MaxSkew   *float64   `json:"max_skew_us" tstype:"number | null,required"`
	Last      []LastRank `json:"last_ranks"`    // the most often first
	Bandwidth float64    `json:"bus_bandwidth"` // bytes per second; 0 if unknown
}

// LastRank is the number of executions for which a rank was the last to arrive.
type LastRank struct {
	Rank  int64 `json:"rank"`
	Calls int64 `json:"calls"`
}

// Clock is the correction of the clock of a rank.
type Clock struct {
	Program int64   `json:"program"`
	Rank    int64   `json:"rank"`
	Offset  float64 `json:"offset_us"` // lead over the clock of the lowest rank that it communicates with
	Matched int64   `json:"matched"`   // ends of collective operations that were compared
}
