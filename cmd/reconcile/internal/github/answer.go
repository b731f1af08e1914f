package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/schemas/shorten"
)

// complaint is the body of an error response, in GitHub's form.
type complaint struct {
	Message string
	Errors  []struct{ Message, Field, Code string }
}

// readComplaint parses an error response; ok is false if it is not in GitHub's form, like those of proxies, portals and
// other servers.
func readComplaint(h http.Header, body []byte) (c complaint, ok bool) {
	if !strings.Contains(h.Get("Content-Type"), "json") {
		return c, false
	}
	var short struct{ Message string }
	if json.Unmarshal(body, &c) != nil { // some responses have errors that are strings
		c.Errors = nil
		if json.Unmarshal(body, &short) != nil {
			return c, false
		}
		c.Message = short.Message
	}
	return c, c.Message != ""
}

func (c complaint) String() string {
	parts := []string{plainAnswer(c.Message)}
	for _, e := range c.Errors {
		parts = append(parts, plainAnswer(strings.TrimSpace(strings.Join([]string{e.Field, e.Code, e.Message}, " "))))
		if len(parts) == 4 {
			break
		}
	}
	return strings.Join(parts, "; ")
}

// longestWord is the maximum length of a shown server message, in runes.
const longestWord = 200

// plainAnswer returns a server's message as one line without control characters, cut.
func plainAnswer(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, shorten.Text(s, longestWord+1))
}

// refusal returns the error for a response with a status of 300 or above.
func (w *githubTransport) refusal(call Call, resp *http.Response, body []byte) error {
	c, ours := readComplaint(resp.Header, body)
	now := w.o.Now()
	if l := limitOf(resp, c.Message, now, w.limits.strikes); l != nil {
		return l
	}
	kind, hint := ErrInvalid, ""
	switch code := resp.StatusCode; {
	case code >= 500:
		kind = ErrServer
	case code/100 == 3 && code != http.StatusNotModified:
		kind, hint = ErrMoved, " (to "+plainAnswer(resp.Header.Get("Location"))+"); set github.repo to its name there"
	case !ours:
		kind, hint = ErrUnreachable, "; this is no answer of GitHub's: is the URL of the API right, and no proxy in between?"
	case code == http.StatusUnauthorized:
		kind, hint = ErrUnauthorized, "; give a valid one"
	case code == http.StatusForbidden && complaintSays(c, "locked"):
		kind, hint = ErrLocked, "; unlock it, or use a token whose account may write to the repository"
	case code == http.StatusForbidden:
		kind = ErrForbidden
	case code == http.StatusGone && complaintSays(c, "issues", "disabled"):
		kind, hint = ErrNoIssues, "; turn them on in its settings, or set github.mirror to false"
	case code == http.StatusNotFound || code == http.StatusGone:
		kind = ErrGone
	}
	text := fmt.Sprintf("%s %s: %d %s", call.Method, call.Path, resp.StatusCode, http.StatusText(resp.StatusCode))
	if ours {
		text += " (" + w.hide(c.String()) + ")"
	}
	return fmt.Errorf("%s: %w%s", text, kind, hint)
}

// complaintSays reports whether a complaint contains all the words.
func complaintSays(c complaint, words ...string) bool {
	text := strings.ToLower(c.Message)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// hide removes the token from a server's message.
func (w *githubTransport) hide(s string) string {
	if w.o.Token == "" {
		return s
	}
	return strings.ReplaceAll(s, w.o.Token, "[token]")
}

// content checks a successful response: it is JSON, or empty where no content is expected; it names the created object;
// and a GraphQL response reports no limit and no internal failure.
func (w *githubTransport) content(call Call, m manner, resp *http.Response, body []byte) error {
	if resp.StatusCode == http.StatusNoContent || len(body) == 0 && call.Method == http.MethodDelete {
		return nil
	}
	if !json.Valid(body) {
		return fmt.Errorf("%s %s: %d, but no JSON: %w; is the URL of the API right, and no proxy in between?", call.Method, call.Path,
			resp.StatusCode, ErrUnreachable)
	}
	if call.Path == "/graphql" {
		return w.graphqlContent(resp, body)
	}
	var made struct{ ID int64 }
	if m == once && (json.Unmarshal(body, &made) != nil || made.ID == 0) {
		return fmt.Errorf("%s %s: %d, but the answer does not name what was created: %w", call.Method, call.Path, resp.StatusCode,
			ErrServer)
	}
	return nil
}

func (w *githubTransport) graphqlContent(resp *http.Response, body []byte) error {
	var a graphqlAnswer
	if json.Unmarshal(body, &a) != nil {
		return fmt.Errorf("POST /graphql: %d, but not of GraphQL's form: %w", resp.StatusCode, ErrServer)
	}
	if len(a.Errors) == 0 {
		return nil
	}
	switch e := &a.Errors[0]; {
	case e.limited():
		return limit(resp, plainAnswer(e.Message), w.o.Now(), w.limits.strikes)
	case e.failed():
		return fmt.Errorf("POST /graphql: %s: %w", w.hide(plainAnswer(e.Message)), ErrServer)
	}
	return nil
}

// confirm decides whether an object is gone, or was transferred: only if the repository itself exists. GitHub also answers
// 404 to accounts that may not see the object, and a redirect for every object of a moved repository.
func (w *githubTransport) confirm(r *http.Request, call Call, failed error) error {
	repo := "repos/" + w.o.Repo
	if !strings.HasPrefix(call.Path, "/"+repo) {
		return failed
	}
	moved := errors.Is(failed, ErrMoved)
	switch {
	case call.Path == "/"+repo && moved:
		return failed
	case call.Path == "/"+repo:
		return fmt.Errorf("the repository %s is not there, or the token may not see it: %w", w.o.Repo, ErrForbidden)
	}
	u := w.base.JoinPath(repo)
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", w.o.UserAgent)
	_, err = w.retry(req, Call{Method: http.MethodGet, Path: "/" + repo}, reader)
	switch {
	case err == nil && moved:
		return fmt.Errorf("%s %s: %w", call.Method, call.Path, ErrTransferred)
	case err == nil:
		return failed
	case errors.Is(err, context.Canceled), errors.Is(err, ErrMoved):
		return err
	}
	return fmt.Errorf("%w; whether it is gone is not known", err)
}

// graphqlError is an error in a GraphQL response.
type graphqlError struct {
	Type    string // in GitHub's words: STALE_DATA, NOT_FOUND, FORBIDDEN, RATE_LIMITED, …; "": see failed
	Message string
}

func (e *graphqlError) Error() string {
	return fmt.Sprintf("GitHub's GraphQL refuses: %s (%s)", plainAnswer(e.Message), plainAnswer(e.Type))
}

// limited reports whether the error is that a limit is reached.
func (e *graphqlError) limited() bool { return e.Type == "RATE_LIMITED" }

// failed reports whether GitHub failed internally, so that the operation may have happened or not.
func (e *graphqlError) failed() bool {
	return e.Type == "INTERNAL" || e.Type == "SERVICE_UNAVAILABLE" ||
		e.Type == "" && strings.HasPrefix(e.Message, "Something went wrong")
}

// Unwrap returns the corresponding error of this package.
func (e *graphqlError) Unwrap() error {
	switch e.Type {
	case "NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_SCOPES":
		return ErrForbidden // it may exist or not: this token cannot tell
	}
	return ErrInvalid
}

// moved reports whether the branch was not at the expected head. Older servers report that only in the message.
func (e *graphqlError) moved() bool {
	return e.Type == "STALE_DATA" || strings.Contains(e.Message, "Expected branch to point to")
}
