package main

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

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state/regular"
)

// planOptions are the flags of plan.
type planOptions struct {
	base, head string // revisions
	pull       int    // number of a pull request
	out, from  string // files
	github     bool
}

func (o *planOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.base, "base", "", "plan what the specs of --head would do over the settings and the state of `COMMIT`")
	f.StringVar(&o.head, "head", "", "the `COMMIT` whose specs count (default HEAD)")
	f.IntVar(&o.pull, "pull-request", 0, "say so in a comment on the pull request `NUMBER`")
	f.StringVar(&o.out, "out", "", "write it to `FILE` instead, for --from")
	f.StringVar(&o.from, "from", "", "say what `FILE` holds, if its pull request is at --head")
	f.BoolVar(&o.github, "github", false, "print the calls that would bring the issues on GitHub up to date, without making them")
}

// check refuses flags that do not go together.
func (o *planOptions) check(cmd *cobra.Command, format string) error {
	given := cmd.Flags().Changed
	switch {
	case o.github && (o.base != "" || o.from != "" || o.head != "" || o.pull != 0 || o.out != ""):
		return badUsage("--github is about the issues of the tree: leave out the other flags")
	case o.github && (format == formatMarkdown || format == formatGitHub):
		return badUsage("-o %s does not go with --github: use table, json or yaml", format)
	case given("pull-request") && o.pull < 1:
		return badUsage("--pull-request %d: it is the number of a pull request", o.pull)
	case o.from != "" && (given("base") || given("out") || given("pull-request")):
		return badUsage("--from has everything but --head: leave out --base, --out and --pull-request")
	case o.from != "" && o.head == "":
		return badUsage("--from needs --head: the commit that the pull request is at, as whoever is to be trusted says; in a " +
			"workflow, github.event.workflow_run.head_sha")
	case o.from != "":
		return nil
	case o.base == "" && (o.head != "" || o.pull != 0 || o.out != ""):
		return badUsage("--head, --pull-request and --out need --base: the commit to merge into, for example --base origin/main")
	case o.out != "" && o.pull == 0:
		return badUsage("--out needs --pull-request: what is written says whose it is")
	case o.base == "" && format == formatMarkdown:
		return badUsage("-o %s needs --base: it is what is said on a pull request", format)
	}
	return nil
}

// planPull plans between two commits, and says so on a pull request where that is asked for.
func (a *app) planPull(ctx context.Context, o planOptions) error {
	repo, base, err := a.config().Revision(ctx, o.base)
	if err != nil {
		return err
	}
	head, err := repo.Resolve(ctx, cmp.Or(o.head, "HEAD"))
	if err != nil {
		return err
	}
	p, problems, err := a.planBetween(ctx, repo, base, head)
	if err != nil {
		return err
	}
	p.Number = o.pull
	if err := a.printPull(p, problems); err != nil {
		return err
	}
	var verdict error
	if p.Errors > 0 {
		verdict = exitWith(exitInvalid)
	}
	switch {
	case o.out != "":
		err = a.savePull(o.out, p)
	case o.pull != 0:
		heads := []string{head}
		if second, err := repo.Resolve(ctx, head+"^2"); err == nil {
			heads = append(heads, second) // a merge that GitHub made to try it has the pull request's head as its second parent
		}
		err = a.sayPull(ctx, p, heads)
	}
	return errors.Join(err, verdict)
}

// savePull writes a plan for --from.
func (a *app) savePull(name string, p *mirror.Pull) error {
	var b bytes.Buffer
	if err := document.JSON(&b, p); err != nil {
		return err
	}
	if err := os.WriteFile(a.within(name), b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the plan to %s: %w", name, regular.Cause(err))
	}
	return nil
}

// pullLimit is the most that a saved plan may have, in bytes.
const pullLimit = 16 << 20

// loadPull reads a saved plan, which may be anybody's.
func (a *app) loadPull(name string) (*mirror.Pull, error) {
	full := a.within(name)
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

// planFrom says what was planned elsewhere.
func (a *app) planFrom(ctx context.Context, o planOptions) error {
	p, err := a.loadPull(o.from)
	if err != nil {
		return err
	}
	if err := a.printPull(p, nil); err != nil {
		return err
	}
	return a.sayPull(ctx, p, []string{o.head})
}

// pullKeys sign the comment on a pull request. They are no secret: whose the comment is, GitHub says.
var pullKeys = mirror.Keys{"reconcile plan --pull-request"}

// sayPull says what was planned in the one comment of ours on the pull request, if that is at one of heads.
func (a *app) sayPull(ctx context.Context, p *mirror.Pull, heads []string) error {
	client, err := a.pullClient()
	if err != nil {
		return err
	}
	pull, err := client.PullRequest(ctx, p.Number)
	if err != nil {
		return fmt.Errorf("pull request #%d: %w", p.Number, err)
	}
	if !slices.Contains(heads, pull.Head.OID) {
		a.note("pull request #%d is at %.10s, and this plan is of %.10s: nothing was said there; plan again", p.Number,
			pull.Head.OID, heads[len(heads)-1])
		return nil
	}
	key := mirror.PullKey(p.Number)
	mine := func(body string) bool { return mirror.Marked(body) == key }
	did, err := client.Stick(ctx, p.Number, mine, pullKeys.Seal(key, p.Body()), p.Speaks())
	if err != nil {
		return fmt.Errorf("comment on pull request #%d: %w", p.Number, err)
	}
	a.note("pull request #%d: %s", p.Number, map[github.Stuck]string{
		github.StuckNothing: "it changes no specs, nothing was said", github.StuckSame: "the comment says so already",
		github.StuckEdited: "the comment was edited", github.StuckCreated: "a comment was made"}[did])
	return nil
}

// pullClient speaks with the repository of the workflow that this is part of, or else with the one of the settings.
func (a *app) pullClient() (*github.Client, error) {
	s, err := a.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	settings := s.Settings().GitHub
	repo := cmp.Or(a.getenv("GITHUB_REPOSITORY"), settings.Repo)
	switch {
	case a.egress().GitHubToken() == "":
		return nil, errors.New("GITHUB_TOKEN is not set: it takes a token that may write on pull requests; --out FILE keeps the " +
			"plan for where there is one")
	case repo == "":
		return nil, fmt.Errorf("which repository the pull request is of is not known: set github.repo in %s", schemas.SettingsPath)
	}
	return a.egress().GitHub(a.global.dir, &settings, repo, nil)
}
