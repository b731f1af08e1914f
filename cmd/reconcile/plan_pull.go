package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/plan"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
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
	p, problems, err := plan.Between(ctx, a.config(), repo, base, head)
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
		err = plan.Save(a.within(o.out), o.out, p)
	case o.pull != 0:
		heads := []string{head}
		if second, err := repo.Resolve(ctx, head+"^2"); err == nil {
			heads = append(heads, second) // a merge that GitHub made to try it has the pull request's head as its second parent
		}
		err = a.sayPull(ctx, p, heads)
	}
	return errors.Join(err, verdict)
}

// planFrom says what was planned elsewhere.
func (a *app) planFrom(ctx context.Context, o planOptions) error {
	p, err := plan.Load(a.within(o.from), o.from)
	if err != nil {
		return err
	}
	if err := a.printPull(p, nil); err != nil {
		return err
	}
	return a.sayPull(ctx, p, []string{o.head})
}

// sayPull says what was planned on the pull request, and tells the user what was said.
func (a *app) sayPull(ctx context.Context, p *mirror.Pull, heads []string) error {
	said, err := plan.Say(ctx, a.config(), p, heads)
	switch {
	case err != nil:
		return err
	case said.At != "":
		a.note("pull request #%d is at %.10s, and this plan is of %.10s: nothing was said there; plan again", p.Number, said.At,
			heads[len(heads)-1])
		return nil
	}
	a.note("pull request #%d: %s", p.Number, map[github.Stuck]string{
		github.StuckNothing: "it changes no specs, nothing was said", github.StuckSame: "the comment says so already",
		github.StuckEdited: "the comment was edited", github.StuckCreated: "a comment was made"}[said.Did])
	return nil
}

// printPull prints a plan between two commits.
func (a *app) printPull(p *mirror.Pull, problems []schemas.Problem) error {
	switch a.global.output {
	case formatGitHub:
		return render.GitHub(a.stdout, a.repositoryPath(), problems)
	case formatMarkdown:
		_, err := fmt.Fprintln(a.stdout, p.Body())
		return err
	case formatTable:
		return a.pullTable(p, problems)
	}
	return a.print(p)
}

func (a *app) pullTable(p *mirror.Pull, problems []schemas.Problem) error {
	err := render.Problems(a.stdout, a.palette(), problems)
	if len(problems) > 0 {
		fmt.Fprintln(a.stdout)
	}
	table := render.NewTable(a.palette(), "OBJECT", "NODE", "WOULD", "WHY")
	for _, s := range p.Steps {
		table.Row(s.Ref, render.Word(s.Node).Text, s.Verb, s.Why)
	}
	if table.Len() == 0 && !a.global.quiet {
		fmt.Fprintln(a.stdout, "nothing would change")
	}
	err = errors.Join(err, table.Write(a.stdout))
	if cost := p.Cost(); cost != "" && !a.global.quiet {
		fmt.Fprintf(a.stdout, "\nat most %s\n", cost)
	}
	return err
}
