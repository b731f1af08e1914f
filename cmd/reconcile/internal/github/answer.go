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
)

// complaint is the body of an answer that says no, in GitHub's form.
type complaint struct {
	Message string
	Errors  []struct{ Message, Field, Code string }
}

// readComplaint returns what an answer complains of; ok is false when it is not of GitHub's form, as what proxies,
// portals and other servers answer.
func readComplaint(h http.Header, body []byte) (c complaint, ok bool) {
	if !strings.Contains(h.Get("Content-Type"), "json") {
		return c, false
	}
	var short struct{ Message string }
	if json.Unmarshal(body, &c) != nil { // some answers have errors that are strings
		c.Errors = nil
		if json.Unmarshal(body, &short) != nil {
			return c, false
		}
		c.Message = short.Message
	}
	return c, c.Message != ""
}

func (c complaint) String() string {
	parts := []string{plain(c.Message)}
	for _, e := range c.Errors {
		parts = append(parts, plain(strings.TrimSpace(strings.Join([]string{e.Field, e.Code, e.Message}, " "))))
		if len(parts) == 4 {
			break
		}
	}
	return strings.Join(parts, "; ")
}

// longestWord is how much is shown of what a server says, in runes.
const longestWord = 200

// plain makes a line for people of what a server says: without control characters, and cut.
func plain(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > longestWord {
			return b.String() + "…"
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}

// refusal is the error that an answer with a status of 300 or above stands for.
func (w *wire) refusal(call Call, resp *http.Response, body []byte) error {
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
		kind, hint = ErrMoved, " (to "+plain(resp.Header.Get("Location"))+"); set github.repo to its name there"
	case !ours:
		kind, hint = ErrUnreachable, "; this is no answer of GitHub's: is the URL of the API right, and no proxy in between?"
	case code == http.StatusUnauthorized:
		kind, hint = ErrUnauthorized, "; give a valid one"
	case code == http.StatusForbidden && says(c, "locked"):
		kind, hint = ErrLocked, "; unlock it, or use a token whose account may write to the repository"
	case code == http.StatusForbidden:
		kind = ErrForbidden
	case code == http.StatusGone && says(c, "issues", "disabled"):
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

// says reports whether a complaint has all of some words.
func says(c complaint, words ...string) bool {
	text := strings.ToLower(c.Message)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// hide takes the token out of what a server says.
func (w *wire) hide(s string) string {
	if w.o.Token == "" {
		return s
	}
	return strings.ReplaceAll(s, w.o.Token, "[token]")
}

// content checks an answer that says yes: it is JSON, or empty where nothing was to be said; it names what was created;
// and GraphQL did not answer that a limit is reached, or that it gave up.
func (w *wire) content(call Call, m manner, resp *http.Response, body []byte) error {
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

func (w *wire) graphqlContent(resp *http.Response, body []byte) error {
	var a graphqlAnswer
	if json.Unmarshal(body, &a) != nil {
		return fmt.Errorf("POST /graphql: %d, but not of GraphQL's form: %w", resp.StatusCode, ErrServer)
	}
	if len(a.Errors) == 0 {
		return nil
	}
	switch e := &a.Errors[0]; {
	case e.limited():
		return limit(resp, plain(e.Message), w.o.Now(), w.limits.strikes)
	case e.failed():
		return fmt.Errorf("POST /graphql: %s: %w", w.hide(plain(e.Message)), ErrServer)
	}
	return nil
}

// confirm decides whether something is gone, or was transferred: only when the repository itself is there. GitHub answers
// 404, too, to whoever may not see what is asked for, and that it moved of all that is in a repository that moved.
func (w *wire) confirm(r *http.Request, call Call, failed error) error {
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
	_, err = w.insist(req, Call{Method: http.MethodGet, Path: "/" + repo}, reader)
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
