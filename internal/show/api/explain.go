package api

// Explained compares the selected anomalies with other executions.
type Explained struct {
	Sentence  string  `json:"sentence"`
	Selected  int64   `json:"selected"` // anomalies
	Lost      float64 `json:"lost_us"`
	Estimated bool    `json:"reckoned"` // Selected and Lost are extrapolated from a sample
	Examined  int     `json:"looked"`   // anomalies that were examined
	// Typical and Others are the numbers of typical executions and of other anomalies of the same
	// functions to compare with. Statistics of all calls, ranks or readings replace them if
	// available.
	Typical   int               `json:"typical"`
	Others    int               `json:"others"`
	Functions []ExplainFunction `json:"functions"`
	Fields    []ExplainField    `json:"fields"`  // best explanation first
	Command   string            `json:"command"` // command line with the same answer
}

// ExplainFunction counts the anomalies of a function.
type ExplainFunction struct {
	Program    int64  `json:"program"`
	Function   string `json:"function"`
	Term       string `json:"term"`       // condition that selects them; empty if the function has no name
	Executions int    `json:"executions"` // examined ones
}

// ExplainField is the difference between the selection and the rest in a field.
type ExplainField struct {
	Kind string `json:"kind"` // host, rank, link, node-state …
	Name string `json:"name"`
	// Key names the field in only, without and groups, and Terms select its values; they are
	// empty if it cannot be selected.
	Key   string   `json:"key"`
	Terms []string `json:"terms"`
	Role  string   `json:"role"` // cause, when, or chosen if the selection depends on it
	// Values describes the values that distinguish the selection. They are Labels, Numbers, or
	// a range that may be open at one end; times are in seconds since the start of the run.
	Values  string    `json:"values"`
	Labels  []string  `json:"labels"`
	Numbers []float64 `json:"numbers"`
	From    *float64  `json:"from,omitempty"`
	To      *float64  `json:"to,omitempty"`
	// With is the number of selected executions, out of Of, that have these values. BaselineShare
	// is their share of the rest, which Rest describes.
	With          int          `json:"with"`
	Of            int          `json:"of"`
	BaselineShare float64      `json:"baseline_share"`
	Rest          string       `json:"rest"`
	Support       string       `json:"support"` // these numbers in words
	Bits          float64      `json:"bits"`    // strength, from 0 to 1
	Chance        float64      `json:"chance"`  // probability of such a difference by chance, in any field
	Notable       bool         `json:"notable"`
	Bars          []ExplainBar `json:"bars"`
}

// ExplainBar compares the shares of the selection and of the rest with one value, or in one part of
// a range.
type ExplainBar struct {
	Label         string  `json:"label"`
	Share         float64 `json:"share"`
	BaselineShare float64 `json:"baseline_share"`
	Telling       bool    `json:"telling"` // it distinguishes the selection
}

// ExplainGroups is a selection grouped by a field.
type ExplainGroups struct {
	Field     string  `json:"field"` // as in only and without
	Name      string  `json:"name"`
	Selected  int64   `json:"selected"`
	Lost      float64 `json:"lost_us"`
	Estimated bool    `json:"reckoned"` // Selected and Lost are extrapolated from a sample
	Examined  int64   `json:"looked"`   // executions in rows
	// Rows are ordered by lost time; ranges of amounts and times by value.
	Rows    []ExplainGroup `json:"rows"`
	Ranges  bool           `json:"ranges"`
	Values  int            `json:"values"` // number of all values
	Rest    ExplainGroup   `json:"rest"`   // values that are not listed
	None    ExplainGroup   `json:"none"`   // executions without a value
	Command string         `json:"command"`
}

// ExplainGroup is the executions with one value, or in a range.
type ExplainGroup struct {
	Label      string  `json:"label"`
	Term       string  `json:"term"` // condition that selects them; empty for rest and none
	Executions int64   `json:"executions"`
	Lost       float64 `json:"lost_us"`
}
