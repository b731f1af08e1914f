package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// committer records what reconcile wrote in git: everything below the state folder that it owns, and the specs of its
// commands, as far as they differ from the branch, so that a run also commits what a killed one had written.
type committer struct {
	*wiring
	git *gitrepo.Repo
}

// openRepo opens the repository, if something is to be committed: a run that could not commit what it did refuses before
// it does anything.
func (w *wiring) openRepo() error {
	if !w.options.commit && !w.settings.Git.Commit && !w.pushes() {
		return nil
	}
	repo, err := gitrepo.OpenToCommit(w.global.dir)
	switch {
	case errors.Is(err, gitrepo.ErrNotARepo) && w.options.push:
		return badUsage("--push: %v, or leave out --push; nothing was run", err)
	case errors.Is(err, gitrepo.ErrNotARepo) && w.options.commit:
		return badUsage("--commit: %v, or leave out --commit; nothing was run", err)
	case errors.Is(err, gitrepo.ErrNotARepo):
		setting := "git.commit"
		if !w.settings.Git.Commit {
			setting = "git.push"
		}
		return fmt.Errorf("%s says %s: true: %w, or set %[2]s to false; nothing was run", schemas.SettingsPath, setting, err)
	case err != nil:
		return fmt.Errorf("open the repository to commit to: %w", err)
	}
	if err := repo.Storable(context.Background(), w.settings.Folders.State+"/any.json"); err != nil {
		return fmt.Errorf("commit: %w; nothing was run", err)
	}
	w.repo = &committer{wiring: w, git: repo}
	return nil
}

// commit records what belongs to the tree. A memory that is not whole would make a commit in which an observation stands
// and what follows from it does not: then neither is part of it.
func (c *committer) commit(ctx context.Context, t *state.Tree, scope loop.Scope) (loop.Committed, error) {
	settings := t.Settings()
	branch := settings.Git.Branch
	if c.share != nil {
		branch = "" // it is the one that is checked out
	}
	commands := commandsIn(c.store, t)
	ours := slices.Concat(owned(settings), questionsOf(t), slices.Collect(maps.Keys(commands.taken)))
	if scope.Whole {
		ours = slices.Concat(ours, []string{c.store.MemoryDir()}, observationsOf(t))
	}
	paths, err := c.git.Dirty(ctx, branch, ours)
	left := unsettled(t, scope.Open)
	paths = slices.DeleteFunc(paths, func(p string) bool {
		return left(p) || handWritten(settings, p) || commands.taken[p] != nil && !commands.wrote(p) && !c.owes(ctx, commands.taken[p])
	})
	if err == nil {
		var moved []string
		moved, err = archived(ctx, c.git, c.store, t)
		paths = append(paths, moved...)
	}
	private := false
	if c.share != nil && err == nil {
		paths, private, err = c.share.public(ctx, t, paths)
	}
	if err != nil || len(paths) == 0 {
		return loop.Committed{Behind: private}, errors.Join(err, c.git.Settle(ctx))
	}
	head, err := c.git.Head(ctx)
	if err != nil {
		return loop.Committed{}, err
	}
	res, err := c.git.Commit(ctx, gitrepo.Commit{
		Paths: paths, Author: settings.Git.Author, Sign: settings.Git.Sign, When: c.now(), Branch: branch,
		Message: gitrepo.Message(changesOf(paths, settings.Folders.State, t), trailers(head)...),
	})
	if errors.Is(err, gitrepo.ErrNothing) {
		return loop.Committed{Behind: private}, nil
	}
	if res.Warning != "" {
		c.warn(res.Warning)
	}
	if c.share != nil && err == nil {
		c.share.stand(res.Hash)
	}
	return loop.Committed{Hash: res.Hash, Behind: private || res.Warning != ""}, err
}

// unsettled tells the files that say of what is being performed how it stands: the statuses of the objects, of those that
// they name and that name them, and of all agents.
func unsettled(t *state.Tree, open []schemas.Ref) func(path string) bool {
	dir := t.Settings().Folders.State
	agents := dir + "/" + schemas.AgentKind.Plural + "/"
	left := map[string]bool{dir + "/agent-status.json": true}
	leave := func(ref schemas.Ref) {
		if e := t.Entry(ref); e != nil {
			left[e.StatusPath] = true
		}
	}
	for _, ref := range open {
		leave(ref)
		for _, from := range t.Referrers(ref) {
			leave(from)
		}
		if e := t.Entry(ref); e != nil && e.Object != nil {
			for _, r := range e.Object.Refs {
				leave(r.To)
			}
		}
	}
	return func(p string) bool { return len(open) > 0 && (left[p] || strings.HasPrefix(p, agents)) }
}

