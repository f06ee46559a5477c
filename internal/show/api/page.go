// Package api has the types of all answers of the dashboard, and nothing else: web/tygo.yaml
// writes the same types for TypeScript. Times that end in _s are seconds since the start
// of the run, in _us microseconds. Lists are never null.
package api

import (
	"encoding/json"
	"time"
)

// Level is how bad something is, for a color.
type Level string

// The levels.
const (
	LevelGood    Level = "good"
	LevelUnknown Level = "unknown" // too early to say, or nothing is there
	LevelWatch   Level = "watch"
	LevelBad     Level = "bad"
)

// Overview answers: is my run healthy; if not, where and since when.
type Overview struct {
	Run     string    `json:"run"`
	Place   string    `json:"place,omitempty"` // where it is, as commands name it; not there: not known
	State   State     `json:"state"`
	Live    bool      `json:"live"`           // this process watches it, and it has not ended
	Began   time.Time `json:"began,omitzero"` // time of day of 0 s
	Length  float64   `json:"length_s"`       // what is known of the run so far
	Verdict Verdict   `json:"verdict"`
	// Notices are what a reader must know before trusting the rest: silent ranks,
	// models that are warming up, drops, a backlog, a damaged store; worst first.
	Notices  []Notice   `json:"notices"`
	Figures  Figures    `json:"figures"`
	Issues   []Issue    `json:"issues"` // the worst, without those that are muted or expected
	Strip    Strip      `json:"strip"`  // lost time by kind over the whole run
	Programs []Program  `json:"programs"`
	Slowest  []Slowest  `json:"slowest"` // of functions, where there are no anomalies to show
	Review   *ReviewEnd `json:"review,omitempty"`
	// Packets is there where the run is known by packets of statistics only.
	Packets *PacketsInfo `json:"packets,omitempty"`
}

// Verdict is the run in a sentence.
type Verdict struct {
	Level    Level  `json:"level"`
	Sentence string `json:"sentence"`
	Issue    int    `json:"issue,omitempty"` // number of the one that it names
}

// Notice is something that limits how far the page can be trusted.
type Notice struct {
	Level    Level  `json:"level"`
	Topic    string `json:"topic"`    // silent-ranks, warming, drops, backlog, store, health, no-data, review
	Sentence string `json:"sentence"` // what it is and what to do
}

// Figures are the key figures. Those that are not known are left out.
type Figures struct {
	// by anomalies, each of them once: those of causes, and of waits on the ranks that waited
	Lost              int64    `json:"lost_us"`
	LostPercent       *float64 `json:"lost_percent,omitempty"`        // of the time of all ranks
	CoreHoursLost     float64  `json:"core_hours_lost"`               // Lost in hours
	Anomalies         int64    `json:"anomalies"`                     // that count: not withdrawn
	AnomaliesPerHour  float64  `json:"anomalies_per_hour"`            // of the run's own time
	Provisional       bool     `json:"provisional"`                   // the review at the end is still to come
	Calls             *int64   `json:"calls,omitempty"`               // judged
	Events            *int64   `json:"events,omitempty"`              // read
	EventsPerSecond   *float64 `json:"events_per_second,omitempty"`   // now, of a live run
	Kept              int64    `json:"kept"`                          // executions in the store, typical ones included
	Reduction         *float64 `json:"reduction,omitempty"`           // calls judged for one execution that is kept
	Functions         int64    `json:"functions"`                     // known
	FunctionsWarm     *int64   `json:"functions_warm,omitempty"`      // of them with as many samples as a judgment needs
	FunctionsMinCalls int64    `json:"functions_min_calls,omitempty"` // how many samples that is
	Dropped           *int64   `json:"dropped,omitempty"`             // messages given up
	Ranks             int64    `json:"ranks"`                         // seen
	RanksExpected     *int64   `json:"ranks_expected,omitempty"`      // that should come
	Hosts             int64    `json:"hosts"`                         // that they are on
	// without waits because of another issue, which are told with that one
	Issues       int64    `json:"issues"`
	Victims      int64    `json:"victims"`                          // anomalies that waited for somebody
	IssuesMuted  int64    `json:"issues_muted"`                     // muted or expected
	MutedLost    int64    `json:"muted_lost_us"`                    // what those lost; Lost has it, too
	LastEventAge *float64 `json:"last_event_age_seconds,omitempty"` // of a live run: since the newest data
}

// Program is one of a workflow.
type Program struct {
	Program int64  `json:"program"`
	Name    string `json:"name,omitempty"` // of its executable, where metadata tells
	Ranks   int64  `json:"ranks"`
}

