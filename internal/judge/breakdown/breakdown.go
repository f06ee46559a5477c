// Package breakdown divides the time of the GPUs of a rank into computation, communication, memory copies and idle time, for
// each training step and for the whole rank, and divides idle time by reason. It also compares collective operations over
// ranks: how long they take, how far apart the ranks arrive, and which rank is last.
//
// A Rank receives the activities of one rank in bounded memory: it sweeps over time behind the reader, and keeps activities
// only until Settle. All sums are exact. Names and definitions are those of Holistic Trace Analysis (HTA) where HTA has them;
// docs/breakdown.md lists the differences. The package reads no clock and starts no goroutines. A Rank is not safe for
// concurrent use.
package breakdown

import (
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Kind is the kind of an activity of a GPU.
type Kind uint8

// The kinds of activity.
const (
	Compute       Kind = iota // kernels that compute
	Communication             // kernels of NCCL and RCCL
	Memory                    // copies and fills of memory
	numKinds
)

// KindOf returns the kind of an activity by its name in a trace of PyTorch or TAU.
func KindOf(name string) Kind {
	switch {
	case strings.HasPrefix(name, "nccl") && strings.Contains(name, "Kernel"):
		return Communication
	case strings.HasPrefix(name, "Memcpy"), strings.HasPrefix(name, "Memset"), strings.HasPrefix(name, "dma"),
		strings.HasPrefix(name, "Memory copy"):
		return Memory
	}
	return Compute
}

// Set is a set of kinds that are active at the same time. The empty set is idle time.
type Set uint8

// SetOf returns the set of the given kinds.
func SetOf(kinds ...Kind) (s Set) {
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has reports whether a kind is in the set.
func (s Set) Has(k Kind) bool { return s&(1<<k) != 0 }

const numSets = 1 << numKinds

// Sums divides a span of time by the set of kinds that were active, and its idle time by reason. The sums over all sets, and
// those over all reasons, are exact.
type Sums struct {
	BySet [numSets]trace.Ticks
	Idle  Reasons
}

// Reasons divides idle time by what the next activity waited for.
type Reasons struct {
	HostWait   trace.Ticks // its launch began after the previous activity had ended
	KernelWait trace.Ticks // its launch was in time, and the gap is shorter than Config.KernelDelay
	Other      trace.Ticks // any other gap, such as a wait for another stream
}

type reason uint8

const (
	noReason reason = iota // time that is not idle
	hostWait
	kernelWait
	otherWait
)

func (r *Reasons) addTime(why reason, t trace.Ticks) {
	switch why {
	case hostWait:
		r.HostWait += t
	case kernelWait:
		r.KernelWait += t
	case noReason, otherWait:
		r.Other += t
	}
}

// Total returns the length of the span: the sum of Active(Compute), ExposedCommunication, ExposedMemory and IdleTime.
func (s *Sums) Total() (t trace.Ticks) {
	for _, of := range s.BySet {
		t += of
	}
	return t
}

// Active returns the time in which activities of a kind ran, alone or with others. Active(Compute) is HTA's compute time.
func (s *Sums) Active(k Kind) (t trace.Ticks) {
	for set, of := range s.BySet {
		if Set(set).Has(k) {
			t += of
		}
	}
	return t
}

// IdleTime returns the time without any activity.
func (s *Sums) IdleTime() trace.Ticks { return s.BySet[0] }

// ExposedCommunication returns the time of communication without computation.
func (s *Sums) ExposedCommunication() trace.Ticks {
	return s.BySet[SetOf(Communication)] + s.BySet[SetOf(Communication, Memory)]
}

// ExposedMemory returns the time of memory copies without computation and communication.
func (s *Sums) ExposedMemory() trace.Ticks { return s.BySet[SetOf(Memory)] }

// Overlap returns the time in which communication and computation ran concurrently. HTA's overlap is its share of
// Active(Communication).
func (s *Sums) Overlap() trace.Ticks {
	return s.BySet[SetOf(Compute, Communication)] + s.BySet[SetOf(Compute, Communication, Memory)]
}

// Config configures a Rank.
type Config struct {
	// KernelDelay is the least gap between two activities that the overhead of starting the second does not explain.
	KernelDelay trace.Ticks
	MaxPending  int // number of activities to keep after Settle
	MaxSteps    int // number of steps to keep
}

// Default returns the usual settings for times in the given unit.
func Default(unit trace.Unit) Config {
	return Config{KernelDelay: unit.FromMicros(kernelDelay), MaxPending: 1 << 20, MaxSteps: 1 << 12}
}

// kernelDelay is the delay of HTA in microseconds. HTA's documentation says nanoseconds, but its code compares the delay with
// microseconds.
const kernelDelay = 30

// Run is the breakdown of a run.
type Run struct {
	Ranks       []RankResult        // ranks with GPUs, by program and rank
	Collectives []ProgramComparison // programs with collective operations, in order
}

// Tallies of a breakdown about times and about collective operations.
var (
	TimeTallies       = []tally.Kind{tally.LaunchUnknown, tally.ActivityLate, tally.StepsFolded}
	CollectiveTallies = []tally.Kind{tally.CollectiveAlone, tally.CollectiveUnmatched, tally.CollectiveOmitted, tally.ClockCorrected}
)

// Count adds the omissions of a breakdown to a tally. A nil Run has none.
func (r *Run) Count(t *tally.Tally) {
	if r == nil {
		return
	}
	for i := range r.Ranks {
		of := &r.Ranks[i]
		t.Add(tally.LaunchUnknown, of.NoLaunch)
		t.Add(tally.ActivityLate, of.Late)
		t.Add(tally.StepsFolded, of.StepsOmitted)
	}
	for i := range r.Collectives {
		of := &r.Collectives[i]
		t.Add(tally.CollectiveAlone, of.Alone)
		t.Add(tally.CollectiveUnmatched, of.Unmatched)
		t.Add(tally.CollectiveOmitted, of.Omitted)
	}
}

// RankResult is the breakdown of a rank of a run.
type RankResult struct {
	trace.RankKey
	Result
}

// ProgramComparison compares the collective operations of the ranks of a program.
type ProgramComparison struct {
	Program trace.Program
	Comparison
}
