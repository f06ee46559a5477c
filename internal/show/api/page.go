// Package api has the types of all answers of the dashboard. web/tygo.yaml generates the same
// types for TypeScript. JSON names of times end in _s for seconds since the start of the run and
// in _us for microseconds. Lists are never null.
package api

import (
	"encoding/json"
	"time"
)

// Level is a level of severity, for colors.
type Level string

// The levels.
const (
	LevelGood    Level = "good"
	LevelUnknown Level = "unknown" // too early, or no data
	LevelWatch   Level = "watch"
	LevelBad     Level = "bad"
)

// Overview is the health of a run: whether, where and since when it has problems.
type Overview struct {
	Run     string `json:"run"`
	Place   string `json:"place,omitempty"`   // directory, file or address in command lines
	Host    string `json:"host,omitempty"`    // machine that serves the page
	Version string `json:"version,omitempty"` // of the program that serves the page
	State   State  `json:"state"`
	Live    bool   `json:"live"` // this process watches it, and it has not ended
	// Incomplete is true if data of an ended run is missing; notices name the data.
	Incomplete bool      `json:"incomplete,omitempty"`
	Began      time.Time `json:"began,omitzero"` // time of day of 0 s
	Length     float64   `json:"length_s"`       // analyzed so far
	Verdict    Verdict   `json:"verdict"`
	// Notices limit the reliability of the rest: silent ranks, models with few samples, drops, a
	// backlog, a damaged store; worst first.
	Notices  []Notice   `json:"notices"`
	Figures  Figures    `json:"figures"`
	Findings []Finding  `json:"findings"` // the worst open ones
	Notes    []Finding  `json:"notes"`    // the costliest notes about normal behavior
	Strip    Strip      `json:"strip"`    // lost time by kind over the whole run
	Programs []Program  `json:"programs"`
	Slowest  []Slowest  `json:"slowest"` // functions, if there are no anomalies
	Review   *ReviewEnd `json:"review,omitempty"`
	// Efficiency has the efficiency of each program over the entire run, and Slow the slow peers,
	// the costliest first. Both are empty until ranks are compared.
	Efficiency []Efficiency `json:"efficiency"`
	Slow       []SlowPlace  `json:"slow"`
	// GPUs and Collectives report whether the breakdown of the run has GPU times and collective operations.
	GPUs        bool `json:"gpus"`
	Collectives bool `json:"collectives"`
	// Packets is set if only statistics packets of the run are known.
	Packets *PacketsInfo `json:"packets,omitempty"`
}

// Verdict sums up a run in a sentence.
type Verdict struct {
	Level    Level  `json:"level"`
	Sentence string `json:"sentence"`
	Finding  int    `json:"finding,omitempty"` // number of the named finding
}

// Notice limits the reliability of the page.
type Notice struct {
	Level    Level  `json:"level"`
	Topic    string `json:"topic"`    // silent-ranks, warming, drops, backlog, store, age, health, no-data, review
	Sentence string `json:"sentence"` // problem and remedy
}

// Figures are the key figures. Unknown ones are left out.
type Figures struct {
	// Lost counts each anomaly once: causes, and waits on the waiting ranks.
	Lost              float64  `json:"lost_us"`
	LostPercent       *float64 `json:"lost_percent,omitempty"`      // of the time of all ranks
	CoreHoursLost     float64  `json:"core_hours_lost"`             // Lost in hours
	Anomalies         int64    `json:"anomalies"`                   // not withdrawn
	AnomaliesPerHour  float64  `json:"anomalies_per_hour"`          // of run time
	Provisional       bool     `json:"provisional"`                 // before the review at the end
	Calls             *int64   `json:"calls,omitempty"`             // judged
	Events            *int64   `json:"events,omitempty"`            // read
	EventsPerSecond   *float64 `json:"events_per_second,omitempty"` // of a live run
	Kept              int64    `json:"kept"`                        // stored executions, including typical ones
	Reduction         *float64 `json:"reduction,omitempty"`         // judged calls per stored execution
	Functions         int64    `json:"functions"`
	FunctionsWarm     *int64   `json:"functions_warm,omitempty"`      // functions with enough samples for judgment
	FunctionsMinCalls int64    `json:"functions_min_calls,omitempty"` // that number of samples
	Dropped           *int64   `json:"dropped,omitempty"`             // discarded messages
	Ranks             int64    `json:"ranks"`                         // seen
	RanksExpected     *int64   `json:"ranks_expected,omitempty"`
	Hosts             int64    `json:"hosts"`
	// Findings leaves out waits because of another finding.
	Findings      int64    `json:"findings"`
	Victims       int64    `json:"victims"`                          // anomalies that waited for others
	FindingsMuted int64    `json:"findings_muted"`                   // muted or expected
	MutedLost     float64  `json:"muted_lost_us"`                    // lost time of these, included in Lost
	FindingsMinor int64    `json:"findings_minor"`                   // too cheap to list
	MinorLost     float64  `json:"minor_lost_us"`                    // lost time of these, included in Lost
	FindingsNotes int64    `json:"findings_notes"`                   // notes about normal behavior, not counted as findings
	NotesLost     float64  `json:"notes_lost_us"`                    // time of these, not included in Lost
	WithdrawnLost float64  `json:"withdrawn_lost_us"`                // lost time of withdrawn findings, not included in Lost
	LastEventAge  *float64 `json:"last_event_age_seconds,omitempty"` // of a live run, since the newest data
}

