package github

import (
	"strconv"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v60/github"
)

// User is an account: a person, an app (a bot), or an organization.
type User struct {
	Login string // without @; of apps with the suffix "[bot]"
	ID    int64
	Bot   bool // an app's account
}

// Issue is an issue, or the issue side of a pull request.
type Issue struct {
	Number      int
	Title, Body string
	Author      User
	Open        bool     // false: closed
	Labels      []string // names
	PullRequest bool     // whether it is one
}

// NewIssue holds the fields of a new issue.
type NewIssue struct {
	Title, Body string
	Labels      []string // names; GitHub creates missing ones with a default colour
}

// Comment is a comment on an issue or a pull request (not one on a line of a diff).
type Comment struct {
	ID               int64
	Issue            int // the number of the issue that it is on
	Author           User
	Association      string // the author's relation to the repository: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, …, NONE
	Body             string // Markdown, as its author typed it
	Created, Updated time.Time
}

// Label is a label of the repository.
type Label struct {
	Name        string
	Color       string // six hexadecimal digits, without #
	Description string // at most 100 characters
}

// CommitOnBranch is a commit that GitHub makes and signs, on top of a head that must still be the branch's.
type CommitOnBranch struct {
	Branch         string // without refs/heads/
	Head           string // the commit that the branch must be at, 40 hexadecimal digits
	Headline, Body string // the message: its first line, and what follows after an empty one
	Write          []File
	Delete         []string // paths
}

// File is a file of a commit.
type File struct {
	Path    string // from the root of the repository, with slashes
	Content []byte
}

// Contents of a reaction, for React.
const (
	Eyes     = "eyes"
	ThumbsUp = "+1"
	Confused = "confused"
)

func commentOf(k *gogithub.IssueComment) *Comment {
	number := k.GetIssueURL()
	issue, _ := strconv.Atoi(number[strings.LastIndex(number, "/")+1:])
	return &Comment{
		ID: k.GetID(), Issue: issue, Author: userOf(k.User), Association: k.GetAuthorAssociation(), Body: k.GetBody(),
		Created: k.GetCreatedAt().Time, Updated: k.GetUpdatedAt().Time,
	}
}

func userOf(u *gogithub.User) User {
	return User{Login: u.GetLogin(), ID: u.GetID(), Bot: u.GetType() == "Bot"}
}
