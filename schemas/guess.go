package schemas

import (
	"path"
	"strings"
)

// guessRef names the object of a file that no parser can read, by what the text says or, where it says nothing, as one
// that is cut off does not, by where the file is. The zero Ref means that nothing was found that could be a name.
func (s *source) guessRef(src []byte, kinds Kinds) Ref {
	if ref := s.refInText(src, kinds); ref != (Ref{}) {
		return ref
	}
	return refOfPath(s.path, kinds)
}

// refOfPath returns the object that a file conventionally holds by its path: specs/agents/ada.yaml.
func refOfPath(p string, kinds Kinds) Ref {
	folder, file := path.Base(path.Dir(p)), path.Base(p)
	k, ok := kinds.Find(folder)
	name := strings.TrimSuffix(file, path.Ext(file))
	if !ok || k.Plural != folder || CheckName(name) != nil {
		return Ref{}
	}
	return Ref{Kind: k.Name, Name: name}
}

// refInText looks for what names an object in a good file: the kind at the left edge and the name one step below
// metadata; in JSON the same in quotes; in TOML the name below [workflow].
func (s *source) refInText(src []byte, kinds Kinds) Ref {
	const most = 64 << 10 // the name of an object is near the beginning
	text := strings.ReplaceAll(string(src[:min(len(src), most)]), "\r", "\n")
	var kind, name string
	switch strings.ToLower(path.Ext(s.path)) {
	case ".toml":
		_, after, _ := strings.Cut("\n"+text, "\n[workflow]")
		kind, name = WorkflowKind.Name, lineWord(after, "name", "=")
	case ".json":
		kind = flowWord(text, `"kind"`)
		_, after, _ := strings.Cut(text, `"metadata"`)
		name = flowWord(after, `"name"`)
	default:
		kind, name = lineWord(text, "kind", ":"), guessName(text)
	}
	k, ok := kinds.Find(kind)
	if !ok || CheckName(name) != nil {
		return Ref{}
	}
	return Ref{Kind: k.Name, Name: name}
}

// guessName finds the name in the metadata of a YAML text.
func guessName(text string) string {
	_, after, _ := strings.Cut("\n"+text, "\nmetadata:")
	head, below, _ := strings.Cut(after, "\n")
	if strings.HasPrefix(strings.TrimSpace(head), "{") {
		return flowWord(after, "name")
	}
	step := 0
	for line := range strings.SplitSeq(below, "\n") {
		inner := strings.TrimLeft(line, " ")
		indent := len(line) - len(inner)
		switch {
		case inner == "" || inner[0] == '#':
			continue
		case indent == 0:
			return ""
		case step == 0:
			step = indent
		}
		if word := lineWord(inner, "name", ":"); indent == step && word != "" {
			return word
		}
	}
	return ""
}

// lineWord is the word after key and separator on the first line that begins with them.
func lineWord(text, key, separator string) string {
	for line := range strings.SplitSeq(text, "\n") {
		rest, ok := strings.CutPrefix(line, key)
		if rest, found := strings.CutPrefix(strings.TrimLeft(rest, " "), separator); ok && found {
			return firstWord(rest)
		}
	}
	return ""
}

// flowWord is the word after key in the outermost braces of a text.
func flowWord(text, key string) string {
	depth, fresh := 0, false // fresh: a key may begin here
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '{' || c == '[':
			depth++
			fresh = true
			continue
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				return ""
			}
		case c == ',':
			fresh = true
			continue
		case c == ' ' || c == '\n' || c == '\t':
			continue
		}
		rest, ok := strings.CutPrefix(text[i:], key)
		if value, found := strings.CutPrefix(strings.TrimLeft(rest, " "), ":"); ok && found && fresh && depth == 1 {
			return firstWord(value)
		}
		fresh = false
	}
	return ""
}

// firstWord is the plain or quoted word at the beginning of s.
func firstWord(s string) string {
	s = strings.TrimLeft(s, " \t")
	if end := strings.IndexAny(s, " \t\n,}#"); end >= 0 {
		s = s[:end]
	}
	return strings.Trim(s, "\"'")
}
