package api

import "time"

// PacketsInfo tells of a run of which there is no more than packets of statistics, as the
// parameter server sends them: counts of anomalies, no executions.
type PacketsInfo struct {
	Replay  bool           `json:"replay"`               // they come from files, else from a parameter server
	Taken   int64          `json:"taken"`                // packets
	Total   int64          `json:"total,omitempty"`      // of a replay
	Speed   float64        `json:"speed,omitempty"`      // of a replay: times as fast as it was; 0: at once
	Refused int64          `json:"refused"`              // packets that made no sense
	LeftOut int64          `json:"left_out"`             // entries for which there was no room
	Problem string         `json:"problem,omitempty"`    // why the last was refused
	Created time.Time      `json:"created,omitzero"`     // when the newest was made
	Worst   []PacketWorst  `json:"worst"`                // functions on ranks with most anomalies
	Totals  []PacketsCount `json:"by_function"`          // functions with most anomalies
	Time    int64          `json:"time_in_anomalies_us"` // all anomalies as long as they were: what is usual is not taken off
}

// PacketWorst are the anomalies of a function on a rank.
type PacketWorst struct {
	Program   int64   `json:"program"`
	Rank      int64   `json:"rank"`
	Function  string  `json:"function"`
	Anomalies int64   `json:"anomalies"`
	Time      int64   `json:"time_us"`    // in them
	Longest   int64   `json:"longest_us"` // of them
	Score     float64 `json:"score"`      // the highest
}

// PacketsCount are the anomalies of a function.
type PacketsCount struct {
	Program   int64  `json:"program"`
	Function  string `json:"function"`
	Anomalies int64  `json:"anomalies"`
	Calls     int64  `json:"calls"`
}
