package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Errors of a remote, which callers tell apart with errors.Is.
var (
	// ErrRefused says that someone else's push was first: fetch, adopt, decide again.
	ErrRefused = errors.New("the remote branch moved")
	// ErrProtected says that the server's rules forbid the push (a protected branch, a hook): trying again is no use.
	ErrProtected = errors.New("the server refuses the push")
	// ErrUnreachable says that the remote did not answer to the end. What was pushed may be there; the next Fetch and
	// Adopt find out.
	ErrUnreachable = errors.New("the remote cannot be reached")
	// ErrUnwritable is an ErrUnreachable of a remote that can be read and does not write a reference, although nobody else
	// changed it: a lock file that a crash left, a name that is in the way, a full disk.
	ErrUnwritable error = unwritable{}
	// ErrDenied is an ErrUnreachable whose cause are the credentials.
	ErrDenied error = denied{}
)

// denied is the type of ErrDenied, whose text does not say that nobody answered.
type denied struct{}

func (denied) Error() string { return "the remote denies access" }

func (denied) Unwrap() error { return ErrUnreachable }

// unwritable is the type of ErrUnwritable.
type unwritable struct{}

func (unwritable) Error() string { return "the remote cannot write the reference" }

func (unwritable) Unwrap() error { return ErrUnreachable }

// Remote is the branch of another repository that this one shares with other reconcilers. Transport is the git command,
// with its credential helpers, ssh agent and proxies. It never pushes with force, and never asks on the terminal. Its
// methods may be called by several goroutines.
//
// Beside the branch, the remote has references that reconcilers alone use, all below refs/reconcile:
//
//	claims/<key>    a blob: who performs an effect, and for how long without a sign of life
//	waiting/<id>    a blob: who lost the race to the branch, and is to be let through
//	pending/<id>    a commit that could not be pushed before its maker had to go
//	outputs/<key>   a tree: files that a run left behind
type Remote struct {
	repo    *Repo
	git     *command
	name    string   // of the remote in git's configuration
	local   string   // the local branch, as a full reference; "" is HEAD, detached
	ref     string   // the branch on the remote, as a full reference
	config  []string // arguments of git that come before the verb
	env     []string
	patient time.Duration // that one exchange may take
	now     func() time.Time
	jitter  func() float64 // [0, 1)

	mu      sync.Mutex
	seen    map[string]sighting // the claims and tickets on the remote, by full reference
	before  map[string]Sighting // what a process before this one saw, by full reference
	held    map[string]string   // the claims that are ours: what their references hold, by full reference
	beat    int                 // numbers what is written to claims and tickets, so that each differs
	people  bool                // commits of people are on the way: their pre-push hook runs
	united  map[string]united   // what Adopt took from pending references, by full reference
	alien   map[Pending]bool    // what it did not take, because it is for a person
	waiting waiting
}

// sighting is what a reference of ours on the remote was when last seen, and since when.
type sighting struct {
	hash  string
	since time.Time // by our clock
	text  []byte
}

// Tip is the state of a remote.
type Tip struct {
	Head    string // the commit of the branch; "" while the remote has no such branch
	Claims  []Claim
	Tickets []Ticket
	Pending []Pending // but for those that Adopt found to be for a person
}

// Pending is a commit that someone left for others to take in.
type Pending struct{ ID, Commit string }

// Folders of references on the remote.
const (
	sharedRefs  = "refs/reconcile/"
	claimRefs   = sharedRefs + "claims/"
	waitingRefs = sharedRefs + "waiting/"
	pendingRefs = sharedRefs + "pending/"
	keptRefs    = sharedRefs + "outputs/"
)

// remoteConfig is for exchanges with a remote: objects synced but in one go, and no waiting
// for a server that fell silent.
var remoteConfig = []string{"-c", "core.fsync=loose-object,pack,pack-metadata", "-c", "core.fsyncMethod=batch",
	"-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=30", "-c", "fetch.writeCommitGraph=false",
	"-c", "submodule.recurse=false"}

