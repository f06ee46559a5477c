package duckstore

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// seenStatement is what was found out of a statement when it was first asked: to look at
// one takes DuckDB longer than to answer most.
type seenStatement struct {
	wrapped string // what is run
	columns []provdb.Column
	types   []string // that the columns of what is run have
}

// seenStatements are those that were asked. The zero value is ready.
type seenStatements struct {
	mu  sync.Mutex
	all map[string]*seenStatement
}

// Bounds of what is remembered.
const (
	maxSeen      = 500
	maxSeenBytes = 64 << 10 // of one statement
)

// seenKey names a statement by its text and the types of what it binds, on which those of
// columns may depend; empty for one that must be looked at each time: whose columns depend
// on values, or which may do more than answer.
func seenKey(query string, args []any) string {
	text := strings.ToLower(query)
	if len(query) > maxSeenBytes || strings.Contains(text, "columns") ||
		slices.ContainsFunc(deeds, func(name string) bool { return strings.Contains(text, name) }) {
		return ""
	}
	var b strings.Builder
	for _, a := range args {
		fmt.Fprintf(&b, "%T,", a)
	}
	return b.String() + query
}

func (s *seenStatements) get(key string) *seenStatement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[key]
}

func (s *seenStatements) put(key string, seen *seenStatement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil || len(s.all) >= maxSeen {
		s.all = make(map[string]*seenStatement)
	}
	s.all[key] = seen
}

// fits reports whether an answer has the columns that were found out.
func (s *seenStatement) fits(rows *sql.Rows) bool {
	_, types, err := columnsOf(rows)
	return err == nil && slices.Equal(types, s.types)
}
