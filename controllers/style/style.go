// Package style infers how the source code of a project is written, by the majority of what its files show: names, formatting and
// patterns. It reads no files. Go and shell are parsed. Declarations of other languages are found line by line, in texts without comments and strings; that
// is exact enough to count.
package style

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/languages"
)

// Choice is what most places of the project do.
type Choice struct {
	// Value is what they do, Mixed where no value has [Clear] of all, "" where nothing shows it.
	Value   string         `json:"value"`
	Share   float64        `json:"share,omitempty"` // of the most frequent value, 0 to 1
	Samples int            `json:"samples"`
	Example string         `json:"example,omitempty"` // file:line
	Counts  map[string]int `json:"counts,omitempty"`
	// Declared is the setting that says so, which then counts whatever the files do.
	Declared string `json:"declared,omitempty"`
}

// Mixed is the value of a choice without a clear majority; Clear is the share that makes one.
const (
	Mixed = "mixed"
	Clear = 0.6
)

// fewest is how many samples a style needs before a file differs from it.
const fewest = 3

// Style is the inferred style of a language in a project.
type Style struct {
	Language string `json:"language"`
	Files    int    `json:"files"`
	Parsed   int    `json:"parsed"` // files of which a parser found the names and patterns; those of others were found line by line
	Naming   struct {
		Variables Choice `json:"variables"`
		Functions Choice `json:"functions"`
		Types     Choice `json:"types"`
		Constants Choice `json:"constants"`
	} `json:"namingConvention"`
	Formatting struct {
		IndentStyle   Choice `json:"indentStyle"`   // tabs or spaces
		IndentSize    Choice `json:"indentSize"`    // columns, of spaces
		QuoteStyle    Choice `json:"quoteStyle"`    // single or double
		TrailingComma Choice `json:"trailingComma"` // yes or no, in lists over several lines
	} `json:"formatting"`
	Patterns struct {
		ErrorHandling Choice `json:"errorHandling"` // early_return or nested
		Imports       Choice `json:"imports"`       // grouped or ungrouped, by empty lines
	} `json:"patterns"`
	Guidance []string `json:"guidance"`
}

// aspect is one question about the style.
type aspect struct {
	name     string
	of       func(*Style) *Choice
	guidance func(value string) string
}

func naming(what string) func(string) string {
	return func(v string) string { return "Write " + what + " in " + v + "." }
}

var aspects = []aspect{
	{"variables", func(s *Style) *Choice { return &s.Naming.Variables }, naming("names of variables")},
	{"functions", func(s *Style) *Choice { return &s.Naming.Functions }, naming("names of functions")},
	{"types", func(s *Style) *Choice { return &s.Naming.Types }, naming("names of types")},
	{"constants", func(s *Style) *Choice { return &s.Naming.Constants }, naming("names of constants")},
	{"indentStyle", func(s *Style) *Choice { return &s.Formatting.IndentStyle }, func(v string) string { return "Indent with " + v + "." }},
	{"indentSize", func(s *Style) *Choice { return &s.Formatting.IndentSize }, func(v string) string { return "Indent by " + v + " columns." }},
	{"quoteStyle", func(s *Style) *Choice { return &s.Formatting.QuoteStyle }, func(v string) string { return "Use " + v + " quotation marks." }},
	{"trailingComma", func(s *Style) *Choice { return &s.Formatting.TrailingComma }, func(v string) string {
		if v == "yes" {
			return "End the last line of a list over several lines with a comma."
		}
		return "Write no comma after the last element of a list."
	}},
	{"errorHandling", func(s *Style) *Choice { return &s.Patterns.ErrorHandling }, func(v string) string {
		if v == "early_return" {
			return "Return early where something is wrong, and do not nest the rest."
		}
		return "Put what follows a check into the branch that it opens."
	}},
	{"imports", func(s *Style) *Choice { return &s.Patterns.Imports }, func(v string) string {
		if v == "grouped" {
			return "Separate groups of imports by an empty line."
		}
		return "Keep imports in one block."
	}},
}

