package gitrepo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Errors of a remote, which callers distinguish with errors.Is.
var (
	// ErrRefused reports that another push came first: fetch, adopt, decide again.
	ErrRefused = errors.New("the remote branch moved")
	// ErrProtected reports that the server's rules forbid the push (a protected branch, a hook): retrying does not
	// help.
	ErrProtected = errors.New("the server refuses the push")
	// ErrUnreachable reports that the remote did not answer completely. The push may have succeeded; the next Fetch
	// and Adopt find out.
	ErrUnreachable = errors.New("the remote cannot be reached")
	// ErrUnwritable is an ErrUnreachable of a remote that can be read but does not write a reference, although no
	// other process changed it: a lock file left by a crash, a conflicting name, a full disk.
	ErrUnwritable error = unwritable{}
	// ErrDenied is an ErrUnreachable caused by the credentials.
	ErrDenied error = denied{}
)

// denied is the type of ErrDenied; its text does not claim that the remote did not answer.
type denied struct{}

func (denied) Error() string { return "the remote denies access" }

func (denied) Unwrap() error { return ErrUnreachable }

// unwritable is the type of ErrUnwritable.
type unwritable struct{}

func (unwritable) Error() string { return "the remote cannot write the reference" }

func (unwritable) Unwrap() error { return ErrUnreachable }

// Remote is the branch of another repository that this one shares with other reconcilers. The transport is the git
// command, with its credential helpers, ssh agent and proxies. It never pushes with force, and never prompts on the
// terminal. Its methods are safe for concurrent use.
//
// Besides the branch, the remote has references that only reconcilers use, all below refs/reconcile:
//
//	claims/<key>    a blob: the holder of an effect, and how long the claim lasts without renewal
//	waiting/<id>    a blob: a reconciler that lost the race to the branch and waits for its turn
//	pending/<id>    a commit that its author could not push before it ended
//	outputs/<key>   a tree: files that a run produced
type Remote struct {
	repo    *Repo
	git     *command
	name    string   // of the remote in git's configuration
	local   string   // the local branch, as a full reference; "" is HEAD, detached
	ref     string   // the branch on the remote, as a full reference
	config  []string // arguments of git that come before the verb
	env     []string
	timeout time.Duration // time limit of one exchange
	now     func() time.Time
	jitter  func() float64 // [0, 1)

	mu      sync.Mutex
	seen    map[string]sighting      // the claims and tickets on the remote, by full reference
	earlier map[string]Sighting      // seen by an earlier process, by full reference
	held    map[string]string        // claims that this process holds: the hashes of their references, by full reference
	beat    int                      // sequence number of written claims and tickets, so that each differs
	people  bool                     // commits of people are pushed: their pre-push hook runs
	merged  map[string]mergedPending // pending references that Adopt merged, by full reference
	manual  map[Pending]bool         // pending references that Adopt left to a person
	waiting waiting
	// reserves counts the changes that others made to reservesRef.
	reserves int
}

// sighting is the last seen state of a shared reference on the remote, and the time since when it is unchanged.
type sighting struct {
	hash  string
	since time.Time // by the local clock
	text  []byte
}

// Tip is the state of a remote.
type Tip struct {
	Head    string // the commit of the branch; "" if the remote has no such branch
	Claims  []Claim
	Tickets []Ticket
	Pending []Pending // except those that Adopt left to a person
	// Reserved has what claims reserve, by key. Reserves is another number after every reservation of another process.
	Reserved map[string]json.RawMessage
	Reserves int
}

// Pending is a commit that a reconciler left for others to merge.
type Pending struct{ ID, Commit string }

// Folders of references on the remote.
const (
	sharedRefs  = "refs/reconcile/"
	claimRefs   = sharedRefs + "claims/"
	waitingRefs = sharedRefs + "waiting/"
	pendingRefs = sharedRefs + "pending/"
	keptRefs    = sharedRefs + "outputs/"
)

// remoteConfig configures exchanges with a remote: objects are synced in one batch, and a silent server times out.
var remoteConfig = []string{"-c", "core.fsync=loose-object,pack,pack-metadata", "-c", "core.fsyncMethod=batch",
	"-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=30", "-c", "fetch.writeCommitGraph=false",
	"-c", "submodule.recurse=false"}

// Remote returns the remote that git's configuration calls name; "" is the upstream of the branch, else origin.
// branch is the branch to share, and must be checked out; "" is the checked-out branch. On a detached HEAD the
// branch must be named. It does not contact the remote.
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

