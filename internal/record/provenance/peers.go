package provenance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
)

// Peers compares ranks, threads and GPUs that do equal work.
type Peers struct {
	Unit  trace.Unit                    // of all times; it is not stored
	Steps map[trace.RankKey][]StepStart `json:"-"` // of ranks whose training steps are known, in order of time; not stored
	// DeviceFunctions are the functions that ran on GPUs; nil if unknown. They are not stored.
	DeviceFunctions map[trace.FuncKey]bool `json:"-"`
	// Work has the time of the calls of ranks over time, without those that wait; nil if unknown. It is not stored.
	Work *WorkTimes `json:"-"`

	Loads      []RankLoad   // by program, rank and thread; the rank itself before its threads
	Efficiency []Efficiency // by program and time; the entire run first
	Slow       []SlowPeer   // the costliest first
	// Activity has the activities of all ranks over time, as encoded by activity.Sketch; nil if they are unknown.
	Activity []byte `json:",omitempty"`
}

// WorkTimes contains the exclusive time of calls of all ranks, without GPUs, by the window of time in which the calls ended.
type WorkTimes struct {
	Begin trace.Ticks // of the first window
	Width trace.Ticks // of each window
	// Of has the times in each window by call path. A function has those of its paths that are not listed under the path 0.
	Of map[callpath.Context][]trace.Ticks
}

// StepStart is when a training step of a rank began.
type StepStart struct {
	Number int64
	Start  trace.Ticks
}

// AllThreads is the thread of loads of entire ranks.
const AllThreads = -1

// RankLoad is how a rank, or one of its threads, spent its time, compared with its peers: those
// of the same program with the same role. Times are in ticks, also those named _us.
type RankLoad struct {
	PID    trace.Program `json:"pid"`
	RID    trace.Rank    `json:"rid"`
	TID    int64         `json:"tid"` // AllThreads: the processor's threads of the rank together
	Device bool          `json:"device"`
	Host   string        `json:"host"`
	Role   int           `json:"role"`  // from 1, in order of the lowest rank
	Peers  int           `json:"peers"` // others with the same role
	// Elapsed is the time from the first entry to the last exit. Of it, Wait is spent waiting, Sync
	// of that in collective calls, and the rest is Useful. Of a rank with several threads, these are of
	// its main thread.
	Elapsed trace.Ticks `json:"elapsed_us"`
	Useful  trace.Ticks `json:"useful_us"`
	Wait    trace.Ticks `json:"wait_us"`
	Sync    trace.Ticks `json:"sync_us"`
	// Ratio is the time of the work divided by that of equal work of peers; nil without peers.
	Ratio *float64 `json:"ratio"`
	// Pattern is when it was slow; empty if it was not. From and To are seconds since the start of
	// the run; To is nil if it lasted to the end.
	Pattern Pattern  `json:"pattern,omitempty"`
	From    *float64 `json:"from_s"`
	To      *float64 `json:"to_s"`
	// Saved is by how much the run would be shorter if the rank were like its peers.
	Saved trace.Ticks `json:"saved_us"`
	Share float64     `json:"saved_share"` // of the time of the run
	// Windows are in order of time; times without data are missing.
	Windows []LoadWindow `json:"windows"`
	// Functions are the ones with the most time, at most ten; none of threads.
	Functions []RankFunction `json:"functions"`
}

// RankFunction is the work of a function on a rank or GPU.
type RankFunction struct {
	Func  string       `json:"function"`
	Calls int64        `json:"calls"`
	Time  trace.Ticks  `json:"time_us"`
	Peers *trace.Ticks `json:"peers_us"` // time of equal work of peers; nil without peers
}

// LoadWindow is a RankLoad in a window of time.
type LoadWindow struct {
	From   float64     `json:"from_s"` // seconds since the start of the run
	To     float64     `json:"to_s"`
	Useful trace.Ticks `json:"useful_us"`
	Wait   trace.Ticks `json:"wait_us"`
	Ratio  *float64    `json:"ratio"` // nil without comparable work
}

// Pattern is when a rank is slower than its peers.
type Pattern string

// The patterns.
const (
	Always  Pattern = "always"  // throughout the run
	Since   Pattern = "since"   // from some time on
	Phase   Pattern = "phase"   // for a while
	ByRole  Pattern = "role"    // all with its role: the work is divided unevenly
	Roaming Pattern = "roaming" // the slow rank changes
)

// SlowPeer is a rank, host, thread, GPU or role that is slower than its peers.
type SlowPeer struct {
	PID     trace.Program `json:"pid"`
	Pattern Pattern       `json:"pattern"`
	Host    string        `json:"host,omitempty"` // if most of its ranks are slow, and those of others are not
	Ranks   []trace.Rank  `json:"ranks"`
	Hosts   []string      `json:"hosts"`
	TID     int64         `json:"tid"` // AllThreads unless it is one thread
	Device  bool          `json:"device"`
	Role    int           `json:"role"`
	Peers   int           `json:"peers"` // ranks that it was compared with
	Weak    bool          `json:"weak"`  // too few peers: compared with its own past as well, if there is one
	Ratio   float64       `json:"ratio"` // while it was slow
	From    float64       `json:"from_s"`
	To      *float64      `json:"to_s"`
	// LostOwn is the time beyond that of equal work of peers, and LostCaused how long others waited
	// for it.
	LostOwn    trace.Ticks `json:"lost_own_us"`
	LostCaused trace.Ticks `json:"lost_caused_us"`
	Saved      trace.Ticks `json:"saved_us"` // by how much the run would be shorter
	Share      float64     `json:"saved_share"`
	Confidence float64     `json:"confidence"`
	// Evidence.
	Windows   []LoadWindow   `json:"windows"`
	Functions []SlowFunction `json:"functions"` // the ones that lost the most time
	Counters  []SlowCounter  `json:"counters"`  // counters that differ from those of peers, the most unusual first
	Twin      *trace.Rank    `json:"twin"`      // a peer with a ratio near 1, to compare with, or nil
	SyncShare float64        `json:"sync_share"`
	PeerSync  float64        `json:"peer_sync_share"` // median share of time that peers spend in collective calls
	// HiddenWaits are functions in which peers wait for it that do not appear as waits. They are not stored.
	HiddenWaits []string `json:"-"`
}

