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
	maxRetryAfter = 10 * time.Minute // longer ones are considered mistakes
	maxAnswer     = 64 << 10         // bytes of an answer that are read to keep the connection
)

// poster delivers packets to a web server.
type poster struct {
	url     string
	client  http.Client
	timeout time.Duration
	idle    func() // closes the poster's own connections
}

func newPoster(opt SenderOptions) *poster {
	p := &poster{url: opt.URL, timeout: opt.Timeout, idle: func() {}}
	if opt.Client != nil {
		p.client = *opt.Client
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok {
		own := t.Clone()
		p.client.Transport, p.idle = own, own.CloseIdleConnections
	}
	p.client.CheckRedirect = keepBody
	return p
}

// keepBody sends the packet again with each redirect, except after 303, where a GET returns the
// answer. A Client would drop the body after 301 and 302, too.
func keepBody(r *http.Request, via []*http.Request) (err error) {
	if len(via) >= maxRedirects {
		return fmt.Errorf("the receiver redirects more than %d times, last to %s", maxRedirects, r.URL)
	}
	previous := via[len(via)-1]
	if r.Response.StatusCode != http.StatusSeeOther && previous.Method == http.MethodPost {
		r.Method, r.GetBody, r.ContentLength = http.MethodPost, previous.GetBody, previous.ContentLength
		r.Header.Set("Content-Type", previous.Header.Get("Content-Type"))
		r.Body, err = r.GetBody()
	}
	return err
}

// name returns the URL without its password.
func (p *poster) name() string {
	if u, err := url.Parse(p.url); err == nil {
		return u.Redacted()
	}
	return p.url
}

// answerError is an answer that does not accept a packet.
type answerError struct {
	status int
	text   string        // start of the body
	after  time.Duration // of Retry-After
}

func (e *answerError) Error() string {
	s := fmt.Sprintf("the receiver answers %d %s", e.status, http.StatusText(e.status))
	if e.text != "" {
		s += ": " + e.text
	}
	return s
}

// isRefusal reports whether a status blames the request.
func isRefusal(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

// deliver posts a packet. Any status 2xx accepts it.
func (p *poster) deliver(ctx context.Context, _ int, packet []byte) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(packet))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // only for the error
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		err = &answerError{answer.StatusCode, firstLine(text), retryAfter(answer.Header.Get("Retry-After"))}
	}
	return answer.StatusCode, err
}

// retryAfter parses a header with seconds or a time.
func retryAfter(header string) time.Duration {
	d := time.Duration(0)
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), maxRetryAfter)
}

// firstLine returns up to 200 bytes of the first line of an answer.
func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return strings.ToValidUTF8(string(line[:min(len(line), 200)]), "\ufffd")
}
