// Package tally counts all repairs, skips and losses between bytes and answers. Each
// count has a name, a severity and a sentence, so that bad data neither stops a run nor
// disappears unnoticed.
package tally

import "iter"

// Severity is the effect of a count on the answers.
type Severity uint8

// From harmless to harmful.
const (
	Info     Severity = iota // for information; not a problem
	Repaired                 // the data were wrong and have been repaired
	Warning                  // answers may be less exact than they look
	DataLoss                 // answers are incomplete
)

// String returns the severity's name.
func (s Severity) String() string {
	return [...]string{"info", "repaired", "warning", "data loss"}[s&3]
}

// Kind names one count.
type Kind uint8

// NumKinds is the number of kinds.
const NumKinds Kind = 70

type entry struct {
	name     string
	severity Severity
	sentence string
}

var (
	table   [NumKinds]entry
	defined Kind // entries of table
)

// define adds a kind to the table.
func define(name string, severity Severity, sentence string) Kind {
	table[defined] = entry{name, severity, sentence}
	defined++
	return defined - 1
}

// The kinds of counts. Their order is that of Tally.All, and of counts between processes.
var (
	IndexTorn = define("index-torn", Info, "index records that were incomplete when the trace was read; the writer was active or "+
		"was killed")
	IndexRepeated = define("index-repeated", Repaired, "index records that repeat the one before; ignored")
	NotClosed     = define("not-closed", DataLoss, "traces that were not closed: their program was killed or is still running, so "+
		"that steps may be missing")
	MetadataUnindexed = define("metadata-unindexed", DataLoss, "bytes of metadata that the index does not mention; the index lost "+
		"records, and with them steps")
	ElementSkipped     = define("element-skipped", DataLoss, "variables or attributes skipped because their description has an unknown part")
	AttributeMalformed = define("attribute-malformed", DataLoss, "names of functions, counters or event types skipped because "+
		"they carry no number")
	NameConflict   = define("name-conflict", Warning, "names defined again with another text; the first was kept")
	NamesAmbiguous = define("names-ambiguous", Warning, "ranks whose function and counter names may be those of another rank: one "+
		"file for all ranks keeps only one set of names; write one file for each rank (TAU_ADIOS2_ONE_FILE=0)")
	ProgramImplausible = define("program-implausible", DataLoss, "rows dropped because of an impossible program number")
	RankMismatch       = define("rank-mismatch", DataLoss, "rows dropped because they belong to another rank")
	ThreadImplausible  = define("thread-implausible", DataLoss, "rows dropped because of an impossible thread number")
	TypeUnknown        = define("type-unknown", DataLoss, "rows dropped because their event type is unknown")
	IDImplausible      = define("id-implausible", DataLoss, "rows dropped because of an impossible function, counter, partner or tag")
	TimeImplausible    = define("time-implausible", DataLoss, "rows dropped because of an impossible time")
	OutOfOrder         = define("out-of-order", Repaired, "events that were older than their predecessor on the same thread; sorted")
	ThreadsInterleaved = define("threads-interleaved", Info, "steps whose function events were not grouped by thread; grouped")
	CountMismatch      = define("count-mismatch", Warning, "tables whose number of rows differs from the number announced beside them")
	TableMisshapen     = define("table-misshapen", DataLoss, "tables skipped because they have the wrong number of columns or the "+
		"wrong type")
	StepReread       = define("step-reread", Repaired, "steps read again because they first had impossible rows")
	ExitWithoutEnter = define("exit-without-enter", DataLoss, "exits dropped because the function was not open")
	ExitLost         = define("exit-lost", Repaired, "calls whose exit is missing; closed with the enclosing call, neither learned nor "+
		"judged")
	StackTooDeep       = define("stack-too-deep", DataLoss, "entries dropped because too many calls were open")
	OutsideAnyCall     = define("outside-any-call", Info, "messages and counters that belong to no call because none was open")
	CorrelationDropped = define("correlation-dropped", DataLoss, "correlation ids dropped, the oldest first, because too many "+
		"waited for their other half; their kernels have no parent")
	SidesForgotten = define("sides-forgotten", DataLoss, "messages and counters of calls across several steps dropped, to limit "+
		"memory or because the clock was set back")
	CorrelationUnmatched = define("correlation-unmatched", Warning, "correlation ids whose other half never came: kernels without "+
		"launch or launches without kernel")
	OpenAtEnd     = define("open-at-end", Info, "calls that had not ended when the trace did; they are not judged")
	TimeBackwards = define("time-backwards", Repaired, "events older than the last of the step before, as when a clock is set "+
		"back; moved to its time")
	PathFolded = define("path-folded", Info, "calls counted under (other paths), because the program has more call paths than the "+
		"limit")
	PathUnnamed = define("path-unnamed", DataLoss, "calls without a call path because their function, or that of an enclosing "+
		"call, has no name in the trace")
	PathPooled = define("path-pooled", Info, "call paths whose calls were judged among all calls of their function, because the "+
		"function has more call paths than the limit")
	RecordDeferred = define("record-deferred", Info, "records that did not fit into the outbox of their analyzer during the run "+
		"and were sent with the review: the services were unavailable or slow (see --outbox)")
	StreamFull = define("stream-full", Info, "messages with records that waited in their analyzer because the stream was full: "+
		"the store is slow or was unavailable (see --stream-size)")
	RecordTooLarge = define("record-too-large", DataLoss, "records lost because they are larger than the stream: give chimbuko "+
		"serve a larger --stream-size")
	StepsMissed = define("steps-missed", DataLoss, "steps of live streams that the program discarded because the reader was too "+
		"slow (QueueFullPolicy=Discard)")
	SizeImplausible = define("size-implausible", Repaired, "messages of an impossible size, more than 2^48 bytes; treated as "+
		"unknown (TAU does not know the sizes of messages that MPI_Sendrecv receives)")
	CountersDropped = define("counters-dropped", Info, "counters of ranks that may not be compared with those of peers, because "+
		"the program has more counters than the limit")
	WorkUnnamed = define("work-unnamed", DataLoss, "calls that are missing when ranks are compared, because the trace named their "+
		"function too late or never")
	StepsUnattended = define("steps-unattended", DataLoss, "steps of live streams that passed while no analyzer was connected: "+
		"before its start, or between the death of one and its replacement")
	RowsMissing     = define("rows-missing", DataLoss, "rows that the trace announces but does not contain")
	RowsUnannounced = define("rows-unannounced", DataLoss, "tables without the number of their rows, which TAU always announces; "+
		"the description of the step is damaged, and rows may be missing")
	PartUnreadable = define("part-unreadable", DataLoss, "parts of JSON traces and pages of SQLite traces that cannot be read; "+
		"skipped (chimbuko trace info lists their places)")
	EventRepaired = define("event-repaired", Repaired, "events with unescaped quotes or backslashes in their texts; read as they "+
		"were meant")
	EventTooLarge  = define("event-too-large", DataLoss, "events of more than 16 MB; skipped")
	ElementUnknown = define("element-unknown", DataLoss, "elements of the list of events that have no phase, and so are not "+
		"events; skipped")
	DocumentCut = define("document-cut", DataLoss, "JSON documents that do not end before the next one in the same file begins; "+
		"events may be missing")
	PropertyIgnored = define("property-ignored", Info, "properties of JSON traces, beside the events, that are larger than 1 MB "+
		"or too many; ignored")
	TextInvalid    = define("text-invalid", Repaired, "events with texts that are not valid UTF-8; the invalid bytes were replaced")
	TimeUnreadable = define("time-unreadable", Warning, "events with a time or duration that is not a number or is too large; "+
		"treated as missing")
	EventsIgnored = define("events-ignored", Info, "events of profilers that are neither calls nor counters, or repeat others: "+
		"flows, instants, annotations copied to GPU streams, ranges without end")
	CallsOverlap = define("calls-overlap", Repaired, "calls that overlapped another on their thread without being inside it; the "+
		"one that lost less was shortened")
	AsyncDropped  = define("async-dropped", DataLoss, "asynchronous operations dropped because too many of their thread were running")
	LaunchUnknown = define("launch-unknown", Info, "activities of GPUs without a launch in the trace; idle time before them does "+
		"not count as host wait")
	ActivityLate = define("activity-late", Warning, "activities of GPUs and training steps that the trace has too late; only the "+
		"part after those already counted is in the breakdown")
	StepsFolded = define("steps-folded", Info, "training steps that the breakdown has only in the times of their rank, because "+
		"the rank has more than the limit")
	CollectiveAlone = define("collective-alone", Info, "executions of collective operations that only one rank recorded; their "+
		"arrivals cannot be compared")
	CollectiveUnmatched = define("collective-unmatched", Warning, "executions of collective operations that were not compared, "+
		"because ranks recorded different operations at the same position")
	CollectiveOmitted = define("collective-omitted", Warning, "collective operations of ranks that were not compared: before the "+
		"first training step, or beyond the limit")
	DocumentJoined = define("document-joined", Info, "JSON documents that continue another one in the same file: they have no "+
		"rank of their own, or that of the other; their events were added to it")
	RankAssumed = define("rank-assumed", Warning, "JSON documents or processes of several in a file that do not say which rank "+
		"they are, and logs of NCCL Inspector without a communicator of all processes; numbered in order")
	RankRepeated = define("rank-repeated", DataLoss, "JSON documents with the rank of another document in the same file, which "+
		"they have only after their events; skipped")
	ClockCorrected = define("clock-corrected", Info, "ranks whose clock contradicted those of others in collective operations; "+
		"all their times were corrected (chimbuko breakdown --collectives lists the clocks)")
	RecordsSkipped = define("records-skipped", Info, "records of the trace that are neither calls, messages nor metrics, such as "+
		"those of threads, locks and files; skipped")
	CollectiveUnrecorded = define("collective-unrecorded", Info, "collective operations that NCCL Inspector did not write, by "+
		"their numbers: smaller ones than NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES, or more between two dumps than it keeps")
	ColumnsMissing = define("columns-missing", Warning, "tables and columns of SQLite traces that are missing, because other "+
		"versions of the profiler write them or they were not recorded (chimbuko trace metadata lists them)")
	ProcessOmitted = define("process-omitted", Info, "processes of traces without rank and GPU work, beside others that have; left out")
	NamesUnknown   = define("names-unknown", DataLoss, "calls of SQLite traces whose names are missing; named by their kind")
	ClockAssumed   = define("clock-assumed", Warning, "ranks whose trace has times since the start of their host; the first events "+
		"of all hosts were assumed to be simultaneous")
	PartnerUnknown = define("partner-unknown", Info, "messages of exports of Nsight Systems without a known partner: in "+
		"communicators of some ranks, in calls that send and receive, or received without a wait; only their calls are known")
	FlagUnsent = define("flag-unsent", Info, "flagged calls that a live run does not store before its review, because many others on "+
		"the same call path and rank lost about as much; until then, findings count only the stored ones")
)

