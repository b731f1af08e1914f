package schemas

import (
	"cmp"
	"slices"
	"strings"
)

// envelopeFields are the fields of every document.
var envelopeFields = []string{"apiVersion", "kind", "metadata", "spec"}

// envelope judges what every document has, learns the object's name, and returns its kind; false if the kind is not
// known, since then nothing else can be judged.
func (s *source) envelope(root *value, kinds Kinds) (Kind, bool) {
	if root.form != object {
		if !root.bad {
			s.fail("not-an-object", root.line, root.col, "", "the file holds %s, not an object", root.describe()).
				hint("write apiVersion, kind, metadata and spec")
		}
		return Kind{}, false
	}
	s.envelopeFields(root)
	s.apiVersion(root)
	k, ok := s.kind(root, kinds)
	name := root.get("metadata").get("name")
	if name != nil && name.form == text && !name.bad {
		s.name(name, k)
	}
	s.pairs(root.get("metadata").get("labels"), "labels", checkLabel)
	s.pairs(root.get("metadata").get("annotations"), "annotations", func(string) string { return "" })
	if k.Name == ObservationKind.Name {
		s.discreetMetadata(root.get("metadata"))
	}
	inPlace := (k.Name == SettingsKind.Name) == (s.path == SettingsPath)
	if ok && inPlace && name != nil && CheckName(name.text) == nil && name.form == text {
		s.ref = Ref{Kind: k.Name, Name: strings.Clone(name.text)}
	}
	if !ok && name == nil && root.get("metadata") != nil {
		line, col := root.position([]any{"metadata"})
		s.fail("missing-field", line, col, "metadata.name", "is missing")
	}
	return k, ok
}

func (s *source) envelopeFields(root *value) {
	var missing []string
	for _, name := range envelopeFields {
		if root.field(name) == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == len(envelopeFields) && len(root.fields) > 0 {
		f := &root.fields[0]
		s.fail("missing-field", f.line, f.col, "", "this declares nothing: it has no apiVersion, kind, metadata and spec").
			hint("\"reconcile create KIND NAME\" shows the form; the folder of specs is for such files alone")
		return
	}
	for i := range root.fields {
		f := &root.fields[i]
		if slices.Contains(envelopeFields, f.name) {
			continue
		}
		p := s.fail("unknown-field", f.line, f.col, pathText([]any{f.name}), "there is no field %q here", f.name)
		if p.near(f.name, envelopeFields); p.Suggestion == "" {
			p.hint("a document has apiVersion, kind, metadata and spec; the rest goes below spec")
		}
	}
	for _, name := range missing {
		p := s.fail("missing-field", root.line, root.col, name, "is missing")
		if name == "apiVersion" {
			p.hint("add apiVersion: %s", APIVersion)
		}
	}
}

func (s *source) apiVersion(root *value) {
	v := root.get("apiVersion")
	if v == nil || v.bad || v.form == text && v.text == APIVersion {
		return
	}
	s.fail("wrong-version", v.line, v.col, "apiVersion", "%s is not a version that can be read here", v.describe()).
		hint("write %s", APIVersion)
}

// kind finds the document's kind, also when it is written in the wrong case, which is reported.
func (s *source) kind(root *value, kinds Kinds) (Kind, bool) {
	v := root.get("kind")
	if v == nil || v.bad {
		return Kind{}, false
	}
	for _, k := range kinds {
		if v.form == text && v.text == k.Name {
			s.settingsInPlace(k, v)
			return k, true
		}
	}
	names := kinds.names()
	p := s.fail("unknown-kind", v.line, v.col, "kind", "%s is not a kind", v.describe())
	k, ok := kinds.Find(v.text)
	if ok {
		p.hint("did you mean %q?", k.Name)
	} else if v.text == ListKind {
		p.hint("reconcile apply -f FILE writes each item of a list to a file of its own")
	} else if p.near(v.text, names); p.Suggestion == "" {
		p.hint("kinds: %s", strings.Join(names, ", "))
	}
	return k, ok
}

// settingsInPlace reports settings in another file, and other objects in the file of the settings.
func (s *source) settingsInPlace(k Kind, v *value) {
	isSettings := k.Name == SettingsKind.Name
	switch {
	case isSettings && s.path != SettingsPath:
		s.fail("wrong-place", v.line, v.col, "kind", "settings are read from %s only", SettingsPath).
			hint("move them there")
	case !isSettings && s.path == SettingsPath:
		s.fail("wrong-place", v.line, v.col, "kind", "%s holds the settings and nothing else", SettingsPath).
			hint("move the object below specs/")
	}
}

func (s *source) name(v *value, k Kind) {
	if err := CheckName(v.text); err != nil && v.text != "" && len(v.text) <= maxName { // the schema tells its length
		p := s.fail("bad-name", v.line, v.col, "metadata.name", "%v", err)
		if low := strings.ToLower(strings.ReplaceAll(v.text, " ", "-")); CheckName(low) == nil {
			p.hint("write %q", low)
		}
	}
	if k.Name == SettingsKind.Name && v.text != settingsName {
		s.fail("bad-name", v.line, v.col, "metadata.name", "the settings are called %q", settingsName).
			hint("write %s", settingsName)
	}
}

// pairs judges the keys of labels or annotations, and their values as check does.
func (s *source) pairs(v *value, field string, check func(string) string) {
	if v == nil {
		return
	}
	for _, f := range v.fields {
		path := pathText([]any{"metadata", field, f.name})
		if why := checkLabel(f.name); why != "" || f.name == "" {
			s.fail("bad-name", f.line, f.col, path, "the key %s", cmp.Or(why, "is empty"))
		}
		if why := check(f.value.text); why != "" && f.value.form == text {
			s.fail("bad-label", f.value.line, f.value.col, path, "the value %s", why)
		}
	}
}

// settingsName is the name of the one object of kind Settings.
const settingsName = "settings"

// metadata converts validated metadata. Its texts are copies, so that they do not keep the file's text in memory.
func metadata(root *value) Metadata {
	m := root.get("metadata")
	return Metadata{
		Name: strings.Clone(m.str("name")), Labels: m.get("labels").strings(), Annotations: m.get("annotations").strings(),
	}
}

// isEnvelope reports whether the field is one that [source.envelope] judges.
func isEnvelope(path []any) bool {
	return len(path) == 1 && (path[0] == "apiVersion" || path[0] == "kind")
}
