package api

import "time"

// Status is the state of the pipeline. Durations are in seconds, sizes in bytes, counts since
// the start of the run. JSON leaves out missing parts and zero values of optional fields.
type Status struct {
	Run    RunStatus    `json:"run"`
	Totals Totals       `json:"totals"`
	Nodes  []Node       `json:"nodes,omitempty"` // the analyzers
	Ranks  []Rank       `json:"ranks,omitempty"`
	Shards []Shard      `json:"parameter_server,omitempty"`
	Store  *StoreStatus `json:"store,omitempty"`
	Sender *Sender      `json:"stats_sender,omitempty"`
	Health []Health     `json:"health,omitempty"`
	// Verdict is the verdict of the overview. Only the command status adds it, if it is available
	// soon.
	Verdict *Verdict `json:"verdict,omitempty"`
}

// State is the state of a run, in answers, in stores and in run.json.
type State string

// The states of a run.
const (
	Waiting   State = "waiting" // for traces
	Running   State = "running"
	Reviewing State = "reviewing" // traces have ended, anomalies are judged again
	Finished  State = "finished"
	Failed    State = "failed"
	// Incomplete runs stopped before their review. They can be resumed.
	Incomplete State = "incomplete"
)

// States lists all states of a run, in order.
var States = []State{Waiting, Running, Reviewing, Finished, Failed, Incomplete}

// Open reports whether the run has not ended: a process works on it, or can resume it.
func (s State) Open() bool { return s == Waiting || s == Running || s == Reviewing || s == Incomplete }

// RunStatus is the state of the run.
type RunStatus struct {
	Name    string    `json:"name"`
	State   State     `json:"state"`
	Started time.Time `json:"started,omitzero"`
	Now     time.Time `json:"now"` // time of the status
	Version string    `json:"version,omitempty"`
}

// Totals are sums over all parts. Anomalies are provisional until the review.
type Totals struct {
	Ranks         int64 `json:"ranks"` // seen
	RanksEnded    int64 `json:"ranks_ended"`
	RanksExpected int64 `json:"ranks_expected,omitzero"`
	Steps         int64 `json:"steps"`
	Events        int64 `json:"events"`
	Calls         int64 `json:"calls"`
	Anomalies     int64 `json:"anomalies"`
	Functions     int64 `json:"functions"`
	// FunctionsWarm counts the functions with enough samples for judgment; nil: unknown.
	FunctionsWarm *int64 `json:"functions_warm,omitempty"`
	BytesRead     int64  `json:"bytes_read"`
	RecordsSent   int64  `json:"records_sent"`
	RecordsStored int64  `json:"records_stored"`
}

// NodeState is the state of an analyzer.
type NodeState string

// The states of an analyzer.
const (
	NodeWaiting          NodeState = "waiting for traces"
	NodeReading          NodeState = "reading"
	NodeWaitingForReview NodeState = "waiting for review"
	NodeReviewing        NodeState = "reviewing"
	NodeDone             NodeState = "done"
	NodeSilent           NodeState = "silent" // no report for too long
)

// Node is an analyzer of some ranks.
type Node struct {
	Name      string    `json:"name"` // unique within the run
	Host      string    `json:"host,omitempty"`
	PID       int64     `json:"pid,omitzero"`
	State     NodeState `json:"state"`
	Connected time.Time `json:"connected,omitzero"`
	LastHeard time.Time `json:"last_heard,omitzero"`
	Ranks     int64     `json:"ranks"`

	StepsRead      int64   `json:"steps_read"`
	StepsExchanged int64   `json:"steps_exchanged"` // with the parameter server
	Behind         float64 `json:"behind_seconds"`  // delay behind the newest trace data

	Events          int64            `json:"events"`
	EventKinds      map[string]int64 `json:"event_kinds,omitempty"` // function, message, counter
	EventsPerSecond float64          `json:"events_per_second"`
	Calls           int64            `json:"calls"`
	CallsPerSecond  float64          `json:"calls_per_second"`
	OpenCalls       int64            `json:"open_calls,omitzero"` // calls that have not ended
	Anomalies       int64            `json:"anomalies"`
	BytesRead       int64            `json:"bytes_read"`

	RecordsSent    int64   `json:"records_sent"`
	OutboxMessages int64   `json:"outbox_messages"` // not yet accepted by the bus
	OutboxBytes    int64   `json:"outbox_bytes"`
	Drops          int64   `json:"drops"` // discarded messages
	Exchange       Latency `json:"exchange,omitzero"`
	ExchangeSent   int64   `json:"exchange_sent_bytes,omitzero"`
	ExchangeGot    int64   `json:"exchange_received_bytes,omitzero"`

	RSS     int64   `json:"rss_bytes,omitzero"`
	CPU     float64 `json:"cpu_seconds,omitzero"`
	Stages  []Stage `json:"stages,omitempty"`
	Tallies []Tally `json:"tallies,omitempty"`
}

