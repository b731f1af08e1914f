package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// mirrorKey is the variable whose value signs content on GitHub instead of the recorded key.
const mirrorKey = "RECONCILE_MIRROR_KEY="

// checkMirror examines the records of GitHub: every record is readable and belongs to this repository and to an
// existing object, and the records are consistent. It makes no requests to GitHub.
func checkMirror(_ context.Context, e *Patient) []Finding {
	if e.tree == nil {
		return skipped("the tree cannot be read")
	}
	m := &mirrorCheck{env: e, dir: e.store.MirrorDir(), numbers: map[string]int{}, made: map[string][]int{}}
	if set := e.settings().GitHub; set.Mirror {
		m.repo = set.Repo
	}
	looks := []func() error{m.issues, m.keys}
	for _, k := range settle.TableOf(e.tree) {
		if k.Mirror != nil {
			looks = append(looks, func() error { return m.objects(k.Kind) })
		}
	}
	for _, look := range looks {
		if err := look(); err != nil {
			return []Finding{bad(fmt.Sprintf("what is on record of GitHub cannot be read: %v", err), "check the permissions of "+m.dir)}
		}
	}
	m.checkDuplicates()
	switch {
	case len(m.found) > 0:
		return m.found
	case m.records == 0:
		return ok("nothing is on record of GitHub")
	case m.begun > 0:
		return ok(fmt.Sprintf("%s of GitHub; how %s ended is looked up by the next run that mirrors",
			counted(m.records, "record"), counted(m.begun, "call")))
	}
	return ok(counted(m.records, "record") + " of GitHub, which agree")
}

// mirrorCheck is one examination of the records of the mirror.
type mirrorCheck struct {
	env     *Patient
	dir     string
	repo    string           // the mirrored repository; "" if mirroring is off
	records int              // readable ones
	begun   int              // calls without a recorded result
	numbers map[string]int   // the recorded issue of an object
	made    map[string][]int // by object: the issues whose records name it
	found   []Finding
}

// issues reads the records of issues.
func (m *mirrorCheck) issues() error {
	return eachJSON(m.env.root, m.dir, func(name string, data []byte) {
		var n int
		if _, err := fmt.Sscanf(path.Base(name), "issue-%d.json", &n); err != nil || m.env.store.MirrorPath(n) != name {
			return
		}
		f, ok := usable(m, name, data, func(f *schemas.MirrorFile) error { return cmp.Or(f.Check(n), m.checkRepo(f.Repo)) })
		if !ok {
			return
		}
		for _, c := range f.Comments {
			if !c.Intended.IsZero() {
				m.begun++
			}
		}
		m.begun += len(f.Adding)
		if f.Made != "" {
			m.made[f.Made] = append(m.made[f.Made], n)
		}
	})
}

// objects reads the records of the objects of a kind.
func (m *mirrorCheck) objects(k schemas.Kind) error {
	return eachJSON(m.env.root, m.dir+"/objects/"+k.Plural, func(name string, data []byte) {
		ref := schemas.Ref{Kind: k.Name, Name: strings.TrimSuffix(path.Base(name), ".json")}
		o, ok := usable(m, name, data, func(o *schemas.MirrorObject) error { return cmp.Or(o.Check(ref), m.checkRepo(o.Repo)) })
		if !ok {
			return
		}
		if o.Issue > 0 {
			m.numbers[o.Object] = o.Issue
		} else {
			m.begun++
		}
		if orphaned(m.env.tree, ref) {
			m.found = append(m.found, warn(fmt.Sprintf("%s is about %s, which is not there any more", name, ref),
				"doctor --fix removes it; should the object come back, its issue is found again on GitHub").by(
				func(ctx context.Context) error { return m.removeOrphan(ctx, name, ref) }))
		}
	})
}

// orphaned reports whether an object certainly does not exist: an unreadable file may define any object.
func orphaned(t *state.Tree, ref schemas.Ref) bool {
	unread := slices.ContainsFunc(t.Problems(), func(p schemas.Problem) bool { return p.Severity == schemas.Error && p.Ref.Name == "" })
	entry := t.Entry(ref)
	return !unread && (entry == nil || entry.Gone())
}

// removeOrphan removes the record of a deleted object. No other process writes it, since the object is not mirrored.
func (m *mirrorCheck) removeOrphan(ctx context.Context, name string, ref schemas.Ref) error {
	return m.env.withLock(ctx, func() error {
		t, err := m.env.store.Load(ctx)
		if err != nil || !orphaned(t, ref) {
			return err
		}
		if err = m.env.root.Remove(name); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// keys reads the keys that sign markers.
func (m *mirrorCheck) keys() error {
	name, there := m.env.store.MirrorKeysPath(), false
	err := eachJSON(m.env.root, m.dir, func(file string, data []byte) {
		if file != name {
			return
		}
		there = true
		usable(m, name, data, (*schemas.MirrorKeys).Check)
	})
	fromElsewhere := slices.ContainsFunc(m.env.Environ, func(v string) bool { return strings.HasPrefix(v, mirrorKey) })
	if err == nil && !there && !fromElsewhere && m.records > 0 {
		m.found = append(m.found, warn(name+" is missing, with which the comments on record were signed",
			"take it back from git, or set "+strings.TrimSuffix(mirrorKey, "=")+" to what it was; else the next run signs with another one"))
	}
	return err
}

// checkRepo reports a record of another repository.
func (m *mirrorCheck) checkRepo(repo string) error {
	if m.repo != "" && !strings.EqualFold(repo, m.repo) {
		return fmt.Errorf("it is about the repository %.100q, and the settings name %s", repo, m.repo)
	}
	return nil
}

// usable decodes and checks a record. The repair moves an unreadable one away, like the next run that mirrors; a record of a
// newer program needs no repair.
func usable[F any](m *mirrorCheck, name string, data []byte, check func(*F) error) (record *F, ok bool) {
	judge := func(data []byte, into *F) error {
		if err := state.DecodeMirror(data, into); err != nil {
			return err
		}
		return check(into)
	}
	record = new(F)
	err := judge(data, record)
	switch {
	case err == nil:
		m.records++
		return record, true
	case schemas.IsNewerMirror(err):
		m.found = append(m.found, warn(fmt.Sprintf("%s: %v", name, err), "update reconcile: this version leaves the file alone"))
		return nil, false
	}
	f := bad(fmt.Sprintf("%s: %v", name, err),
		"doctor --fix sets it aside under .reconcile/damaged; the next run that mirrors looks up on GitHub what it said")
	m.found = append(m.found, f.by(func(ctx context.Context) error {
		return m.env.withLock(ctx, func() error {
			return m.env.store.SetAside(ctx, name, func(data []byte) bool { return judge(data, new(F)) != nil }, nil)
		})
	}))
	return nil, false
}

// checkDuplicates reports objects with several issues: only people can decide which one to keep.
func (m *mirrorCheck) checkDuplicates() {
	for _, object := range slices.Sorted(maps.Keys(m.made)) {
		numbers := m.made[object]
		if n := m.numbers[object]; n > 0 && !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
		if len(numbers) < 2 {
			continue
		}
		slices.Sort(numbers)
		var names []string
		for _, n := range numbers {
			names = append(names, fmt.Sprintf("#%d", n))
		}
		advice := "close those that nothing is told on"
		if n := m.numbers[object]; n > 0 {
			advice = fmt.Sprintf("%s is told of on #%d: close the others, and remove their records from %s", object, n, m.dir)
		}
		m.found = append(m.found, warn(fmt.Sprintf("%s were made for %s", strings.Join(names, " and "), object), advice))
	}
}
