package dashboard

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/legacy"
)

// guard decides who is answered.
type guard struct {
	token        [sha256.Size]byte // hash, so that comparing tells nothing of its length
	open         bool              // no token is asked for
	metricsOpen  bool
	packets      *legacy.Packets
	allowedHosts []string
	cookieName   string
	cookieValue  string
	page         Page // nil: there is none
	watch        *watch
}

func newGuard(cfg Config) *guard {
	g := &guard{
		token: sha256.Sum256([]byte(cfg.Token)), open: cfg.Token == "", metricsOpen: cfg.MetricsOpen, page: cfg.Page, packets: cfg.Packets,
		watch: newWatch(cfg.Log),
	}
	for _, h := range cfg.AllowedHosts {
		g.allowedHosts = append(g.allowedHosts, strings.ToLower(h))
	}
	// Cookies are shared by all ports of a host: the name tells several dashboards
	// apart. The value stands for the token in any alphabet.
	name := sha256.Sum256([]byte("name of the cookie for " + cfg.Token))
	value := sha256.Sum256([]byte("value of the cookie for " + cfg.Token))
	g.cookieName, g.cookieValue = "chimbuko-"+hex.EncodeToString(name[:6]), hex.EncodeToString(value[:])
	return g
}

// protect lets only those through who may ask. What comes after it sees no token in
// addresses, so it cannot tell it to anybody.
func (g *guard) protect(next http.Handler) http.Handler {
	// What is not a safe method must come from a page of this server, if from a page.
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.refuse(w, r, otherSite) }))
	next = sameOrigin.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.setPolicy(w.Header(), r)
		rest := g.bound(w, r)
		g.watch.tellLeft()
		switch {
		case !g.hostAllowed(r):
			g.refuse(w, r, &problem{
				http.StatusMisdirectedRequest, "the Host header names " + r.Host + ", which this server does not know",
				"use localhost, or allow the name where the server is started",
			})
		case !siteAllowed(r):
			g.refuse(w, r, otherSite)
		case !g.tokenAllowed(w, r):
			w.Header().Set("WWW-Authenticate", `Bearer realm="chimbuko"`)
			if p := g.watch.refused(r, g.shows(r)); p != nil {
				w.Header().Set("Connection", "close")
				writeProblem(w, r, p)
				return // and read no more of it
			}
			g.refuse(w, r, g.noToken(r))
		case r.ContentLength > maxBody && !g.packets.Receives(r):
			w.Header().Set("Connection", "close")
			writeProblem(w, r, g.watch.tooLarge(r))
		case r.Method == http.MethodPut && !isJSON(r):
			g.refuse(w, r, &problem{
				http.StatusUnsupportedMediaType, "what is to be kept is not sent as JSON",
				"send Content-Type: application/json",
			})
		case g.isVisit(r) && r.URL.Query().Has("token"):
			redirect(w, r)
		default:
			next.ServeHTTP(w, withoutToken(r))
		}
		rest()
	})
}

// otherSite refuses what a page of somebody else wants.
var otherSite = &problem{http.StatusForbidden, "a page of another site may not ask", ""}

// siteAllowed refuses what a page of another site, or of another port of this host,
// has a browser ask in the background. Who follows a link from there may come.
func siteAllowed(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// isJSON reports whether the body of a request is JSON.
func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// hostAllowed refuses names that somebody else's DNS made point here: a page of
// theirs could otherwise read what a browser on this machine may.
func (g *guard) hostAllowed(r *http.Request) bool {
	switch local := r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.TCPAddr:
		if !local.IP.IsLoopback() {
			return true
		}
	case *net.UnixAddr:
		return true
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return true
	}
	return slices.Contains(g.allowedHosts, host) || slices.Contains(g.allowedHosts, "*")
}

// tokenAllowed looks for the token in the header, the address and the cookie. One
// in the address is answered with a cookie, so that a page need not repeat it.
func (g *guard) tokenAllowed(w http.ResponseWriter, r *http.Request) bool {
	if g.open || r.URL.Path == "/healthz" || g.metricsOpen && r.URL.Path == "/metrics" || g.packets.Receives(r) {
		return true
	}
	if kind, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(kind, "Bearer") {
		return g.isToken(token)
	}
	if r.URL.Query().Has("token") {
		if !g.isToken(r.URL.Query().Get("token")) {
			return false
		}
		// Without a path the cookie is for the directory of the request as the
		// browser sees it, below the prefix of a proxy.
		http.SetCookie(w, &http.Cookie{
			Name: g.cookieName, Value: g.cookieValue, HttpOnly: true, SameSite: http.SameSiteStrictMode,
			Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
		})
		return true
	}
	for _, c := range r.CookiesNamed(g.cookieName) {
		if subtle.ConstantTimeCompare([]byte(c.Value), []byte(g.cookieValue)) == 1 {
			return true
		}
	}
	return false
}

func (g *guard) isToken(text string) bool {
	hash := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(hash[:], g.token[:]) == 1
}