// Slowest is a function with the longest single calls.
type Slowest struct {
	Program  int64   `json:"program"`
	Function string  `json:"function"`
	Longest  float64 `json:"longest_us"`
	Mean     float64 `json:"mean_us"`
	Calls    int64   `json:"calls"`
}

// ReviewEnd is what the review at the end of the run did.
type ReviewEnd struct {
	Flagged   int64 `json:"flagged"` // during the run
	Confirmed int64 `json:"confirmed"`
	Withdrawn int64 `json:"withdrawn"`
	Promoted  int64 `json:"promoted"`
}

// Strip is lost time over time, in columns of equal width.
type Strip struct {
	From   float64 `json:"from_s"`
	To     float64 `json:"to_s"`
	Series []Layer `json:"series"` // one for each kind that occurs, in a fixed order
}

// Layer is one kind of a strip.
type Layer struct {
	Kind string  `json:"kind"`
	Lost []int64 `json:"lost_us"`   // by column
	N    []int64 `json:"anomalies"` // by column
}

// Heatmap is ranks times time. Rows are ranks, or groups of neighbors where there
// are more ranks than rows were asked for; only cells that are not empty are listed.
type Heatmap struct {
	From    float64    `json:"from_s"`
	To      float64    `json:"to_s"`
	Columns int        `json:"columns"`
	Metric  string     `json:"metric"` // lost, own (without waits) or anomalies
	Rows    []HeatRow  `json:"rows"`   // ordered by program, host, rank
	Cells   []HeatCell `json:"cells"`
	Max     float64    `json:"max"` // of all values
}

// HeatRow is a row of a heatmap.
type HeatRow struct {
	Program   int64  `json:"program"`
	FirstRank int64  `json:"first_rank"`
	LastRank  int64  `json:"last_rank"` // the same as the first unless ranks are grouped
	Ranks     int64  `json:"ranks"`     // how many; where hosts have no neighbors, not all between first and last
	Host      string `json:"host"`      // of the first
	Silent    bool   `json:"silent,omitempty"`
	Lost      int64  `json:"lost_us"` // of the whole row
	Anomalies int64  `json:"anomalies"`
}

// HeatCell is row, column, value; short names, for there are many.
type HeatCell struct {
	Row    int     `json:"r"`
	Column int     `json:"c"`
	Value  float64 `json:"v"`
}

// Issue is one thing that is wrong, as chimbuko issues lists it.
type Issue struct {
	Key        string   `json:"key"`   // stays the same while numbers change
	Number     int      `json:"issue"` // 1 for the worst
	Program    int64    `json:"program"`
	Function   string   `json:"function"`
	FunctionID string   `json:"function_id,omitempty"` // for functions/{id}
	Path       string   `json:"call_path"`
	Kind       string   `json:"kind"`
	Role       string   `json:"role,omitempty"`
	Cause      int      `json:"cause,omitempty"` // number of the issue that made these wait
	Anomalies  int64    `json:"anomalies"`
	Lost       int64    `json:"lost_us"`
	Longest    int64    `json:"longest_us"`
	Ranks      []int64  `json:"ranks"` // at most 1000
	Hosts      []string `json:"hosts"` // at most 1000
	RankCount  int64    `json:"rank_count"`
	HostCount  int64    `json:"host_count"`
	WorstRank  *int64   `json:"worst_rank,omitempty"`
	WorstLost  int64    `json:"worst_rank_lost_us,omitempty"`
	First      float64  `json:"first_s"`
	Last       float64  `json:"last_s"`
	Trend      string   `json:"trend,omitempty"`
	OverTime   []int64  `json:"over_time"`
	Example    string   `json:"example,omitempty"` // event id
	Waits      int64    `json:"waits,omitempty"`
	WaitRanks  int64    `json:"wait_ranks,omitempty"`
	WaitLost   int64    `json:"waits_lost_us,omitempty"`
	Before     float64  `json:"before_us,omitempty"`
	After      float64  `json:"after_us,omitempty"`
	// Confidence is warming, provisional or confirmed.
	Confidence string `json:"confidence"`
	Sentence   string `json:"sentence"` // the issue in words
	Label      *Label `json:"label,omitempty"`
}

// IssueList is all issues of a run.
type IssueList struct {
	Rows     []Issue `json:"rows"`
	Writable bool    `json:"writable"` // labels can be set
	Stored   bool    `json:"stored"`   // as found at the end of the run; else as of now
	Total    int64   `json:"total"`    // rows may be the worst of them
}

// Label is what a person said of an issue.
type Label struct {
	Key   string    `json:"key"`   // of the issue
	State string    `json:"state"` // open, muted or expected
	Note  string    `json:"note"`
	At    time.Time `json:"at"`
}

