package main

import (
	"bytes"
	"embed"
	"path"
	"regexp"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/state/worktree"
)

// actions are the workflows and the action that init --github makes. Those of this project are the same.
//
//go:embed all:actions
var actions embed.FS

const actionsDir = "actions"

// releaseMark stands in the action for the release that is installed.
const releaseMark = `"VERSION"`

// releaseForm is that of a version which always means the same: no branch, no "latest", no build with local changes.
var releaseForm = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// fileForm is a file of a release with its sum, or a path in the repository: what the action takes besides a version.
var fileForm = regexp.MustCompile(`^(https://[!-~]+#sha256=[0-9a-f]{64}|\./[0-9A-Za-z._/-]+)$`)

// yamlText is a release, file or path as a YAML value: a # after a blank would begin a comment, and none has a quote.
func yamlText(s string) string {
	if releaseForm.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// initGitHub makes the files for GitHub Actions in dir, the top of a repository.
func (a *app) initGitHub(dir string, o initOptions) error {
	if below := worktree.Below(dir); below != "" {
		return badUsage("%s is not the top of its repository, where GitHub looks for workflows: run this there, and write "+
			"-C %s after each reconcile in them", dir, below)
	}
	release := o.release
	if release == "" && releaseForm.MatchString(process.ReadBuild().Version) {
		release = process.ReadBuild().Version
	}
	if o.release != "" && !releaseForm.MatchString(o.release) && !fileForm.MatchString(o.release) {
		return badUsage("--release %s: write a release as v1.2.3, which means the same today and tomorrow, a file of one as "+
			"https://…#sha256=SUM, or a path in the repository as ./tools/reconcile", o.release)
	}
	files, err := filesOf(actions, actionsDir)
	if err != nil {
		return err
	}
	for i := range files {
		if release != "" {
			files[i].data = bytes.ReplaceAll(files[i].data, []byte(releaseMark), []byte(yamlText(release)))
		}
	}
	if err := a.writeNew(dir, files, o.missing); err != nil {
		return err
	}
	if release == "" {
		a.note("this build has no release number: write the release that workflows are to install into %s, in place of %s",
			path.Join(dir, ".github/actions/reconcile/action.yml"), releaseMark)
	}
	a.note("next: read docs/actions.md of reconcile, commit .github, and push")
	return nil
}
