package github

import (
	"encoding/json"
	"net/http"
	"unicode/utf8"
)

// Call is a request, as people and journals see it: nothing of it is secret.
type Call struct {
	Method string
	Path   string          // with its query, below the API's root: "/repos/octo/widgets/issues/42/comments"
	Body   json.RawMessage // nil: none
}

// longestBody is how much of a body String shows, in bytes.
const longestBody = 400

// String returns one line: the method, the path and the body, cut when it is long.
func (c Call) String() string {
	s := c.Method + " " + c.Path
	if len(c.Body) == 0 {
		return s
	}
	body := c.Body
	if len(body) > longestBody {
		cut := longestBody
		for !utf8.RuneStart(body[cut]) {
			cut--
		}
		return s + " " + string(body[:cut]) + "…"
	}
	return s + " " + string(body)
}

// reads reports whether the call changes nothing on GitHub.
func (c Call) reads() bool { return c.Method == http.MethodGet || c.Method == http.MethodHead }
