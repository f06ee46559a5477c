package dashboard_test

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/dashboard/ui"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

const secret = "SECRET7TOKEN"

// smallPage is a page of two files.
func smallPage(t testing.TB) *ui.Site {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"index.html": "<title>the page</title>", "assets/app.js": "run()"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page, err := ui.FromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// servePage starts a server with a page and a token.
func servePage(t testing.TB) (address string) {
	t.Helper()
	address, _ = serve(t, func(c *dashboard.Config, _ *pipeline) { c.Token, c.Page = secret, smallPage(t) })
	return address
}

// cookieOf returns the request header with the cookie of an answer.
func cookieOf(t testing.TB, a answer) string {
	t.Helper()
	cookie, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	return "Cookie: " + cookie.Name + "=" + cookie.Value
}

func TestVisitReplacesTokenWithCookie(t *testing.T) {
	at := servePage(t)
	f := func(query, location string) {
		t.Helper()
		a := do(t, at+"/"+query, "")
		if a.code != 303 || a.header.Get("Location") != location || a.body != "" {
			t.Errorf("%s: %d to %q, want 303 to %q", query, a.code, a.header.Get("Location"), location)
		}
		cookie, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
		if err != nil {
			t.Fatal(err)
		}
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "" || cookie.Domain != "" || cookie.Secure ||
			strings.Contains(cookie.Value, secret) {
			t.Errorf("the cookie is %+v", cookie)
		}
	}
	f("?token="+secret, "./")
	f("?a=1&token="+secret+"&b=%3Cscript%3E", "./?a=1&b=%3Cscript%3E")
	f("?%74oken="+secret, "./")

	cookie := cookieOf(t, do(t, at+"/?token="+secret, ""))
	for path, text := range map[string]string{"/": "the page", "/?": "the page", "/assets/app.js": "run()", "/api/v1/runs": "monday"} {
		if a := do(t, at+path, "", cookie); a.code != 200 || !strings.Contains(a.body, text) {
			t.Errorf("%s with the cookie: %d %s", path, a.code, a.body)
		}
	}
	if a := do(t, at+"/", "", "Authorization: Bearer "+secret); a.code != 200 {
		t.Errorf("with the header: %d", a.code)
	}
	// Programs are not redirected.
	want[object](t, do(t, at+"/api/v1/runs?token="+secret, ""), 200)
}

func TestCookieIsSecureWithTLS(t *testing.T) {
	a := do(t, servePage(t)+"/?token="+secret, "", "X-Forwarded-Proto: https")
	if cookie, err := http.ParseSetCookie(a.header.Get("Set-Cookie")); err != nil || !cookie.Secure {
		t.Errorf("%+v, %v", cookie, err)
	}
}

func TestVisitWithoutTokenGetsInstructions(t *testing.T) {
	at := servePage(t)
	for _, path := range []string{"/", "/?token=other", "/?token="} {
		a := do(t, at+path, "")
		if a.code != 401 || a.header.Get("Content-Type") != "text/html; charset=utf-8" || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %v", path, a.code, a.header)
		}
		for _, part := range []string{"chimbuko view RUN", "chimbuko status RUN", "printed"} {
			if !strings.Contains(a.body, part) {
				t.Errorf("%s does not contain %q: %s", path, part, a.body)
			}
		}
		allows(t, a, "style")
	}
	for _, path := range []string{"/assets/app.js", "/nothing", "/api/v1/runs", "/metrics"} {
		fails(t, do(t, at+path, ""), 401, "Authorization: Bearer TOKEN")
	}
}

// allows checks that the policy of an answer has the hash of an element of its page.
func allows(t *testing.T, a answer, element string) {
	t.Helper()
	m := regexp.MustCompile(`<` + element + `>([^<]*)</` + element + `>`).FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("no %s is in %s", element, a.body)
	}
	hash := sha256.Sum256([]byte(m[1]))
	policy := a.header.Get("Content-Security-Policy")
	sources := regexp.MustCompile(element + `-src ([^;]*)`).FindString(policy)
	if !strings.Contains(sources, "'sha256-"+base64.StdEncoding.EncodeToString(hash[:])+"'") || strings.Contains(policy, "unsafe") {
		t.Errorf("%s does not allow %s", policy, m[0])
	}
}

