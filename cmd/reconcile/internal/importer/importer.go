// Package importer finds the existing commands of a project, and writes them as a DAG. It runs none of them.
package importer

import (
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas/shorten"
)

// Command is a command that becomes a node.
type Command struct {
	ID          string   // unique; Needs refer to these
	Name        string   // of the node
	Description string   //
	Run         []string // the program and its arguments
	Needs       []string
	Inputs      []string
	Env         map[string]string
	Dir         string // below the root; "" is the root
	Minutes     int    // its time limit; 0 for none
	Held        string // why it must not run automatically; "" if it may
	From        string // file, perhaps with a line
}

// Omission is an apparent command that is omitted.
type Omission struct {
	From string // file, perhaps with a line
	What string
	Why  string
}

// Found are the commands of a project.
type Found struct {
	Commands []Command
	Omitted  []Omission
}

func (f *Found) omit(from, what, why string, args ...any) {
	f.Omitted = append(f.Omitted, Omission{From: from, What: what, Why: fmt.Sprintf(why, args...)})
}

// nameLength is the maximum length of a node's name.
const nameLength = 63

// settle gives the commands unique names that are valid for nodes, and keeps only needs that exist and make no cycle.
func (f *Found) settle() {
	taken := map[string]bool{}
	ids := map[string]string{}
	for i := range f.Commands {
		c := &f.Commands[i]
		c.Name = freeName(nodeName(c.Name), taken)
		taken[c.Name] = true
		ids[c.ID] = c.Name
	}
	for i := range f.Commands {
		c := &f.Commands[i]
		var needs []string
		for _, id := range c.Needs {
			if name := ids[id]; name != "" && name != c.Name && !slices.Contains(needs, name) {
				needs = append(needs, name)
			}
		}
		c.Needs = needs
	}
	f.cutCycles()
}

// cutCycles drops needs that close a cycle, as make does.
func (f *Found) cutCycles() {
	at := map[string]int{}
	for i, c := range f.Commands {
		at[c.Name] = i
	}
	const open, done = 1, 2
	state := make([]int, len(f.Commands))
	for start := range f.Commands {
		if state[start] != 0 {
			continue
		}
		state[start] = open
		for stack := []struct{ node, next int }{{node: start}}; len(stack) > 0; {
			top := &stack[len(stack)-1]
			c := &f.Commands[top.node]
			if top.next == len(c.Needs) {
				state[top.node] = done
				stack = stack[:len(stack)-1]
				continue
			}
			switch to := at[c.Needs[top.next]]; state[to] {
			case open:
				c.Needs = slices.Delete(c.Needs, top.next, top.next+1)
			case done:
				top.next++
			default:
				state[to] = open
				top.next++
				stack = append(stack, struct{ node, next int }{node: to})
			}
		}
	}
}

// nodeName returns a node's name for a command's name.
func nodeName(word string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(word) {
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	name := strings.Trim(b.String(), "_")
	switch {
	case name == "":
		name = "command"
	case name[0] <= '9':
		name = "n" + name
	}
	return strings.TrimRight(name[:min(len(name), nameLength)], "_")
}

func freeName(name string, taken map[string]bool) string {
	free := name
	for n := 2; taken[free]; n++ {
		end := fmt.Sprintf("_%d", n)
		free = strings.TrimRight(name[:min(len(name), nameLength-len(end))], "_") + end
	}
	return free
}

// Why a command is held.
const (
	heldEndless = "it may run without an end"
	heldOutside = "it may remove things, or change things elsewhere"
	heldAsks    = "it asks before it runs"
)

// heldWords are words in names of commands that must not run automatically after an import. where is the part of the name
// that must be the word: any, the first, or all of it.
var heldWords = map[string]struct{ why, where string }{
	"watch": {heldEndless, "any"}, "serve": {heldEndless, "any"},
	"dev": {heldEndless, "first"}, "start": {heldEndless, "first"}, "server": {heldEndless, "all"}, "preview": {heldEndless, "all"},
	"run": {heldEndless, "all"}, "up": {heldEndless, "all"}, "shell": {heldEndless, "all"}, "console": {heldEndless, "all"},
	"deploy": {heldOutside, "any"}, "publish": {heldOutside, "any"}, "push": {heldOutside, "any"}, "upload": {heldOutside, "any"},
	"clean": {heldOutside, "any"}, "distclean": {heldOutside, "any"}, "mrproper": {heldOutside, "any"}, "uninstall": {heldOutside, "any"},
	"release": {heldOutside, "first"}, "install": {heldOutside, "first"}, "purge": {heldOutside, "first"},
	"destroy": {heldOutside, "first"}, "delete": {heldOutside, "first"}, "drop": {heldOutside, "first"}, "reset": {heldOutside, "first"},
	"migrate": {heldOutside, "first"}, "rollback": {heldOutside, "first"}, "down": {heldOutside, "all"}, "tag": {heldOutside, "all"},
	"bump": {heldOutside, "first"}, "prune": {heldOutside, "first"},
}

// heldBecause returns why a command of this name is held, or "".
func heldBecause(name string) string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !('a' <= r && r <= 'z' || '0' <= r && r <= '9') })
	for i, part := range parts {
		w := heldWords[part]
		if w.where == "any" || w.where == "first" && i == 0 || w.where == "all" && len(parts) == 1 {
			return w.why
		}
	}
	return ""
}

// heldThrough returns why a command is held of a program that first runs what the command needs: for its own reason, or for
// that of one that it needs; "" if it may run.
func heldThrough(name string, needs map[string][]string, own func(string) string) string {
	if why := own(name); why != "" {
		return why
	}
	seen := map[string]bool{name: true}
	for todo := slices.Clone(needs[name]); len(todo) > 0; todo = todo[1:] {
		if seen[todo[0]] {
			continue
		}
		seen[todo[0]] = true
		if why := own(todo[0]); why != "" {
			return fmt.Sprintf("it runs %s, and of that: %s", todo[0], why)
		}
		todo = append(todo, needs[todo[0]]...)
	}
	return ""
}

// isShown reports whether a name is valid as an argument and printable: no control characters, and no flag.
func isShown(name string) bool {
	return name != "" && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' })
}

// short returns the beginning of a text's first line.
func short(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(strings.ToValidUTF8(text, "")), "\n")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, shorten.Text(text, 200)))
}

// commandWords returns the first words of the first command of a text.
func commandWords(text string) string {
	line := short(text)
	words := strings.FieldsFunc(line, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_')
	})
	return strings.Join(words[:min(len(words), 3)], " ")
}

// unique drops duplicates.
func unique(list []string) (out []string) {
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
