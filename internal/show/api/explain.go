package api

// Explained is what is different about some anomalies.
type Explained struct {
	Sentence string `json:"sentence"`
	Selected int64  `json:"selected"` // anomalies
	Lost     int64  `json:"lost_us"`
	Reckoned bool   `json:"reckoned"` // both are reckoned from a part, as there are very many
	Looked   int    `json:"looked"`   // of the selected; fewer if there are very many
	// What they are held against: executions of the same functions that are kept as
	// typical, and their other anomalies. Where all calls, ranks or readings are known,
	// those.
	Typical   int               `json:"typical"`
	Others    int               `json:"others"`
	Functions []ExplainFunction `json:"functions"`
	Fields    []ExplainField    `json:"fields"`  // the one that explains most first
	Command   string            `json:"command"` // that gives the same in a terminal
}

// ExplainFunction is how many of the anomalies are of a function.
type ExplainFunction struct {
	Program    int64  `json:"program"`
	Function   string `json:"function"`
	Term       string `json:"term"`       // that chooses them; empty: the function has no name
	Executions int    `json:"executions"` // of those that were looked at
}

// ExplainField is how the selection differs from the rest in a field.
type ExplainField struct {
	Kind string `json:"kind"` // host, rank, link, node-state …
	Name string `json:"name"`
	// Key is the field as only, without and groups name it, and Terms choose its values;
	// none: nothing can be chosen by it.
	Key   string   `json:"key"`
	Terms []string `json:"terms"`
	Role  string   `json:"role"` // cause, when, or chosen: the selection was made by it
	// Values are those that tell the selection from the rest, in words; then as they are:
	// names, numbers, or a range, of which one side may be open. Of a time it is in
	// seconds since the begin of the run.
	Values  string    `json:"values"`
	Labels  []string  `json:"labels"`
	Numbers []float64 `json:"numbers"`
	From    *float64  `json:"from,omitempty"`
	To      *float64  `json:"to,omitempty"`
	// With of Of executions have them, and this share of the rest; Rest says what that is.
	With          int          `json:"with"`
	Of            int          `json:"of"`
	BaselineShare float64      `json:"baseline_share"`
	Rest          string       `json:"rest"`
	Support       string       `json:"support"` // all of that in words
	Bits          float64      `json:"bits"`    // the measure, from 0 to 1
	Chance        float64      `json:"chance"`  // how likely that is without a reason, in any field
	Notable       bool         `json:"notable"`
	Bars          []ExplainBar `json:"bars"`
}

// ExplainBar is what share of both have a value, or lie in a part of a range.
type ExplainBar struct {
	Label         string  `json:"label"`
	Share         float64 `json:"share"`
	BaselineShare float64 `json:"baseline_share"`
	Telling       bool    `json:"telling"` // it is one of those that tell them apart
}

// ExplainGroups is a selection broken down by a field.
type ExplainGroups struct {
	Field    string `json:"field"` // as only and without name it
	Name     string `json:"name"`
	Selected int64  `json:"selected"`
	Lost     int64  `json:"lost_us"`
	Reckoned bool   `json:"reckoned"` // both are reckoned from a part
	Looked   int64  `json:"looked"`   // that the rows are of; fewer if there are very many
	// Rows are those that lost most first; of amounts and times ranges in their order.
	Rows    []ExplainGroup `json:"rows"`
	Ranges  bool           `json:"ranges"`
	Values  int            `json:"values"` // how many there are, also those that are not listed
	Rest    ExplainGroup   `json:"rest"`   // further values together
	None    ExplainGroup   `json:"none"`   // those without a value
	Command string         `json:"command"`
}

// ExplainGroup is the executions with one value, or of a range.
type ExplainGroup struct {
	Label      string `json:"label"`
	Term       string `json:"term"` // that chooses them; empty for rest and none
	Executions int64  `json:"executions"`
	Lost       int64  `json:"lost_us"`
}
