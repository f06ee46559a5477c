package recordstream

import (
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
)

// Name returns the name of the stream of a run.
func Name(run string) string { return "chimbuko-records-" + paramwire.Token(run) }

// RecordSubject returns the subject to which analyzers send records.
func RecordSubject(run string) string { return "chimbuko." + paramwire.Token(run) + ".records" }

// RunSubject returns the subject to which services send run-level data and the end of the run.
func RunSubject(run string) string { return "chimbuko." + paramwire.Token(run) + ".known" }

// AnalyzerAccess returns the rights of the token for analyzers.
func AnalyzerAccess(run, token string) bus.Access {
	a := bus.Access{Name: "analyzer", Token: token, Subjects: []string{RecordSubject(run)}, Streams: []string{Name(run)}}
	for _, what := range paramwire.AnalyzerRequests {
		a.Subjects = append(a.Subjects, paramwire.AnyShard(run, what))
	}
	return a
}
