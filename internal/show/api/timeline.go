package api

// Timeline is what the ranks of a run did over time, and their messages.
type Timeline struct {
	Recorded bool    `json:"recorded"` // false for runs that were imported without it, and in the first seconds
	From     float64 `json:"from_s"`   // begin of the first column
	To       float64 `json:"to_s"`     // end of the last column
	Columns  int     `json:"columns"`
	Ranks    int     `json:"ranks"` // all that are selected
	// Rows are ranks, by program and number; if there are too many ranks, neighbors share a row.
	Rows []TimelineRow `json:"rows"`
	// Classes are the names of activities by their number in Cells: none, own, mpi, gpu, io, idle.
	Classes []string `json:"classes"`
	// Cells has a byte for each column of each row, in Base64. The low three bits are the class with the most time, the others
	// the share of that class in 31 parts.
	Cells    string          `json:"cells"`
	Messages []MessageMatrix `json:"messages"` // of each program with messages
}

// TimelineRow is a rank of a timeline, or several neighbors.
type TimelineRow struct {
	Program   int64  `json:"program"`
	FirstRank int64  `json:"first_rank"`
	LastRank  int64  `json:"last_rank"`
	Host      string `json:"host,omitempty"` // of the first rank, if known
	// Times are the times of activities, in the order of Classes, summed up over ranks, threads and streams. Idle is the
	// time without any call.
	Times []float64 `json:"times_us"`
}

// MessageMatrix has the messages between the ranks of a program in the entire run.
type MessageMatrix struct {
	Program int64          `json:"program"`
	Group   int64          `json:"group"` // number of neighboring ranks that count as one
	Pairs   []MessageTotal `json:"pairs"` // by sender and receiver
}

// MessageTotal is the messages from a rank, or a group of ranks, to another.
type MessageTotal struct {
	From     int64 `json:"from"` // first rank of the group
	To       int64 `json:"to"`
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"` // of messages whose size is known
}

// CounterTimeline has the readings of a counter over time: of all ranks, and of some.
type CounterTimeline struct {
	Counters []CounterOfTimeline `json:"counters"` // counters with readings, by program and name; those of resources first
	More     bool                `json:"more"`     // other counters exist, whose readings were not kept
	Program  int64               `json:"program"`  // of the chosen counter
	Counter  string              `json:"counter"`  // name; empty if there is none
	From     float64             `json:"from_s"`   // begin of the first column
	To       float64             `json:"to_s"`     // end of the last column
	Columns  int                 `json:"columns"`
	Group    int64               `json:"group"` // number of neighboring ranks whose readings were kept together
	All      CounterSeries       `json:"all"`   // of all ranks
	Selected *CounterSeries      `json:"selected,omitempty"`
}

// CounterOfTimeline is a counter of a program.
type CounterOfTimeline struct {
	Program int64  `json:"program"`
	Name    string `json:"name"`
	Index   int    `json:"-"` // among those of its program
}

// CounterSeries has the least, mean and greatest reading in each column, nil without any.
type CounterSeries struct {
	Min  []*float64 `json:"min" tstype:"(number | null)[]"`
	Mean []*float64 `json:"mean" tstype:"(number | null)[]"`
	Max  []*float64 `json:"max" tstype:"(number | null)[]"`
}
