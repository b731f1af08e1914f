package schemas

import (
	"slices"
	"strings"
)

// GitHubSettings says where the tree is mirrored.
type GitHubSettings struct {
	// Repo is the repository, as owner/name.
	Repo string `json:"repo,omitempty" jsonschema:"maxLength=200"`
	// Mirror turns the mirror on. Default false.
	Mirror bool `json:"mirror,omitempty"`
	// BaseURL is the API's address, for GitHub Enterprise. Each user has to allow it: reconcile allow.
	BaseURL string `json:"baseURL,omitempty" jsonschema:"maxLength=500"`
	// Mention lists handles that are mentioned on escalations.
	Mention []string `json:"mention,omitempty" jsonschema:"maxItems=50"`
	// Commands says whose comments on mirrored issues act.
	Commands GitHubCommands `json:"commands,omitzero"`
	// Pace is the time between two calls that write. Default 1s.
	Pace *Duration `json:"pace,omitempty" jsonschema:"default=1s"`
	// Poll is the time between two looks at the issues, while reconcile watches. Default 60s.
	Poll *Duration `json:"poll,omitempty" jsonschema:"default=60s"`
}

// GitHubCommands says whose comments act: those of people in one of the roles, and of those who are listed. Apps and
// other bots never do.
type GitHubCommands struct {
	// Roles are the accepted relations of an author to the repository, in GitHub's words. Default OWNER, MEMBER and
	// COLLABORATOR; with an empty list only the users in allow are accepted.
	Roles *[]string `json:"roles,omitempty" jsonschema:"maxItems=8"`
	// Allow lists people by their login, and teams as organization/team.
	Allow []string `json:"allow,omitempty" jsonschema:"maxItems=200"`
}

// gitHubRoles are the relations between people and repositories that GitHub knows, closest first.
func gitHubRoles() []string {
	return []string{"OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR", "FIRST_TIME_CONTRIBUTOR", "FIRST_TIMER", "MANNEQUIN",
		"NONE"}
}

func (g *GitHubSettings) check(r *Report) {
	if g.Repo != "" && !isRepo(g.Repo) {
		r.At("github", "repo").Errorf("bad-repo", "%q does not have the form owner/name", g.Repo)
	}
	if g.Mirror && g.Repo == "" {
		r.At("github", "mirror").Errorf("missing", "a mirror needs a repository").suggest("add repo: owner/name")
	}
	if u := g.BaseURL; u != "" && !isAddress(u) {
		r.At("github", "baseURL").Errorf("bad-url", "%q is not an address that begins with https:// (or http://) and has "+
			"no user name in it", u)
	}
	for i, m := range g.Mention {
		checkFilled(r.At("github", "mention", i), m)
		checkLine(r.At("github", "mention", i), m)
	}
	g.Commands.check(r)
	checkTimeout(r.At("github", "poll"), g.Poll)
}

func (c *GitHubCommands) check(r *Report) {
	if c.Roles != nil {
		for i, role := range *c.Roles {
			if !slices.Contains(gitHubRoles(), role) {
				r.At("github", "commands", "roles", i).Errorf("bad-role", "%q is no role that GitHub knows", role).
					near(role, gitHubRoles())
			}
		}
	}
	for i, who := range c.Allow {
		org, team, isTeam := strings.Cut(who, "/")
		if !isLogin(org) || isTeam && !isRepoPart(team) {
			r.At("github", "commands", "allow", i).Errorf("bad-login", "%q is neither a login, without @, nor a team as "+
				"organization/team", who)
		}
	}
}

func (g *GitSettings) check(r *Report) {
	checkBranch(r.At("git", "branch"), g.Branch)
	if a := g.Author; a != "" && !isGitHubAuthor(a) {
		r.At("git", "author").Errorf("bad-author", "%q does not have the form Name <mail@example.org>", a)
	}
	if n := g.Remote; strings.HasPrefix(n, "-") || strings.ContainsAny(n, " \t\n:\\~^?*[") {
		r.At("git", "remote").Errorf("bad-remote", "%q is not the name of a remote; git remote -v lists them", n)
	}
	checkTimeout(r.At("git", "poll"), g.Poll)
	if c := g.ClaimFor; c != nil && c.Std() < shortestClaim {
		r.At("git", "claimFor").Errorf("out-of-range", "a claim stands for at least %s", shortestClaim)
	}
}

func isGitHubAuthor(s string) bool {
	name, rest, ok := strings.Cut(s, " <")
	mail, end, closed := strings.Cut(rest, ">")
	user, host, at := strings.Cut(mail, "@")
	return ok && closed && at && end == "" && strings.TrimSpace(name) != "" && user != "" && host != "" &&
		!strings.ContainsAny(name, "<>\n\r") && !strings.ContainsAny(mail, "< \t\n\r")
}

// GitSettings configures commits.
type GitSettings struct {
	// Commit makes every run commit its written files, as --commit does. Default false.
	Commit bool `json:"commit,omitempty"`
	// Push shares the branch with other reconcilers, as --push does: commits are pushed, and effects are claimed on the
	// remote before they are performed. Default false.
	Push bool `json:"push,omitempty"`
	// Remote is the repository that is shared. Default: the one that the branch follows, else origin.
	Remote string `json:"remote,omitempty" jsonschema:"maxLength=200"`
	// Poll is how often a watcher fetches from the remote. Default 30s.
	Poll *Duration `json:"poll,omitempty" jsonschema:"default=30s"`
	// ClaimFor is how long a claim on the remote stands without being renewed; after that, others take it over. At least
	// 10s. Default 2m.
	ClaimFor *Duration `json:"claimFor,omitempty" jsonschema:"default=2m"`
	// Via is the way that commits take: git pushes them, github makes them by GitHub's API, where a push is not possible.
	// Default git.
	Via string `json:"via,omitempty" jsonschema:"enum=git,enum=github,default=git"`
	// Branch is the branch that is committed to. Default: the current one.
	Branch string `json:"branch,omitempty" jsonschema:"maxLength=200"`
	// Author is who commits: "Name <mail>". Default: git's user.name and user.email, else reconcile.
	Author string `json:"author,omitempty" jsonschema:"maxLength=200"`
	// Sign signs commits: auto follows git's commit.gpgSign, always and never do as they say. Default auto.
	Sign string `json:"sign,omitempty" jsonschema:"enum=auto,enum=always,enum=never,default=auto"`
}
