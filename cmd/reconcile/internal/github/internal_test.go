package github

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	gogithub "github.com/google/go-github/v60/github"
)

// TestClientHidesTheLibrary: no field of a client leads to the types of the library that have the methods of the whole API. A
// program with them is 1.5 MB larger.
func TestClientHidesTheLibrary(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(is reflect.Type)
	visit = func(is reflect.Type) {
		if seen[is] {
			return
		}
		seen[is] = true
		switch is.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			visit(is.Elem())
		case reflect.Struct:
			for i := range is.NumField() {
				visit(is.Field(i).Type)
			}
		}
	}
	visit(reflect.TypeFor[Client]())
	if seen[reflect.TypeFor[gogithub.Client]()] {
		t.Error("a field of Client leads to that of the library")
	}
}

// FuzzCache: a file of the cache is taken for what was kept only when it is that.
func FuzzCache(f *testing.F) {
	const url = "https://api.github.com/repos/a/b/issues/1"
	body := []byte(`{"number":1}`)
	head, err := json.Marshal(entry{URL: url, ETag: `"x"`, Type: "application/json", Sum: cacheSum(body)})
	if err != nil {
		f.Fatal(err)
	}
	whole := append(append(head, '\n'), body...)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte("{}\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		k := parseKnown(data, url)
		_, rest, _ := bytes.Cut(data, []byte("\n"))
		if k.ok && (k.Sum != cacheSum(rest) || !bytes.Equal(k.body, rest) || k.URL != url) {
			t.Errorf("took %q for %+v", data, k)
		}
	})
}

// FuzzLimit: whatever an answer says, a limit ends within two hours, and what people see of it is one plain line.
func FuzzLimit(f *testing.F) {
	f.Add(429, "60", "Sun, 22 Nov 2026 06:00:00 GMT", "0", "1795327200", `{"message":"slow down"}`)
	f.Add(403, "Sun, 22 Nov 2026 06:00:00 GMT", "", "0", "-1", `{"message":"secondary rate limit","errors":["x"]}`)
	f.Add(403, "99999999999999999999", "x", "", "9223372036854775807", "\x00\n")
	f.Fuzz(func(t *testing.T, status int, after, date, remaining, reset, body string) {
		now := time.Unix(1_790_000_000, 0)
		h := http.Header{"Retry-After": {after}, "Date": {date}, "X-Ratelimit-Remaining": {remaining}, "X-Ratelimit-Reset": {reset},
			"Content-Type": {"application/json"}}
		c, _ := readComplaint(h, []byte(body))
		if line := c.String(); strings.ContainsFunc(line, unicode.IsControl) || utf8.RuneCountInString(line) > 5*longestWord {
			t.Errorf("shows %q", line)
		}
		for strikes := range 70 {
			l := limitOf(&http.Response{StatusCode: status, Header: h}, c.Message, now, strikes)
			if l == nil {
				return
			}
			if d := l.Until.Sub(now); d < time.Second || d > longestLimit {
				t.Errorf("limited for %s", d)
			}
		}
	})
}

// TestTheTokenIsForOneHost: go-github asks for addresses below the root of the API only; should it ever ask for another
// one, as of a next page, the token stays here.
func TestTheTokenIsForOneHost(t *testing.T) {
	t.Parallel()
	base, err := baseURL("https://github.corp.test/api/v3")
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(Options{Token: "secret", Now: time.Now}, base, graphqlURL(base))
	for address, want := range map[string]string{
		"https://github.corp.test/api/v3/user": "Bearer secret", "https://github.corp.test/api/graphql": "Bearer secret",
		"https://github.corp.test.evil.test/user": "", "https://evil.test/user": "", "https://github.corp.test:444/user": "",
	} {
		r, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if w.setHeaders(r); r.Header.Get("Authorization") != want {
			t.Errorf("%s gets %q", address, r.Header.Get("Authorization"))
		}
	}
	if got := graphqlURL(base); got != "https://github.corp.test/api/graphql" {
		t.Errorf("GraphQL is at %s", got)
	}
	if base, err = baseURL(""); err != nil || graphqlURL(base) != "https://api.github.com/graphql" {
		t.Errorf("GraphQL is at %s, %v", graphqlURL(base), err)
	}
}

// TestNames holds what is a name against what GitHub allows.
func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 100)
	for _, c := range []struct {
		what string
		is   func(string) bool
		yes  []string
		no   []string
	}{
		{"repository", isRepo, []string{"o/.", "octo-1/wid_gets.x", long[:39] + "/" + long},
			[]string{"", "/", "octo", "octo/", "/x", "-o/x", "o_o/x", "o/x/y", "o/x y", "o/é", long[:40] + "/x", "o/" + long + "a", "o/x\n"}},
		{"account", isLogin, []string{"a", "Ada_Lovelace-1", "dependabot[bot]", long, long + "[bot]"},
			[]string{"", "-a", "_a", "a.b", "a[bot]x", "[bot]", "a[bot][bot]", "a/b", long + "a", "a\n"}},
		{"team", func(s string) bool { return isName(s, "._-") }, []string{"core", "a.b_c-d", long},
			[]string{"", ".a", "-a", "a/b", "..", long + "a", "ä"}},
	} {
		for _, s := range c.yes {
			if !c.is(s) {
				t.Errorf("%q is no name of a %s", s, c.what)
			}
		}
		for _, s := range c.no {
			if c.is(s) {
				t.Errorf("%q is the name of a %s", s, c.what)
			}
		}
	}
}
