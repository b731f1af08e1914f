package githubtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The features that the emulator lacks: reactions to comments, the comments on all issues (it parses "comments" as a
// number), and the GraphQL queries of the client.

// reaction is one account's reaction to a comment.
type reaction struct {
	ID      int64  `json:"id"`
	Content string `json:"content"`
	User    user   `json:"user"`
}

type user struct {
	Login string `json:"login"`
	ID    int64  `json:"id"`
}

var reactionPath = regexp.MustCompile(`^/repos/[^/]+/[^/]+/issues/comments/(\d+)/reactions(?:/(\d+))?$`)

// reactionsOf returns an account's reactions to a comment.
func (p *proxy) reactionsOf(login string, comment int64) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var contents []string
	for _, r := range p.reactions[comment] {
		if r.User.Login == login {
			contents = append(contents, r.Content)
		}
	}
	return contents
}

// reactionsCall answers a request for reactions; ours is false for all others.
func (p *proxy) reactionsCall(login string, r *http.Request, body []byte) (a answer, ours bool) {
	m := reactionPath.FindStringSubmatch(r.URL.Path)
	if m == nil {
		return answer{}, false
	}
	comment, _ := strconv.ParseInt(m[1], 10, 64)
	id, _ := strconv.ParseInt(m[2], 10, 64)
	there, _, _ := strings.Cut(r.URL.Path, "/reactions")
	me, err := p.emulator.account(login)
	if err != nil || p.emulator.do(Token(login), http.MethodGet, there, nil, nil) != nil {
		return complaint(http.StatusNotFound, "Not Found", nil), true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.Method {
	case http.MethodGet:
		return page(r, p.reactions[comment]), true
	case http.MethodPost:
		return p.react(comment, me, body), true
	}
	left := slices.DeleteFunc(slices.Clone(p.reactions[comment]), func(r reaction) bool { return r.ID == id && r.User == me })
	if len(left) == len(p.reactions[comment]) {
		return complaint(http.StatusNotFound, "Not Found", nil), true
	}
	p.reactions[comment] = left
	return answer{status: http.StatusNoContent, header: http.Header{}}, true
}

// react adds a reaction, or returns the existing one.
func (p *proxy) react(comment int64, me user, body []byte) answer {
	var asked struct{ Content string }
	if err := json.Unmarshal(body, &asked); err != nil {
		return complaint(http.StatusBadRequest, "Problems parsing JSON", nil)
	}
	for _, r := range p.reactions[comment] {
		if r.User == me && r.Content == asked.Content {
			return reply(http.StatusOK, r)
		}
	}
	p.last++
	r := reaction{ID: p.last, Content: asked.Content, User: me}
	p.reactions[comment] = append(p.reactions[comment], r)
	return reply(http.StatusCreated, r)
}

// allComments reports whether a request is for the comments on all issues of a repository, and returns the repository.
func allComments(r *http.Request) (repo string, is bool) {
	repo, is = strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/repos/"), "/issues/comments")
	return repo, is && r.Method == http.MethodGet
}

// comment is a comment on any issue, with the emulator's data.
type comment struct {
	Created time.Time `json:"created_at"`
	Updated time.Time `json:"updated_at"`
	raw     json.RawMessage
}

// comments answers with a page of the comments on all issues, the oldest first. It collects them again only after a
// write, since that takes one request for each issue.
func (p *proxy) comments(r *http.Request, repo string) (answer, error) {
	p.mu.Lock()
	all, at, writes := p.collected, p.collectedAt, p.writes
	p.mu.Unlock()
	if all == nil || at != writes {
		var err error
		if all, err = p.collect(tokenOf(r), repo); err != nil {
			return answer{}, err
		}
		p.mu.Lock()
		p.collected, p.collectedAt = all, writes
		p.mu.Unlock()
	}
	from, err := time.Parse(time.RFC3339, r.URL.Query().Get("since"))
	raws := make([]json.RawMessage, 0, len(all))
	for _, c := range all {
		if err != nil || !c.Updated.Before(from) {
			raws = append(raws, c.raw)
		}
	}
	return page(r, raws), nil
}

// wrote is called after every request that may have changed comments.
func (p *proxy) wrote() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
}

func (p *proxy) collect(token, repo string) ([]comment, error) {
	issues, err := everything[struct{ Number int }](p.emulator, token, "/repos/"+repo+"/issues?state=all")
	if err != nil {
		return nil, err
	}
	var all []comment
	for _, i := range issues {
		on, err := everything[json.RawMessage](p.emulator, token, fmt.Sprintf("/repos/%s/issues/%d/comments?", repo, i.Number))
		if err != nil {
			return nil, err
		}
		for _, raw := range on {
			c := comment{raw: raw}
			if err := json.Unmarshal(raw, &c); err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b comment) int { return a.Created.Compare(b.Created) })
	return all, nil
}

// everything reads all pages of a list of the emulator.
func everything[T any](e *emulator, token, path string) ([]T, error) {
	var all []T
	for n := 1; ; n++ {
		var some []T
		if err := e.do(token, http.MethodGet, fmt.Sprintf("%s&per_page=100&page=%d", path, n), nil, &some); err != nil {
			return nil, err
		}
		if all = append(all, some...); len(some) < 100 {
			return all, nil
		}
	}
}

// page answers with the requested page of a list.
func page[T any](r *http.Request, all []T) answer {
	n, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	size = max(min(size, 100), 1)
	from := min(max(n-1, 0)*size, len(all))
	to := min(from+size, len(all))
	a := reply(http.StatusOK, append([]T{}, all[from:to]...))
	if to < len(all) {
		a.header.Set("Link", fmt.Sprintf(`<http://%s%s?page=%d&per_page=%d>; rel="next"`, r.Host, r.URL.Path, n+1, size))
	}
	return a
}

