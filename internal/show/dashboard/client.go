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
)

// maxFetched is how large an answer may be: the Status of 100 000 ranks is smaller.
const maxFetched = 64 << 20

// Client queries the dashboard of another process.
type Client struct {
	client *http.Client
	base   *url.URL
	token  string
}

// NewClient returns a client of the dashboard at an address, which is the one that
// the server printed, with or without the token in it, which an empty token stands for.
func NewClient(client *http.Client, address, token string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no address of a dashboard such as http://localhost:8080/", address)
	}
	if token == "" {
		token = u.Query().Get("token")
	}
	u.RawQuery, u.Fragment = "", ""
	return &Client{client: client, base: u, token: token}, nil
}

// Status is the state of the pipeline of the run that the dashboard watches.
func (c *Client) Status(ctx context.Context) (*api.Status, error) {
	return fetch[api.Status](ctx, c, nil, "status")
}

// Overview is how a run is, with so many of its worst issues.
func (c *Client) Overview(ctx context.Context, run string, issues int) (*api.Overview, error) {
	return fetch[api.Overview](ctx, c, url.Values{"issues": {strconv.Itoa(issues)}}, "runs", run, "overview")
}

// Issues are all issues of a run.
func (c *Client) Issues(ctx context.Context, run string) (*api.IssueList, error) {
	return fetch[api.IssueList](ctx, c, nil, "runs", run, "issues")
}

// Heatmap is ranks times time of a whole run. The metric is lost, own or anomalies.
func (c *Client) Heatmap(ctx context.Context, run, metric string, columns, rows int) (*api.Heatmap, error) {
	return fetch[api.Heatmap](ctx, c, url.Values{"metric": {metric}, "columns": {strconv.Itoa(columns)}, "rows": {strconv.Itoa(rows)}},
		"runs", run, "heatmap")
}

// Functions are those of a run that lost most.
func (c *Client) Functions(ctx context.Context, run string, limit int) (*api.FunctionTable, error) {
	return fetch[api.FunctionTable](ctx, c, url.Values{"limit": {strconv.Itoa(limit)}}, "runs", run, "functions")
}

// Evidence is all there is to say of one execution.
func (c *Client) Evidence(ctx context.Context, run string, program int64, event string) (*api.Evidence, error) {
	return fetch[api.Evidence](ctx, c, url.Values{"program": {strconv.FormatInt(program, 10)}}, "runs", run, "events", event, "evidence")
}

// fetch asks for the answer at a path below api/v1, whose parts are names of any kind.
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
		return nil, fmt.Errorf("%s: the answer has more than %d bytes", where, maxFetched)
	}
	if resp.StatusCode != http.StatusOK {
		var p problem
		if json.Unmarshal(body, &p) != nil || p.Message == "" {
			p.Message = "it answers " + resp.Status + ", not as a dashboard of chimbuko does"
		}
		p.status = resp.StatusCode
		return nil, fmt.Errorf("%s: %w", where, &p)
	}
	answer := new(T)
	if err := json.Unmarshal(body, answer); err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return nil, fmt.Errorf("%s: not the answer of a dashboard of chimbuko: %w", where,
			errors.Join(err, errors.New(resp.Header.Get("Content-Type"))))
	}
	return answer, nil
}

// Fetch asks the dashboard at an address for its Status, as NewClient does.
func Fetch(ctx context.Context, client *http.Client, address, token string) (*api.Status, error) {
	c, err := NewClient(client, address, token)
	if err != nil {
		return nil, err
	}
	return c.Status(ctx)
}