// Latency is the time of an operation that was done Count times.
type Latency struct {
	Count int64   `json:"count"`
	Last  float64 `json:"last_seconds,omitzero"`
	Mean  float64 `json:"mean_seconds"`
	Max   float64 `json:"max_seconds,omitzero"`
	P50   float64 `json:"p50_seconds,omitzero"` // of recent operations
	P99   float64 `json:"p99_seconds,omitzero"`
}

// Stage is a part of the processing of a step: read, decode, judge, capture.
type Stage struct {
	Name    string  `json:"name"`
	Runs    int64   `json:"runs"`
	Seconds float64 `json:"seconds"` // of all runs
}

// Tally counts repairs, skips or losses of one kind.
type Tally struct {
	Name     string `json:"name"`
	Severity string `json:"severity"` // info, repaired, warning, data loss
	Count    int64  `json:"count"`
	Sentence string `json:"sentence"` // follows the count
}

// Rank is the state of a rank.
type Rank struct {
	Program   int64     `json:"program"`
	Rank      int64     `json:"rank"`
	Host      string    `json:"host,omitempty"`
	Node      string    `json:"node,omitempty"` // name of the analyzer that reads it
	Step      int64     `json:"step"`           // last one read
	Ended     bool      `json:"ended"`
	Anomalies int64     `json:"anomalies"`
	LastHeard time.Time `json:"last_heard,omitzero"`
	Behind    float64   `json:"behind_seconds"`
}

// Shard is a part of the parameter server.
type Shard struct {
	Name               string    `json:"name"`
	Exchanges          int64     `json:"exchanges"`
	Repeated           int64     `json:"repeated"` // exchanges that were done before
	Refused            int64     `json:"refused"`
	ExchangesPerSecond float64   `json:"exchanges_per_second"`
	Latency            Latency   `json:"latency,omitzero"`
	BytesIn            int64     `json:"bytes_in"`
	BytesOut           int64     `json:"bytes_out"`
	Models             int64     `json:"models"`
	Warm               int64     `json:"models_warm"` // with enough samples for judgment
	Functions          int64     `json:"functions"`
	Version            int64     `json:"version"` // of the models
	Snapshot           *Snapshot `json:"snapshot,omitempty"`
}

// Snapshot is the last copy of a shard on disk.
type Snapshot struct {
	Age      float64 `json:"age_seconds"`
	Duration float64 `json:"duration_seconds"`
	Bytes    int64   `json:"bytes"`
}

// StoreStatus is the state of the store and of the stream of records.
type StoreStatus struct {
	Kind             string    `json:"kind"`
	Records          int64     `json:"records"` // stored by this process
	PendingMessages  int64     `json:"pending_messages"`
	PendingBytes     int64     `json:"pending_bytes"`
	Lag              float64   `json:"lag_seconds"` // age of the oldest record that is not yet stored
	RecordsPerSecond float64   `json:"records_per_second"`
	LastError        string    `json:"last_error,omitempty"` // empty after the next success
	LastErrorAt      time.Time `json:"last_error_at,omitzero"`
}

// Sender is the state of the sender of live statistics.
type Sender struct {
	Sent       int64     `json:"sent"`
	Pending    int64     `json:"pending"`
	Retries    int64     `json:"retries"`              // failed attempts
	LastStatus int       `json:"last_status,omitzero"` // of HTTP, of the last attempt; 0 without an answer
	LastError  string    `json:"last_error,omitempty"` // of the last attempt; "" if it succeeded
	LastSent   time.Time `json:"last_sent,omitzero"`
}

// The severities of Health.
const (
	SeverityInfo    = "info"
	SeverityWarning = "warning"
	SeverityError   = "error"
)

// Health is the health of a part of the pipeline.
type Health struct {
	Part     string `json:"part"`
	OK       bool   `json:"ok"`
	Severity string `json:"severity"`
	Sentence string `json:"sentence"` // problem and remedy
}

// Wrong returns the parts with errors.
func (s *Status) Wrong() (wrong []Health) {
	for _, h := range s.Health {
		if !h.OK && h.Severity == SeverityError {
			wrong = append(wrong, h)
		}
	}
	return wrong
}
