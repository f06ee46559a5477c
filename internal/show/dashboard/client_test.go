package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
)

func TestFetchTakesTheAddressThatWasPrinted(t *testing.T) {
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

func TestFetchSaysWhatWentWrong(t *testing.T) {
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
		{other.URL, "not the answer of a dashboard"},
		{other.URL + "/gone/", "it answers 404 Not Found, not as a dashboard"},
		{"localhost:8080", "is no address of a dashboard such as http://"},
		{"http://", "is no address"},
		{"http://a b", "invalid character"},
	} {
		if _, err := dashboard.Fetch(t.Context(), new(http.Client), c.address, ""); err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: %v does not say %q", c.address, err, c.part)
		}
	}
	other.Close()
	if _, err := dashboard.Fetch(t.Context(), new(http.Client), closed, ""); err == nil {
		t.Error("nobody is there")
	}
}
