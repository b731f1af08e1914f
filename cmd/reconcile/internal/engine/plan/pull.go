package plan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// pullLimit is the maximum size of a saved plan, in bytes.
const pullLimit = 16 << 20

// Load reads a plan that [Save] wrote from the file full, which messages call name. The file is not trusted.
func Load(full, name string) (*mirror.Pull, error) {
	root, err := regular.Root(filepath.Dir(full))
	if err != nil {
		return nil, fmt.Errorf("read the plan %s: %w", name, regular.Cause(err))
	}
	defer root.Close()
	base := filepath.Base(full)
	info, err := root.Lstat(base)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the plan %s: %w", name, regular.Cause(err))
	case !info.Mode().IsRegular() || info.Size() > pullLimit:
		return nil, fmt.Errorf("read the plan %s: it is no file of at most %d MiB", name, pullLimit>>20)
	}
	data, err := regular.Read(root, base)
	if err != nil {
		return nil, fmt.Errorf("read the plan %s: %w", name, regular.Cause(err))
	}
	p := new(mirror.Pull)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err = dec.Decode(p); err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = errors.New("something follows it")
		} else {
			err = p.Check()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not a plan that \"reconcile plan --out\" wrote: %w", name, err)
	}
	return p, nil
}

// pullKeys sign the comment on a pull request. They are not secret: GitHub records the author of a comment.
var pullKeys = mirror.Keys{"reconcile plan --pull-request"}

// CommentResult is the outcome of [Comment].
type CommentResult struct {
	// At is the commit of the pull request if it is not one of the planned ones: then no comment was written.
	At string
	// Did is the change of the comment.
	Did github.Stuck
}

// Comment writes the plan to our single comment on the pull request, if its commit is one of heads.
func Comment(ctx context.Context, c tree.Config, p *mirror.Pull, heads []string) (CommentResult, error) {
	client, err := pullClient(c)
	if err != nil {
		return CommentResult{}, err
	}
	at, err := client.PullRequestHead(ctx, p.Number)
	if err != nil {
		return CommentResult{}, fmt.Errorf("pull request #%d: %w", p.Number, err)
	}
	if !slices.Contains(heads, at) {
		return CommentResult{At: at}, nil
	}
	key := mirror.PullKey(p.Number)
	mine := func(body string) bool { return mirror.Marked(body) == key }
	did, err := client.Stick(ctx, p.Number, mine, pullKeys.Seal(key, p.Body()), p.Speaks())
	if err != nil {
		return CommentResult{}, fmt.Errorf("comment on pull request #%d: %w", p.Number, err)
	}
	return CommentResult{Did: did}, nil
}

// pullClient returns a client for the repository of the current workflow, or else of the settings.
func pullClient(c tree.Config) (*github.Client, error) {
	s, err := c.Open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	settings, policy := s.Settings().GitHub, egress.Policy{Getenv: c.Getenv}
	repo := cmp.Or(c.Getenv("GITHUB_REPOSITORY"), settings.Repo)
	switch {
	case policy.GitHubToken() == "":
		return nil, errors.New("GITHUB_TOKEN is not set: it takes a token that may write on pull requests; --out FILE keeps the " +
			"plan for where there is one")
	case repo == "":
		return nil, fmt.Errorf("which repository the pull request is of is not known: set github.repo in %s", schemas.SettingsPath)
	}
	return policy.GitHub(c.Dir, &settings, repo, nil)
}

// Save writes a plan to the file full, which messages call name.
func Save(full, name string, p *mirror.Pull) error {
	var b bytes.Buffer
	if err := document.JSON(&b, p); err != nil {
		return err
	}
	if err := os.WriteFile(full, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the plan to %s: %w", name, regular.Cause(err))
	}
	return nil
}

// pullSteps are the steps that head adds, and the objects that it adds and removes. Status changes of the latter are
// omitted.
func pullSteps(before, after *state.Tree, added []settle.Step) []mirror.PullStep {
	steps := []mirror.PullStep{}
	moved := map[schemas.Ref]bool{}
	move := func(here, there *state.Tree, verb, why string) {
		for e := range (*settle.Selection)(nil).Entries(here) {
			if other := there.Entry(e.Ref); !e.Gone() && (other == nil || other.Gone()) {
				moved[e.Ref] = true
				steps = append(steps, mirror.PullStep{Ref: e.Ref.String(), Verb: verb, Why: why})
			}
		}
	}
	move(after, before, mirror.PullCreate, "its spec is new")
	move(before, after, mirror.PullRemove, "its spec is gone")
	verbs := map[string]string{settle.StepRun: mirror.PullRun, settle.StepSkip: mirror.PullSkip,
		settle.StepCancel: mirror.PullStop, settle.StepWrite: mirror.PullChange, settle.StepRemove: mirror.PullRemove}
	for _, s := range added {
		if s.Node == "" && moved[s.Ref] {
			continue
		}
		steps = append(steps, mirror.PullStep{Ref: s.Ref.String(), Node: s.Node, Verb: verbs[s.Verb], Why: s.Why})
	}
	return steps
}
