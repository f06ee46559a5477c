package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/heatmap"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// maxFetched bounds an answer in bytes; the status of 100,000 ranks is smaller.
const maxFetched = 64 << 20

// Client queries the dashboard of another process.
type Client struct {
	client *http.Client
	base   *url.URL
	token  string
}

// NewClient returns a client of the dashboard at the address that the server printed. If token is
// empty, the address contains it.
func NewClient(client *http.Client, address, token string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("invalid address of a dashboard %q (want for example http://localhost:8080/)", address)
	}
	if token == "" {
		token = u.Query().Get("token")
	}
	u.RawQuery, u.Fragment = "", ""
	return &Client{client: client, base: u, token: token}, nil
}

// Status returns the state of the pipeline of the watched run.
func (c *Client) Status(ctx context.Context) (*api.Status, error) {
	return fetch[api.Status](ctx, c, nil, "status")
}

// Overview returns the overview of a run.
func (c *Client) Overview(ctx context.Context, run string, of insight.OverviewParams) (*api.Overview, error) {
	values := url.Values{"columns": {strconv.Itoa(of.Columns)}, "findings": {strconv.Itoa(of.Findings)}}
	return fetch[api.Overview](ctx, c, values, "runs", run, "overview")
}

// Findings returns all findings of a run.
func (c *Client) Findings(ctx context.Context, run string) (*api.FindingList, error) {
	return fetch[api.FindingList](ctx, c, nil, "runs", run, "findings")
}

// Heatmap returns ranks over time of a complete run. It ignores the times and the filter.
func (c *Client) Heatmap(ctx context.Context, run string, of heatmap.Params) (*api.Heatmap, error) {
	values := url.Values{"metric": {of.Metric}, "columns": {strconv.Itoa(of.Columns)}, "rows": {strconv.Itoa(of.Rows)}}
	return fetch[api.Heatmap](ctx, c, values, "runs", run, "heatmap")
}

// Ranks returns ranks compared with their peers. It ignores the filter.
func (c *Client) Ranks(ctx context.Context, run string, of ranks.Params) (*api.RankTable, error) {
	return fetch[api.RankTable](ctx, c, url.Values{"by": {of.By}}, "runs", run, "ranks")
}

// Functions returns the functions of a run with the most lost time. It uses only the limit.
func (c *Client) Functions(ctx context.Context, run string, of query.FunctionTable) (*api.FunctionTable, error) {
	return fetch[api.FunctionTable](ctx, c, url.Values{"limit": {strconv.Itoa(of.Limit)}}, "runs", run, "functions")
}

// Evidence returns the evidence of one execution.
func (c *Client) Evidence(ctx context.Context, run string, of insight.EventParams) (*api.Evidence, error) {
	values := make(url.Values)
	if of.Program != nil {
		values.Set("program", strconv.Itoa(int(*of.Program)))
	}
	return fetch[api.Evidence](ctx, c, values, "runs", run, "events", of.ID, "evidence")
}

// fetch returns the answer at a path below api/v1, whose parts it escapes.
func fetch[T any](ctx context.Context, c *Client, query url.Values, path ...string) (*T, error) {
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	where := c.base.JoinPath("api/v1").JoinPath(path...)
	where.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err // it names the address
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFetched+1))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if len(body) > maxFetched {
		return nil, fmt.Errorf("%s: answer has more than %d bytes", where, maxFetched)
	}
	if resp.StatusCode != http.StatusOK {
		var p api.Problem
		if json.Unmarshal(body, &p) != nil || p.Message == "" {
			p.Message = "status " + resp.Status + " from a server that is not a dashboard of chimbuko"
		}
		p.Status = resp.StatusCode
		return nil, fmt.Errorf("%s: %w", where, &p)
	}
	answer := new(T)
	if err := json.Unmarshal(body, answer); err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return nil, fmt.Errorf("%s: not an answer of a dashboard of chimbuko: %w", where,
			errors.Join(err, errors.New(resp.Header.Get("Content-Type"))))
	}
	return answer, nil
}

// Fetch returns the status of the dashboard at an address. See NewClient for address and token.
func Fetch(ctx context.Context, client *http.Client, address, token string) (*api.Status, error) {
	c, err := NewClient(client, address, token)
	if err != nil {
		return nil, err
	}
	return c.Status(ctx)
}
