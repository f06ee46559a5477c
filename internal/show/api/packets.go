package api

import "time"

// PacketsInfo describes a run that is known only by the statistics packets of a parameter
// server: counts of anomalies without executions.
type PacketsInfo struct {
	Replay  bool           `json:"replay"`               // from files, else from a parameter server
	Taken   int64          `json:"taken"`                // packets
	Total   int64          `json:"total,omitempty"`      // of a replay
	Speed   float64        `json:"speed,omitempty"`      // of a replay, relative to the original; 0: at once
	Refused int64          `json:"refused"`              // invalid packets
	LeftOut int64          `json:"left_out"`             // entries beyond the limits
	Problem string         `json:"problem,omitempty"`    // of the last refused packet
	Created time.Time      `json:"created,omitzero"`     // time of the newest packet
	Worst   []PacketWorst  `json:"worst"`                // ranks of functions with most anomalies
	Totals  []PacketsCount `json:"by_function"`          // functions with most anomalies
	Time    float64        `json:"time_in_anomalies_us"` // total time of anomalies; usual times are not subtracted
}

// PacketWorst are the anomalies of a function on a rank.
type PacketWorst struct {
	Program   int64   `json:"program"`
	Rank      int64   `json:"rank"`
	Function  string  `json:"function"`
	Anomalies int64   `json:"anomalies"`
	Time      float64 `json:"time_us"`    // in them
	Longest   float64 `json:"longest_us"` // of them
	Score     float64 `json:"score"`      // highest
}

// PacketsCount are the anomalies of a function.
type PacketsCount struct {
	Program   int64  `json:"program"`
	Function  string `json:"function"`
	Anomalies int64  `json:"anomalies"`
	Calls     int64  `json:"calls"`
}
