package formats

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/schemas/extract"
)

// declaredJSON is declared.yaml, as cmd/reconcile/internal/tools/gen writes it, so that a start need not read YAML.
//
//go:embed declared.json
var declaredJSON []byte

// format is a format that is declared as data: lines that match patterns, or values of a JSON document.
type format struct {
	Source string `json:"source"` // where its facts were read

	Lines []linePattern `json:"lines,omitempty"`
	Skip  []string      `json:"skip,omitempty"` // patterns of lines that say nothing about the code
	// Rest says what other lines are: ignored ("", and counted as not understood), or more of the message above (more).
	Rest string `json:"rest,omitempty"`
	End  string `json:"end,omitempty"` // a pattern of the line that a complete output has
	// Stops is a pattern of an error in the output that keeps the tool from checking the rest.
	Stops string `json:"stops,omitempty"`
	// Place is a pattern of lines that say where the finding above is, with the groups file, line and column.
	Place string `json:"place,omitempty"`

	Groups   string            `json:"groups,omitempty"`   // the values that Items and File start from; "": the document
	File     string            `json:"file,omitempty"`     // of a group
	Items    string            `json:"items,omitempty"`    // the findings of a group
	Fields   map[string]string `json:"fields,omitempty"`   // of an item: file, line, column, endLine, endColumn, message, rule, severity, suggestion, url
	Require  string            `json:"require,omitempty"`  // a value that a document of the format has
	Files    string            `json:"files,omitempty"`    // the number of files that were read
	Missed   string            `json:"missed,omitempty"`   // the files that could not be read
	MissedAs []string          `json:"missedAs,omitempty"` // what says which they are, and why
	Zero     []string          `json:"zero,omitempty"`     // the fields that count from 0
	// Each says that the output is a JSON document on each line.
	Each bool `json:"each,omitempty"`

	RulePrefix string                     `json:"rulePrefix,omitempty"` // of rules that are numbers
	Severities map[string]checks.Severity `json:"severities,omitempty"` // of the tool's words
	Severity   checks.Severity            `json:"severity,omitempty"`   // of all findings
}

// linePattern is a pattern with the groups file, line, column, endLine, endColumn, severity, rule, message and suggestion.
type linePattern struct {
	Pattern  string          `json:"pattern"`
	Message  string          `json:"message,omitempty"` // where the pattern has none
	Severity checks.Severity `json:"severity,omitempty"`
	re       *regexp.Regexp
}

// compiled is a format with its patterns and paths.
type compiled struct {
	format
	skip          []*regexp.Regexp
	end, place    *regexp.Regexp
	stops         *regexp.Regexp
	groups, items extract.Expr
	file, require extract.Expr
	files, missed extract.Expr
	missedAs      []extract.Expr
	fields        map[string]extract.Expr
}

// declared are the declared formats, which are compiled when they are used.
var declared = sync.OnceValue(func() map[string]func() *compiled {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(declaredJSON, &all); err != nil {
		panic(fmt.Sprintf("declared formats: %v", err)) // a test decodes them
	}
	out := make(map[string]func() *compiled, len(all))
	for name, text := range all {
		out[name] = sync.OnceValue(func() *compiled {
			var f format
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields()
			if err := d.Decode(&f); err != nil {
				panic(fmt.Sprintf("declared formats: %s: %v", name, err))
			}
			return compile(name, f)
		})
	}
	return out
})

func compile(name string, f format) *compiled {
	must := func(text string) extract.Expr {
		e, err := extract.Parse(text)
		if err != nil {
			panic(fmt.Sprintf("declared formats: %s: %v", name, err))
		}
		return e
	}
	c := &compiled{format: f, groups: must(f.Groups), items: must(f.Items), file: must(f.File), require: must(f.Require), files: must(f.Files), missed: must(f.Missed), fields: map[string]extract.Expr{}}
	for _, text := range f.MissedAs {
		c.missedAs = append(c.missedAs, must(text))
	}
	for i := range c.Lines {
		c.Lines[i].re = regexp.MustCompile(c.Lines[i].Pattern)
	}
	for _, p := range f.Skip {
		c.skip = append(c.skip, regexp.MustCompile(p))
	}
	if f.End != "" {
		c.end = regexp.MustCompile(f.End)
	}
	if f.Stops != "" {
		c.stops = regexp.MustCompile(f.Stops)
	}
	if f.Place != "" {
		c.place = regexp.MustCompile(f.Place)
	}
	for field, text := range f.Fields {
		c.fields[field] = must(text)
	}
	return c
}

func (c *compiled) read(data []byte, o Options) (checks.Report, error) {
	switch {
	case len(c.Lines) > 0:
		return c.readLines(data, o), nil
	case c.Each:
		return c.readEach(data, o)
	}
	var doc any
	if err := oneDocument(data, &doc); err != nil {
		return checks.Report{}, err
	}
	return c.readDocument(doc, o)
}

// readLines reads a text line by line. Text has no end of its own: it is complete unless the format declares one.
func (c *compiled) readLines(data []byte, o Options) checks.Report {
	r := checks.Report{Files: -1, Complete: c.end == nil, Stopped: c.stops != nil && c.stops.MatchString(clean(string(data)))}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(clean(strings.TrimRight(line, "\r\n")), " \t")
		if line == "" {
			continue
		}
		if c.end != nil && c.end.MatchString(line) {
			r.Complete = true
			continue
		}
		if f, ok := c.match(line, o); ok {
			r.Findings = append(r.Findings, f)
			continue
		}
		if n := len(r.Findings); n > 0 && c.more(&r.Findings[n-1], line, o) || matchesAny(c.skip, line) {
			continue
		}
		r.Ignored++
	}
	return r
}