// owned are the folders and files that reconcile alone writes, but for the memory.
func owned(s *schemas.SettingsSpec) []string {
	dir := s.Folders.State
	out := []string{dir + "/runs", dir + "/clarifications", dir + "/github", dir + "/agent-status.json", state.FactsDir(dir), state.ArchiveDir(dir)}
	for _, k := range kinds() {
		if k.NewStatus != nil {
			out = append(out, dir+"/"+k.Plural)
		}
	}
	return out
}

// handWritten reports whether a path is that of a file of facts that somebody wrote: it is theirs to commit.
func handWritten(s *schemas.SettingsSpec, p string) bool {
	return strings.HasPrefix(p, state.FactsDir(s.Folders.State)+"/") && !index.IsFactFile(p)
}

// questionsOf are the specs of questions that came in by another way than as a file.
func questionsOf(t *state.Tree) []string {
	var out []string
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		if spec := schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object); spec != nil && spec.Run+spec.Imported != "" {
			out = append(out, e.Object.Path)
		}
	}
	return append(out, commentsOf(t)...)
}

// commentsOf are the specs that comments on GitHub became.
func commentsOf(t *state.Tree) []string {
	var out []string
	for _, kind := range []string{schemas.ReplyKind.Name, schemas.ActionKind.Name} {
		for _, e := range t.Entries(kind) {
			if e.Object != nil && slash.IsHeard(e.Object) {
				out = append(out, e.Object.Path)
			}
		}
	}
	return out
}

// commands are the specs that commands of reconcile wrote. Without its spec, another clone would take back what was made
// of one, and who has the spec would do it once more.
type commands struct {
	store *state.Store
	taken map[string]*schemas.Object // by path, what took effect as it stands, whoever wrote it
}

// commandsIn finds the actions that were applied, the questions that have a number, and the replies that were judged.
// Those that came in by another way are of questionsOf.
func commandsIn(store *state.Store, t *state.Tree) commands {
	c := commands{store, map[string]*schemas.Object{}}
	for _, e := range t.Entries(schemas.ActionKind.Name) {
		st, _ := e.Status().(*schemas.ActionStatus)
		if e.Object != nil && st != nil && st.Phase == schemas.ActionApplied && st.ObservedDigest == e.Object.Digest &&
			!slash.IsHeard(e.Object) {
			c.taken[e.Object.Path] = e.Object
		}
	}
	matters := map[string]*schemas.ClarificationRequestStatus{} // by name, and by number
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		st, _ := e.Status().(*schemas.ClarificationRequestStatus)
		spec := schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object)
		if st == nil || spec == nil || st.ID == "" {
			continue
		}
		matters[e.Name], matters[st.ID] = st, st
		if st.ObservedDigest == e.Object.Digest && spec.Run+spec.Imported == "" {
			c.taken[e.Object.Path] = e.Object
		}
	}
	for _, e := range t.Entries(schemas.ReplyKind.Name) {
		spec := schemas.SpecAs[*schemas.ReplySpec](e.Object)
		if spec == nil || matters[spec.Clarification] == nil || slash.IsHeard(e.Object) {
			continue
		}
		reply := clarify.Reply{Name: e.Name, Digest: e.Object.Digest, Spec: spec}
		if is, _ := clarify.StandingOf(matters[spec.Clarification], reply); is == clarify.Accepted || is == clarify.Refused {
			c.taken[e.Object.Path] = e.Object
		}
	}
	return c
}

// wrote reports whether a file is one that a command wrote, and nobody edited since.
func (c commands) wrote(p string) bool {
	o := c.taken[p]
	if o == nil {
		return false
	}
	is, err := regular.Read(c.store.Root(), p)
	if err != nil {
		return false
	}
	was, err := document.Spec(o.Ref, o.Spec())
	return err == nil && bytes.Equal(is, was)
}