// Browsers withhold the cookie when following a link of another site.
func TestVisitFromLinkReloadsForCookie(t *testing.T) {
	at := servePage(t)
	a := do(t, at+"/", "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")
	if a.code != 401 || !strings.Contains(a.body, "location.replace") {
		t.Errorf("%d %s", a.code, a.body)
	}
	allows(t, a, "script")
	for _, again := range [][]string{
		{"/?", "Sec-Fetch-Site: cross-site"},
		{"/", "Sec-Fetch-Site: same-origin"},
		{"/", "Sec-Fetch-Site: none"},
		{"/?token=other", "Sec-Fetch-Site: cross-site"},
	} {
		a := do(t, at+again[0], "", again[1], "Sec-Fetch-Mode: navigate")
		if a.code != 401 || strings.Contains(a.body, "location.replace") {
			t.Errorf("%v reloads again: %d %s", again, a.code, a.body)
		}
		allows(t, a, "script") // of the field for the token
	}
}

func TestRequestDataIsEscapedInPages(t *testing.T) {
	h := dashboard.New(dashboard.Config{Config: insight.Config{Source: &pipeline{status: someStatus()}, Run: "monday"}, Page: smallPage(t)})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Host = "<script>alert(1)</script>"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if text := w.Body.String(); w.Code != 421 || strings.Contains(text, "<script") || !strings.Contains(text, "&lt;script&gt;") {
		t.Errorf("%d %s", w.Code, text)
	}
	// Other paths answer with JSON, which browsers do not render.
	at := servePage(t)
	for path, code := range map[string]int{
		"/%3Cscript%3E": 404, "/api/v1/runs/%3Cscript%3E": 404, "/api/v1/runs?%3Cscript%3E=1": 400, monday +
			"/events?func=%3Cscript%3E&order=%3Cscript%3E": 400,
		monday + "/events/%3Cscript%3E": 404, monday + "/functions/%3Cscript%3E": 404,
	} {
		a := do(t, at+path, "", "Authorization: Bearer "+secret)
		if a.code != code || a.header.Get("Content-Type") != "application/json" || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, a.code, a.header)
		}
	}
}

func TestEveryAnswerHasSecurityHeaders(t *testing.T) {
	at := servePage(t)
	for _, path := range []string{"/", "/assets/app.js", "/nothing", "/healthz", "/metrics", "/api/v1/runs", monday + "/top"} {
		for _, header := range []string{"X: x", "Authorization: Bearer " + secret} {
			h := do(t, at+path, "", header).header
			policy := h.Get("Content-Security-Policy")
			forms := "form-action 'none'"
			if path == "/" && header == "X: x" { // it has a field for the token
				forms = "form-action 'self'"
			}
			for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", forms} {
				if !strings.Contains(policy, part) {
					t.Errorf("%s: %q is not in %s", path, part, policy)
				}
			}
			if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
				t.Errorf("%s: %s", path, policy)
			}
			if h.Get("Referrer-Policy") != "no-referrer" || h.Get("X-Content-Type-Options") != "nosniff" ||
				h.Get("Cross-Origin-Resource-Policy") != "same-origin" || h.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: %v", path, h)
			}
		}
	}
	h := do(t, at+"/", "", "Authorization: Bearer "+secret).header
	for _, part := range []string{
		"script-src 'self'", "style-src 'self'", "img-src 'self' data: blob:", "font-src 'self'",
		"connect-src 'self'",
	} {
		if !strings.Contains(h.Get("Content-Security-Policy"), part) {
			t.Errorf("the page may not have %s", part)
		}
	}
	if h.Get("Cross-Origin-Opener-Policy") != "same-origin-allow-popups" || !strings.Contains(h.Get("Permissions-Policy"), "geolocation=()") {
		t.Errorf("the page has %v", h)
	}
}

func TestCrossSiteRequestsAreRejected(t *testing.T) {
	at := servePage(t)
	f := func(code int, body string, headers ...string) {
		t.Helper()
		a := do(t, at+monday+"/sql", body, append(headers, "Authorization: Bearer "+secret)...)
		if a.code != code {
			t.Errorf("%v: got %d, want %d: %s", headers, a.code, code, a.body)
		}
	}
	const put, question = "Method: PUT", `{"sql":"SELECT 1"}`
	for _, site := range []string{"cross-site", "same-site"} {
		for _, mode := range []string{"cors", "no-cors", "websocket"} {
			f(403, "", "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: "+mode)
		}
		f(405, "", "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: navigate") // a link; only POST is allowed
		f(403, question, "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: navigate")
		f(403, question, put, "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: cors")
	}
	f(403, question, put, "Origin: https://evil.example")
	f(403, question, put, "Origin: null")
	f(415, question, put, "Content-Type: text/plain")
	f(415, question, put, "Content-Type: application/x-www-form-urlencoded")
	f(415, question, put, "Content-Type: text/plain", "Sec-Fetch-Site: same-origin")
	f(405, question, put, "Sec-Fetch-Site: same-origin") // only POST is allowed
	f(405, question, put, "Content-Type: application/json; charset=utf-8", "Origin: "+at)
	f(200, question, "Sec-Fetch-Site: same-origin")
	f(200, question) // no browser
}