// Remote returns the remote that git's configuration calls name; "" is the one that the branch has as its upstream, else
// origin. branch is the one to share, and must be the one that is checked out; "" is that one. On a detached HEAD the
// branch must be named. It talks to nobody.
func (r *Repo) Remote(ctx context.Context, name, branch string) (*Remote, error) {
	if r.command != nil && r.why != nil {
		return nil, fmt.Errorf("%s: %w; reconcile shares only repositories with SHA-1 names and plain files for references; "+
			"leave out --push (or git.push in reconcile.yaml) and push yourself, or share another repository: references become "+
			"files with git refs migrate --ref-format=files, names cannot be converted in place", r.common, r.why)
	}
	head, err := r.Head(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case branch == "" && head.Ref == "":
		return nil, fmt.Errorf("%s: HEAD is detached: there is no branch to push; check one out with git switch, or name "+
			"it as git.branch", r.worktree)
	case branch == "":
		branch = head.Branch()
	case head.Ref != "" && head.Branch() != branch:
		return nil, fmt.Errorf("%s: %s is checked out, and %s is to be pushed; switch to it, or change git.branch",
			r.worktree, head.Branch(), branch)
	}
	if !validRef("refs/heads/" + branch) {
		return nil, fmt.Errorf("%q: not a branch name", branch)
	}
	m, err := r.newRemote(head)
	if err != nil {
		return nil, err
	}
	return m, m.configure(ctx, name, branch)
}

// Source is Remote for fetching only: HEAD may be detached.
func (r *Repo) Source(ctx context.Context, name string) (*Remote, error) {
	head, err := r.Head(ctx)
	if err != nil {
		return nil, err
	}
	m, err := r.newRemote(head)
	if err != nil {
		return nil, err
	}
	return m, m.configure(ctx, name, head.Branch())
}

func (r *Repo) newRemote(head Head) (*Remote, error) {
	if r.command == nil {
		return nil, fmt.Errorf("%s: %w; pushing and fetching do", r.worktree, ErrUnsupported)
	}
	m := &Remote{repo: r, git: r.command.(*command), local: head.Ref, patient: 5 * time.Minute, now: time.Now, jitter: rand.Float64,
		beat: rand.IntN(1 << 30), // another process may have the same holder
		seen: map[string]sighting{}, held: map[string]string{}, united: map[string]united{}, alien: map[Pending]bool{},
		waiting: waiting{id: fmt.Sprintf("%016x", rand.Uint64()), pace: firstPace}}
	sweepFetches(m.now())
	return m, nil
}

// configure finds out which remote is meant, and how to reach it.
func (m *Remote) configure(ctx context.Context, name, branch string) error {
	cfg, err := loadConfig(m.repo.layout, m.git.git)
	if err != nil {
		return err
	}
	upstream, _ := cfg.get(ctx, "branch."+branch+".remote")
	if m.name = name; name == "" {
		m.name = "origin"
		if upstream != "" && upstream != "." {
			m.name = upstream
		}
	}
	url, ok := cfg.get(ctx, "remote."+m.name+".url")
	if !ok || url == "" || strings.HasPrefix(m.name, "-") {
		return fmt.Errorf("%s: there is no remote %q; add it with git remote add %s URL, or set git.remote in reconcile.yaml",
			m.repo.worktree, m.name, m.name)
	}
	if to, ok := cfg.get(ctx, "remote."+m.name+".pushurl"); ok && address(to) != address(url) {
		return fmt.Errorf("%s: %s is fetched from one repository and pushed to another, where nobody would see the claims; name "+
			"one that is both as git.remote in reconcile.yaml, or remove remote.%[2]s.pushurl", m.repo.worktree, m.name)
	}
	m.ref = "refs/heads/" + branch
	if merge, ok := cfg.get(ctx, "branch."+branch+".merge"); ok && upstream == m.name && strings.HasPrefix(merge, "refs/heads/") &&
		validRef(merge) {
		m.ref = merge
	}
	m.env = []string{"GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never"}
	if _, ok := cfg.get(ctx, "core.sshcommand"); !ok && os.Getenv("GIT_SSH_COMMAND") == "" && os.Getenv("GIT_SSH") == "" {
		m.env = append(m.env, "GIT_SSH_COMMAND=ssh -o BatchMode=yes")
	}
	m.config = slices.Concat(remoteConfig, m.tokenConfig(ctx))
	return nil
}

