package dashboard

import "net/http"

// Page is the files that a browser shows, with index.html at /. Several goroutines
// call it.
type Page interface {
	// Has reports whether a file is at the path of a request.
	Has(path string) bool
	// ServeHTTP answers with a file that is there.
	http.Handler
}

// pageOr answers with a file of the page where there is one, and else as otherwise
// does.
func (s *server) pageOr(otherwise http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Page == nil || !s.Page.Has(r.URL.Path) {
			otherwise(w, r)
			return
		}
		only(http.MethodGet, s.Page).ServeHTTP(w, r)
	})
}
