package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
)

func TestFetchAcceptsPrintedAddress(t *testing.T) {
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Token = "secret" })
	for _, where := range [][2]string{{at, "secret"}, {at + "/", "secret"}, {at + "/?token=secret", ""}, {at + "?token=old#x", "secret"}} {
		s, err := dashboard.Fetch(t.Context(), new(http.Client), where[0], where[1])
		if err != nil || s.Run.Name != "monday" {
			t.Errorf("%s: %v", where[0], err)
		}
	}
	// A proxy has the dashboard below a path.
	proxy := httptest.NewServer(http.StripPrefix("/node/nid001/8080", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, at+r.URL.String(), http.StatusTemporaryRedirect)
	})))
	defer proxy.Close()
	if _, err := dashboard.Fetch(t.Context(), new(http.Client), proxy.URL+"/node/nid001/8080/?token=secret", ""); err != nil {
		t.Error(err)
	}
}

func TestFetchReportsErrors(t *testing.T) {
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Token = "secret" })
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/gone") {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("<html>"))
	}))
	closed := other.URL
	for _, c := range []struct{ address, part string }{
		{at, "/api/v1/status: the token is missing"},
		{other.URL, "not an answer of a dashboard"},
		{other.URL + "/gone/", "status 404 Not Found from a server that is not a dashboard"},
		{"localhost:8080", "invalid address of a dashboard"},
		{"http://", "invalid address"},
		{"http://a b", "invalid character"},
	} {
		if _, err := dashboard.Fetch(t.Context(), new(http.Client), c.address, ""); err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: %v does not contain %q", c.address, err, c.part)
		}
	}
	other.Close()
	if _, err := dashboard.Fetch(t.Context(), new(http.Client), closed, ""); err == nil {
		t.Error("a closed server answers")
	}
}