// address is what a URL says of the place of a repository: host and path, however it is reached, and as whom.
func address(url string) string {
	_, rest, scheme := strings.Cut(url, "://")
	if !scheme {
		rest = url
	}
	host, path, _ := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	host, port, _ := strings.Cut(host, ":") // which is of the way there
	if !scheme {                            // host:path
		path = port + "/" + path
	}
	return strings.ToLower(host) + "/" + strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// String is what messages call the remote: its name, never its address, which may hold a password.
func (m *Remote) String() string { return m.name + "/" + strings.TrimPrefix(m.ref, "refs/heads/") }

// tokenConfig lets git take GITHUB_TOKEN from the environment, when it talks to the GitHub that the token is for. The
// token itself is in no argument, and no credential helper of the user's gets to store it.
func (m *Remote) tokenConfig(ctx context.Context) []string {
	if os.Getenv("GITHUB_TOKEN") == "" {
		return nil
	}
	server := strings.TrimSuffix(envOr("GITHUB_SERVER_URL", "https://github.com"), "/")
	if !strings.HasPrefix(server, "https://") && !strings.HasPrefix(server, "http://127.0.0.1:") {
		return nil
	}
	const helper = `!f() { test "$1" = get && printf 'username=x-access-token\npassword=%s\n' "$GITHUB_TOKEN"; }; f`
	scope := "credential." + server
	for _, kind := range []string{"--push", "--all"} {
		out, err := m.git.run(ctx, call{}, "remote", "get-url", kind, m.name)
		for url := range strings.FieldsSeq(string(out)) {
			if err == nil && strings.HasPrefix(url, server+"/") {
				return []string{"-c", scope + ".helper=", "-c", scope + ".helper=" + helper}
			}
		}
	}
	return nil
}

// answer is what a git command said.
type answer struct{ stdout, stderr string }

// talk runs a git command that talks to the remote, with the user's hooks or without. It is asked to end when ctx does, so
// that it removes its lock files.
func (m *Remote) talk(ctx context.Context, hooks bool, env []string, args ...string) (answer, error) {
	how := workWithHooks
	if !hooks { // the user's own takes what it takes
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.patient)
		defer cancel()
		how = work
	}
	cmd := newGit(ctx, how, m.git.git, m.repo.worktree, os.Environ(), slices.Concat(m.config, args)...)
	cmd.Env = slices.Concat(cmd.Env, m.env, env)
	cmd.WaitDelay = 2 * time.Second
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err == nil {
			return nil
		}
		return cmd.Process.Kill()
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	said := answer{stdout.String(), stderr.String()}
	if ctx.Err() != nil && err != nil {
		err = ctx.Err()
	}
	return said, err
}

// unreachable is the error of an exchange that failed as a whole.
func (m *Remote) unreachable(ctx context.Context, said answer, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	cause := complaint(said.stderr)
	if cause == "" {
		cause = err.Error()
	}
	for _, sign := range []string{"Authentication failed", "could not read Username", "could not read Password", "Permission denied",
		"Permission to ", "error: 401", "error: 403", "Host key verification failed"} {
		if strings.Contains(said.stderr, sign) {
			return fmt.Errorf("%s: %w: %s; check git's credential helper, the ssh agent or GITHUB_TOKEN", m, ErrDenied, cause)
		}
	}
	return fmt.Errorf("%s: %w: %s", m, ErrUnreachable, cause)
}

// complaint picks the line that says what went wrong, without a password that may stand in an address.
func complaint(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for _, sort := range []string{"fatal: ", "error: ", ""} {
		if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, sort) }); i >= 0 {
			return clip(withoutPasswords(strings.TrimPrefix(lines[i], sort)), 300)
		}
	}
	return ""
}

// withoutPasswords removes what stands between :// and @.
func withoutPasswords(s string) string {
	var out strings.Builder
	for {
		before, after, ok := strings.Cut(s, "://")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		out.WriteString("://")
		end := strings.IndexAny(after, "/ '\"\t\n")
		if end < 0 {
			end = len(after)
		}
		if at := strings.LastIndexByte(after[:end], '@'); at >= 0 {
			after = after[at+1:]
		}
		s = after
	}
}

// has reports whether commit is head, or an ancestor of it.
func (m *Remote) has(ctx context.Context, head, commit string) (bool, error) {
	if head == "" || head == commit {
		return head == commit, nil
	}
	_, err := m.git.run(ctx, call{}, "merge-base", "--is-ancestor", commit, head)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}
