package dashboard

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the page of refusals
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// isVisit reports whether a person opens the page, rather than a program asks.
func (g *guard) isVisit(r *http.Request) bool {
	return g.page != nil && r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// redirect answers a visit with the token in its address: the token is in the cookie
// now, and must not stay where others see it. The address is relative, for it may be
// below the prefix of a proxy.
func redirect(w http.ResponseWriter, r *http.Request) {
	to := "./"
	if rest := withoutToken(r).URL.RawQuery; rest != "" {
		to += "?" + rest
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// withoutToken is the request without the token in its address.
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

// noToken says how to get one.
func (g *guard) noToken(r *http.Request) *problem {
	if g.isVisit(r) {
		return &problem{
			http.StatusUnauthorized, "This page wants the token of its run",
			"chimbuko view RUN prints the address with the token in it, and so does chimbuko status RUN while the run goes on; " +
				"RUN is the directory of the run. The program that serves this page printed it, too, when it was started.",
		}
	}
	return &problem{
		http.StatusUnauthorized, "the token is missing or not that of this run",
		"send the header Authorization: Bearer TOKEN, or use the address that was printed at the start",
	}
}

//go:embed refusal.css
var refusalStyle string

//go:embed refusal.html
var refusalText string

var refusal = template.Must(template.New("refusal").Parse(refusalText))

// askAgain opens the page once more, at the same place.
const askAgain = `location.replace(location.pathname + "?" + location.hash)`

// refusalPolicy lets that page have its own style and script, and nothing else.
var refusalPolicy = dataPolicy + "; style-src " + hashOf(refusalStyle) + "; script-src " + hashOf(askAgain)

func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}

// refuse says why somebody is not answered: to people as a page, to programs as
// JSON.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, p *problem) {
	if !g.isVisit(r) {
		writeProblem(w, r, p)
		return
	}
	parts := struct {
		Message, Hint string
		Style         template.CSS
		Again         template.JS
	}{p.Message, p.Hint, template.CSS(refusalStyle), ""} //nolint:gosec // it is part of this program
	if p.status == http.StatusUnauthorized && followsLink(r) {
		parts.Again = askAgain
	}
	var b bytes.Buffer
	if err := refusal.Execute(&b, parts); err != nil {
		writeProblem(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", refusalPolicy)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(p.status)
	_, _ = w.Write(b.Bytes()) // nobody is left to tell if the client is gone
}

// followsLink reports whether somebody came from a page of another site. Browsers
// then keep the cookie back, even one that they just got with a redirection; they send
// it when this server's own page asks, which is done once.
func followsLink(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "cross-site" && !r.URL.ForceQuery && !r.URL.Query().Has("token")
}