// Program is a program of a workflow.
type Program struct {
	Program int64  `json:"program"`
	Name    string `json:"name,omitempty"` // of its executable, if known
	Ranks   int64  `json:"ranks"`
}

// Slowest is a function with the longest single calls.
type Slowest struct {
	Program  int64   `json:"program" sql:"pid"`
	Function string  `json:"function" sql:"fname"`
	Longest  float64 `json:"longest_us" sql:"exclusive_maximum"`
	Mean     float64 `json:"mean_us" sql:"exclusive_mean"`
	Calls    int64   `json:"calls" sql:"calls"`
}

// ReviewEnd is the result of the review at the end of the run.
type ReviewEnd struct {
	Flagged   int64 `json:"flagged"` // during the run
	Confirmed int64 `json:"confirmed"`
	Withdrawn int64 `json:"withdrawn"`
	Promoted  int64 `json:"promoted"` // flagged only at the end
}

// Strip is lost time over time, in columns of equal width.
type Strip struct {
	From   float64 `json:"from_s"`
	To     float64 `json:"to_s"`
	Series []Layer `json:"series"` // one per kind, in a fixed order
}

// Layer is one kind of a strip.
type Layer struct {
	Kind string    `json:"kind"`
	Lost []float64 `json:"lost_us"`   // by column
	N    []int64   `json:"anomalies"` // by column
}

// Heatmap is lost time by rank and time. Rows are ranks, or groups of neighbors if there are
// too many ranks. Empty cells are left out.
type Heatmap struct {
	From    float64    `json:"from_s"`
	To      float64    `json:"to_s"`
	Columns int        `json:"columns"`
	Metric  string     `json:"metric"` // lost, own (lost without waits) or anomalies
	Rows    []HeatRow  `json:"rows"`   // ordered by program, host, rank
	Cells   []HeatCell `json:"cells"`
	Max     float64    `json:"max"` // of all values
}

// HeatRow is a row of a heatmap.
type HeatRow struct {
	Program   int64  `json:"program"`
	FirstRank int64  `json:"first_rank"`
	LastRank  int64  `json:"last_rank"`        // equal to the first unless ranks are grouped
	Ranks     int64  `json:"ranks"`            // number; may be fewer than those between first and last
	Host      string `json:"host"`             // of the first
	Silent    bool   `json:"silent,omitempty"` // no data
	// Until is the end of the data, if traces are damaged and it is before the end of the run.
	Until     *float64 `json:"until_s,omitempty"`
	Lost      float64  `json:"lost_us"` // of the row
	Anomalies int64    `json:"anomalies"`
}

// HeatCell is a cell. Its names are short because there are many.
type HeatCell struct {
	Row    int     `json:"r"`
	Column int     `json:"c"`
	Value  float64 `json:"v"`
}

