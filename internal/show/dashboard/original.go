package dashboard

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// What the dashboard of the original does to each question.
const (
	leastShown       = trace.Micros(1000) // what took less, with what it called, is left out
	severityUnit     = 1000               // severities are asked for in milliseconds
	nothingAsked     = "-1"
	maxExecutionsPDB = 100_000
)

// executionsPDB answers as events/query_executions_pdb of the original does, about the run
// that is shown. Where the original fails because a parameter is missing, this names it.
func (s *server) executionsPDB(r *http.Request, p *params) (any, error) {
	number := func(name string) *float64 {
		text := p.text(name)
		if text == "" || text == nothingAsked {
			return nil
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			p.fail(name, "%.40q is not a number", text)
			return nil
		}
		return &n
	}
	whole := func(name string) *int64 {
		n := number(name)
		if n == nil {
			return nil
		}
		if *n != math.Trunc(*n) || math.Abs(*n) > math.MaxInt32 {
			p.fail(name, "%g is not an integer", *n)
			return nil
		}
		i := int64(*n)
		return &i
	}
	pid, rid, fid, first, last := whole("pid"), whole("rid"), whole("fid"), whole("step1"), whole("step2")
	severity, score, order := number("severity"), number("score"), p.text("order")
	if err := p.done(); err != nil {
		return nil, err
	}
	answer := executionList{Rows: []json.RawMessage{}}
	if pid == nil && rid == nil && fid == nil && first == nil && last == nil && severity == nil && score == nil {
		return nil, &problem{http.StatusBadRequest, "nothing is asked for", "give pid, step1, step2, and rid or fid"}
	}
	if rid == nil && fid == nil {
		return answer, nil
	}
	if pid == nil || first == nil || last == nil {
		return nil, &problem{http.StatusBadRequest, "pid, step1 and step2 are needed", "-1 stands for none of the others"}
	}
	q := query.ExecutionsPDB{
		Program: trace.Program(*pid), Steps: query.Range{First: *first, Last: *last}, FID: fid, Severity: -math.MaxFloat64,
		Score: -math.MaxFloat64,
		Least: leastShown, Descending: order == "desc", Limit: maxExecutionsPDB,
	}
	if rid != nil {
		rank := trace.Rank(*rid)
		q.Rank = &rank
	}
	if severity != nil {
		q.Severity = *severity * severityUnit
	}
	if score != nil {
		q.Score = *score
	}
	rows, err := s.insight.ExecutionsPDB(r.Context(), s.Run, q)
	return executionList{Rows: rows}, err
}

// executionList is an answer of the original.
type executionList struct {
	Rows []json.RawMessage `json:"exec"`
}
