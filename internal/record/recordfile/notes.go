package recordfile

import (
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Notes counts values of files that were changed or skipped. The zero value is ready for
// use; a nil *Notes counts nothing.
type Notes struct {
	n map[string]int64
}

// Sentences of notes, which follow a number.
const (
	noteUnknownTime = "unknown times (2^64-1); read as -1"
	noteUnknownSize = "impossible sizes of messages, more than 2^48 bytes; read as unknown"
	noteTwice       = "duplicate fields; the last was read"
	noteOtherFields = "other unknown fields; not read"
	noteVersion     = "records of a later schema; read as version 2"
	noteProgram     = "records with another program than their directory; read with that of the directory"
	noteRank        = "metadata of another rank than their directory; read unchanged"
	noteTypical     = "anomalies without a typical time; their lost time is unknown"
	noteNoAnomaly   = "functions with metrics of no anomaly; read without metrics"
	noteNames       = "files or directories with other names than record files; not read"
)

// Limits of the names of unknown fields.
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

// unknownField counts a field that the schema does not have.
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
	sentence := fmt.Sprintf("unknown fields %q; not read", name)
	if _, ok := s.n[sentence]; !ok && len(s.n) >= maxNotes {
		sentence = noteOtherFields
	}
	s.Add(sentence, 1)
}

// All yields the sentences and their counts, sorted by sentence.
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