// Finding is a group of anomalies with a common cause, as in chimbuko findings.
type Finding struct {
	Key        string `json:"key"`     // stays the same while numbers change
	Number     int    `json:"finding"` // 1 for the costliest
	Kind       string `json:"kind"`    // outlier, recurring, change, excess-work, interference, wait or slow-peer
	Form       string `json:"form,omitempty"`
	Status     string `json:"status"`   // warming, provisional, confirmed or withdrawn
	Severity   string `json:"severity"` // alarm or info
	Listed     bool   `json:"listed"`   // not minor, withdrawn or shown with its cause
	Program    int64  `json:"program"`
	Function   string `json:"function"`              // empty for interference
	FunctionID string `json:"function_id,omitempty"` // for functions/{id}
	Path       string `json:"call_path"`
	Role       string `json:"role,omitempty"`
	Late       string `json:"late,omitempty"`  // host, device or communication: what lost most of the time
	Cause      int    `json:"cause,omitempty"` // number of the finding that caused these waits
	// Calls is the number of affected calls, of OfCalls of the function or call path; 0 if unknown.
	Calls     int64    `json:"calls"`
	OfCalls   int64    `json:"of_calls"`
	Expected  float64  `json:"expected_us"`                              // median of unaffected calls
	Actual    float64  `json:"actual_us"`                                // median of affected calls
	Period    *float64 `json:"period_s" tstype:"number | null,required"` // null if irregular
	LostOwn   float64  `json:"lost_own_us"`
	LostWaits float64  `json:"lost_caused_us"` // by others, who waited
	Lost      float64  `json:"lost_us"`        // own and caused
	Share     float64  `json:"share"`          // of the time of all ranks
	Longest   float64  `json:"longest_us"`
	Ranks     []int64  `json:"ranks"` // at most 1000
	Hosts     []string `json:"hosts"` // at most 1000
	RankCount int64    `json:"rank_count"`
	HostCount int64    `json:"host_count"`
	WorstRank *int64   `json:"worst_rank,omitempty"`
	WorstLost float64  `json:"worst_rank_lost_us,omitempty"`
	From      float64  `json:"from_s"`
	To        *float64 `json:"to_s" tstype:"number | null,required"` // null while it lasts
	Last      float64  `json:"last_s"`                               // end of the last affected call, or of the run
	Trend     string   `json:"trend,omitempty"`
	OverTime  []int64  `json:"over_time"`         // affected calls in each of equal parts of the run so far
	OverTo    float64  `json:"over_to_s"`         // end of these parts
	Example   string   `json:"example,omitempty"` // event id of the worst call
	Examples  []string `json:"examples"`
	Waits     int64    `json:"waits,omitempty"`
	WaitRanks int64    `json:"wait_ranks,omitempty"`
	// Confidence is the probability that false alarms alone would not produce this many flags.
	Confidence float64 `json:"confidence"`
	Summary    string  `json:"summary"`          // the finding in words
	Reason     string  `json:"reason,omitempty"` // of a withdrawal
	Label      *Label  `json:"label,omitempty"`
}

// FindingList lists the findings of a run.
type FindingList struct {
	Rows     []Finding `json:"rows"`
	Writable bool      `json:"writable"` // labels can be set
	Stored   bool      `json:"stored"`   // computed at the end of the run; otherwise now
	Total    int64     `json:"total"`    // number of all findings; rows may be only the worst
}

// Label is the opinion of a person about a finding.
type Label struct {
	Key   string    `json:"key"`   // of the finding
	State string    `json:"state"` // open, muted or expected
	Note  string    `json:"note"`
	At    time.Time `json:"at"`
}

// Plot is the executions of a finding over time, with the normal range.
type Plot struct {
	Points    []PlotPoint `json:"points"` // anomalies and typical executions, by time
	Total     int64       `json:"total"`  // number of all anomalies; points may be only those that lost most
	TypicalUS *Range      `json:"typical_us,omitempty"`
	Threshold *Range      `json:"threshold_us,omitempty"` // values outside are flagged
}

// PlotPoint is one execution.
type PlotPoint struct {
	Event   string  `json:"event_id"`
	At      float64 `json:"at_s"`
	Value   float64 `json:"exclusive_us"`
	Lost    float64 `json:"lost_us"`
	Rank    int64   `json:"rank"`
	Host    string  `json:"host"`
	Anomaly bool    `json:"anomaly"`
	Status  string  `json:"status,omitempty"`
}

// Range is from low to high; an open end is left out.
type Range struct {
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
}

