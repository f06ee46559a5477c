package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxStatus is how large a Status may be: that of 100 000 ranks is smaller.
const maxStatus = 64 << 20

// Fetch asks a dashboard for its Status. The address is the one that the server
// printed, with or without the token in it, which an empty token stands for.
func Fetch(ctx context.Context, client *http.Client, address, token string) (*Status, error) {
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
	where := u.JoinPath("api/v1/status")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err // it names the address
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus+1))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if len(body) > maxStatus {
		return nil, fmt.Errorf("%s: the answer has more than %d bytes", where, maxStatus)
	}
	if resp.StatusCode != http.StatusOK {
		var p problem
		if json.Unmarshal(body, &p) != nil || p.Message == "" {
			p.Message = "it answers " + resp.Status + ", not as a dashboard of chimbuko does"
		}
		return nil, fmt.Errorf("%s: %w", where, &p)
	}
	status := new(Status)
	if err := json.Unmarshal(body, status); err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return nil, fmt.Errorf("%s: not the answer of a dashboard of chimbuko: %w", where, errors.Join(err, errors.New(resp.Header.Get("Content-Type"))))
	}
	return status, nil
}
