package legacy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	maxRedirects  = 10
	maxRetryAfter = 10 * time.Minute // longer ones are taken for a mistake
	maxAnswer     = 64 << 10         // bytes of an answer that are read to keep the connection
)

// poster delivers packets to a web server.
type poster struct {
	url     string
	client  http.Client
	timeout time.Duration
	idle    func() // closes connections of the poster's own
}

func newPoster(opt SenderOptions) *poster {
	p := &poster{url: opt.URL, timeout: opt.Timeout, idle: func() {}}
	if opt.Client != nil {
		p.client = *opt.Client
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok {
		own := t.Clone()
		p.client.Transport, p.idle = own, own.CloseIdleConnections
	}
	// The client would follow most redirects without the body.
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return p
}

// name is the URL as people may see it.
func (p *poster) name() string {
	if u, err := url.Parse(p.url); err == nil {
		return u.Redacted()
	}
	return p.url
}

// answerError is an answer that does not accept a packet.
type answerError struct {
	status int
	text   string        // begin of the body
	after  time.Duration // how long to wait, if the receiver says so
}

func (e *answerError) Error() string {
	s := fmt.Sprintf("the receiver answers %d %s", e.status, http.StatusText(e.status))
	if e.text != "" {
		s += ": " + e.text
	}
	return s
}

// refusal reports whether a status says that the request itself is at fault.
func refusal(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

// deliver posts a packet and follows redirects with it. Any 2xx accepts it.
func (p *poster) deliver(ctx context.Context, _ int, packet []byte) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	method, target := http.MethodPost, p.url
	for range maxRedirects {
		var body io.Reader
		if method == http.MethodPost {
			body = bytes.NewReader(packet)
		}
		req, err := http.NewRequestWithContext(ctx, method, target, body)
		if err != nil {
			return status, err
		}
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		answer, err := p.client.Do(req)
		if err != nil {
			return 0, err
		}
		status = answer.StatusCode
		text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // only to say more in an error
		_ = answer.Body.Close()
		if status/100 == 2 {
			return status, nil
		}
		next := redirect(req.URL, answer)
		if next == "" {
			return status, &answerError{status, begin(text), retryAfter(answer.Header.Get("Retry-After"))}
		}
		target = next
		if status == http.StatusSeeOther {
			method = http.MethodGet // the packet was taken; the answer is elsewhere
		}
	}
	return status, fmt.Errorf("the receiver redirects more than %d times, last to %s", maxRedirects, target)
}

// redirect returns where an answer sends us, or "".
func redirect(from *url.URL, answer *http.Response) string {
	switch answer.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return ""
	}
	location := answer.Header.Get("Location")
	to, err := from.Parse(location)
	if err != nil || location == "" {
		return ""
	}
	return to.String()
}

// retryAfter is how long the header asks to wait, in seconds or until a time.
func retryAfter(header string) time.Duration {
	d := time.Duration(0)
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), maxRetryAfter)
}

// begin returns the first line of an answer's text, not too much of it.
func begin(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	if len(line) > 200 {
		line = line[:200]
	}
	return strings.ToValidUTF8(string(line), "\ufffd")
}