func reply(status int, v any) answer {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain structs always marshal
	}
	return answer{status, http.Header{"Content-Type": {"application/json; charset=utf-8"}}, body}
}

func (e *emulator) account(login string) (u user, err error) {
	return u, e.do(Token(login), http.MethodGet, "/user", nil, &u)
}

// graphqlError answers as GraphQL does for a rejected query: with status 200.
func graphqlError(kind, format string, args ...any) answer {
	return reply(http.StatusOK, map[string]any{
		"data":   nil,
		"errors": []map[string]string{{"type": kind, "message": fmt.Sprintf(format, args...)}},
	})
}

// commitInput is GitHub's CreateCommitOnBranchInput.
type commitInput struct {
	Branch struct {
		Repository string `json:"repositoryNameWithOwner"`
		Name       string `json:"branchName"`
	} `json:"branch"`
	Head    string `json:"expectedHeadOid"`
	Message struct {
		Headline string `json:"headline"`
		Body     string `json:"body"`
	} `json:"message"`
	Changes struct {
		Additions []struct {
			Path     string `json:"path"`
			Contents string `json:"contents"`
		} `json:"additions"`
		Deletions []struct {
			Path string `json:"path"`
		} `json:"deletions"`
	} `json:"fileChanges"`
}

// graphql answers the two queries of the client.
func (p *proxy) graphql(login string, body []byte) answer {
	var asked struct {
		Query     string
		Variables map[string]json.RawMessage
	}
	if login == "" {
		return complaint(http.StatusUnauthorized, "Requires authentication", nil)
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return complaint(http.StatusBadRequest, "Problems parsing JSON", nil)
	}
	switch {
	case regexp.MustCompile(`^query \{ viewer \{ login databaseId \} \}$`).MatchString(asked.Query):
		me, err := p.emulator.account(login)
		if err != nil {
			return graphqlError("INTERNAL", "%v", err)
		}
		return reply(http.StatusOK, map[string]any{"data": map[string]any{
			"viewer": map[string]any{"login": me.Login, "databaseId": me.ID},
		}})
	case regexp.MustCompile(`^mutation\(\$input: CreateCommitOnBranchInput!\) \{\s+createCommitOnBranch\(input: \$input\)`).
		MatchString(asked.Query):
		var in commitInput
		strict := json.NewDecoder(bytes.NewReader(asked.Variables["input"]))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&in); err != nil {
			return graphqlError("", "Variable $input of type CreateCommitOnBranchInput! was provided invalid value: %v", err)
		}
		return p.commit(Token(login), in)
	}
	return graphqlError("", "Parse error on %q", asked.Query)
}

// commit creates a commit with the emulator's git objects.
func (p *proxy) commit(token string, in commitInput) answer {
	git := "/repos/" + in.Branch.Repository + "/git/"
	var ref struct{ Object struct{ SHA string } }
	if p.emulator.do(token, "GET", git+"ref/heads/"+in.Branch.Name, nil, &ref) != nil {
		return graphqlError("NOT_FOUND", "Could not resolve to a Ref with the name '%s'.", in.Branch.Name)
	}
	if ref.Object.SHA != in.Head {
		return graphqlError("STALE_DATA", "Expected branch to point to %q but it did not. Pull and try again.", in.Head)
	}
	var base struct{ Tree struct{ SHA string } }
	var tree, made struct{ SHA string }
	entries, err := p.entries(token, git, in)
	steps := []func() error{
		func() error { return err },
		func() error { return p.emulator.do(token, "GET", git+"commits/"+in.Head, nil, &base) },
		func() error {
			return p.emulator.do(token, "POST", git+"trees", map[string]any{"base_tree": base.Tree.SHA, "tree": entries}, &tree)
		},
		func() error {
			message := in.Message.Headline
			if in.Message.Body != "" {
				message += "\n\n" + in.Message.Body
			}
			return p.emulator.do(token, "POST", git+"commits",
				map[string]any{"message": message, "tree": tree.SHA, "parents": []string{in.Head}}, &made)
		},
		func() error {
			return p.emulator.do(token, "PATCH", git+"refs/heads/"+in.Branch.Name, map[string]any{"sha": made.SHA, "force": false}, nil)
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return graphqlError("UNPROCESSABLE", "%v", err)
		}
	}
	return reply(http.StatusOK, map[string]any{"data": map[string]any{
		"createCommitOnBranch": map[string]any{"commit": map[string]string{"oid": made.SHA}},
	}})
}

// entries creates blobs of the files, and returns their entries of a tree.
func (p *proxy) entries(token, git string, in commitInput) ([]map[string]any, error) {
	var entries []map[string]any
	for _, f := range in.Changes.Additions {
		if _, err := base64.StdEncoding.DecodeString(f.Contents); err != nil {
			return nil, fmt.Errorf("contents of %s: %w", f.Path, err)
		}
		var blob struct{ SHA string }
		if err := p.emulator.do(token, "POST", git+"blobs", map[string]any{"content": f.Contents, "encoding": "base64"}, &blob); err != nil {
			return nil, err
		}
		entries = append(entries, map[string]any{"path": f.Path, "mode": "100644", "type": "blob", "sha": blob.SHA})
	}
	for _, f := range in.Changes.Deletions {
		entries = append(entries, map[string]any{"path": f.Path, "mode": "100644", "type": "blob", "sha": nil})
	}
	return entries, nil
}
