package schemas

import "strings"

// Lines are those from one to another, both counted from 1 and both meant.
type Lines struct{ From, To int }

// LinesOf finds the lines of the items of a list in a file that Decode read; field is the list's path as for [Locate]. It
// is nil if the list does not exist.
func LinesOf(path string, src []byte, field ...any) []Lines {
	s := newSource(path)
	root := s.parse(src, len(src))
	if root == nil {
		return nil
	}
	items := root.at(field)
	if items == nil || items.form != list {
		return nil
	}
	lines := strings.Split(string(s.text), "\n")
	out := make([]Lines, len(items.items))
	for i, item := range items.items {
		out[i] = Lines{item.line, item.lastLine(lines)}
	}
	return out
}

// lastLine is where a value ends: below its last part there may be more of a text, which is further to the right.
func (v *value) lastLine(lines []string) int {
	last := v.line
	for _, f := range v.fields {
		last = max(last, f.line, f.value.lastLine(nil))
	}
	for _, item := range v.items {
		last = max(last, item.lastLine(nil))
	}
	for i := last; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], " ")
		if text == "" || text == "\r" {
			continue
		}
		if len(lines[i])-len(text) < v.col {
			break
		}
		last = i + 1
	}
	return last
}
