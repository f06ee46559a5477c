package provdb

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Info is run.json: the settings, the state and the totals of a run. Stores keep it
// as Run.Info, and commands print it when the run ends.
type Info struct {
	Format  int       `json:"format"` // of run.json; the schema of a store covers the Info there
	State   State     `json:"state"`
	Error   string    `json:"error,omitempty"`
	Version string    `json:"version"`
	Commit  string    `json:"commit"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	// Unit is the length of a tick, in which all times of the run are stored, in nanoseconds; 0 is a microsecond.
	// Fields whose names end in _us have ticks, too.
	Unit     trace.Unit        `json:"tick_ns,omitzero"`
	Settings map[string]string `json:"settings"`
	Traces   []string          `json:"traces"`
	Store    string            `json:"store,omitempty"` // URL of the server, if the records are not in the run directory
	Name     string            `json:"name,omitempty"`  // of the run in the store
	Online   bool              `json:"online,omitempty"`
	Program  *Program          `json:"program,omitempty"` // started by chimbuko run
	// Programs are the names of several programs by number, if the names of traces gave them.
	Programs []string `json:"programs,omitempty"`
	// Incomplete lists missing data, as sentences without a period.
	Incomplete []string `json:"incomplete,omitempty"`

	Totals      Totals           `json:"totals"`
	Review      *summary.Review  `json:"review,omitempty"` // nil for imported runs
	TraceBytes  int64            `json:"trace_bytes"`
	RecordBytes int64            `json:"record_bytes"`
	Reduction   float64          `json:"reduction"` // trace bytes per record byte
	EventRate   float64          `json:"events_per_second"`
	Top         []TopFunction    `json:"top_functions"`
	Findings    FindingSummary   `json:"findings"`
	Efficiency  string           `json:"efficiency,omitempty"` // how the time of all ranks is divided, in words
	Changes     []summary.Change `json:"changes"`
	Modes       []summary.Mode   `json:"modes,omitempty"`
	Notes       []tally.Note     `json:"notes"`
	Broken      []string         `json:"broken,omitempty"`

	ImportedFrom string        `json:"imported_from,omitempty"` // directory of the imported record files
	Imported     *ImportCounts `json:"imported,omitempty"`
}

// InfoFormat is the format of run.json. Files without a number are those of programs before 1.0.
var InfoFormat = fileformat.Format{Number: 1, Oldest: 0}

// NewInfo returns the Info of a run that starts now.
func NewInfo(version, commit string, settings map[string]string) *Info {
	return &Info{
		Format: InfoFormat.Number, State: Running, Version: version, Commit: commit, Started: time.Now().UTC(), Settings: settings,
		Review: new(summary.Review),
	}
}

// Program is the program that chimbuko run started, and how it ended.
type Program struct {
	Command []string `json:"command"`
	Code    int      `json:"exit_code"`
	Signal  string   `json:"signal,omitempty"`  // that ended it
	Running bool     `json:"goes_on,omitempty"` // it was still running when the run ended
}

// Totals are sums over all ranks of a run.
type Totals struct {
	summary.Totals
	Functions int   `json:"functions"`
	Anomalies int64 `json:"anomalies"`
}

// TopFunction is one of the functions that lost most time to anomalies, other than waits for other ranks.
type TopFunction struct {
	Function  string       `json:"function"`
	Program   int          `json:"program"`
	Anomalies int64        `json:"anomalies"`
	LostUS    int64        `json:"lost_us"`
	TypicalUS float64      `json:"typical_us"`
	Ranks     []trace.Rank `json:"ranks"`
	Hosts     []string     `json:"hosts"`
	FirstUS   int64        `json:"first_us"`
	LastUS    int64        `json:"last_us"`
}

// FindingSummary counts the findings of a run. Shares are of the time of all ranks.
type FindingSummary struct {
	Count          int                  `json:"count"` // that are listed
	Worst          []provenance.Finding `json:"worst"` // the costliest of these
	Notes          int                  `json:"notes"` // about normal behavior
	NotesShare     float64              `json:"notes_share"`
	WorstNotes     []provenance.Finding `json:"worst_notes"` // the costliest of these
	Minor          int                  `json:"minor"`       // too cheap to list
	MinorShare     float64              `json:"minor_share"`
	Withdrawn      int                  `json:"withdrawn"`
	WithdrawnShare float64              `json:"withdrawn_share"`
}

// NewFindingSummary returns the summary of findings, which are sorted by cost.
func NewFindingSummary(all []provenance.Finding) FindingSummary {
	s := FindingSummary{Worst: []provenance.Finding{}, WorstNotes: []provenance.Finding{}}
	for i := range all {
		switch x := &all[i]; {
		case x.Status == provenance.Withdrawn:
			s.Withdrawn++
			s.WithdrawnShare += x.Share
		case x.Cause > 0:
		case x.Minor():
			s.Minor++
			s.MinorShare += x.Share
		case x.Noted():
			s.NotesShare += x.Share
			if s.Notes++; len(s.WorstNotes) < WorstNotes {
				s.WorstNotes = append(s.WorstNotes, *x)
			}
		default:
			if s.Count++; len(s.Worst) < worstFindings {
				s.Worst = append(s.Worst, *x)
			}
		}
	}
	return s
}

// ImportCounts are the documents of an imported run.
type ImportCounts struct {
	Steps     int64 `json:"steps"`
	Anomalies int64 `json:"anomalies"`
	Typical   int64 `json:"normalexecs"`
	Metadata  int64 `json:"metadata"`
	Functions int64 `json:"func_stats"`
	Counters  int64 `json:"counter_stats"`
	Models    int64 `json:"ad_model"`
	Paths     int64 `json:"path_stats"`
}

// Decoded returns the Info of the run. Fields of runs stored by other programs stay zero if their
// types differ.
func (r *Run) Decoded() *Info {
	info := new(Info)
	if r.Info != nil {
		_ = json.Unmarshal(r.Info, info) // sets the fields whose types match
	}
	return info
}

// Lengths of lists in an Info.
const (
	topFunctions  = 10
	worstFindings = 5
	WorstNotes    = 3
)

// Finish sets the results of a run that has ended.
func (i *Info) Finish(res *summary.Outcome) {
	i.State = Finished
	i.Seconds = time.Since(i.Started).Seconds()
	i.Totals = Totals{Totals: res.Totals, Functions: len(res.Functions), Anomalies: res.Review.Anomalies}
	i.Review, i.Changes, i.Modes = new(res.Review), res.Changes, res.Modes
	i.EventRate = float64(res.Totals.Events) / i.Seconds
	i.Top, i.Notes = []TopFunction{}, res.Tally.Notes()
	worst := slices.Clone(res.Functions)
	slices.SortStableFunc(worst, func(a, b *summary.FunctionResult) int { return int(b.LostTime - a.LostTime) })
	for _, f := range worst {
		if f.Anomalies.Empty() || len(i.Top) == topFunctions {
			break
		}
		if provenance.WaitOf(f.Name) != provenance.NoWait { // the time of another rank
			continue
		}
		i.Top = append(i.Top, TopFunction{
			Function: f.Name, Program: int(f.Program), Anomalies: int64(f.Anomalies.Score.N), LostUS: int64(f.LostTime),
			TypicalUS: f.Typical, Ranks: f.Ranks, Hosts: f.Hosts, FirstUS: int64(f.Anomalies.First), LastUS: int64(f.Anomalies.Last),
		})
	}
	for _, b := range res.Broken {
		i.Broken = append(i.Broken, b.Error())
	}
	i.Incomplete = append(i.Incomplete, i.missingData()...)
}

// missingData describes the data that is missing because the program or traces ended early, or because traces are damaged.
func (i *Info) missingData() (why []string) {
	switch p := i.Program; {
	case p == nil:
	case p.Signal != "":
		why = append(why, fmt.Sprintf("the program was ended by a signal (%s)", p.Signal))
	case p.Running:
		why = append(why, "the program was signaled to stop and has not ended")
	}
	if n := len(i.Broken); n > 0 {
		reason := fmt.Sprintf("%d of %d traces could be read only in part: %s", n, max(n, len(i.Traces)), i.Broken[0])
		if n > 1 {
			reason += ", and so on"
		}
		why = append(why, reason)
	}
	if slices.ContainsFunc(i.Notes, func(n tally.Note) bool { return n.Severity == tally.DataLoss.String() }) {
		why = append(why, "parts of the traces are missing or damaged") // Notes has the losses
	}
	return why
}

// SetSize sets the size of the stored records.
func (i *Info) SetSize(recordBytes int64) {
	i.RecordBytes = recordBytes
	if recordBytes > 0 {
		i.Reduction = float64(i.TraceBytes) / float64(recordBytes)
	}
}

// SetFindings sets the findings, which are sorted by cost.
func (i *Info) SetFindings(all []provenance.Finding) { i.Findings = NewFindingSummary(all) }
