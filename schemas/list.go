package schemas

import "fmt"

// ListKind is the kind of several objects in one text, as reconcile get prints them. No spec file has one.
const ListKind = "List"

// Part is an object in a text, without its status.
type Part struct {
	Place Place
	Field string // that it is in, as items[2]; empty: the object is the text
	JSON  []byte // its canonical form
}

// Parts returns the objects of a text that is a list, also those of lists in it, or one object with a status. It returns none for a
// text that is a spec, or that nothing can be read of: they are for [Decoder.Decode].
func Parts(name string, src []byte) ([]Part, []Problem) {
	s := newSource(name)
	s.store = new(valueStore)
	root := s.parse(src, 0)
	if root == nil || root.form != object {
		return nil, nil
	}
	listed := root.listed() != nil
	switch {
	case listed && s.failed():
		return nil, s.finish()
	case listed, !s.failed() && root.get("status") != nil && root.get("spec") != nil:
		return root.parts(nil, name, ""), nil
	}
	return nil, nil
}

// listed returns the items of a list; nil for any other object.
func (v *value) listed() *value {
	if kind, items := v.get("kind"), v.get("items"); kind != nil && kind.text == ListKind && items != nil && items.form == list {
		return items
	}
	return nil
}

// parts appends the object v, or the objects in it.
func (v *value) parts(out []Part, path, field string) []Part {
	items := v.listed()
	if items == nil {
		skip := map[*value]bool{v.get("status"): true}
		return append(out, Part{Place{Path: path, Line: v.line, Column: v.col}, field, v.canonical(nil, skip)})
	}
	if field != "" {
		field += "."
	}
	for i, item := range items.items {
		out = item.parts(out, path, fmt.Sprintf("%sitems[%d]", field, i))
	}
	return out
}
