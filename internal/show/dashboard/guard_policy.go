package dashboard

import "net/http"

// What a browser may do with an answer: the page may load its own files, ask this
// server, and show pictures that it made itself; anything else may do nothing.
// Nobody may put either into a page of theirs.
const (
	pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
		"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	dataPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)

// setPolicy sets the headers that every answer has.
func (g *guard) setPolicy(h http.Header, r *http.Request) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // addresses may hold the token
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", dataPolicy)
	if g.page == nil || !g.page.Has(r.URL.Path) {
		return
	}
	h.Set("Content-Security-Policy", pagePolicy)
	// The page opens viewers of traces in windows of their own and hands them data.
	h.Set("Cross-Origin-Opener-Policy", "same-origin-allow-popups")
	h.Set("Permissions-Policy", "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), serial=(), usb=()")
}
