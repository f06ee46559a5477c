package api

import "time"

// What the page asks to compare two runs, A and B. Pairs are always that of A first.

// Comparables are the runs that can be compared.
type Comparables struct {
	Rows  []Comparable `json:"rows"`            // those of the store of the page first
	Usual string       `json:"usual,omitempty"` // id of the one that the run of the page is usually compared with
	// Problems say what else was given to compare with, and why it cannot be.
	Problems []string `json:"problems"`
}

// Comparable is a run, or what is kept of one.
type Comparable struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Where    string    `json:"where,omitempty"` // of the ones that are not in the store of the page
	Baseline bool      `json:"baseline"`        // what is kept of a run, without its records
	State    string    `json:"state"`
	Started  time.Time `json:"started,omitzero"`
}

// Comparison is what changed from A to B, as chimbuko diff tells it.
type Comparison struct {
	A           Comparable       `json:"a"`
	B           Comparable       `json:"b"`
	Verdict     Verdict          `json:"verdict"`
	Notices     []Notice         `json:"notices"`
	Programs    []int64          `json:"programs"` // that A or B has
	Calls       [2]int64         `json:"calls" tstype:"Pair<number>"`
	Exclusive   [2]float64       `json:"exclusive_us" tstype:"Pair<number>"` // of all calls
	Lost        [2]int64         `json:"lost_us" tstype:"Pair<number>"`
	LostPercent [2]float64       `json:"lost_percent" tstype:"Pair<number>"` // of the time of all calls
	Anomalies   [2]int64         `json:"anomalies" tstype:"Pair<number>"`
	Changes     []PathChange     `json:"changes"`   // of call paths with anomalies, the largest change of lost time first
	Functions   []FunctionChange `json:"functions"` // the largest change of the time of all calls first
	Metadata    []FactChange     `json:"metadata"`  // what differs first
	Counts      ChangeCounts     `json:"counts"`
}

// ChangeCounts are how many there are of each kind; rows may be the first of them.
type ChangeCounts struct {
	Changes   map[string]int64 `json:"changes"`
	Functions map[string]int64 `json:"functions"`
	Metadata  map[string]int64 `json:"metadata"` // differs, new, gone, same; expected: of these, those that tell nothing
}

// CallTimes are how long all calls of a function took in A and B.
type CallTimes struct {
	Calls    [2]int64   `json:"calls" tstype:"Pair<number>"`
	Mean     [2]float64 `json:"mean_us" tstype:"Pair<number>"`
	Distance *float64   `json:"distance,omitempty"` // Kolmogorov and Smirnov, from 0 to 1
	Moved    *float64   `json:"moved_us,omitempty"` // earth mover
}

// PathChange is what became of the anomalies of a call path.
type PathChange struct {
	CallTimes `tstype:",extends"`

	Change    string      `json:"change"` // new, gone, worse, better or same
	Program   int64       `json:"program"`
	Function  string      `json:"function"`
	CallPath  string      `json:"call_path"`
	Anomalies [2]int64    `json:"anomalies" tstype:"Pair<number>"`
	Lost      [2]int64    `json:"lost_us" tstype:"Pair<number>"`
	Hosts     [2][]string `json:"hosts" tstype:"Pair<string[]>"` // that lost most
}

// FunctionChange is what became of the time of all calls of a function.
type FunctionChange struct {
	CallTimes `tstype:",extends"`

	Change    string     `json:"change"` // new, gone, worse, better or same
	Program   int64      `json:"program"`
	Function  string     `json:"function"`
	Exclusive [2]float64 `json:"exclusive_us" tstype:"Pair<number>"`
	Lost      [2]int64   `json:"lost_us" tstype:"Pair<number>"`
}

// FactChange is something that is told of A and B.
type FactChange struct {
	Kind     string    `json:"change"`  // differs, new, gone or same
	Section  string    `json:"section"` // run, hosts, settings or metadata
	Program  int64     `json:"program"`
	Name     string    `json:"name"`
	Values   [2]string `json:"values" tstype:"Pair<string>"`
	Expected bool      `json:"expected"` // it differs from run to run and tells nothing
}

// HistogramPair is how long the calls of a function took in A and B, on common bins.
type HistogramPair struct {
	Function string       `json:"function"`
	Edges    []float64    `json:"edges_us"`                       // one more than shares
	Shares   [2][]float64 `json:"shares" tstype:"Pair<number[]>"` // of all calls of each
	Samples  [2]int64     `json:"samples" tstype:"Pair<number>"`
	Distance float64      `json:"distance"`
	At       float64      `json:"at_us"`                       // where the cumulative shares differ most
	Below    [2]float64   `json:"below" tstype:"Pair<number>"` // the shares of calls up to there
	Moved    float64      `json:"moved_us"`
	// Missing says why there is nothing to show; empty: there is.
	Missing string `json:"missing,omitempty"`
}

// FlamePair is the call paths of A and B in one tree.
type FlamePair struct {
	Metric  string        `json:"metric"` // time or lost
	Root    FlamePairNode `json:"root"`
	Partial string        `json:"partial,omitempty"`
}

// FlamePairNode is a function below its callers.
type FlamePairNode struct {
	Function string          `json:"function"`
	Group    string          `json:"group"`
	Self     [2]float64      `json:"self_us" tstype:"Pair<number>"`
	Total    [2]float64      `json:"total_us" tstype:"Pair<number>"` // with children
	Calls    [2]int64        `json:"calls" tstype:"Pair<number>"`
	Children []FlamePairNode `json:"children"`
}