// Evidence is all data about an execution.
type Evidence struct {
	Event      string          `json:"event_id"`
	Program    int64           `json:"program"`
	Rank       int64           `json:"rank"`
	Thread     int64           `json:"thread"`
	Host       string          `json:"host"`
	Function   string          `json:"function"`
	FunctionID string          `json:"function_id"`
	Anomaly    bool            `json:"anomaly"` // else a typical execution
	Kind       string          `json:"kind,omitempty"`
	Status     string          `json:"status,omitempty"` // provisional, confirmed, promoted, withdrawn
	Sentence   string          `json:"sentence"`         // what happened
	Why        string          `json:"why,omitempty"`    // why it was flagged
	At         float64         `json:"at_s"`
	Entered    time.Time       `json:"entered"`
	Exclusive  float64         `json:"exclusive_us"`
	Inclusive  float64         `json:"inclusive_us"`
	Judged     float64         `json:"judged_us"` // exclusive or inclusive time
	Lost       float64         `json:"lost_us"`
	Severity   float64         `json:"severity"`
	Score      float64         `json:"score"`
	Step       int64           `json:"io_step"`
	Path       []string        `json:"call_path"` // from the outermost function on
	Lanes      []Lane          `json:"lanes"`     // the first is the thread of the execution
	Arrows     []Arrow         `json:"arrows"`
	Model      *Model          `json:"model,omitempty"` // model that judged it
	Twin       *Twin           `json:"twin,omitempty"`  // a typical execution of the same function
	Roles      Roles           `json:"roles"`
	GPU        *GPU            `json:"gpu,omitempty"`
	Counters   []Counter       `json:"counters"`
	State      []Field         `json:"node_state"`
	Metadata   []Field         `json:"metadata"` // of the rank
	Finding    int             `json:"finding,omitempty"`
	FindingKey string          `json:"finding_key,omitempty"`
	Same       int64           `json:"same_signature"`     // number of anomalies of the finding
	Previous   string          `json:"previous,omitempty"` // event ids of the neighbors in the finding, by time
	Next       string          `json:"next,omitempty"`
	Record     json.RawMessage `json:"record"` // stored JSON
}

// Lane is a thread, or a stream of a GPU, over time.
type Lane struct {
	Name   string     `json:"name"`
	Rank   int64      `json:"rank"`
	Thread int64      `json:"-"`
	Calls  []LaneCall `json:"calls"` // by entry; they nest
}

// LaneCall is a call on a lane.
type LaneCall struct {
	Event    string  `json:"event_id"`
	Function string  `json:"function"`
	Label    string  `json:"label,omitempty"` // shown instead of the function, such as ProfilerStep#17
	Depth    int     `json:"depth"`           // 0 is the outermost
	Enter    float64 `json:"enter_us"`        // relative to the entry of the execution
	Exit     float64 `json:"exit_us"`
	Open     bool    `json:"open,omitempty"` // not ended; exit is the end of the lane
	Anomaly  bool    `json:"anomaly,omitempty"`
	Self     bool    `json:"self,omitempty"` // the execution itself
	Group    string  `json:"group"`          // mpi, gpu, io or user, for colors
}

// Arrow is a message, or a launch on a GPU.
type Arrow struct {
	Kind     string  `json:"kind"`      // send, receive, launch
	FromLane int     `json:"from_lane"` // -1: another rank
	ToLane   int     `json:"to_lane"`
	From     float64 `json:"from_us"`
	To       float64 `json:"to_us"`
	Partner  int64   `json:"partner"`         // rank; for launches that of the execution
	Bytes    *uint64 `json:"bytes,omitempty"` // absent if unknown
	Tag      int64   `json:"tag,omitempty"`
}

// Model is the distribution of the times of a function.
type Model struct {
	Algorithm string    `json:"algorithm"`
	Edges     []float64 `json:"edges_us"` // one more than counts
	Counts    []int64   `json:"counts"`
	Samples   int64     `json:"samples"`
	Typical   *Range    `json:"typical_us,omitempty"`   // of most calls
	Normal    []Range   `json:"normal_us"`              // of tail models: one range per mode
	Threshold *Range    `json:"threshold_us,omitempty"` // values outside are flagged
	Warming   bool      `json:"warming"`                // too few samples for a reliable judgment
}

// Twin is a typical execution to compare with.
type Twin struct {
	Event     string  `json:"event_id"`
	At        float64 `json:"at_s"`
	Rank      int64   `json:"rank"`
	Host      string  `json:"host"`
	Exclusive float64 `json:"exclusive_us"`
	Inclusive float64 `json:"inclusive_us"`
	SamePath  bool    `json:"same_path"`
	Lanes     []Lane  `json:"lanes"`
	Arrows    []Arrow `json:"arrows"`
}

// Roles relate an execution to others.
type Roles struct {
	Role     string  `json:"role,omitempty"` // culprit or victim
	Sentence string  `json:"sentence,omitempty"`
	Culprit  *Other  `json:"culprit,omitempty"` // execution that it waited for
	LateRank *int64  `json:"late_rank,omitempty"`
	Victims  []Other `json:"victims"`         // executions that waited for it; only those that lost most
	Waits    int64   `json:"waits,omitempty"` // number of all victims
	WaitLost float64 `json:"waits_lost_us,omitempty"`
}

