package api

// What the page asks to compare more than two runs.

// Trend is how functions went from run to run, as chimbuko diff tells it of many.
type Trend struct {
	Verdict Verdict    `json:"verdict"` // since when the newest run is as it is
	Notices []Notice   `json:"notices"` // which runs are left out
	Runs    []TrendRun `json:"runs"`    // the oldest first
	// Time and Lost are all functions together, and then those whose time of all calls, and
	// whose lost time, differs most between any two runs: first the one that the verdict
	// names, then the one with the largest difference.
	Time []TrendSeries `json:"time"`
	Lost []TrendSeries `json:"lost"`
}

// TrendRun is a run of a trend and all that it did.
type TrendRun struct {
	Comparable `tstype:",extends"`

	Calls       int64   `json:"calls"`
	Exclusive   float64 `json:"exclusive_us"` // of all calls; 0: not known
	Lost        int64   `json:"lost_us"`
	LostPercent float64 `json:"lost_percent"` // of the time of all calls
	Anomalies   int64   `json:"anomalies"`
}

// TrendSeries is a function in all runs of a trend, or all functions together.
type TrendSeries struct {
	Program  int64       `json:"program"` // -1: all functions
	Function string      `json:"function"`
	Values   []*float64  `json:"values_us" tstype:"(number | null)[]"` // null where the times of a run are not known
	Counts   []int64     `json:"counts"`                               // calls, or of lost time anomalies
	Since    *TrendSince `json:"since,omitempty"`
}

// TrendSince tells that the newest run differs from an earlier one, and so do all from one on.
type TrendSince struct {
	Run    int    `json:"run"`    // the first of them: its place in runs
	Before int    `json:"before"` // the earlier one
	Change string `json:"change"` // new, gone, worse or better
}
