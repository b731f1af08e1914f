package mirror

import (
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

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
	// Compare orders the objects of the kind. nil: by name.
	Compare func(a, b *state.Entry) int
}

// Mirrored is a kind with its projector.
type Mirrored struct {
	Kind string
	*Projector
}

// Page is the part of an issue that one object writes.
type Page struct {
	Entry *state.Entry
	*projection
	issue *Issue
}

// Tree is the tree that is mirrored.
func (p *Page) Tree() *state.Tree { return p.t }

// NewBody returns a new body of a comment about the entry of the page.
func (p *Page) NewBody() *Body { return p.newBody(p.Entry) }

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
	why := p.o.Why(p.Entry, p.t)
	for i := range why {
		why[i] = lineText(why[i], whyLength)
	}
	return why
}