// Plot is the executions of an issue over time, with what is normal.
type Plot struct {
	Points    []PlotPoint `json:"points"` // anomalies and typical executions, by time
	Total     int64       `json:"total"`  // there are; points may be the ones that lost most
	TypicalUS *Range      `json:"typical_us,omitempty"`
	Threshold *Range      `json:"threshold_us,omitempty"` // values outside are flagged
}

// PlotPoint is one execution.
type PlotPoint struct {
	Event   string  `json:"event_id"`
	At      float64 `json:"at_s"`
	Value   int64   `json:"exclusive_us"`
	Lost    int64   `json:"lost_us"`
	Rank    int64   `json:"rank"`
	Host    string  `json:"host"`
	Anomaly bool    `json:"anomaly"`
	Status  string  `json:"status,omitempty"`
}

// Range is from low to high; a side that has no bound is left out.
type Range struct {
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
}

// Evidence is all there is to say of one execution.
type Evidence struct {
	Event      string          `json:"event_id"`
	Program    int64           `json:"program"`
	Rank       int64           `json:"rank"`
	Thread     int64           `json:"thread"`
	Host       string          `json:"host"`
	Function   string          `json:"function"`
	FunctionID string          `json:"function_id"`
	Anomaly    bool            `json:"anomaly"` // else a typical execution that was kept
	Kind       string          `json:"kind,omitempty"`
	Status     string          `json:"status,omitempty"` // provisional, confirmed, promoted, withdrawn
	Sentence   string          `json:"sentence"`         // what happened
	Why        string          `json:"why,omitempty"`    // why it was flagged
	At         float64         `json:"at_s"`
	Entered    time.Time       `json:"entered"`
	Exclusive  int64           `json:"exclusive_us"`
	Inclusive  int64           `json:"inclusive_us"`
	Judged     int64           `json:"judged_us"` // the time that was judged: one of the two
	Lost       int64           `json:"lost_us"`
	Severity   float64         `json:"severity"`
	Score      float64         `json:"score"`
	Step       int64           `json:"io_step"`
	Path       []string        `json:"call_path"` // from the outermost function on
	Lanes      []Lane          `json:"lanes"`     // the first is the thread of the execution
	Arrows     []Arrow         `json:"arrows"`
	Model      *Model          `json:"model,omitempty"` // that it was judged by
	Twin       *Twin           `json:"twin,omitempty"`  // a typical execution of the same function
	Roles      Roles           `json:"roles"`
	GPU        *GPU            `json:"gpu,omitempty"`
	Counters   []Counter       `json:"counters"`
	State      []Field         `json:"node_state"`
	Metadata   []Field         `json:"metadata"` // of the rank
	Issue      int             `json:"issue,omitempty"`
	IssueKey   string          `json:"issue_key,omitempty"`
	Same       int64           `json:"same_signature"`     // anomalies of the issue
	Previous   string          `json:"previous,omitempty"` // of the issue, by time
	Next       string          `json:"next,omitempty"`
	Record     json.RawMessage `json:"record"` // as it is stored
}

// Lane is a thread, or a stream of a GPU, over time.
type Lane struct {
	Name  string     `json:"name"`
	Rank  int64      `json:"rank"`
	Calls []LaneCall `json:"calls"` // by entry; they nest
}

// LaneCall is a call on a lane.
type LaneCall struct {
	Event    string  `json:"event_id"`
	Function string  `json:"function"`
	Depth    int     `json:"depth"`    // 0 is the outermost
	Enter    float64 `json:"enter_us"` // relative to the entry of the execution
	Exit     float64 `json:"exit_us"`
	Open     bool    `json:"open,omitempty"` // it had not ended: exit is that of the lane's last call
	Anomaly  bool    `json:"anomaly,omitempty"`
	Self     bool    `json:"self,omitempty"` // the execution itself
	Group    string  `json:"group"`          // mpi, gpu, io, user: for its color
}

// Arrow is a message, or a launch on a GPU.
type Arrow struct {
	Kind     string  `json:"kind"`      // send, receive, launch
	FromLane int     `json:"from_lane"` // -1: another rank, which the record does not show
	ToLane   int     `json:"to_lane"`
	From     float64 `json:"from_us"`
	To       float64 `json:"to_us"`
	Partner  int64   `json:"partner"` // rank; of launches that of the execution
	Bytes    uint64  `json:"bytes,omitempty"`
	Tag      int64   `json:"tag,omitempty"`
}