// more adds a line to the finding above it. A line of marks shows a place in the line above it, which is one of the code.
func (c *compiled) more(f *checks.Finding, line string, o Options) bool {
	if c.place != nil {
		if m := c.place.FindStringSubmatch(line); m != nil {
			c.fill(f, c.place, m, o)
			return true
		}
	}
	if c.Rest != "more" || matchesAny(c.skip, line) {
		return false
	}
	if strings.Trim(line, "^~ ") == "" {
		f.Suggestion = f.Suggestion[:strings.LastIndexByte(strings.TrimSuffix(f.Suggestion, "\n"), '\n')+1]
	} else if len(f.Suggestion) < maxText {
		f.Suggestion += line + "\n"
	}
	return true
}

func matchesAny(all []*regexp.Regexp, line string) bool {
	for _, re := range all {
		if re.MatchString(line) {
			return true
		}
	}
	return false
}

// match reads a line by the first pattern that it matches.
func (c *compiled) match(line string, o Options) (f checks.Finding, ok bool) {
	for _, p := range c.Lines {
		m := p.re.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		f.Severity, f.Message = p.Severity, p.Message
		c.fill(&f, p.re, m, o)
		if f.Severity == "" {
			f.Severity = c.Severity
		}
		return f, true
	}
	return f, false
}

// fill sets the fields of a finding that a match has.
func (c *compiled) fill(f *checks.Finding, re *regexp.Regexp, match []string, o Options) {
	for i, name := range re.SubexpNames() {
		if name != "" && match[i] != "" {
			c.set(f, name, match[i], o)
		}
	}
}

// set sets a field of a finding by its name.
func (c *compiled) set(f *checks.Finding, name, text string, o Options) {
	number := func(to *int) {
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
			if slices.Contains(c.Zero, name) {
				n++
			}
			*to = n
		}
	}
	switch name {
	case "file":
		f.File = o.file(text)
	case "line":
		number(&f.Line)
	case "column":
		number(&f.Column)
	case "endLine":
		number(&f.EndLine)
	case "endColumn":
		number(&f.EndColumn)
	case "message":
		f.Message = text
	case "rule":
		f.Rule = c.RulePrefix + text
	case "url":
		f.URL = text
	case "suggestion":
		f.Suggestion = text
	case "severity":
		if s, ok := c.Severities[strings.ToLower(text)]; ok {
			f.Severity = s
		} else {
			f.Severity = severityOf(text)
		}
	}
}

// readEach reads a document on each line.
func (c *compiled) readEach(data []byte, o Options) (checks.Report, error) {
	r := checks.Report{Files: -1, Complete: true}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if c.stops != nil && c.stops.MatchString(line) {
			r.Stopped = true
		}
		var doc any
		if err := oneDocument([]byte(line), &doc); err != nil {
			if matchesAny(c.skip, line) {
				continue
			}
			return r, fmt.Errorf("a line of it: %w", err)
		}
		one, err := c.readDocument(doc, o)
		if err != nil {
			return r, err
		}
		r.Findings = append(r.Findings, one.Findings...)
	}
	return r, nil
}

// readDocument reads the findings of a JSON document.
func (c *compiled) readDocument(doc any, o Options) (checks.Report, error) {
	r := checks.Report{Files: -1, Complete: true}
	switch doc.(type) {
	case map[string]any, []any:
	default:
		return r, errors.New("it is no JSON object or list")
	}
	if _, ok := doc.([]any); !ok && (c.Groups == "*" || c.Items == "*") {
		return r, errors.New("it is no list")
	}
	if c.Require != "" && len(c.require.Items(doc)) == 0 {
		if m, ok := doc.(map[string]any); !ok || !has(m, c.Require) {
			return r, fmt.Errorf("it has no %q", c.Require)
		}
	}
	if n := c.files.Text(doc); c.Files != "" && n != "" {
		r.Files = number(n)
	}
	if c.Missed != "" {
		for _, m := range c.missed.Items(doc) {
			var said []string
			for _, e := range c.missedAs {
				said = append(said, e.Text(m))
			}
			r.Missed = append(r.Missed, strings.Join(said, ": "))
		}
	}
	groups := []any{doc}
	if c.Groups != "" {
		groups = c.groups.Items(doc)
		r.Files = len(groups)
	}
	for _, g := range groups {
		file := c.file.Text(g)
		for _, item := range c.itemsOf(g) {
			f := checks.Finding{File: o.file(file), Severity: c.Severity}
			for name, e := range c.fields {
				if text := e.Text(item); text != "" {
					c.set(&f, name, text, o)
				}
			}
			if f.Severity == "" {
				f.Severity = checks.Medium
			}
			if f.Message == "" && f.Rule == "" && f.File == "" {
				r.Ignored++
				continue
			}
			r.Findings = append(r.Findings, f)
		}
	}
	return r, nil
}

func (c *compiled) itemsOf(group any) []any {
	if c.Items == "" {
		return []any{group}
	}
	if c.Items == "*" {
		if list, ok := group.([]any); ok {
			return list
		}
	}
	return c.items.Items(group)
}

// has reports whether a document has a member, perhaps an empty list.
func has(m map[string]any, name string) bool { _, ok := m[name]; return ok }