// Name returns the name for programs. It is stable over versions.
func (k Kind) Name() string { return table[k].name }

// Severity returns the effect on the answers.
func (k Kind) Severity() Severity { return table[k].severity }

// Sentence returns the explanation for people, which follows a number.
func (k Kind) Sentence() string { return table[k].sentence }

// Tally is a set of counts. The zero value is empty; a nil *Tally ignores counts. It
// must not be shared between goroutines: give each its own Tally and merge them.
type Tally struct {
	n [NumKinds]int64
}

// Add adds n to the count of k.
func (t *Tally) Add(k Kind, n int64) {
	if t != nil {
		t.n[k] += n
	}
}

// Merge adds all counts of o.
func (t *Tally) Merge(o *Tally) {
	if t == nil || o == nil {
		return
	}
	for k, n := range o.n {
		t.n[k] += n
	}
}

// Count returns the count of k.
func (t *Tally) Count(k Kind) int64 {
	if t == nil {
		return 0
	}
	return t.n[k]
}

// All yields the counts that are not zero, in a fixed order.
func (t *Tally) All() iter.Seq2[Kind, int64] {
	return func(yield func(Kind, int64) bool) {
		if t == nil {
			return
		}
		for k, n := range t.n {
			if n != 0 && !yield(Kind(k), n) {
				return
			}
		}
	}
}

// Note is a count other than zero, as shown to people and programs.
type Note struct {
	Name     string `json:"name"`
	Severity string `json:"severity"`
	Count    int64  `json:"count"`
	Sentence string `json:"sentence"`
}

// Notes returns the counts that are not zero, in a fixed order; never nil.
func (t *Tally) Notes() []Note {
	notes := []Note{}
	for k, n := range t.All() {
		notes = append(notes, Note{k.Name(), k.Severity().String(), n, k.Sentence()})
	}
	return notes
}