func TestPageAcceptsOnlyReads(t *testing.T) {
	at := servePage(t)
	for _, path := range []string{"/", "/assets/app.js"} {
		a := do(t, at+path, "{}", "Authorization: Bearer "+secret)
		if fails(t, a, 405, "use GET"); a.header.Get("Allow") != "GET" {
			t.Errorf("%s allows %s", path, a.header.Get("Allow"))
		}
	}
	fails(t, do(t, at+"/assets/other.js", "", "Authorization: Bearer "+secret), 404, "nothing is at /assets/other.js")
	if a := do(t, at+"/", "", "Method: HEAD", "Authorization: Bearer "+secret); a.code != 200 || a.body != "" {
		t.Errorf("HEAD: %d %s", a.code, a.body)
	}
}

func TestPageWorksBelowProxyPrefix(t *testing.T) {
	to, err := url.Parse(servePage(t))
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.SetXForwarded() }}
	const prefix = "/rnode/nid001/8080"
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, forward))
	proxy := httptest.NewServer(mux)
	defer proxy.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	visit := func(path string) (code int, at, text string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // only read from
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Request.URL.RequestURI(), string(b)
	}
	if code, _, text := visit(prefix + "/"); code != 401 || !strings.Contains(text, "chimbuko view") {
		t.Errorf("without the token: %d %s", code, text)
	}
	if code, at, text := visit(prefix + "/?token=" + secret); code != 200 || at != prefix+"/" || !strings.Contains(text, "the page") {
		t.Errorf("the first visit: %d at %s: %s", code, at, text)
	}
	for _, path := range []string{"/", "/assets/app.js", "/api/v1/runs", monday + "/top"} {
		if code, _, text := visit(prefix + path); code != 200 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	u, err := url.Parse(proxy.URL + "/rnode/nid002/8080/")
	if err != nil || len(jar.Cookies(u)) > 0 {
		t.Errorf("another node gets %v, %v", jar.Cookies(u), err)
	}
}

// echoPage answers with all data of a request, as an access log would contain.
type echoPage struct {
	mu   sync.Mutex
	seen strings.Builder
}

func (p *echoPage) Has(path string) bool { return path == "/" || path == "/panic" }

func (p *echoPage) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen.WriteString(r.URL.String() + " " + r.RequestURI + " " + r.URL.Query().Encode() + "\n")
	if r.URL.Path == "/panic" {
		panic(r.URL.String())
	}
}

func TestTokenIsNotDisclosed(t *testing.T) {
	tracetest.SkipShort(t, "starts a server")
	page, logged := new(echoPage), new(journal)
	p := &pipeline{status: someStatus(), reader: filled(t)}
	s := httptest.NewUnstartedServer(dashboard.New(dashboard.Config{Config: insight.Config{Source: p, Run: "monday"}, Token: secret, Page: page}))
	s.Config.ErrorLog = log.New(logged, "", 0)
	s.Start()
	defer s.Close()
	for _, path := range []string{
		"/", "//", "/x/../y", "/nothing", "/metrics", "/healthz", "/api/v1/runs", "/api/v1/runs/x", monday, monday + "/top", monday + "/events",
		monday + "/events/1:2:3",
		monday + "/sql", monday + "/functions/x", monday + "/counters",
	} {
		for _, query := range []string{
			"?token=" + secret, "?limti=1&token=" + secret, "?token=" + secret + "&token=" + secret,
			"?x=%zz&token=" + secret, "?%74oken=" + secret,
		} {
			for _, site := range []string{"none", "cross-site"} {
				a := do(t, s.URL+path+query, "", "Sec-Fetch-Site: "+site)
				if strings.Contains(a.body, secret) {
					t.Errorf("%s%s: %s", path, query, a.body)
				}
				for name, values := range a.header {
					if strings.Contains(strings.Join(values, " "), secret) {
						t.Errorf("%s%s: %s: %v", path, query, name, values)
					}
				}
			}
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/panic?token="+secret+"&a=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
		t.Errorf("a panic is answered with %d, %v", resp.StatusCode, resp.Body.Close())
	}
	s.Close() // waits for the log
	if text := logged.String(); strings.Contains(text, secret) || !strings.Contains(text, "panic") {
		t.Errorf("logged: %s", text)
	}
	if text := page.seen.String(); strings.Contains(text, secret) || !strings.Contains(text, "/panic?a=1") {
		t.Errorf("the page sees %s", text)
	}
}
