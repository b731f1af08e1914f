package schemas

import "strings"

// Brackets and quotes, for the quick reader. Only texts in single quotes may be longer than a line.

// flow reads quotes and brackets that end on this line.
func (r *plainReader) flow(depth int) *value {
	if r.at >= r.end {
		return nil
	}
	switch r.text[r.at] {
	case '[':
		return r.flowList(depth)
	case '{':
		return r.flowObject(depth)
	case '"', '\'':
		return r.quoted(depth)
	}
	s := r.rest()
	if i := strings.IndexAny(s, ",[]{}?"); i >= 0 && s[i] != '?' {
		s = s[:i]
	} else {
		return nil // the bracket is not closed here
	}
	if !startsPlain(strings.TrimRight(s, " ")) || strings.Contains(s, ": ") || s[len(s)-1] == ':' ||
		strings.Contains(s, " #") {
		return nil
	}
	v := r.scalar(strings.TrimRight(s, " "), depth)
	r.at += len(s)
	return v
}

func (r *plainReader) flowList(depth int) *value {
	v := r.value(list, depth)
	r.at++
	if r.spaces(); v != nil && r.at < r.end && r.text[r.at] == ']' {
		r.at++
		return v
	}
	for v != nil {
		item := r.flow(depth + 1)
		if item == nil {
			return nil
		}
		v.items = append(v.items, item)
		if done, ok := r.separator(']'); done || !ok {
			return keepForm(v, ok)
		}
	}
	return nil
}

func (r *plainReader) flowObject(depth int) *value {
	v := r.value(object, depth)
	r.at++
	if r.spaces(); v != nil && r.at < r.end && r.text[r.at] == '}' {
		r.at++
		return v
	}
	for v != nil {
		f := field{line: r.line, col: r.column(r.at)}
		name, ok := r.key()
		if !ok || v.field(name) != nil || len(v.fields) > 200 {
			return nil
		}
		f.name = name
		if f.value = r.flow(depth + 1); f.value == nil {
			return nil
		}
		v.fields = append(v.fields, f)
		if done, ok := r.separator('}'); done || !ok {
			return keepForm(v, ok)
		}
	}
	return nil
}

// separator reads a comma, or the closing bracket and then says done.
func (r *plainReader) separator(closing byte) (done, ok bool) {
	r.spaces()
	if r.at >= r.end {
		return false, false
	}
	c := r.text[r.at]
	r.at++
	if c == closing {
		return true, true
	}
	r.spaces()
	return false, c == ',' && r.at < r.end && r.text[r.at] != closing
}
