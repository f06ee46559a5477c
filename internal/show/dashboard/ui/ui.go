// Package ui holds the page in the browser, which is built from web/ into dist/,
// and serves its files. It knows nothing of runs, and leaves it to others who may
// see the page and under which policy.
package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed all:dist
var dist embed.FS

// indexFile is what is served at /.
const indexFile = "index.html"

// assetsDir holds files whose names change with their content.
const assetsDir = "assets/"

// Site serves the files of a page: index.html at / and all others where they are.
// Several goroutines may use it.
type Site struct {
	files map[string]*file // by path without the first slash; nil: they are in dir
	dir   fs.FS
}

// New returns the page that is part of this program. Its files never change, so a
// browser may keep those whose names tell their content.
func New() (*Site, error) {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return newSite(built)
}

// newSite reads all files of a page.
func newSite(built fs.FS) (*Site, error) {
	s := &Site{files: make(map[string]*file)}
	err := fs.WalkDir(built, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || hidden(name) {
			return err
		}
		content, err := fs.ReadFile(built, name)
		if err == nil {
			s.files[name] = newFile(name, content)
		}
		return err
	})
	if err == nil && s.files[indexFile] == nil {
		err = errors.New("the page is not built: " + indexFile + " is missing")
	}
	return s, err
}

// FromDir returns the page in a directory, for those who develop it: its files are
// read whenever they are asked for, and nothing is kept by a browser. Links that
// lead out of the directory are not followed.
func FromDir(dir string) (*Site, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if _, err := root.Stat(indexFile); err != nil {
		return nil, errors.Join(fmt.Errorf("%s holds no page: %w", dir, err), root.Close())
	}
	return &Site{dir: root.FS()}, nil
}

// Has reports whether something is at the path of a request.
func (s *Site) Has(path string) bool { return s.find(path) != nil }

// find returns the file at the path of a request; nil if there is none.
func (s *Site) find(at string) *file {
	name, ok := strings.CutPrefix(at, "/")
	if !ok || name == indexFile || hidden(name) {
		return nil
	}
	if name == "" {
		name = indexFile
	}
	if s.files != nil {
		return s.files[name]
	}
	if !fs.ValidPath(name) {
		return nil
	}
	content, err := fs.ReadFile(s.dir, name)
	if err != nil {
		return nil
	}
	f := newFile(name, content)
	f.keep = "no-store"
	return f
}

// hidden reports whether a file is not meant to be seen.
func hidden(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") {
			return true
		}
	}
	return false
}

// ServeHTTP answers GET and HEAD with a file.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := s.find(r.URL.Path)
	if f == nil {
		http.NotFound(w, r)
		return
	}
	f.serve(w, r)
}

// file is one of the page.
type file struct {
	kind    string // its type
	keep    string // how long a browser may keep it
	tag     string // names its content
	content []byte
	packed  func() []byte // compressed, when that is asked for first; nil: not worth it
}

// types are those of the files that pages are made of, whatever the system says.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".json": "application/json", ".map": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon",
	".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8", ".webmanifest": "application/manifest+json",
}

// packFrom is the size from which text is compressed.
const packFrom = 1 << 10

func newFile(name string, content []byte) *file {
	hash := sha256.Sum256(content)
	f := &file{kind: types[path.Ext(name)], keep: "no-cache", tag: hex.EncodeToString(hash[:12]), content: content}
	switch {
	case name == indexFile:
		f.keep = "no-store"
	case strings.HasPrefix(name, assetsDir):
		f.keep = "max-age=31536000, immutable"
	}
	if f.kind == "" {
		f.kind = "application/octet-stream"
	}
	if len(content) >= packFrom && (strings.HasPrefix(f.kind, "text/") || f.kind == "application/json" || f.kind == "image/svg+xml") {
		f.packed = sync.OnceValue(func() []byte { return pack(content) })
	}
	return f
}

func pack(content []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.DefaultCompression) // the level is one that there is
	_, _ = z.Write(content)                                  // to memory
	_ = z.Close()
	return b.Bytes()
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	body, tag := f.content, f.tag
	if f.packed != nil {
		h.Add("Vary", "Accept-Encoding")
		if takesGzip(r) {
			body, tag = f.packed(), tag+"-gzip"
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", f.keep)
	h.Set("ETag", `"`+tag+`"`)
	if strings.Contains(r.Header.Get("If-None-Match"), `"`+tag+`"`) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // nobody is left to tell if the client is gone
	}
}

// takesGzip reports whether the client takes compressed answers. Browsers name it
// without a weight, so one that has a weight gets the plain file.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(part) == "gzip" {
			return true
		}
	}
	return false
}
