package dashboard_test

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestTokenIsRequired(t *testing.T) {
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Token = "se cret+é" })
	paths := []string{"/", "/metrics", "/api/v1/status", "/api/v1/runs", monday + "/top", monday + "/stream", monday + "/sql"}
	for _, path := range paths {
		for _, header := range []string{
			"X: x", "Authorization: Bearer other", "Authorization: Bearer ", "Authorization: Basic se cret+é",
			"Authorization: se cret+é", "Cookie: chimbuko-000000000000=x",
		} {
			a := do(t, at+path, "", header)
			if fails(t, a, 401, "Authorization: Bearer TOKEN"); a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s has no WWW-Authenticate header", path)
			}
		}
		fails(t, do(t, at+path+"?token=other", ""), 401, "token")
		fails(t, do(t, at+path+"?token=", ""), 401, "token")
	}
	want[object](t, do(t, at+"/api/v1/runs", "", "Authorization: bearer se cret+é"), 200)

	// The token of the address becomes a cookie.
	a := do(t, at+"/api/v1/runs?token=se+cret%2B%C3%A9", "")
	want[object](t, a, 200)
	cookie, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || strings.Contains(cookie.Value, "cret") || cookie.Path != "" {
		t.Errorf("the cookie is %+v", cookie)
	}
	want[object](t, do(t, at+"/api/v1/runs", "", "Cookie: "+cookie.Name+"="+cookie.Value), 200)
	fails(t, do(t, at+"/api/v1/runs", "", "Cookie: "+cookie.Name+"="+cookie.Value[1:]), 401, "token")

	other, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Token, c.MetricsOpen = "other", true })
	fails(t, do(t, other+"/api/v1/runs", "", "Cookie: "+cookie.Name+"="+cookie.Value), 401, "token")
	if a := do(t, other+"/metrics", ""); a.code != 200 {
		t.Errorf("open metrics: %d", a.code)
	}
}

func TestForeignHostNamesAreRejected(t *testing.T) {
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.AllowedHosts = []string{"Proxy.example"} })
	for _, host := range []string{
		"localhost", "LOCALHOST:80", "localhost.", "run.localhost:8080", "127.0.0.1:1", "127.1.2.3", "[::1]:8080",
		"proxy.example:443",
	} {
		if a := do(t, at+"/healthz", "", "Host: "+host); a.code != 200 {
			t.Errorf("%s: %d %s", host, a.code, a.body)
		}
	}
	for _, host := range []string{"evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "10.0.0.1", "notlocalhost"} {
		fails(t, do(t, at+"/healthz", "", "Host: "+host), 421, host)
	}
	all, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.AllowedHosts = []string{"*"} })
	if a := do(t, all+"/healthz", "", "Host: any.example"); a.code != 200 {
		t.Errorf("got %d", a.code)
	}
}

// Other connections than loopback may have any host name.
func TestOtherInterfacesAcceptAnyHostName(t *testing.T) {
	tracetest.SkipShort(t, "starts a server")
	h := dashboard.New(dashboard.Config{Config: insight.Config{Source: &pipeline{status: someStatus()}, Run: "monday"}})
	for _, c := range []struct {
		local net.Addr
		code  int
	}{
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}, 200},
		{&net.TCPAddr{IP: net.IPv6loopback, Port: 80}, 421},
		{&net.UnixAddr{Name: "/run/x"}, 200},
		{nil, 421},
	} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, c.local)))
		}))
		s.Start()
		if a := do(t, s.URL+"/healthz", "", "Host: nid001.cluster"); a.code != c.code {
			t.Errorf("%v: got %d, want %d", c.local, a.code, c.code)
		}
		s.Close()
	}
}

func TestAnswersAreNotCachedNorSniffed(t *testing.T) {
	at, _ := serve(t, nil)
	for _, path := range []string{"/healthz", "/metrics", "/nosuch", monday + "/top"} {
		h := do(t, at+path, "").header
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", path, h)
		}
	}
	if a := do(t, at+monday+"/top", "", "Method: HEAD"); a.code != 200 || a.body != "" || a.header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %+v", a)
	}
}

func TestLargeAnswersAreCompressedOnRequest(t *testing.T) {
	at, _ := serve(t, nil)
	plain := do(t, at+monday+"/top", "", "Accept-Encoding: identity")
	for _, accept := range []string{"gzip", "br, gzip;q=0.5"} {
		a := do(t, at+monday+"/top", "", "Accept-Encoding: "+accept)
		if a.header.Get("Content-Encoding") != "gzip" || len(a.body) > len(plain.body)/2 {
			t.Fatalf("%s: %d bytes of %d, %v", accept, len(a.body), len(plain.body), a.header)
		}
		z, err := gzip.NewReader(strings.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(z); err != nil || string(text) != plain.body {
			t.Errorf("%s: got %s, %v", accept, text, err)
		}
	}
	for _, accept := range []string{"br", "gzip;q=0", "gzip; q=0.0"} {
		if a := do(t, at+monday+"/top", "", "Accept-Encoding: "+accept); a.body != plain.body {
			t.Errorf("%s: compressed", accept)
		}
	}
	if a := do(t, at+"/healthz", "", "Accept-Encoding: gzip"); a.header.Get("Content-Encoding") != "" {
		t.Errorf("a small answer is compressed")
	}
}