// Place names the slow peer. Names of different places of a run differ, except for places with many ranks.
func (s *SlowPeer) Place() string {
	ranks := "ranks " + text.Ranges(s.Ranks)
	if len(s.Ranks) == 1 {
		ranks = fmt.Sprintf("rank %d", s.Ranks[0])
	}
	switch {
	case s.Pattern == Roaming:
		return "changing ranks"
	case s.Pattern == ByRole:
		if stage := s.stage(); stage != "" {
			return fmt.Sprintf("%s (%s)", stage, ranks)
		}
		return fmt.Sprintf("role %d (%s)", s.Role, ranks)
	case s.Device && s.TID != AllThreads:
		return fmt.Sprintf("GPU thread %d of %s", s.TID, ranks)
	case s.Device && len(s.Ranks) > 1:
		return "the GPUs of " + ranks
	case s.Device:
		return "the GPU of " + ranks
	case s.TID != AllThreads:
		return fmt.Sprintf("thread %d of %s", s.TID, ranks)
	case s.Host != "":
		return text.OneLine(s.Host)
	}
	return ranks
}

// stage returns the stage of a pipeline that all functions are of, or an empty string.
func (s *SlowPeer) stage() string {
	if len(s.Functions) == 0 {
		return ""
	}
	stage := StageOf(s.Functions[0].Func)
	for i := range s.Functions {
		if stage == "" || StageOf(s.Functions[i].Func) != stage {
			return ""
		}
	}
	return "pipeline stage " + stage
}

// StageOf returns the stage of a pipeline that the name of a function ends with, such as 3 of "forward [PP rank 3]", or an empty
// string.
func StageOf(function string) string {
	_, stage, _ := strings.Cut(function, " [PP rank ")
	stage, ok := strings.CutSuffix(stage, "]")
	if !ok {
		return ""
	}
	return stage
}

// SlowPeerOf returns the slow peer that a finding is about, or nil. Several may have the same ranks, such as
// two GPUs of a rank: these differ in the time that they lost.
func SlowPeerOf(x *Finding, all []SlowPeer) (of *SlowPeer) {
	distance := func(s *SlowPeer) trace.Ticks { return max(s.LostOwn-x.LostOwn, x.LostOwn-s.LostOwn) }
	for i := range all {
		s := &all[i]
		same := x.OfPeers() && s.Extra() == (x.Kind == ExcessWork) && x.PID == s.PID && slices.Equal(x.Ranks, s.Ranks)
		if same && (of == nil || distance(s) < distance(of)) {
			of = s
		}
	}
	return of
}

// SlowFunction is a function of a slow peer.
type SlowFunction struct {
	Func   string      `json:"function"`
	Calls  int64       `json:"calls"`
	Mean   float64     `json:"mean_us"`
	Peers  float64     `json:"peers_mean_us"`
	Beyond trace.Ticks `json:"lost_us"` // beyond the time of equal work of peers
	// PeerCalls is how many calls a peer makes meanwhile, if the slow peer does extra work; nil otherwise.
	PeerCalls *float64 `json:"peers_calls,omitempty"`
}

// Extra reports whether it makes more calls than its peers, rather than slower ones.
func (s *SlowPeer) Extra() bool { return len(s.Functions) > 0 && s.Functions[0].PeerCalls != nil }

// SlowCounter is a counter of a slow peer that differed from those of its peers while it was slow.
type SlowCounter struct {
	Counter string `json:"counter"`
	// Rate is true if the values are the increase per second of a counter that only increases;
	// otherwise they are the mean of its readings.
	Rate  bool     `json:"rate"`
	Value float64  `json:"value"`
	Peers float64  `json:"peers_value"` // median of peers
	Past  *float64 `json:"past_value"`  // its own in the rest of the run; nil if unknown
	// Spreads is the difference to peers divided by the spread of their values; with few peers, the change beyond
	// that of peers divided by the spread of its own past.
	Spreads float64 `json:"spreads"`
}

// Efficiency has the metrics of the POP methodology for a program in a window of time, or in the
// entire run.
type Efficiency struct {
	PID    trace.Program `json:"pid"`
	Entire bool          `json:"entire"`   // of the run
	Begin  trace.Ticks   `json:"begin_us"` // of the run, from which seconds count
	From   float64       `json:"from_s"`
	To     float64       `json:"to_s"`
	Ranks  int           `json:"ranks"`
	// Parallel = LoadBalance × Communication: the share of the time of all ranks that is useful.
	Parallel      float64 `json:"parallel"`
	LoadBalance   float64 `json:"load_balance"`  // mean useful time divided by the greatest
	Communication float64 `json:"communication"` // greatest useful time divided by the elapsed time
	Slowest       int64   `json:"slowest_rank"`  // with the greatest useful time
	// The same for the busy time of GPUs; nil without.
	DeviceParallel    *float64 `json:"device_parallel"`
	DeviceLoadBalance *float64 `json:"device_load_balance"`
}
