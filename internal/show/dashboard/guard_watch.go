package dashboard

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/throttle"
)

const (
	watchEvery = 10 * time.Second
	mostWrong  = 100  // requests with a wrong token of an address in that time that are told why
	mostHosts  = 1024 // that are watched
)

// shows tells whether somebody showed anything for a token.
func (g *guard) shows(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" || r.URL.Query().Has("token") || len(r.CookiesNamed(g.cookieName)) > 0
}

// watch logs who is refused, and is short with those who go on. To guess a token takes
// far longer than the world will last; this is so that trying costs next to nothing.
type watch struct {
	log   *slog.Logger
	lines *throttle.Lines

	mu    sync.Mutex
	told  time.Time // when it was looked for what was left out
	began time.Time
	wrong map[string]int // requests of an address since then
}

func newWatch(log *slog.Logger) *watch {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &watch{log: log, lines: throttle.New(watchEvery), wrong: make(map[string]int)}
}

// refused is called for a request without the right token. It returns what to answer
// to those who do it too often; nil for others.
func (w *watch) refused(r *http.Request, shown bool) *problem {
	host := r.RemoteAddr
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	why := "it has no token"
	if shown {
		why = "its token is wrong"
	}
	w.say(r, host, why)
	if !shown || !w.tooOften(host, time.Now()) {
		return nil
	}
	return &problem{
		http.StatusTooManyRequests, fmt.Sprintf("more than %d requests with a wrong token in %v", mostWrong, watchEvery),
		"look for the right one: chimbuko view RUN prints the address with it",
	}
}

// tooLarge is called for a request that is.
func (w *watch) tooLarge(r *http.Request) *problem {
	w.say(r, r.RemoteAddr, "its request is too large")
	return &problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("a request has at most %d bytes", maxBody), ""}
}

func (w *watch) say(r *http.Request, host, why string) {
	if due, left := w.lines.Say(host+" "+why, time.Now()); due {
		w.log.Warn("HTTP refuses a client: "+why, "address", r.RemoteAddr, "path", clipped(r.URL.Path), "left_out", left)
	}
}

// tellLeft logs now and then what was left out.
func (w *watch) tellLeft() {
	now := time.Now()
	w.mu.Lock()
	due := now.Sub(w.told) > watchEvery
	if due {
		w.told = now
	}
	w.mu.Unlock()
	if !due {
		return
	}
	for what, times := range w.lines.Left(now) {
		w.log.Warn("HTTP refused the same client again", "what", what, "times", times)
	}
}

func (w *watch) tooOften(host string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.began) > watchEvery {
		w.began = now
		clear(w.wrong)
	}
	if _, known := w.wrong[host]; !known && len(w.wrong) >= mostHosts {
		return true
	}
	w.wrong[host]++
	return w.wrong[host] > mostWrong
}

// clipped is a text of somebody else for a log.
func clipped(text string) string {
	const most = 100
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
