package tools

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/schemas"
)

// For lists the tools of a category for a language, the recommended one first.
func For(language string, category checks.Category) (names []string) {
	for _, t := range Catalog() {
		if slices.Contains(t.Languages, language) && t.does(category) {
			names = append(names, t.Name)
		}
	}
	return names
}

// Names lists the tools of the catalogue.
func Names() (names []string) {
	for _, t := range Catalog() {
		names = append(names, t.Name)
	}
	return names
}

// Checkable reports whether the catalogue has a tool for the language of a file, by its name, that a project need not ask for.
func Checkable(file string) bool {
	l := LanguageOf(file)
	return l != "" && slices.ContainsFunc(Catalog(), func(t Tool) bool { return !t.Opted && slices.Contains(t.Languages, l) })
}

// ChecksScripts reports whether the catalogue has a tool, that a project need not ask for, which checks files of a language that have no extension.
func ChecksScripts(language string) bool {
	return slices.ContainsFunc(Catalog(), func(t Tool) bool {
		return !t.Opted && slices.Contains(t.Languages, language) && slices.ContainsFunc(t.Roles, func(r Role) bool { return r.Scripts })
	})
}

// Languages lists the languages that the catalogue knows, sorted.
func Languages() (names []string) {
	for _, t := range Catalog() {
		names = append(names, t.Languages...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (t Tool) does(category checks.Category) bool {
	return slices.ContainsFunc(t.Roles, func(r Role) bool { return r.Category == category })
}

// Open is a question that a person has to answer: nothing in the project says which one it uses.
type Open struct {
	Category checks.Category `json:"category"`
	Language string          `json:"language"`
	Files    int             `json:"files"` // of the language in the project
	Options  []Option        `json:"options"`
}

// Question is the question as a verification records it. chosen is what was chosen for it in vain; "" for nothing.
func (o Open) Question(chosen string) schemas.ToolQuestion {
	q := schemas.ToolQuestion{Language: o.Language, Category: string(o.Category), Files: o.Files, Chosen: chosen}
	for _, x := range o.Options {
		if x.Installed {
			q.Installed = append(q.Installed, x.Tool)
		}
	}
	return q
}

// Reopen is the question of a record, with its options.
func Reopen(q schemas.ToolQuestion) Open {
	f := Facts{Programs: map[Place]Program{}}
	for _, t := range Catalog() {
		if slices.Contains(q.Installed, t.Name) {
			f.Programs[Place{"", t.Program}] = Program{}
		}
	}
	return Open{checks.Category(q.Category), q.Language, q.Files, Options(f, q.Language, checks.Category(q.Category))}
}

// Option is a tool that may be chosen.
type Option struct {
	Tool        string   `json:"tool"`
	Recommended bool     `json:"recommended,omitempty"`
	Installed   bool     `json:"installed,omitempty"`
	Pros        []string `json:"pros,omitempty"`
	Cons        []string `json:"cons,omitempty"`
	Install     []string `json:"install,omitempty"` // the command that would install it
}

// Undecided lists the categories for which a project has several tools to choose from, and nothing that says more than that one is installed.
func Undecided(f Facts, found []Discovered) []Open {
	var out []Open
	counts := f.spread()[""]
	for _, language := range Languages() {
		if counts[language] == 0 {
			continue
		}
		for _, category := range checks.Categories() {
			sure := slices.ContainsFunc(found, func(d Discovered) bool {
				return (d.Language == language || d.replacesOneOf(language)) && d.Category == category && d.Confidence != Low
			})
			if o := Options(f, language, category); !sure && len(o) > 0 {
				for i := range o {
					for _, d := range found {
						if d.Tool == o[i].Tool && d.Language == language && d.Category == category && d.Config != "" {
							o[i].Pros = append(o[i].Pros, "is "+d.Why)
						}
					}
				}
				out = append(out, Open{category, language, counts[language], o})
			}
		}
	}
	return out
}

// replacesOneOf reports whether the tool replaces one of a language.
func (d Discovered) replacesOneOf(language string) bool {
	t, _ := entry(d.Tool)
	return slices.ContainsFunc(t.Replaces, func(name string) bool {
		other, _ := entry(name)
		return slices.Contains(other.Languages, language)
	})
}

// Options lists the tools of a category for a language, the recommended one first.
func Options(f Facts, language string, category checks.Category) (out []Option) {
	if category == checks.Deep {
		return nil // each looks for something else
	}
	for _, t := range Catalog() {
		if !slices.Contains(t.Languages, language) || !t.does(category) || t.Opted {
			continue
		}
		_, installed := f.Programs[Place{"", t.Program}]
		o := Option{Tool: t.Name, Recommended: len(out) == 0, Installed: installed, Pros: slices.Clone(t.Pros), Cons: slices.Clone(t.Cons)}
		if installed {
			o.Pros = append(o.Pros, "is installed")
		} else {
			o.Install = installCommand(t)
			o.Cons = append(o.Cons, "is not installed")
		}
		if more := others(t, category); more != "" {
			o.Pros = append(o.Pros, "is also "+more)
		}
		out = append(out, o)
	}
	return out
}

// others names what else a tool does.
func others(t Tool, category checks.Category) string {
	var words []string
	for _, r := range t.Roles {
		if r.Category != category && !slices.Contains(words, string(r.Category)) {
			words = append(words, string(r.Category))
		}
	}
	return strings.Join(words, " and ")
}
