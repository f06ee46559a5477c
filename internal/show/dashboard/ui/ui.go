// Package ui serves the files of the page, which is built from web/ into dist/. The caller controls
// access and sets policies.
package ui

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"
)

//go:embed all:dist
var dist embed.FS

// indexFile is served at /.
const indexFile = "index.html"

// assetsDir has files whose names change with their content.
const assetsDir = "assets/"

// Site serves the files of a page, with index.html at /. It is safe for concurrent use.
type Site struct {
	files map[string]*file // by path without the first slash; nil: read from dir
	dir   fs.FS
}

// New returns the page embedded in this program.
func New() (*Site, error) {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return newSite(built)
}

func newSite(built fs.FS) (*Site, error) {
	s := &Site{files: make(map[string]*file)}
	err := fs.WalkDir(built, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || isHidden(name) {
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

// FromDir returns the page in a directory, for its development: files are read for each request,
// and browsers do not cache them. Links that leave the directory are not followed.
func FromDir(dir string) (*Site, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if _, err := root.Stat(indexFile); err != nil {
		return nil, errors.Join(fmt.Errorf("%s contains no page: %w", dir, err), root.Close())
	}
	return &Site{dir: root.FS()}, nil
}

// Has reports whether a file is at the path of a request.
func (s *Site) Has(path string) bool { return s.find(path) != nil }

// find returns the file at the path of a request, or nil.
func (s *Site) find(at string) *file {
	name, ok := strings.CutPrefix(at, "/")
	if !ok || name == indexFile || isHidden(name) {
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
	f.caching = "no-store"
	return f
}

// isHidden reports whether a part of a name starts with a dot.
func isHidden(name string) bool {
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
	compress(f).ServeHTTP(w, r)
}

type file struct {
	kind    string // content type
	caching string // Cache-Control
	tag     string // ETag
	content []byte
}

// types are the content types of files, independent of the system.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".json": "application/json", ".map": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon",
	".woff2": "font/woff2", ".webmanifest": "application/manifest+json",
	".txt": "text/plain; charset=utf-8", ".md": "text/plain; charset=utf-8",
}

func newFile(name string, content []byte) *file {
	hash := sha256.Sum256(content)
	f := &file{
		kind: cmp.Or(types[path.Ext(name)], "application/octet-stream"), caching: "no-cache", content: content,
		tag: `W/"` + hex.EncodeToString(hash[:12]) + `"`, // weak, since it is that of the compressed file, too
	}
	switch {
	case name == indexFile:
		f.caching = "no-store"
	case strings.HasPrefix(name, assetsDir):
		f.caching = "max-age=31536000, immutable"
	}
	return f
}

// compress compresses text from 1 KiB on.
var compress = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1<<10), gzhttp.CompressionLevel(6), gzhttp.EnableZstd(false),
		gzhttp.ContentTypeFilter(func(kind string) bool {
			return strings.HasPrefix(kind, "text/") || kind == "application/json" || kind == "image/svg+xml"
		}))
	if err != nil {
		panic(err) // the options are constant
	}
	return wrap
}()

func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", f.caching)
	h.Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}
