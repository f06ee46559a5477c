package insight

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// maxSought is how many characters are sought.
const maxSought = 1000

// What can be sought by a form of its own.
var (
	rankSought  = regexp.MustCompile(`^(?i:rank)[: ]\s*(\d{1,9})$`)
	issueSought = regexp.MustCompile(`^#\s*(\d{1,9})$`)
	eventSought = regexp.MustCompile(`^(?:(\d{1,9}):)?(\d+:\d+:\d+)$`)
)

// SearchParams are what is sought.
type SearchParams struct {
	Text  string
	Limit int
}

// Search offers what a text may mean: an event id, rank:37, the number of an issue #3,
// or a part of the name of a function or host.
func (in *Insight) Search(ctx context.Context, run string, of SearchParams) (*api.FoundList, error) {
	text := strings.TrimSpace(of.Text)
	if len(text) > maxSought {
		return nil, Problemf(api.Invalid, ParamsHint, "parameter q: it is longer than %d characters", maxSought)
	}
	return informed(ctx, in, run, func(ctx context.Context, q *asked) (*api.FoundList, error) {
		found := &api.FoundList{Rows: []api.Found{}}
		if text == "" {
			return found, nil
		}
		for _, seek := range []func(context.Context, string, int) ([]api.Found, error){
			q.seekEvent, q.seekRank, q.seekIssue, q.seekHost, q.seekFunction,
		} {
			if len(found.Rows) >= of.Limit {
				break
			}
			rows, err := seek(ctx, text, of.Limit-len(found.Rows))
			if err != nil {
				return nil, err
			}
			found.Rows = append(found.Rows, rows...)
		}
		return found, nil
	})
}

// Route writes an address of the page. Texts that are empty are left out.
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

// seekEvent looks for an execution by its id, with or without the program.
func (q *asked) seekEvent(ctx context.Context, text string, limit int) (list []api.Found, err error) {
	m := eventSought.FindStringSubmatch(text)
	if m == nil {
		return nil, nil
	}
	programs := []trace.Program{}
	if m[1] != "" {
		n, _ := strconv.ParseUint(m[1], 10, 31) // it has few enough digits
		programs = append(programs, trace.Program(n))
	} else {
		for _, r := range q.known.ranks {
			if len(programs) == 0 || programs[len(programs)-1] != r.Program {
				programs = append(programs, r.Program)
			}
		}
	}
	for _, p := range programs {
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

// seekRank looks for ranks by number.
func (q *asked) seekRank(_ context.Context, text string, limit int) (list []api.Found, err error) {
	m := rankSought.FindStringSubmatch(text)
	if m == nil {
		return nil, nil
	}
	rank, _ := strconv.ParseInt(m[1], 10, 64) // it has few enough digits
	several := len(q.known.ranks) > 0 && q.known.ranks[0].Program != q.known.ranks[len(q.known.ranks)-1].Program
	for _, r := range q.known.ranks {
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
		list = append(list, api.Found{Kind: "rank", Text: text, Route: Route("/issues", "rank", m[1], "program", program)})
	}
	return list, nil
}

// seekIssue looks for an issue by its number.
func (q *asked) seekIssue(_ context.Context, text string, _ int) ([]api.Found, error) {
	m := issueSought.FindStringSubmatch(text)
	if m == nil {
		return nil, nil
	}
	n, _ := strconv.Atoi(m[1]) // it has few enough digits
	if n < 1 || n > len(q.known.issues) {
		return nil, nil
	}
	return []api.Found{{
		Kind: "issue", Text: fmt.Sprintf("#%d %s", n, q.known.issueSentence(&q.known.issues[n-1])),
		Route: Route("/issues", "sel", q.known.keys[n-1]),
	}}, nil
}

// seekHost looks for a part of the names of hosts.
func (q *asked) seekHost(_ context.Context, words string, limit int) (list []api.Found, err error) {
	part, ranks, order := strings.ToLower(words), make(map[string]int64), []string{}
	for _, r := range q.known.ranks {
		if strings.Contains(strings.ToLower(r.Host), part) {
			if ranks[r.Host]++; ranks[r.Host] == 1 {
				order = append(order, r.Host)
			}
		}
	}
	for _, host := range order[:min(len(order), limit)] {
		list = append(list, api.Found{
			Kind: "host", Text: fmt.Sprintf("%s (%s)", host, text.Count(ranks[host], "rank")),
			Route: Route("/issues", "host", host),
		})
	}
	return list, nil
}

// seekFunction looks for a part of the names of functions.
func (q *asked) seekFunction(ctx context.Context, text string, limit int) (list []api.Found, err error) {
	functions, err := q.SearchFunctions(ctx, text, limit)
	for i := range functions {
		f := &functions[i]
		list = append(list, api.Found{Kind: "function", Text: f.Name, Route: Route("/functions", "sel", f.ID())})
	}
	return list, err
}
