package dashboard

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the page of refusals
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// isVisit reports whether a request opens the page in a browser.
func (g *guard) isVisit(r *http.Request) bool {
	return g.page != nil && r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// redirect removes the token from the address of a visit; the cookie has it. The new address is
// relative, since it may be below the prefix of a proxy.
func redirect(w http.ResponseWriter, r *http.Request) {
	to := "./"
	if rest := withoutToken(r).URL.RawQuery; rest != "" {
		to += "?" + rest
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// withoutToken returns the request without the token in its address.
func withoutToken(r *http.Request) *http.Request {
	if !strings.Contains(r.URL.RawQuery, "token") && !strings.Contains(r.URL.RawQuery, "%") {
		return r
	}
	var rest []string
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, _, _ := strings.Cut(part, "=")
		if name, err := url.QueryUnescape(name); err == nil && name == "token" {
			continue
		}
		rest = append(rest, part)
	}
	u := *r.URL
	u.RawQuery = strings.Join(rest, "&")
	clean := *r
	clean.URL, clean.RequestURI = &u, u.RequestURI()
	return &clean
}

// noToken returns the problem of a missing or wrong token.
func (g *guard) noToken(r *http.Request) *api.Problem {
	if g.isVisit(r) {
		message := "This page requires the token of its run"
		if r.URL.Query().Has("token") {
			message = "This is not the token of the run"
		}
		return problem(http.StatusUnauthorized, message,
			"chimbuko view RUN prints the address with the token, and so does chimbuko status RUN during the run; "+
				"RUN is the run directory. The program that serves this page also printed it at its start.")
	}
	return problem(http.StatusUnauthorized, "the token is missing or wrong",
		"send the header Authorization: Bearer TOKEN, or use the address printed at the start")
}

//go:embed refusal.css
var refusalStyle string

//go:embed refusal.html
var refusalText string

var refusal = template.Must(template.New("refusal").Parse(refusalText))

// reloadScript reloads the page at the same place.
const reloadScript = `location.replace(location.pathname + "?" + location.hash)`

// tokenScript accepts addresses as tokens, and keeps the part of the page that the address names.
const tokenScript = `const form = document.forms[0]
form.addEventListener("submit", () => {
  const pasted = /[?&]token=([^&#]*)(?:[^#]*(#.*))?/.exec(form.token.value)
  if (pasted) form.token.value = decodeURIComponent(pasted[1])
  form.action = "./" + ((pasted && pasted[2]) || location.hash)
})`

// refusalPolicy allows only the style, scripts and form of that page.
var refusalPolicy = strings.Replace(dataPolicy, "form-action 'none'", "form-action 'self'", 1) + "; style-src " + hashOf(refusalStyle) +
	"; script-src " + hashOf(reloadScript) + " " + hashOf(tokenScript)

func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}

// refuse writes a problem, as a page for visits and as JSON for programs.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	if !g.isVisit(r) {
		writeProblem(w, p)
		return
	}
	parts := struct {
		Message, Hint string
		Style         template.CSS
		Again, Asks   template.JS
	}{p.Message, p.Hint, template.CSS(refusalStyle), "", ""} //nolint:gosec // constant
	switch {
	case p.Status == http.StatusUnauthorized && followsLink(r):
		parts.Again = reloadScript
	case p.Status == http.StatusUnauthorized:
		parts.Asks = tokenScript
	}
	var b bytes.Buffer
	if err := refusal.Execute(&b, parts); err != nil {
		writeProblem(w, err)
		return
	}
	w.Header().Set("Content-Security-Policy", refusalPolicy)
	writeBody(w, p.Status, "text/html; charset=utf-8", b.Bytes())
}

// followsLink reports whether a visit follows a link from another site. Browsers then withhold the
// cookie, even one set by a redirect; they send it when this server's own page reloads, which it
// does once.
func followsLink(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "cross-site" && !r.URL.ForceQuery && !r.URL.Query().Has("token")
}
