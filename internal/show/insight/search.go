package insight

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// maxSearch bounds the length of a search.
const maxSearch = 1000

// Forms of searches for ranks, findings and events.
var (
	rankPattern    = regexp.MustCompile(`^(?i:rank)[: ]\s*(\d{1,9})$`)
	findingPattern = regexp.MustCompile(`^#\s*(\d{1,9})$`)
	eventPattern   = regexp.MustCompile(`^(?:(\d{1,9}):)?(\d+:\d+:\d+)$`)
)

// SearchParams are the text to search for and the maximum number of results.
type SearchParams struct {
	Text  string
	Limit int
}

// Search finds an event by its id, a rank (rank:37), a finding (#3), and functions and hosts by
// parts of their names.
func (in *Insight) Search(ctx context.Context, run string, of SearchParams) (*api.FoundList, error) {
	text := strings.TrimSpace(of.Text)
	if len(text) > maxSearch {
		return nil, api.Problemf(api.Invalid, api.ParamsHint, "parameter q: longer than %d characters", maxSearch)
	}
	return withData(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.FoundList, error) {
		list := &api.FoundList{Rows: []api.Found{}}
		if text == "" {
			return list, nil
		}
		for _, search := range []func(context.Context, string, int) ([]api.Found, error){
			q.searchEvents, q.searchRanks, q.searchFindings, q.searchHosts, q.searchFunctions,
		} {
			if len(list.Rows) >= of.Limit {
				break
			}
			rows, err := search(ctx, text, of.Limit-len(list.Rows))
			if err != nil {
				return nil, err
			}
			list.Rows = append(list.Rows, rows...)
		}
		return list, nil
	})
}

// Route returns an address of the page with the parameters that are not empty.
func Route(path string, params ...string) string {
	values := make(url.Values)
	for i := 0; i+1 < len(params); i += 2 {
		if params[i+1] != "" {
			values.Set(params[i], params[i+1])
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + strings.ReplaceAll(values.Encode(), "%3A", ":")
}

// searchEvents finds an execution by its id, with or without the program.
func (q *runQuery) searchEvents(ctx context.Context, text string, limit int) (list []api.Found, err error) {
	m := eventPattern.FindStringSubmatch(text)
	if m == nil {
		return nil, nil
	}
	var programs []trace.Program
	for _, r := range q.data.ranks { // ordered by program
		programs = append(programs, r.Program)
	}
	if m[1] != "" {
		n, _ := strconv.ParseUint(m[1], 10, 31) // few enough digits
		programs = []trace.Program{trace.Program(n)}
	}
	for _, p := range slices.Compact(programs) {
		if len(list) == limit {
			break
		}
		function, err := q.FunctionOf(ctx, m[2], p)
		if errors.Is(err, provdb.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, api.Found{Kind: "event", Text: fmt.Sprintf("%d:%s %s", p, m[2], function), Route: fmt.Sprintf("/e/%d:%s", p, m[2])})
	}
	return list, nil
}

// searchRanks finds ranks by number.
func (q *runQuery) searchRanks(_ context.Context, text string, limit int) (list []api.Found, err error) {
	m := rankPattern.FindStringSubmatch(text)
	if m == nil {
		return nil, nil
	}
	rank, _ := strconv.ParseInt(m[1], 10, 64) // few enough digits
	several := len(q.data.ranks) > 0 && q.data.ranks[0].Program != q.data.ranks[len(q.data.ranks)-1].Program
	for _, r := range q.data.ranks {
		if int64(r.Rank) != rank || len(list) == limit {
			continue
		}
		text, program := fmt.Sprintf("rank %d", rank), ""
		if several {
			program = strconv.Itoa(int(r.Program))
			text += " of program " + program
		}
		if r.Host != "" {
			text += " on " + r.Host
		}
		list = append(list, api.Found{Kind: "rank", Text: text, Route: Route("/findings", "rank", m[1], "program", program)})
	}
	return list, nil
}

// searchFindings finds a finding by its number.
func (q *runQuery) searchFindings(_ context.Context, text string, _ int) ([]api.Found, error) {
	m := findingPattern.FindStringSubmatch(text)
	if m == nil {
		return nil, nil
	}
	n, _ := strconv.Atoi(m[1]) // few enough digits
	if n < 1 || n > len(q.data.findings) {
		return nil, nil
	}
	return []api.Found{{
		Kind: "finding", Text: fmt.Sprintf("#%d %s", n, q.data.findings[n-1].Summary),
		Route: Route("/findings", "sel", q.data.keys[n-1]),
	}}, nil
}

// searchHosts finds hosts by a part of their names.
func (q *runQuery) searchHosts(_ context.Context, words string, limit int) (list []api.Found, err error) {
	part, ranks, order := strings.ToLower(words), make(map[string]int64), []string{}
	for _, r := range q.data.ranks {
		if strings.Contains(strings.ToLower(r.Host), part) {
			if ranks[r.Host]++; ranks[r.Host] == 1 {
				order = append(order, r.Host)
			}
		}
	}
	for _, host := range order[:min(len(order), limit)] {
		list = append(list, api.Found{
			Kind: "host", Text: fmt.Sprintf("%s (%s)", host, text.Count(ranks[host], "rank")),
			Route: Route("/findings", "host", host),
		})
	}
	return list, nil
}

// searchFunctions finds functions by a part of their names.
func (q *runQuery) searchFunctions(ctx context.Context, text string, limit int) (list []api.Found, err error) {
	functions, err := q.SearchFunctions(ctx, text, limit)
	for i := range functions {
		f := &functions[i]
		list = append(list, api.Found{Kind: "function", Text: f.Name, Route: Route("/functions", "sel", f.ID())})
	}
	return list, err
}