// Other is another execution.
type Other struct {
	Event    string  `json:"event_id"`
	Program  int64   `json:"program"`
	Rank     int64   `json:"rank"`
	Host     string  `json:"host"`
	Function string  `json:"function"`
	At       float64 `json:"at_s"`
	Lost     float64 `json:"lost_us"`
}

// GPU is the place of an execution on a GPU and its launch.
type GPU struct {
	Device  int64    `json:"device"`
	Context int64    `json:"context"`
	Stream  int64    `json:"stream"`
	Parent  string   `json:"parent,omitempty"` // event id of the launch
	Stack   []string `json:"stack"`            // of the launch, from the outermost function on
	Problem string   `json:"problem,omitempty"`
}

// Counter is a value of a counter during an execution.
type Counter struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	At    float64 `json:"at_us"` // relative to the entry of the execution
	// Usual values over all ranks, if known.
	Mean   *float64 `json:"mean,omitempty"`
	Stddev *float64 `json:"stddev,omitempty"`
}

// Field is a name with a value.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// FunctionRow is a function of the table. Calls and times of a live run may be missing.
type FunctionRow struct {
	ID             string   `json:"id"`
	Program        int64    `json:"program"`
	FID            int64    `json:"fid"` // number in records
	Function       string   `json:"function"`
	Group          string   `json:"group"` // mpi, gpu, io, user
	Calls          *int64   `json:"calls,omitempty"`
	Exclusive      *float64 `json:"exclusive_us,omitempty"`
	ExclusiveMean  *float64 `json:"exclusive_mean_us,omitempty"`
	ExclusiveMax   *float64 `json:"exclusive_max_us,omitempty"`
	Inclusive      *float64 `json:"inclusive_us,omitempty"`
	InclusiveMean  *float64 `json:"inclusive_mean_us,omitempty"`
	Anomalies      int64    `json:"anomalies"`
	AnomalousCalls *float64 `json:"anomalous_calls_percent,omitempty"`
	AnomalousTime  *float64 `json:"anomalous_time_percent,omitempty"`
	Lost           float64  `json:"lost_us"`
	Modes          *int64   `json:"modes,omitempty"` // of its model
}

// FunctionTable lists functions, those that lost most first.
type FunctionTable struct {
	Rows  []FunctionRow `json:"rows"`
	Total int64         `json:"total"`          // of all functions
	Next  string        `json:"next,omitempty"` // cursor of the next page
}

// FunctionDetail is the details of a function.
type FunctionDetail struct {
	FunctionRow `tstype:",extends"`

	Model *Model         `json:"model,omitempty"`
	Ranks []FunctionRank `json:"ranks"` // with anomalies
	Paths []FunctionPath `json:"paths"` // to the function
	Strip Strip          `json:"strip"`
}

// FunctionRank is a function on a rank.
type FunctionRank struct {
	Rank      int64   `json:"rank"`
	Host      string  `json:"host"`
	Anomalies int64   `json:"anomalies"`
	Lost      float64 `json:"lost_us"`
	Longest   float64 `json:"longest_us"`
	First     float64 `json:"first_s"`
	Last      float64 `json:"last_s"`
}

// FunctionPath is a call path to a function.
type FunctionPath struct {
	Path      []string `json:"call_path"`
	Anomalies int64    `json:"anomalies"`
	Lost      float64  `json:"lost_us"`
}

// Flame is a tree of call paths.
type Flame struct {
	Metric string    `json:"metric"` // time or lost
	Root   FlameNode `json:"root"`
	// Partial describes the omitted part of the tree.
	Partial string `json:"partial,omitempty"`
}

// FlameNode is a function below its callers.
type FlameNode struct {
	Function string      `json:"function"`
	Group    string      `json:"group"`
	Self     float64     `json:"self_us"`
	Total    float64     `json:"total_us"` // with children
	Calls    int64       `json:"calls"`
	Children []FlameNode `json:"children"`
}

// Found is a result of a search.
type Found struct {
	Kind  string `json:"kind"` // function, host, rank, event, finding
	Text  string `json:"text"`
	Route string `json:"route"` // of the page, after #
}

// FoundList is the results of a search, the best first.
type FoundList struct {
	Rows []Found `json:"rows"`
}
