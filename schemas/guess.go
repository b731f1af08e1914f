package schemas

import (
	"fmt"
	"path"
	"slices"
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

// GuessWord returns the best of words for s, the one that costs the fewest edits, or "" if none is near enough. The edits are
// insertions, deletions, replacements and swaps of neighbours, case ignored, and at most a third of the longer word's
// length. Of equals, the first wins.
func GuessWord(s string, words []string) string {
	if s == "" || len(s) > nearMax {
		return ""
	}
	best, bestCost := "", -1
	low := []rune(strings.ToLower(s))
	for _, w := range words {
		if w == "" || len(w) > nearMax {
			continue
		}
		limit := max(len(low), len(w)) / 3
		if bestCost >= 0 {
			limit = min(limit, bestCost-1)
		}
		cost := editDistance(low, []rune(strings.ToLower(w)), limit)
		if cost <= limit {
			best, bestCost = w, cost
		}
	}
	return best
}

// guessField is GuessWord for the name of a field. It also knows what dagu, Argo Workflows, GitHub Actions, Task, Compose and Airflow call
// their fields, and finds a field that the name begins with, of at least three letters.
func guessField(name string, fields []string) string {
	for _, f := range fieldsCalled(strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))) {
		if slices.Contains(fields, f) {
			return f
		}
	}
	if near := GuessWord(name, fields); near != "" {
		return near
	}
	best := ""
	for _, f := range fields {
		if len(f) >= 3 && len(f) > len(best) && strings.HasPrefix(name, f) {
			best = f
		}
	}
	return best
}

// fieldsCalled returns our fields for a word of other programs, in lower case without dashes, the likeliest first.
func fieldsCalled(word string) []string {
	switch word {
	case "depends", "dependson", "dependencies", "deps", "requires", "after", "upstream":
		return []string{"needs"}
	case "cmd", "cmds", "command", "commands", "exec", "args", "entrypoint":
		return []string{"run"}
	case "shell", "bash", "sh":
		return []string{"script"}
	case "steps", "tasks", "jobs", "templates":
		return []string{"nodes", "steps"}
	case "if", "condition", "conditions", "precondition", "preconditions":
		return []string{"when", "condition"}
	case "environment", "environ", "envvars", "variables", "vars":
		return []string{"env", "params"}
	case "parameters", "arguments":
		return []string{"params", "with"}
	case "cwd", "dir", "directory", "workdir", "workingdirectory":
		return []string{"workingDir"}
	case "timeoutsec", "timeoutseconds", "timeoutminutes", "activedeadlineseconds", "deadline":
		return []string{"timeout"}
	case "retries", "retrypolicy", "retrystrategy", "maxretries", "attempts", "backofflimit":
		return []string{"retry"}
	case "strategy", "foreach", "withitems", "withparam":
		return []string{"matrix"}
	case "loop", "until", "while":
		return []string{"repeat"}
	case "continueon", "continueonerror", "continueonfail", "allowfailure":
		return []string{"optional"}
	case "artifacts", "artefacts", "produces", "generates":
		return []string{"outputs"}
	case "sources":
		return []string{"inputs"}
	case "approval", "approvals", "suspend", "humantask":
		return []string{"approve"}
	case "onexit", "handleron":
		return []string{"finally"}
	case "cron":
		return []string{"schedule"}
	case "subworkflow", "subdag", "call":
		return []string{"dag"}
	case "instruction", "task", "question":
		return []string{"prompt"}
	case "system", "systemprompt":
		return []string{"instructions"}
	case "labels", "annotations", "tags":
		return []string{"metadata"}
	}
	return nil
}

// OnlyNear is the only one of words that is near enough to be meant by s, or ""; words may repeat.
func OnlyNear(s string, words []string) string {
	near := GuessWord(s, words)
	others := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == near })
	if GuessWord(s, others) != "" {
		return ""
	}
	return near
}

// DidYouMean is ` (did you mean "x"?)` for the nearest of words, or "".
func DidYouMean(s string, words []string) string {
	if near := GuessWord(s, words); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// editDistance is the optimal-string-alignment distance between a and b, or limit+1 where it is certain to exceed limit.
func editDistance(a, b []rune, limit int) int {
	if limit < 0 || len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+differ(a[i-1], b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