// Model is how long a function usually takes.
type Model struct {
	Algorithm string    `json:"algorithm"`
	Edges     []float64 `json:"edges_us"` // one more than counts
	Counts    []int64   `json:"counts"`
	Samples   int64     `json:"samples"`
	Typical   *Range    `json:"typical_us,omitempty"`   // that most calls are in
	Normal    []Range   `json:"normal_us"`              // of modal: all usual times, one for each mode
	Threshold *Range    `json:"threshold_us,omitempty"` // values outside are flagged
	Warming   bool      `json:"warming"`                // too few samples for a sure judgment
}

// Twin is a typical execution to compare with.
type Twin struct {
	Event     string  `json:"event_id"`
	At        float64 `json:"at_s"`
	Rank      int64   `json:"rank"`
	Host      string  `json:"host"`
	Exclusive int64   `json:"exclusive_us"`
	Inclusive int64   `json:"inclusive_us"`
	SamePath  bool    `json:"same_path"`
	Lanes     []Lane  `json:"lanes"`
	Arrows    []Arrow `json:"arrows"`
}

// Roles are what an execution has to do with others.
type Roles struct {
	Role     string  `json:"role,omitempty"` // culprit or victim
	Sentence string  `json:"sentence,omitempty"`
	Culprit  *Other  `json:"culprit,omitempty"` // who made it wait
	LateRank *int64  `json:"late_rank,omitempty"`
	Victims  []Other `json:"victims"`         // who waited because of it; those that lost most
	Waits    int64   `json:"waits,omitempty"` // number of all victims
	WaitLost int64   `json:"waits_lost_us,omitempty"`
}

// Other is another execution.
type Other struct {
	Event    string  `json:"event_id"`
	Program  int64   `json:"program"`
	Rank     int64   `json:"rank"`
	Host     string  `json:"host"`
	Function string  `json:"function"`
	At       float64 `json:"at_s"`
	Lost     int64   `json:"lost_us"`
}

// GPU is where an execution on a GPU ran, and who launched it.
type GPU struct {
	Device  int64    `json:"device"`
	Context int64    `json:"context"`
	Stream  int64    `json:"stream"`
	Parent  string   `json:"parent,omitempty"` // event id of the launch
	Stack   []string `json:"stack"`            // of the launch, from the outermost function on
	Problem string   `json:"problem,omitempty"`
}

// Counter is a counter that was read in an execution.
type Counter struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	At    float64 `json:"at_us"` // relative to the entry of the execution
	// What is usual, over all ranks, where it is known.
	Mean   *float64 `json:"mean,omitempty"`
	Stddev *float64 `json:"stddev,omitempty"`
}

// Field is a name with a value.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// FunctionRow is a function of the table. Calls and times of a live run are those
// known so far, or left out.
type FunctionRow struct {
	ID             string   `json:"id"`
	Program        int64    `json:"program"`
	FID            int64    `json:"fid"` // number in documents
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
	Lost           int64    `json:"lost_us"`
	Modes          *int64   `json:"modes,omitempty"` // of its model
}

// FunctionTable is all functions, those that lost most first.
type FunctionTable struct {
	Rows  []FunctionRow `json:"rows"`
	Total int64         `json:"total"`          // rows may be the first of them
	Next  string        `json:"next,omitempty"` // cursor of the following page
}

// FunctionDetail is what a row of the table unfolds to.
type FunctionDetail struct {
	FunctionRow `tstype:",extends"`

	Model *Model         `json:"model,omitempty"`
	Ranks []FunctionRank `json:"ranks"` // with anomalies
	Paths []FunctionPath `json:"paths"` // that lead here
	Strip Strip          `json:"strip"`
}

// FunctionRank is a function on a rank.
type FunctionRank struct {
	Rank      int64   `json:"rank"`
	Host      string  `json:"host"`
	Anomalies int64   `json:"anomalies"`
	Lost      int64   `json:"lost_us"`
	Longest   int64   `json:"longest_us"`
	First     float64 `json:"first_s"`
	Last      float64 `json:"last_s"`
}

// FunctionPath is a way to call a function.
type FunctionPath struct {
	Path      []string `json:"call_path"`
	Anomalies int64    `json:"anomalies"`
	Lost      int64    `json:"lost_us"`
}

// Flame is a tree of call paths.
type Flame struct {
	Metric string    `json:"metric"` // time or lost
	Root   FlameNode `json:"root"`
	// Partial says why the tree does not show all; empty: it does.
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

// Found is what the search box offers.
type Found struct {
	Kind  string `json:"kind"` // function, host, rank, event, issue
	Text  string `json:"text"`
	Route string `json:"route"` // of the page, after the #
}

// FoundList is the answer to a search, the best first.
type FoundList struct {
	Rows []Found `json:"rows"`
}
