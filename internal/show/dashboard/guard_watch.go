package dashboard

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/throttle"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

const (
	watchEvery = 10 * time.Second
	maxWrong   = 100  // requests of an address with a wrong token in that time that get the full answer
	maxHosts   = 1024 // hosts in wrong
)

// presentsToken reports whether a request has any token.
func (g *guard) presentsToken(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" || r.URL.Query().Has("token") || len(r.CookiesNamed(g.cookieName)) > 0
}

// watch logs rejected requests and counts wrong tokens, so that guessing costs the server little.
type watch struct {
	log   *slog.Logger
	lines *throttle.Lines

	mu     sync.Mutex
	logged time.Time // time of the last check for suppressed lines
	began  time.Time
	wrong  map[string]int // requests of an address since then
}

func newWatch(log *slog.Logger) *watch {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &watch{log: log, lines: throttle.New(watchEvery), wrong: make(map[string]int)}
}

// reject logs a request without the right token. It returns a problem if the client has sent too
// many wrong ones, else nil.
func (w *watch) reject(r *http.Request, presented bool) *api.Problem {
	host, why := addressOf(r), "token is missing"
	if presented {
		why = "token is wrong"
	}
	w.warn(r, host, why)
	if !presented || !w.tooOften(host, time.Now()) {
		return nil
	}
	return problem(http.StatusTooManyRequests, fmt.Sprintf("more than %d requests with a wrong token in %v", maxWrong, watchEvery),
		"chimbuko view RUN prints the address with the right token")
}

// tooLarge logs a request that is too large.
func (w *watch) tooLarge(r *http.Request) *api.Problem {
	w.warn(r, r.RemoteAddr, "request is too large")
	return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("a request has at most %d bytes", maxBody), "")
}

func (w *watch) warn(r *http.Request, host, why string) {
	if due, suppressed := w.lines.Allow(host+" "+why, time.Now()); due {
		w.log.Warn("rejecting an HTTP request: "+why, "address", r.RemoteAddr, "path", clip(r.URL.Path), "suppressed", suppressed)
	}
}

// logSuppressed logs the number of suppressed lines from time to time.
func (w *watch) logSuppressed() {
	now := time.Now()
	w.mu.Lock()
	due := now.Sub(w.logged) > watchEvery
	if due {
		w.logged = now
	}
	w.mu.Unlock()
	if !due {
		return
	}
	for what, times := range w.lines.Due(now) {
		w.log.Warn("rejected more HTTP requests of a client", "what", what, "times", times)
	}
}

func (w *watch) tooOften(host string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.began) > watchEvery {
		w.began = now
		clear(w.wrong)
	}
	if _, ok := w.wrong[host]; !ok && len(w.wrong) >= maxHosts {
		return true
	}
	w.wrong[host]++
	return w.wrong[host] > maxWrong
}

// clip shortens text of a client for the log.
func clip(text string) string {
	const most = 100
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
