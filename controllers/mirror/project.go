// Package mirror decides which comments on which issues, and which labels, GitHub should have for a tree.
//
// [Project] is a pure function of the tree. Its output changes when an object changes, and never because time passes: a
// comment is edited on transitions only, and an unchanged tree causes no call.
//
// Each comment has a key that names its content:
//
//	status/<kind>/<name>         how a session, a DAG or a question stands
//	round/<CLR id>/<n>           what was asked and answered in one round
//	escalation/<CLR id>/<n>      what people are asked to decide, who are mentioned in it
//	issue/<kind>/<name>          the body of an issue that was made for an object
//	reply/<id>                   what is said to the author of a comment
//	plan/<number>                what a pull request would do ([Pull])
//
// The comment ends with an invisible marker that cannot be forged: its key, and a MAC of key and text ([Keys]). So a
// comment is recognized when its id was lost, and one that a user edited no longer counts as ours.
//
// Output of agents is untrusted. It is quoted, and shown as text: it mentions no users, refers to no issues, has no
// links and no HTML, and ends no comment early. Only emphasis, lists and code keep their form.
package mirror

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Issue is the wanted state of one issue.
type Issue struct {
	// Number is 0 for an issue to create.
	Number int
	// Object is the object that the issue is created for, with Key, Title and Body; zero for an issue that a spec names.
	Object           schemas.Ref
	Key, Title, Body string
	Comments         []Comment // in the order in which they are made
	Labels           []string  // names of labels of Labels, sorted
}

// Comment is one comment of the mirror, without its marker.
type Comment struct {
	Key  string
	Body string // at most BodyLimit characters
}

// Label is a label that the mirror adds and removes.
type Label struct {
	Name        string
	Color       string // six hexadecimal digits
	Description string // at most 100 characters
}

// MadeLabel marks issues that were created for an object, so that they are found again.
const MadeLabel = "reconcile"

const (
	labelActive    = "clarification:active"
	labelStale     = "clarification:stale"
	labelEscalated = "clarification:escalated"
)

// Project projects the entries of a tree onto GitHub: it returns the issues with the wanted comments and labels, sorted
// by issue; issues to create come last, sorted by their object. Objects that no run has decided on yet, and those that
// are removed or broken, add nothing: their comments stay as they are.
func Project(t *state.Tree, o Options) []Issue {
	p := &projection{t: t, o: o, issues: map[home]*Issue{}}
	for _, k := range o.Kinds {
		entries := t.Entries(k.Kind)
		if k.Projector.Compare != nil {
			entries = slices.SortedFunc(slices.Values(entries), k.Projector.Compare)
		}
		for _, e := range entries {
			p.add(e, k.Projector)
		}
	}
	out := make([]Issue, 0, len(p.issues))
	for _, i := range p.issues {
		out = append(out, *i)
	}
	slices.SortFunc(out, func(a, b Issue) int {
		if (a.Number == 0) != (b.Number == 0) {
			return cmp.Compare(b.Number, a.Number)
		}
		return cmp.Or(cmp.Compare(a.Number, b.Number), a.Object.Compare(b.Object))
	})
	return out
}

type projection struct {
	t      *state.Tree
	o      Options
	issues map[home]*Issue
}

// home is the place where an object is shown: on an issue that a spec names, or on the one that is created for an object.
type home struct {
	number int
	made   schemas.Ref
}

// add writes an object on its issue.
func (p *projection) add(e *state.Entry, by *Projector) {
	if e.Object == nil || !e.HasStatus() {
		return
	}
	h, ok := p.homeOf(e)
	if !ok {
		return
	}
	made := h.made
	if p.o.Made != nil && h.number == 0 {
		if n := p.o.Made(made); n > 0 {
			h = home{number: n}
		}
	}
	i := p.issues[h]
	if i == nil {
		i = &Issue{Number: h.number}
		p.issues[h] = i
	}
	if made != (schemas.Ref{}) && i.Object == (schemas.Ref{}) {
		p.make(i, made)
	}
	by.Write(&Page{Entry: e, projection: p, issue: i})
}

// homeOf returns the issue of an object, that of the object that it belongs to, or a separate one. ok is false while the
// object that it belongs to is not usable.
func (p *projection) homeOf(e *state.Entry) (h home, ok bool) {
	by := p.projector(e.Kind)
	if by == nil {
		return home{}, false
	}
	number, of := by.Home(e.Object)
	if h.number = number; number == 0 && of != (schemas.Ref{}) {
		return p.homeOfRef(of)
	}
	if h.number == 0 {
		h.made = e.Ref
	}
	return h, true
}

// projector returns that of a kind; nil if objects of this kind are not mirrored.
func (p *projection) projector(kind string) *Projector {
	for _, k := range p.o.Kinds {
		if k.Kind == kind {
			return k.Projector
		}
	}
	return nil
}

func (p *projection) homeOfRef(ref schemas.Ref) (home, bool) {
	e := p.t.Entry(ref)
	if e == nil || e.Object == nil {
		return home{}, false
	}
	return p.homeOf(e)
}

