package github

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reconcile.dev/reconcile/state/regular"
)

const (
	unusedFor  = 30 * 24 * time.Hour // after which a cached response is deleted
	keptHeader = "Reconcile-Kept"    // marks a response whose body comes from the cache
)

// responseCache stores responses to GETs with their ETags for conditional requests: one file each, named by the token and the URL.
// It is an optimization: an entry that is unreadable, damaged or cannot be written costs one response body.
//
// A file is a line of JSON (entry) and the body. The holder of the wire's turn owns the cache.
type responseCache struct {
	dir   string // "": no cache
	whose string // the token: responses differ between tokens
	now   func() time.Time
	swept bool
}

// entry is the first line of a file.
type entry struct {
	URL  string `json:"url"`
	ETag string `json:"etag"`
	Link string `json:"link,omitempty"`
	Type string `json:"type"`
	Sum  string `json:"sum"` // SHA-256 of the body, hexadecimal
}

// known is the cached response to a request.
type known struct {
	entry
	body []byte
	ok   bool
}

func (c *responseCache) file(r *http.Request) string {
	key := sha256.Sum256([]byte(strings.Join([]string{c.whose, r.Header.Get("Accept"), r.URL.String()}, "\n")))
	return filepath.Join(c.dir, fmt.Sprintf("%x", key[:16]))
}

// ask makes a request conditional if a cached response exists.
func (c *responseCache) ask(r *http.Request) known {
	if c.dir == "" || r.Method != http.MethodGet {
		return known{}
	}
	k := c.read(c.file(r), r.URL.String())
	if k.ok {
		r.Header.Set("If-None-Match", k.ETag)
	}
	return k
}

func (c *responseCache) read(file, url string) known {
	data, err := regular.ReadPath(file)
	if err != nil {
		return known{}
	}
	now := c.now()
	_ = os.Chtimes(file, now, now) // in use
	return parseKnown(data, url)
}

// parseKnown parses a cache file for a URL. A damaged file, or one of another URL, has no response.
func parseKnown(data []byte, url string) (k known) {
	head, body, found := bytes.Cut(data, []byte("\n"))
	if !found || json.Unmarshal(head, &k.entry) != nil || k.URL != url || k.ETag == "" || k.Sum != cacheSum(body) {
		return known{}
	}
	k.body, k.ok = body, true
	return k
}

func cacheSum(body []byte) string { return fmt.Sprintf("%x", sha256.Sum256(body)) }

// answer replaces a 304 response by the cached one.
func (k known) answer(resp *http.Response, body []byte) (*http.Response, []byte) {
	if resp.StatusCode != http.StatusNotModified || !k.ok {
		return resp, body
	}
	resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
	resp.ContentLength = int64(len(k.body))
	resp.Header.Set("Content-Type", k.Type)
	resp.Header.Set(keptHeader, "1")
	if resp.Header.Get("Link") == "" && k.Link != "" {
		resp.Header.Set("Link", k.Link)
	}
	return resp, k.body
}

// cachedHeaders reports whether the body of a response comes from the cache.
func cachedHeaders(resp *http.Response) bool { return resp.Header.Get(keptHeader) != "" }

// keep stores a response.
func (c *responseCache) keep(r *http.Request, resp *http.Response, body []byte) {
	etag := resp.Header.Get("ETag")
	if c.dir == "" || r.Method != http.MethodGet || etag == "" || cachedHeaders(resp) || resp.StatusCode != http.StatusOK {
		return
	}
	if !c.swept {
		c.sweep()
		c.swept = true
	}
	head, err := json.Marshal(entry{
		URL: r.URL.String(), ETag: etag, Link: resp.Header.Get("Link"), Type: resp.Header.Get("Content-Type"), Sum: cacheSum(body),
	})
	if err == nil {
		_ = replaceCacheFile(c.file(r), append(append(head, '\n'), body...))
	}
}

// sweep deletes entries that were not used for long: each new "since" is a new URL, and the old ones accumulate.
func (c *responseCache) sweep() {
	files, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() && c.now().Sub(info.ModTime()) > unusedFor {
			_ = os.Remove(filepath.Join(c.dir, f.Name()))
		}
	}
}

// replaceCacheFile writes a file that only this user can read, atomically, and creates its folder if missing.
func replaceCacheFile(file string, data []byte) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
