package duckstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// cachedStatement describes a statement that ran before: DuckDB takes longer to describe
// most statements than to run them.
type cachedStatement struct {
	wrapped string // the statement to run
	columns []provdb.Column
	types   []string // DuckDB types of the columns of wrapped
}

// Limits of the cache.
const (
	maxCached      = 500
	maxCachedBytes = 64 << 10 // of one statement
)

// cacheKey returns the text of a statement and the types of its arguments, which determine
// its columns. It is empty for statements that must not be cached: those whose columns
// depend on values, or that may have side effects.
func cacheKey(query string, args []any) string {
	text := strings.ToLower(query)
	if len(query) > maxCachedBytes || strings.Contains(text, "columns") ||
		slices.ContainsFunc(sideEffects, func(name string) bool { return strings.Contains(text, name) }) {
		return ""
	}
	var b strings.Builder
	for _, a := range args {
		fmt.Fprintf(&b, "%T,", a)
	}
	return b.String() + query
}