// make sets the title and the body of the issue of an object.
func (p *projection) make(i *Issue, made schemas.Ref) {
	i.Object = made
	e := p.t.Entry(i.Object)
	i.Key = "issue/" + i.Object.String()
	about, description := p.projector(made.Kind).About(e.Object)
	about = cmp.Or(about, i.Object.String())
	i.Title = cmp.Or(titleText(about), titleText(i.Object.String())) // GitHub wants one
	b := p.newBody(e)
	b.Paragraph("This issue was made for %s. What becomes of it is told in the comments below.", codeText(i.Object.String()))
	b.Quoted(description)
	i.Body = b.done()
}

func (p *projection) newBody(e *state.Entry) *Body {
	b := &Body{room: BodyLimit - noteRoom}
	spec, status := p.link("spec", e.Object.Path), p.link("status", e.StatusPath)
	if spec == "" {
		b.foot = fmt.Sprintf("<sub>Kept by reconcile from %s and %s.</sub>", codeText(e.Object.Path), codeText(e.StatusPath))
		return b
	}
	b.whole = status
	b.foot = fmt.Sprintf("<sub>Kept by reconcile from the files: %s, %s.</sub>", spec, status)
	return b
}

// link is a link to a file of the tree; "" where no address is known.
func (p *projection) link(text, path string) string {
	if p.o.Files == "" || path == "" {
		return ""
	}
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = linkMarks.Replace(url.PathEscape(parts[i]))
	}
	return "[" + text + "](" + p.o.Files + "/" + strings.Join(parts, "/") + ")"
}

// Objects returns the refs of the mirrored objects of a tree by the number of their issue, sorted. Objects without an
// issue are left out. Of the options only Kinds and Made are read.
func Objects(t *state.Tree, o Options) map[int][]schemas.Ref {
	p := &projection{t: t, o: o}
	out := map[int][]schemas.Ref{}
	for _, k := range o.Kinds {
		for _, e := range t.Entries(k.Kind) {
			if e.Object == nil {
				continue
			}
			h, ok := p.homeOf(e)
			if ok && h.number == 0 && o.Made != nil {
				h.number = o.Made(h.made)
			}
			if ok && h.number > 0 {
				out[h.number] = append(out[h.number], e.Ref)
			}
		}
	}
	for _, refs := range out {
		slices.SortFunc(refs, schemas.Ref.Compare)
	}
	return out
}

// Options are the inputs of the projection other than the tree.
type Options struct {
	// Files is the address of the repository's files, as https://github.com/owner/name/blob/HEAD; "" for no links.
	Files string
	// Mention lists the logins and organization/team names that escalations mention, with or without @.
	Mention []string
	// Kinds lists the mirrored kinds, in this order.
	Kinds []Mirrored
	// Why returns the reasons why an object is not ready, a line each.
	Why func(*state.Entry, *state.Tree) []string
	// Made returns the number of the issue that was created for an object, 0 if it does not exist. nil means that
	// none exist.
	Made func(schemas.Ref) int
}

// Labels are all labels of the mirror.
func Labels() []Label {
	return []Label{
		{labelActive, "0969da", "Agents have an open question about this"},
		{labelEscalated, "cf222e", "Agents need a person to decide a question about this"},
		{labelStale, "9a6700", "An answer to a question about this is overdue"},
		{MadeLabel, "57606a", "Made by reconcile for one of its objects"},
	}
}

// Projector says what should be on GitHub for the objects of a kind.
type Projector struct {
	// Home returns the number of the issue that an object names, or the object on whose issue it is shown. If both are
	// zero, an issue is created for the object.
	Home func(*schemas.Object) (issue int, of schemas.Ref)
	// About returns the title of the issue that is created for an object, "" for the name of the object, and its
	// description.
	About func(*schemas.Object) (title, description string)
	// Write adds comments and labels to the issue of an object.
	Write func(*Page)
	// Compare orders the objects of this kind. nil: by name.
	Compare func(a, b *state.Entry) int
}

// Mirrored is a kind with its projector.
type Mirrored struct {
	Kind      string
	Projector *Projector
}

// Page is the part of an issue that one object writes.
type Page struct {
	Entry      *state.Entry
	projection *projection
	issue      *Issue
}

// Tree is the tree that is mirrored.
func (p *Page) Tree() *state.Tree { return p.projection.t }

// NewBody returns a new body of a comment about the entry of the page.
func (p *Page) NewBody() *Body { return p.projection.newBody(p.Entry) }

// Status adds the body as the status comment of the page's entry, which shows the state of the object.
func (p *Page) Status(b *Body) { p.comment("status/"+p.Entry.Ref.String(), b) }

// comment adds a comment. The key has no blanks and is not used by other objects.
func (p *Page) comment(key string, b *Body) {
	p.issue.Comments = append(p.issue.Comments, Comment{Key: key, Body: b.done()})
}

// Label adds the name of one of [Labels] to the sorted labels of the page's issue.
func (p *Page) Label(name string) {
	if at, ok := slices.BinarySearch(p.issue.Labels, name); !ok {
		p.issue.Labels = slices.Insert(p.issue.Labels, at, name)
	}
}

// why returns the lines of Markdown that explain why the entry of the page waits, and for what.
func (p *Page) why() []string {
	why := p.projection.o.Why(p.Entry, p.projection.t)
	for i := range why {
		why[i] = lineText(why[i], whyLength)
	}
	return why
}
