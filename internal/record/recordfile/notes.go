package recordfile

import (
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Notes counts what was read otherwise than it stands in the files, or not at
// all. The zero value is empty and ready; a nil *Notes forgets what it is told.
type Notes struct {
	n map[string]int64
}

// What is counted. Each reads well after a number.
const (
	noteUnknownTime = "times of 2^64-1, which stands for one that is not known; read as -1"
	noteTwice       = "fields that an object has more than once; the last was read"
	noteOtherFields = "other fields that are not of the schema; not read"
	noteVersion     = "records of a later version of the schema; read as version 2"
	noteProgram     = "records with another program than their directory; that of the directory was taken"
	noteRank        = "facts of another rank than that of their directory; read as they stand"
	noteTypical     = "anomalies whose model has no typical time; their lost time is unknown"
	noteNoAnomaly   = "functions with metrics of no anomaly; read as without metrics"
	noteNames       = "files or directories whose names are not those of records; not read"
)

// Names of fields that are not of the schema can be any; few are kept.
const (
	maxNotes     = 64
	maxFieldName = 64
)

// Add adds n to the count of a sentence.
func (s *Notes) Add(sentence string, n int64) {
	if s == nil || n == 0 {
		return
	}
	if s.n == nil {
		s.n = make(map[string]int64)
	}
	s.n[sentence] += n
}

// unknownField counts a field that is not of the schema.
func (s *Notes) unknownField(object, name string) {
	if s == nil {
		return
	}
	if len(name) > maxFieldName {
		name = name[:maxFieldName] + "…"
	}
	if object != "" {
		name = object + "." + name
	}
	sentence := fmt.Sprintf("fields %q that are not of the schema; not read", name)
	if _, ok := s.n[sentence]; !ok && len(s.n) >= maxNotes {
		sentence = noteOtherFields
	}
	s.Add(sentence, 1)
}

// All yields the sentences and their counts, in order of the sentences.
func (s *Notes) All() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		if s == nil {
			return
		}
		for _, sentence := range slices.Sorted(maps.Keys(s.n)) {
			if !yield(sentence, s.n[sentence]) {
				return
			}
		}
	}
}