// owes reports whether a file is an action that took effect as it stands, whoever wrote it, and that the branch does not
// know: it was asked for once, and who got to know of it without its effect would do it once more.
func (c *committer) owes(ctx context.Context, o *schemas.Object) bool {
	if o == nil || o.Kind != schemas.ActionKind.Name {
		return false
	}
	same := func(data []byte) bool {
		is := schemas.NewDecoder(kinds(), 0).Decode(o.Path, data).Object
		return is != nil && is.Digest == o.Digest
	}
	data, err := regular.Read(c.store.Root(), o.Path)
	if err != nil || !same(data) {
		return false
	}
	head, err := c.git.Head(ctx)
	if err != nil || head.Hash == "" {
		return err == nil
	}
	known := false
	err = c.git.Files(ctx, head.Hash, []string{o.Path}, func(f gitrepo.Stored) error {
		known = same(f.Data)
		return nil
	})
	return err == nil && !known
}

// observationsOf are the observations as the memory took them in. Without its spec, what the memory says of an observation
// would be gone with the next run in another clone.
func observationsOf(t *state.Tree) []string {
	var out []string
	for _, e := range t.Entries(schemas.ObservationKind.Name) {
		if e.Object != nil && (e.Accepted == "" || e.Accepted == e.Object.Digest) {
			out = append(out, e.Object.Path)
		}
	}
	return out
}

// trailers name the input: the commit that the tree stood on.
func trailers(h gitrepo.Head) []gitrepo.Trailer {
	if h.Hash == "" {
		return nil
	}
	return []gitrepo.Trailer{{Key: "Reconcile-Input", Value: h.Hash}}
}

// changesOf tells which objects the paths belong to, each once, in the order of the paths. Records speak for their
// owner. The facts follow.
func changesOf(paths []string, dir string, t *state.Tree) []gitrepo.Change {
	var out []gitrepo.Change
	seen := map[string]bool{}
	for _, p := range paths {
		ref, ok := refOfPath(strings.TrimPrefix(p, dir+"/"))
		if !ok || seen[ref.String()] {
			continue
		}
		seen[ref.String()] = true
		e := t.Entry(ref)
		gone := ref.Kind != state.MemoryKind && (e == nil || e.Gone())
		out = append(out, gitrepo.Change{Object: ref.String(), Note: noteOf(e), Gone: gone})
	}
	return append(out, factsOf(paths, dir)...)
}

// factsOf tells which facts the paths state or take back.
func factsOf(paths []string, dir string) []gitrepo.Change {
	ids, stated := index.FactsIn(slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return path.Dir(p) != state.FactsDir(dir)
	}))
	var out []gitrepo.Change
	for _, id := range ids {
		out = append(out, gitrepo.Change{Object: "fact/" + id, Fact: true, Gone: !stated[id]})
	}
	return out
}

// refOfPath reads "dags/checks.json", "runs/dags/checks/build-….json" and "memory/issue-42.json". The other files of the
// memory go with those of the issues.
func refOfPath(p string) (schemas.Ref, bool) {
	parts := strings.Split(strings.TrimPrefix(p, "runs/"), "/")
	if len(parts) < 2 {
		return schemas.Ref{}, false
	}
	name := strings.TrimSuffix(path.Base(parts[1]), ".json")
	if parts[0] == "archive" && len(parts) == 4 {
		k, ok := kinds().Find(parts[1])
		return schemas.Ref{Kind: k.Name, Name: strings.TrimSuffix(parts[3], path.Ext(parts[3]))}, ok
	}
	if parts[0] == "memory" {
		return schemas.Ref{Kind: state.MemoryKind, Name: name}, strings.HasPrefix(name, "issue-")
	}
	k, ok := kinds().Find(parts[0])
	return schemas.Ref{Kind: k.Name, Name: name}, ok
}

// noteOf says of a DAG how far it got, and of a question how it stands; other objects have nothing to tell in a few words.
func noteOf(e *state.Entry) string {
	if e == nil {
		return ""
	}
	switch st := e.Status().(type) {
	case *schemas.DAGStatus:
		if st.Progress.Total > 0 {
			return fmt.Sprintf("%d of %d nodes succeeded", st.Progress.Done, st.Progress.Total)
		}
	case *schemas.ClarificationRequestStatus:
		if st.ID != "" {
			return st.ID + " " + st.Phase
		}
	}
	return ""
}