// Infer infers the style of a language from files, which may be of other languages, too. Declared settings, such as those of a
// formatter, count before what the files do: see [Settings].
func Infer(language string, files []File, declared []Setting) *Style {
	s := &Style{Language: language, Guidance: []string{}}
	counts := make(map[string]map[string]int)
	first := make(map[[2]string]string)
	for _, f := range files {
		if languages.Of(f.Path) != language {
			continue
		}
		s.Files++
		all, parsed := look(language, f.Text)
		if parsed {
			s.Parsed++
		}
		for _, g := range all {
			if counts[g.aspect] == nil {
				counts[g.aspect] = map[string]int{}
			}
			counts[g.aspect][g.value]++
			if key := [2]string{g.aspect, g.value}; first[key] == "" {
				first[key] = fmt.Sprintf("%s:%d", f.Path, g.line)
			}
		}
	}
	for _, a := range aspects {
		c := a.of(s)
		c.Counts = counts[a.name]
		best := ""
		for _, v := range slices.Sorted(maps.Keys(c.Counts)) {
			n := c.Counts[v]
			c.Samples += n
			if n > c.Counts[best] {
				best = v
			}
		}
		if c.Samples > 0 {
			c.Share = float64(c.Counts[best]) / float64(c.Samples)
			if c.Value = best; c.Share < Clear {
				c.Value = Mixed
			}
			c.Example = first[[2]string{a.name, best}]
		}
		for _, d := range declared {
			if d.Aspect == a.name && d.Language == language {
				c.Value, c.Declared = d.Value, d.From
				c.Example = cmp.Or(first[[2]string{a.name, d.Value}], c.Example)
			}
		}
	}
	if s.Formatting.IndentStyle.Value == "tabs" {
		s.Formatting.IndentSize = Choice{}
	}
	s.guide()
	return s
}

// guide writes advice for the authors of code for the project.
func (s *Style) guide() {
	for _, a := range aspects {
		c := a.of(s)
		if c.Value == "" {
			continue
		}
		if c.Value == Mixed {
			s.Guidance = append(s.Guidance, fmt.Sprintf("The project is mixed about %s (%s): do as the file that you change.", a.name, shares(c)))
			continue
		}
		why := fmt.Sprintf("%.0f %% of %d", 100*c.Share, c.Samples)
		if c.Declared != "" {
			why = c.Declared
		}
		if c.Example != "" {
			why += ", as in " + c.Example
		}
		s.Guidance = append(s.Guidance, a.guidance(c.Value)+" ("+why+")")
	}
}

func shares(c *Choice) string {
	var out []string
	for _, v := range slices.Sorted(maps.Keys(c.Counts)) {
		out = append(out, fmt.Sprintf("%s %d", v, c.Counts[v]))
	}
	return strings.Join(out, ", ")
}

// Row is a choice with its name.
type Row struct {
	Name string
	Choice
}

// Rows are the choices for which there is something.
func (s *Style) Rows() (rows []Row) {
	for _, a := range aspects {
		if c := a.of(s); c.Value != "" {
			rows = append(rows, Row{a.name, *c})
		}
	}
	return rows
}

// Difference is a place of a file that is not in the style of the project.
type Difference struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Aspect string `json:"aspect"`
	Name   string `json:"name,omitempty"` // of what is declared there
	Is     string `json:"is"`
	Wanted string `json:"wanted"`
}

// Compare returns where a file differs from the style, by line. Mixed and rare properties are not compared. Of indentation only the first place of
// each value counts.
func (s *Style) Compare(f File) (out []Difference) {
	told := map[string]bool{}
	all, _ := look(s.Language, f.Text)
	for _, g := range all {
		i := slices.IndexFunc(aspects, func(a aspect) bool { return a.name == g.aspect })
		c := aspects[i].of(s)
		if c.Value == "" || c.Value == Mixed || c.Samples < fewest && c.Declared == "" || c.Value == g.value {
			continue
		}
		if g.name == "" {
			if told[g.aspect+g.value] {
				continue
			}
			told[g.aspect+g.value] = true
		}
		out = append(out, Difference{f.Path, g.line, g.aspect, g.name, g.value, c.Value})
	}
	slices.SortFunc(out, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Aspect, b.Aspect), strings.Compare(a.Name, b.Name))
	})
	return out
}
