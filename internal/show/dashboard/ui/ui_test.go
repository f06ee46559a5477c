package ui

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// long is a text that is compressed.
var long = strings.Repeat("console.log('chimbuko');\n", 200)

// somePage has files of all sorts.
func somePage(t *testing.T) *Site {
	t.Helper()
	s, err := newSite(fstest.MapFS{
		"index.html":          {Data: []byte("<!doctype html><title>x</title>")},
		"icon.svg":            {Data: []byte("<svg/>")},
		"assets/app-1234.js":  {Data: []byte(long)},
		"assets/app-1234.css": {Data: []byte("a{}")},
		"assets/odd-1234.xyz": {Data: []byte("?")},
		".vite/manifest.json": {Data: []byte("{}")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// get requests a path with headers "Name: value".
func get(t *testing.T, s http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Set(name, value); name == "Method" {
			r.Method = value
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func body(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCachingOfIndexAndAssets(t *testing.T) {
	s := somePage(t)
	f := func(path, kind, keep string) {
		t.Helper()
		r := get(t, s, path)
		if got := r.Header().Get("Content-Type"); !s.Has(path) || r.Code != 200 || got != kind || r.Header().Get("Cache-Control") != keep {
			t.Errorf("%s: %d %v", path, r.Code, r.Header())
		}
	}
	const always = "max-age=31536000, immutable"
	f("/", "text/html; charset=utf-8", "no-store")
	f("/icon.svg", "image/svg+xml", "no-cache")
	f("/assets/app-1234.js", "text/javascript; charset=utf-8", always)
	f("/assets/app-1234.css", "text/css; charset=utf-8", always)
	f("/assets/odd-1234.xyz", "application/octet-stream", always)
}

func TestOtherFilesAreNotServed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"index.html", ".env", "page/index.html", "page/a.js"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, ".env"), filepath.Join(dir, "page", "out.js")); err != nil {
		t.Fatal(err)
	}
	fromDir, err := FromDir(filepath.Join(dir, "page"))
	if err != nil {
		t.Fatal(err)
	}
	if r := get(t, fromDir, "/a.js"); r.Code != 200 || r.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("a file of a directory: %d %v", r.Code, r.Header())
	}
	for _, s := range []*Site{somePage(t), fromDir} {
		for _, path := range []string{
			"", "/index.html", "/nothing", "/assets", "/assets/", "/assets/nothing.js", "/.vite/manifest.json",
			"/../.env", "/assets/../../.env", "/..%2f.env", "//index.html", "/out.js", "/a.js/",
		} {
			if s.Has(path) {
				t.Errorf("%q is there", path)
			}
		}
		if r := get(t, s, "/nothing"); r.Code != 404 {
			t.Errorf("a missing file: %d", r.Code)
		}
	}
}

func TestDirectoryWithoutPageIsRejected(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "nothing")} {
		if _, err := FromDir(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := newSite(fstest.MapFS{"assets/a.js": {}}); err == nil {
		t.Error("a page without an index is taken")
	}
}

func TestFilesOfDirectoryAreReadForEachRequest(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "index.html"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	s, err := FromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"second", "third"} {
		write(text)
		if got := body(t, get(t, s, "/").Body); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
}

func TestTextIsCompressedOnRequest(t *testing.T) {
	s := somePage(t)
	r := get(t, s, "/assets/app-1234.js", "Accept-Encoding: br, gzip")
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, z); got != long || r.Header().Get("Content-Encoding") != "gzip" || r.Header().Get("Vary") != "Accept-Encoding" {
		t.Errorf("%d bytes, %v", len(got), r.Header())
	}
	for path, accept := range map[string]string{"/assets/app-1234.js": "gzip;q=0", "/assets/app-1234.css": "gzip", "/": "gzip"} {
		if r := get(t, s, path, "Accept-Encoding: "+accept); r.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s is compressed", path)
		}
	}
}

func TestUnchangedFileIsNotSentAgain(t *testing.T) {
	s := somePage(t)
	for _, encoding := range []string{"gzip", "identity"} {
		tag := get(t, s, "/assets/app-1234.js", "Accept-Encoding: "+encoding).Header().Get("ETag")
		r := get(t, s, "/assets/app-1234.js", "Accept-Encoding: "+encoding, "If-None-Match: W/\"x\", "+tag)
		if r.Code != 304 || body(t, r.Body) != "" {
			t.Errorf("%s: %d", encoding, r.Code)
		}
		if r := get(t, s, "/assets/app-1234.js", "If-None-Match: \"other\""); r.Code != 200 {
			t.Errorf("another file: %d", r.Code)
		}
	}
	r := get(t, s, "/assets/app-1234.js", "Method: HEAD")
	if r.Code != 200 || body(t, r.Body) != "" || r.Header().Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d %v", r.Code, r.Header())
	}
}

// The page works below any prefix, under a policy without inline code, and on a
// machine without a network.
func TestBuiltPageUsesOnlyItsOwnFiles(t *testing.T) {
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	index := body(t, get(t, s, "/").Body)
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(index, -1) {
		name, relative := strings.CutPrefix(m[1], "./")
		if !relative || !s.Has("/"+name) {
			t.Errorf("the index refers to %s", m[1])
		}
	}
	for _, pattern := range []string{`<script>`, `<script[^>]*>[^<]`, `<style`, ` style=`, ` on[a-z]+=`, `https?://`} {
		if found := regexp.MustCompile(pattern).FindString(index); found != "" {
			t.Errorf("the index has %q", found)
		}
	}
	for name, f := range s.files {
		if strings.HasSuffix(name, ".css") && regexp.MustCompile(`@import|url\(\s*["']?(https?:)?//`).Match(f.content) {
			t.Errorf("%s fetches from elsewhere", name)
		}
	}
}
