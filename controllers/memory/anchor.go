package memory

import (
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// anchorLimit bounds the anchors of an entry: one that names more is about none of them.
const anchorLimit = 10

// anchors are the paths that a content names and that exist, sorted, each once.
func (s *Source) anchors(content string) []string {
	if s.Exists == nil {
		return nil
	}
	var out []string
	for word := range strings.FieldsFuncSeq(content, partsPaths) {
		if p := s.existing(word); p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
		if len(out) == anchorLimit {
			break
		}
	}
	slices.Sort(out)
	return out
}

// partsPaths reports whether a character stands between paths.
func partsPaths(r rune) bool {
	return r <= ' ' || strings.ContainsRune("`'\"()[]{}<>,;|*“”’‘«»=", r)
}

// existing is the path below the root that a word means; "" if it means none that exists. Of one that begins elsewhere
// (/home/ann/work/app/main.go) it is the longest end that exists.
func (s *Source) existing(word string) string {
	name := pathIn(word)
	if name == "" {
		return ""
	}
	absolute := strings.HasPrefix(name, "/") || len(name) > 1 && name[1] == ':'
	for absolute && name != "" {
		_, name, _ = strings.Cut(name, "/")
		if strings.Contains(name, "/") && s.ofProject(name) && s.Exists(name) {
			return name
		}
	}
	if name == "" || !s.ofProject(name) || !s.Exists(name) {
		return ""
	}
	return name
}

// pathIn is the path that a word may be; "" if it cannot be one: it has neither a slash nor an extension, is an
// address, or leads out of the tree.
func pathIn(word string) string {
	word = strings.TrimRight(strings.ReplaceAll(word, `\`, "/"), ".,:!?")
	if len(word) > longestName || !strings.ContainsAny(word, "/.") || strings.Contains(word, "://") || word[0] == '~' {
		return ""
	}
	if file, line, found := strings.Cut(word, "#"); found && strings.HasPrefix(line, "L") {
		word = file
	}
	word = withoutLine(withoutLine(word))
	if clean := path.Clean(word); word != "" && clean != "." && clean != "/" && !strings.HasPrefix(clean, "..") {
		return clean
	}
	return ""
}

// withoutLine cuts the number of a line off: main.go:12.
func withoutLine(word string) string {
	if i := strings.LastIndexByte(word, ':'); i > 1 && strings.Trim(word[i+1:], "0123456789-") == "" {
		return word[:i]
	}
	return word
}

// ofProject reports whether a path is one that entries may name, and not what reconcile derives.
func (s *Source) ofProject(name string) bool {
	state := s.StateFolder != "" && strings.HasPrefix(strings.ToLower(name)+"/", strings.ToLower(s.StateFolder)+"/")
	return !state && schemas.IsPath(name)
}

// AddAnchor adds a path to the anchors of an observation entry, and the digest of the file's content to its digests. ""
// is an unknown digest.
func AddAnchor(e *schemas.ObservationEntry, path, digest string) {
	if !slices.Contains(e.Anchors, path) {
		e.Anchors = append(e.Anchors, path)
	}
	if digest == "" {
		return
	}
	if e.Digests == nil {
		e.Digests = map[string]string{}
	}
	e.Digests[path] = digest
}

// located makes the paths of edits relative to the root, if they exist there. Other absolute paths are not files of the
// project: they are left out.
func (s *Source) located(content string) string {
	var out []edit
	for _, e := range readEdits(content) {
		if s.Exists != nil {
			if p := s.existing(e.path); p != "" {
				e.path = p
			}
		}
		if s.ofProject(e.path) {
			out = append(out, e)
		}
	}
	return editLines(out)
}

func (s *Source) digest(file string) string {
	if s.Digest == nil {
		return ""
	}
	return s.Digest(file)
}

// unitedAnchors returns the anchors of all, by path, each with its latest digest.
func unitedAnchors(members []*schemas.Observation) []schemas.Anchor {
	byPath := map[string]seen{}
	var paths []string
	for _, o := range members {
		at := laterCapture(o.Timestamp, o.VerifiedAt)
		for _, a := range o.Anchors {
			old, ok := byPath[a.Path]
			if !ok {
				paths = append(paths, a.Path)
			}
			if next := (seen{a, at}); !ok || next.compare(old) > 0 {
				byPath[a.Path] = next
			}
		}
	}
	slices.Sort(paths)
	var out []schemas.Anchor
	for _, p := range paths {
		out = append(out, byPath[p].Anchor)
	}
	return out
}

func anchorsOf(e *schemas.ObservationEntry) []schemas.Anchor {
	var out []schemas.Anchor
	for i, path := range e.Anchors {
		if !slices.Contains(e.Anchors[:i], path) {
			out = append(out, schemas.Anchor{Path: path, Digest: e.Digests[path]})
		}
	}
	return out
}
