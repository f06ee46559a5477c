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

// guard rejects requests that are not authorized.
type guard struct {
	token        [sha256.Size]byte // hash, so that comparisons do not reveal its length
	open         bool              // no token is required
	metricsOpen  bool
	packets      *legacy.Packets
	allowedHosts []string
	cookieName   string
	cookieValue  string
	page         Page // or nil
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
	// Cookies are shared by all ports of a host, so each dashboard has another name. The value
	// represents the token in the alphabet of cookies.
	name := sha256.Sum256([]byte("name of the cookie for " + cfg.Token))
	value := sha256.Sum256([]byte("value of the cookie for " + cfg.Token))
	g.cookieName, g.cookieValue = "chimbuko-"+hex.EncodeToString(name[:6]), hex.EncodeToString(value[:])
	return g
}

// protect passes authorized requests to next, without the token in their addresses.
func (g *guard) protect(next http.Handler) http.Handler {
	sameOrigin := http.NewCrossOriginProtection() // for unsafe methods
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.refuse(w, r, crossSite) }))
	next = sameOrigin.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.setPolicy(w.Header(), r)
		rest := g.bound(w, r)
		g.watch.logSuppressed()
		switch {
		case !g.hostAllowed(r):
			g.refuse(w, r, problem(http.StatusMisdirectedRequest, "unknown host "+r.Host+" in the Host header",
				"use localhost, or allow the name when starting the server"))
		case !siteAllowed(r):
			g.refuse(w, r, crossSite)
		case !g.tokenAllowed(w, r):
			w.Header().Set("WWW-Authenticate", `Bearer realm="chimbuko"`)
			if p := g.watch.reject(r, g.presentsToken(r)); p != nil {
				w.Header().Set("Connection", "close")
				writeProblem(w, p)
				return // without reading the rest
			}
			g.refuse(w, r, g.noToken(r))
		case r.ContentLength > maxBody && !g.packets.Receives(r):
			w.Header().Set("Connection", "close")
			writeProblem(w, g.watch.tooLarge(r))
		case r.Method == http.MethodPut && !isJSON(r):
			g.refuse(w, r, problem(http.StatusUnsupportedMediaType, "the body is not JSON", "send Content-Type: application/json"))
		case g.isVisit(r) && r.URL.Query().Has("token"):
			redirect(w, r)
		default:
			next.ServeHTTP(w, withoutToken(r))
		}
		rest()
	})
}

var crossSite = problem(http.StatusForbidden, "requests from pages of another site are not allowed", "")

// siteAllowed rejects background requests from pages of another site or another port of this
// host. Links from there may be followed.
func siteAllowed(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// hostAllowed rejects foreign names that resolve to this machine (DNS rebinding), with which pages
// of other sites could read answers.
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

// tokenAllowed checks the token in the header, the address or the cookie. It sets the cookie if the
// address has the token.
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
		// Without a path, the cookie applies to the directory of the request as the browser sees it,
		// below the prefix of a proxy.
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

// Content security policies: the page may load its own files, query this server and show images
// that it generated. No site may frame an answer.
const (
	pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
		"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	dataPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)

// setPolicy sets the headers of all answers.
func (g *guard) setPolicy(h http.Header, r *http.Request) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // addresses may contain the token
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", dataPolicy)
	if g.page == nil || !g.page.Has(r.URL.Path) {
		return
	}
	h.Set("Content-Security-Policy", pagePolicy)
	// The page opens trace viewers in new windows and sends them data.
	h.Set("Cross-Origin-Opener-Policy", "same-origin-allow-popups")
	h.Set("Permissions-Policy", "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), serial=(), usb=()")
}
