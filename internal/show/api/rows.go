package api

import "encoding/json"

// List is rows of the store as objects, with columns in their order.
type List struct {
	Rows []json.RawMessage `json:"rows"`
	Next string            `json:"next,omitempty"` // cursor of the next page; empty: last page
}

// RunList is the runs of the store.
type RunList struct {
	Rows    []json.RawMessage `json:"rows"`
	Watched string            `json:"watched"` // name of the run that Status describes
}

// SnapshotOfRun is the state of the pipeline of the watched run, the functions that lost most,
// and the newest anomalies.
type SnapshotOfRun struct {
	Status  *Status           `json:"status,omitempty"`
	Top     []json.RawMessage `json:"top,omitzero"`
	Newest  []json.RawMessage `json:"newest,omitzero"`
	Problem *Problem          `json:"problem,omitempty"` // why Top and Newest are missing
}
