package github

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// PullRequestHead returns the commit at the head of a pull request. ErrGone: the number does not exist.
func (c *Client) PullRequestHead(ctx context.Context, number int) (oid string, err error) {
	if err := numbered(number); err != nil {
		return "", err
	}
	p, _, err := c.api().PullRequests.Get(asking(ctx), c.owner, c.name, number)
	return p.GetHead().GetSHA(), unwrapped(err)
}

// commitMutation asks for the commit's id only. The type of its input is GitHub's CreateCommitOnBranchInput.
const commitMutation = `mutation($input: CreateCommitOnBranchInput!) {
  createCommitOnBranch(input: $input) { commit { oid } }
}`

// CommitOnBranch creates a commit on a branch with a GraphQL mutation, so that GitHub signs it, and returns its OID.
// *HeadMoved: the branch moved, and nothing was done; *Uncertain: fetch, and check for the commit. A dry client returns
// "".
func (c *Client) CommitOnBranch(ctx context.Context, k CommitOnBranch) (string, error) {
	var answer struct {
		CreateCommitOnBranch struct{ Commit struct{ OID string } }
	}
	err := c.query(asking(ctx), commitMutation, map[string]any{"input": c.commitInput(k)}, &answer)
	var refused *graphqlError
	if errors.As(err, &refused) && refused.moved() {
		return "", &HeadMoved{Branch: k.Branch, Expected: k.Head}
	}
	oid := answer.CreateCommitOnBranch.Commit.OID
	if err == nil && oid == "" && c.o.Dry == nil {
		err = &Uncertain{Call: Call{Method: http.MethodPost, Path: "/graphql"}, Err: errors.New("the answer names no commit")}
	}
	return oid, err
}

// commitInput is a CreateCommitOnBranchInput. Contents are []byte, which JSON carries in base64, as GitHub wants them.
func (c *Client) commitInput(k CommitOnBranch) any {
	type addition struct {
		Path     string `json:"path"`
		Contents []byte `json:"contents"`
	}
	type deletion struct {
		Path string `json:"path"`
	}
	additions, deletions := make([]addition, 0, len(k.Write)), make([]deletion, 0, len(k.Delete))
	for _, f := range k.Write {
		additions = append(additions, addition{f.Path, append([]byte{}, f.Content...)}) // never null
	}
	for _, path := range k.Delete {
		deletions = append(deletions, deletion{path})
	}
	return map[string]any{
		"branch":          map[string]string{"repositoryNameWithOwner": c.o.Repo, "branchName": k.Branch},
		"expectedHeadOid": k.Head,
		"message":         map[string]string{"headline": k.Headline, "body": k.Body},
		"fileChanges":     map[string]any{"additions": additions, "deletions": deletions},
	}
}

// graphqlAnswer is a GraphQL response, which has status 200 also for errors.
type graphqlAnswer struct {
	Data   json.RawMessage
	Errors []graphqlError
}
