package api

import "time"

// Comparisons of two runs, A and B, and of many. The first value of a pair is that of A.

// Comparables lists the runs that can be compared.
type Comparables struct {
	Rows     []Comparable `json:"rows"`            // runs of the page's own store first
	Usual    string       `json:"usual,omitempty"` // id of the default to compare the page's run with
	Problems []string     `json:"problems"`        // references that cannot be read, and why
	// Neighbors are other runs in a directory, opened only for a comparison. Runs of the same program come first, then the
	// newest.
	Neighbors    []Neighbor `json:"neighbors"`
	NeighborsDir string     `json:"neighbors_dir,omitempty"`
}

// Neighbor is a run in the directory of neighbors.
type Neighbor struct {
	Comparable `tstype:",extends"`

	Program     string `json:"program,omitempty"` // names of its programs, if known
	SameProgram bool   `json:"same_program"`      // it probably runs the program of the page's run
	Bytes       int64  `json:"bytes"`             // of its files
	Version     int64  `json:"-"`                 // differs if the run has changed
}

// Comparable is a run, or the baseline of one.
type Comparable struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Where    string    `json:"where,omitempty"` // empty for runs of the page's own store
	Baseline bool      `json:"baseline"`        // sums and models of a run, without its records
	State    string    `json:"state"`
	Started  time.Time `json:"started,omitzero"`
}

// Difference lists the changes from run A to run B.
type Difference struct {
	Verdict     Verdict          `json:"verdict"`
	Calls       [2]int64         `json:"calls" tstype:"Pair<number>"`
	Exclusive   [2]float64       `json:"exclusive_us" tstype:"Pair<number>"` // of all calls
	Lost        [2]float64       `json:"lost_us" tstype:"Pair<number>"`
	LostPercent [2]float64       `json:"lost_percent" tstype:"Pair<number>"` // of the time of all calls
	Anomalies   [2]int64         `json:"anomalies" tstype:"Pair<number>"`
	Changes     []PathChange     `json:"changes"`   // of call paths with anomalies, largest change of lost time first
	Functions   []FunctionChange `json:"functions"` // largest change of the time of all calls first
	Metadata    []FactChange     `json:"metadata"`  // differences first
	Counts      ChangeCounts     `json:"counts"`
	// Efficiency of programs, and slow peers, the largest change first. Slow peers are compared only
	// if the ranks of both runs were compared with their peers.
	Efficiency []EfficiencyChange `json:"efficiency"`
	Slow       []SlowChange       `json:"slow"`
}

// EfficiencyChange is the change of the efficiency of a program in the entire run. Values are nil if
// ranks were not compared with their peers.
type EfficiencyChange struct {
	Program       int64       `json:"program"`
	Parallel      [2]*float64 `json:"parallel" tstype:"Pair<number | null>"`
	LoadBalance   [2]*float64 `json:"load_balance" tstype:"Pair<number | null>"`
	Communication [2]*float64 `json:"communication" tstype:"Pair<number | null>"`
}

// SlowChange is the change of a place that is slower than its peers.
type SlowChange struct {
	Kind    string      `json:"change"` // new, gone, worse, better or same, by the share
	Program int64       `json:"program"`
	Place   string      `json:"place"`
	Pattern [2]string   `json:"pattern" tstype:"Pair<string>"`
	Ratio   [2]*float64 `json:"ratio" tstype:"Pair<number | null>"` // while it was slow; nil if it was not
	Share   [2]float64  `json:"saved_share" tstype:"Pair<number>"`  // share of the run that it would save without the slowness
}

// Comparison is the difference of two runs as the page shows it: lists are cut to a limit.
type Comparison struct {
	Difference `tstype:",extends"`

	A        Comparable `json:"a"`
	B        Comparable `json:"b"`
	Notices  []Notice   `json:"notices"`
	Programs []int64    `json:"programs"` // of both runs
}

// ChangeCounts counts changes by kind, including those that a list leaves out.
type ChangeCounts struct {
	Changes   map[string]int64 `json:"changes"`
	Functions map[string]int64 `json:"functions"`
	Metadata  map[string]int64 `json:"metadata"` // also "expected": changes that are expected in every run
}

// CallTimes are the times of all calls of a function, on all call paths. Distance and Moved
// are nil if one of the runs has no histogram.
type CallTimes struct {
	Calls    [2]int64   `json:"calls" tstype:"Pair<number>"`
	Mean     [2]float64 `json:"mean_us" tstype:"Pair<number>"`
	Distance *float64   `json:"distance,omitempty"` // Kolmogorov–Smirnov, from 0 to 1
	Moved    *float64   `json:"moved_us,omitempty"` // earth mover's distance
}

