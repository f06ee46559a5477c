package dashboard

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// guard decides who is answered.
type guard struct {
	token        [sha256.Size]byte // hash, so that comparing tells nothing of its length
	open         bool              // no token is asked for
	metricsOpen  bool
	allowedHosts []string
	cookieName   string
	cookieValue  string
}

func newGuard(cfg Config) *guard {
	g := &guard{token: sha256.Sum256([]byte(cfg.Token)), open: cfg.Token == "", metricsOpen: cfg.MetricsOpen}
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

// protect lets only those through who may ask.
func (g *guard) protect(next http.Handler) http.Handler {
	// What is not a safe method must come from a page of this server, if from a page.
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, &problem{http.StatusForbidden, "a page of another site may not ask", ""})
	}))
	next = sameOrigin.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer") // addresses may hold the token
		if !g.hostAllowed(r) {
			writeProblem(w, r, &problem{
				http.StatusMisdirectedRequest, "the Host header names " + r.Host + ", which this server does not know",
				"use localhost, or allow the name where the server is started",
			})
			return
		}
		if !g.tokenAllowed(w, r) {
			h.Set("WWW-Authenticate", `Bearer realm="chimbuko"`)
			writeProblem(w, r, &problem{
				http.StatusUnauthorized, "the token is missing or not that of this run",
				"send the header Authorization: Bearer TOKEN, or use the address that was printed at the start",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
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
	if g.open || r.URL.Path == "/healthz" || g.metricsOpen && r.URL.Path == "/metrics" {
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
			Name: g.cookieName, Value: g.cookieValue, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
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
