package legacy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Fixed conditions of the original's dashboard.
const (
	minTotal      = trace.Ticks(1000) // shorter executions, with their callees, are omitted
	severityUnit  = 1000              // severities are given in milliseconds
	maxExecutions = 100_000
)

// Executions is the answer of the original to query_executions_pdb.
type Executions struct {
	Rows []json.RawMessage `json:"exec"`
}

// ParseExecutions reads the parameters of query_executions_pdb, where -1 means any. The query is
// nil if it matches nothing. Missing parameters, with which the original fails, are errors.
func ParseExecutions(param func(name string) string) (*query.ExecutionsPDB, error) {
	var errs []error
	number := func(name string) *float64 {
		value := param(name)
		if value == "" || value == "-1" {
			return nil
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			errs = append(errs, fmt.Errorf("parameter %s: %.40q is not a number", name, value))
			return nil
		}
		return &n
	}
	integer := func(name string) *int64 {
		n := number(name)
		if n == nil {
			return nil
		}
		if *n != math.Trunc(*n) || math.Abs(*n) > math.MaxInt32 {
			errs = append(errs, fmt.Errorf("parameter %s: %g is not an integer", name, *n))
			return nil
		}
		return new(int64(*n))
	}
	pid, rid, fid, first, last := integer("pid"), integer("rid"), integer("fid"), integer("step1"), integer("step2")
	severity, score, order := number("severity"), number("score"), param("order")
	switch {
	case errs != nil:
		return nil, api.Problemf(api.Invalid, api.ParamsHint, "%s", text.OneLine(errors.Join(errs...).Error()))
	case pid == nil && rid == nil && fid == nil && first == nil && last == nil && severity == nil && score == nil:
		return nil, api.Problemf(api.Invalid, "give pid, step1, step2, and rid or fid", "no parameters given")
	case rid == nil && fid == nil:
		return nil, nil
	case pid == nil || first == nil || last == nil:
		return nil, api.Problemf(api.Invalid, "use -1 for the other parameters to match any value", "pid, step1 and step2 are required")
	}
	q := &query.ExecutionsPDB{
		Program: trace.Program(*pid), Steps: trace.Range{First: *first, Last: *last}, FID: fid, Severity: -math.MaxFloat64,
		Score: -math.MaxFloat64, Least: minTotal, Descending: order == "desc", Limit: maxExecutions,
	}
	if rid != nil {
		q.Rank = new(trace.Rank(*rid))
	}
	if severity != nil {
		q.Severity = *severity * severityUnit
	}
	if score != nil {
		q.Score = *score
	}
	return q, nil
}
