package memory

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/schemas"
)

// outputMessages reads the output of a run as a conversation: one that an agent's command line printed, or one message
// with the texts of a JSON value, or with the output as it is.
func outputMessages(output string) []Message {
	if messages, err := ReadConversation([]byte(output)); err == nil {
		return messages
	}
	text := output
	if value := bytes.TrimSpace([]byte(output)); json.Valid(value) {
		var v any
		if json.Unmarshal(value, &v) == nil {
			var r report
			r.value("", v, 0)
			text = r.String()
		}
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []Message{{Role: roleAssistant, Content: text}}
}

// report writes the texts of a JSON value as a summary: lists and texts under names of sections become sections, other
// texts paragraphs.
type report struct{ strings.Builder }

// reportDepth bounds how deep texts are looked for.
const reportDepth = 6

// value writes what stands under a name, of objects in the order of the names.
func (r *report) value(name string, v any, depth int) {
	if depth > reportDepth {
		return
	}
	switch v := v.(type) {
	case string:
		r.text(name, []string{v})
	case []any:
		r.list(name, v, depth)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r.value(key, v[key], depth+1)
		}
	}
}

// spacedKey parts the words of a name: keyFacts, key_facts and key-facts are key facts.
func spacedKey(name string) string {
	var b strings.Builder
	for i, c := range name {
		switch {
		case c == '_' || c == '-':
			c = ' '
		case unicode.IsUpper(c) && i > 0:
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

func (r *report) list(name string, list []any, depth int) {
	var texts []string
	for _, one := range list {
		switch one := one.(type) {
		case string:
			texts = append(texts, one)
		case map[string]any:
			if text := reportTold(one); sectionKey(name) != "" && text != "" {
				texts = append(texts, text)
				continue
			}
			r.value("", one, depth+1)
		}
	}
	r.text(name, texts)
}

// reportTold is the text of an element of a section that is an object.
func reportTold(o map[string]any) string {
	var texts []string
	for _, name := range []string{"title", "decision", "error", "fact", "change", "path", "file", "text", "content",
		"summary", "message", "description", "reason", "rationale", "fix", "resolution"} {
		if text, ok := o[name].(string); ok && strings.TrimSpace(text) != "" {
			texts = append(texts, strings.TrimRight(strings.TrimSpace(text), "."))
		}
	}
	return strings.Join(texts, ". ")
}

// text writes texts: as bullets of a section, if the name is that of one, else as paragraphs.
func (r *report) text(name string, texts []string) {
	section := sectionKey(name)
	if section == leftOut || len(texts) == 0 {
		return
	}
	if section == noSection || section == schemas.CategorySummary {
		r.WriteString("\n\n# -\n\n" + strings.Join(texts, "\n\n# -\n\n")) // a heading ends the section before it
		return
	}
	r.WriteString("\n\n# " + spacedKey(name) + "\n")
	for _, text := range texts {
		r.WriteString("\n- " + strings.Join(strings.Fields(text), " "))
	}
}

// isNothing reports whether a text says that there is nothing to tell.
func isNothing(text string) bool {
	switch strings.ToLower(strings.Trim(text, "()[]*_. ")) {
	case "", "none", "n/a", "nothing", "no", "no errors", "no changes", "no decisions", "none so far", "nothing yet":
		return true
	}
	return false
}

// LearnRun learns entries from the output of an agent's run: the messages of a conversation, a JSON value with texts in
// it, or text. The steps are those of [Learn]. What says no more than that the work is done, or what tests printed,
// teaches nothing: there only sections, bullets of known sections, and sentences that the rules take count.
func LearnRun(s Source) Learned {
	if len(s.Messages) == 0 {
		s.Messages = outputMessages(s.Text)
		s.Text = ""
	}
	c := cleanEntry(s)
	text, left := compactText(c.messages)
	l := s.finish(c, learnEntries(text, false, ""))
	return l.missing(left)
}

// objectsIn finds what may be JSON objects in a text, inner ones before outer ones. Strings of JSON have no line
// breaks: one that is left open ends with its line.
func objectsIn(text []byte) (out [][]byte) {
	type open struct{ at, height int }
	var stack []open
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			inString = false
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++
		case inString:
		case c == '{':
			stack = append(stack, open{i, 0})
		case c == '}' && len(stack) > 0:
			o := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if len(stack) > 0 {
				stack[len(stack)-1].height = max(stack[len(stack)-1].height, o.height+1)
			}
			if o.height <= salvageDepth && i-o.at < salvageBytes {
				out = append(out, text[o.at:i+1])
			}
		}
	}
	return out
}

func wholeText(all []passage, whole bool, category string) []remark {
	if !whole {
		return nil
	}
	var texts []string
	for _, p := range all {
		if p.section != leftOut {
			texts = append(texts, p.text)
		}
	}
	var g remarkCollector
	text := strings.Join(texts, "\n")
	switch {
	case category != "":
	case rules().reportsFailure(newSentence(text)):
		category = schemas.CategoryError
	default:
		category = schemas.CategorySummary
	}
	g.add(category, text, true)
	return g.found
}
