package github

import (
	"encoding/json"
	"net/http"

	"reconcile.dev/reconcile/schemas/shorten"
)

// Call is a request, as shown to people and in journals; it contains no secret.
type Call struct {
	Method string
	Path   string          // with its query, relative to the API's root: "/repos/octo/widgets/issues/42/comments"
	Body   json.RawMessage // nil: none
}

// longestBody is the maximum length of a body in String, in bytes.
const longestBody = 400

// String returns the call on one line: its method, path and body, shortened if it is long.
func (c Call) String() string {
	s := c.Method + " " + c.Path
	if len(c.Body) == 0 {
		return s
	}
	body := c.Body
	if len(body) > longestBody {
		return s + " " + shorten.Bytes(string(body), longestBody) + "…"
	}
	return s + " " + string(body)
}

// reads reports whether the call changes nothing on GitHub.
func (c Call) reads() bool { return c.Method == http.MethodGet || c.Method == http.MethodHead }