// PathChange is the change of the anomalies of a call path.
type PathChange struct {
	CallTimes `tstype:",extends"`

	Kind      string      `json:"change"` // new, gone, worse, better or same, by lost time
	Program   int64       `json:"program"`
	Function  string      `json:"function"`
	CallPath  string      `json:"call_path"`
	Anomalies [2]int64    `json:"anomalies" tstype:"Pair<number>"`
	Lost      [2]float64  `json:"lost_us" tstype:"Pair<number>"`
	Hosts     [2][]string `json:"hosts" tstype:"Pair<string[]>"` // the few that lost most
}

// FunctionChange is the change of the time of all calls of a function.
type FunctionChange struct {
	CallTimes `tstype:",extends"`

	Kind      string     `json:"change"` // new, gone, worse, better or same, by exclusive time
	Program   int64      `json:"program"`
	Function  string     `json:"function"`
	Exclusive [2]float64 `json:"exclusive_us" tstype:"Pair<number>"`
	Lost      [2]float64 `json:"lost_us" tstype:"Pair<number>"`
}

// FactChange compares one piece of metadata of two runs.
type FactChange struct {
	Kind     string    `json:"change"`  // differs, new, gone or same
	Section  string    `json:"section"` // run, hosts, settings or metadata
	Program  int64     `json:"program"`
	Name     string    `json:"name"`
	Values   [2]string `json:"values" tstype:"Pair<string>"`
	Expected bool      `json:"expected"` // it differs in every run: times of day, process ids, output paths
}

// HistogramPair is the distribution of the times of a function in two runs, on common bins.
type HistogramPair struct {
	Function string       `json:"function"`
	Edges    []float64    `json:"edges_us"`                       // one more than shares
	Shares   [2][]float64 `json:"shares" tstype:"Pair<number[]>"` // of all calls of the run
	Samples  [2]int64     `json:"samples" tstype:"Pair<number>"`
	Distance float64      `json:"distance"`                    // Kolmogorov–Smirnov
	At       float64      `json:"at_us"`                       // time of the largest difference of cumulative shares
	Below    [2]float64   `json:"below" tstype:"Pair<number>"` // shares of calls up to At
	Moved    float64      `json:"moved_us"`                    // earth mover's distance
	Missing  string       `json:"missing,omitempty"`           // why there is no histogram
}

// FlamePair is the call paths of two runs in one tree.
type FlamePair struct {
	Metric  string        `json:"metric"` // time or lost
	Root    FlamePairNode `json:"root"`
	Partial string        `json:"partial,omitempty"` // what the tree leaves out
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

// Trend compares many runs and reports since which run the newest one differs.
type Trend struct {
	Verdict Verdict    `json:"verdict"`
	Notices []Notice   `json:"notices"` // runs that are left out
	Runs    []TrendRun `json:"runs"`    // the oldest first
	// Time and Lost begin with the sum of all functions. The functions follow whose time,
	// or lost time, differs most between any two runs, beginning with the one in Verdict.
	Time []TrendSeries `json:"time"`
	Lost []TrendSeries `json:"lost"`
}

// TrendRun is a run of a trend with its totals.
type TrendRun struct {
	Comparable `tstype:",extends"`

	Calls       int64   `json:"calls"`
	Exclusive   float64 `json:"exclusive_us"` // of all calls; 0: unknown
	Lost        float64 `json:"lost_us"`
	LostPercent float64 `json:"lost_percent"` // of the time of all calls
	Anomalies   int64   `json:"anomalies"`
}

// TrendSeries is a function in all runs of a trend, or the sum of all functions.
type TrendSeries struct {
	Program  int64       `json:"program"` // -1: all functions
	Function string      `json:"function"`
	Values   []*float64  `json:"values_us" tstype:"(number | null)[]"` // nil if the times of a run are unknown
	Counts   []int64     `json:"counts"`                               // calls; of lost time: anomalies
	Since    *TrendSince `json:"since,omitempty"`
}

// TrendSince is the start of a lasting change: the newest run and all runs from Run on differ
// from Before. A function that became worse is compared with its best run, others with their
// worst.
type TrendSince struct {
	Run    int    `json:"run"`    // index of Trend.Runs
	Before int    `json:"before"` // index of Trend.Runs
	Change string `json:"change"` // new, gone, worse or better, from Before to the newest run
}