// Source configures a named remote of the repository as a source, for fetching only: HEAD may be detached.
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
		return nil, fmt.Errorf("%s: %w; pushing and fetching do", r.worktree, errUnsupported)
	}
	m := &Remote{repo: r, git: r.command.(*command), local: head.Ref, timeout: 5 * time.Minute, now: time.Now, jitter: rand.Float64,
		beat: rand.IntN(1 << 30), // another process may have the same holder
		seen: map[string]sighting{}, held: map[string]string{}, merged: map[string]mergedPending{}, manual: map[Pending]bool{},
		waiting: waiting{id: fmt.Sprintf("%016x", rand.Uint64()), pace: firstPace}}
	sweepFetches(m.now())
	return m, nil
}

// configure determines the remote and its configuration.
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
	if to, ok := cfg.get(ctx, "remote."+m.name+".pushurl"); ok && remoteAddress(to) != remoteAddress(url) {
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

// remoteAddress returns host and path of a repository's URL, without scheme, user and port.
func remoteAddress(url string) string {
	_, rest, scheme := strings.Cut(url, "://")
	if !scheme {
		rest = url
	}
	host, path, _ := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	host, port, _ := strings.Cut(host, ":") // the port is not part of the identity
	if !scheme {                            // host:path
		path = port + "/" + path
	}
	return strings.ToLower(host) + "/" + strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// String returns the remote's name for messages, never its address, which may contain a password.
func (m *Remote) String() string { return m.name + "/" + strings.TrimPrefix(m.ref, "refs/heads/") }

// tokenConfig lets git use GITHUB_TOKEN from the environment for the GitHub host of the token. The token is in no
// argument, and no credential helper of the user stores it.
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

// answer is the output of a git command.
type answer struct{ stdout, stderr string }

// talk runs a git command that contacts the remote, with or without the user's hooks. When ctx ends, the command is
// asked to terminate, so that it removes its lock files.
func (m *Remote) talk(ctx context.Context, hooks bool, env []string, args ...string) (answer, error) {
	how := withHooks
	if !hooks { // the user's hook has no time limit
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.timeout)
		defer cancel()
		how = withPrograms
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

// unreachable is the error of an exchange that failed as a whole. That ctx was canceled is no fault of the remote, that its
// time is over is one.
func (m *Remote) unreachable(ctx context.Context, said answer, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	cause := complaint(said.stderr)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		cause = "it did not answer in time"
	case cause == "":
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

// remoteBusy marks an error that may disappear after a wait.
func remoteBusy(err error) error {
	var g *gitError
	if errors.As(err, &g) && strings.Contains(g.stderr, ".lock': File exists") {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// noFallback is an error that the git command would not avoid.
type noFallback struct{ error }

func (e *noFallback) Unwrap() error { return e.error }

// explainMissing describes the objects that an incomplete repository lacks.
func (m *Remote) explainMissing(err error) error {
	var missing *needsGit
	if errors.As(err, &missing) {
		return &Conflict{What: fmt.Sprintf("%v, so that reconcile cannot put this branch on top of %s; run git pull, then run again", missing, m)}
	}
	return err
}

// checkHead returns an error if HEAD is on another branch than when the remote was opened.
func (m *Remote) checkHead(head Head) error {
	if head.Ref == m.local {
		return nil
	}
	return &Conflict{What: fmt.Sprintf("%s is no longer what is checked out; switch back, or start anew",
		strings.TrimPrefix(m.local, "refs/heads/"))}
}

// Ready returns the hash of the head commit that is ready for a push to the remote, or "". It is an
// error if another branch than the shared one is checked out, or during a rebase or a similar operation: HEAD is then
// not meant for the remote.
func (m *Remote) Ready(ctx context.Context) (string, error) {
	if err := idleIndex(m.repo.layout); err != nil {
		return "", err
	}
	head, err := m.repo.Head(ctx)
	if err != nil {
		return "", err
	}
	return head.Hash, m.checkHead(head)
}

// Close closes the remote: it removes our waiting ticket from it, if any. Claims stay: see [Remote.Drop].
func (m *Remote) Close(ctx context.Context) error {
	m.mu.Lock()
	ticket := refUpdate{ref: waitingRefs + m.waiting.id, lease: true, old: m.waiting.hash}
	m.mu.Unlock()
	if ticket.old == "" {
		return nil
	}
	if _, err := m.send(ctx, []refUpdate{ticket}, false); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting.hash = ""
	return nil
}
