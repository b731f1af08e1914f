package memory

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// edit is a file that a tool changed.
type edit struct{ verb, path string }

// Verbs of edits, as in messages of roleEdit.
const (
	verbCreated  = "Created"
	verbWrote    = "Wrote" // whole file: it is unknown whether it existed before
	verbModified = "Modified"
	verbDeleted  = "Deleted"
)

// editTools are the tools that change files, by their names in lower case without signs, "copilot" before them or not.
var editTools = map[string]string{
	"edit": verbModified, "multiedit": verbModified, "notebookedit": verbModified, "strreplace": verbModified,
	"strreplaceeditor": verbModified, "strreplacebasededittool": verbModified, "replace": verbModified,
	"replacestringinfile": verbModified, "multireplacestringinfile": verbModified, "inserteditintofile": verbModified,
	"editfile": verbModified, "editnotebookfile": verbModified, "searchreplace": verbModified, "textedit": verbModified,
	"texteditgroup": verbModified, "write": verbWrote, "writefile": verbWrote, "writetofile": verbWrote,
	"create": verbCreated, "createfile": verbCreated, "deletefile": verbDeleted, "filechange": verbModified,
}

// call reads a call of a tool, in any known form; false if o is not a call. It records the paths of tools that
// change files, and ignores other tools.
func (r *transcriptReader) call(o transcriptObject) bool {
	if inner := o.object("functionCall", "function"); inner != nil {
		o = inner
	}
	name := o.text("name", "toolName", "tool_name", "toolId", "kind")
	typ := o.text("type")
	if name == "" && (typ == "file_change" || typ == "patch_apply") {
		name = typ
	}
	if name == "" || !isCall(o, typ) {
		return false
	}
	args := o.object("input", "arguments", "args", "parameters")
	if args == nil {
		text := o.text("input", "arguments", "args")
		if args = objectOf(json.RawMessage(text)); args == nil {
			r.patch(text)
			args = o
		}
	}
	r.tool(toolName(name), args)
	return true
}

// isCall reports whether a record with a name is a call, and not a message of an author with that name.
func isCall(o transcriptObject, typ string) bool {
	switch typ {
	case "tool_use", "function_call", "custom_tool_call", "local_shell_call", "tool.execution_start", "function",
		"file_change", "patch_apply", "tool_call":
		return true
	case "":
		return o.text("role") == ""
	}
	return false
}

func toolName(name string) string {
	name = strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			return c
		}
		return -1
	}, strings.ToLower(name[strings.LastIndexAny(name, ".:/")+1:]))
	return strings.TrimPrefix(name, "copilot")
}

// tool notes the files that a call changes.
func (r *transcriptReader) tool(name string, args transcriptObject) {
	for _, raw := range args.list("changes") { // of "codex exec --json"
		change := objectOf(raw)
		r.edit(changeVerb(change.text("kind")), change.text("path"))
	}
	verb := editTools[name]
	if command := args.text("command"); verb != "" && command != "" { // of the editor tool that can also show files
		verb = map[string]string{"create": verbCreated, "str_replace": verbModified, "insert": verbModified}[command]
	}
	if verb != "" {
		r.edit(verb, pathArg(args))
		for _, raw := range args.list("replacements", "edits") {
			r.edit(verb, pathArg(objectOf(raw)))
		}
	}
	if name == "applypatch" || name == "shell" || name == "execcommand" || name == "localshell" || name == "bash" {
		r.patch(patchArg(args))
	}
}

func changeVerb(kind string) string {
	switch kind {
	case "add":
		return verbCreated
	case "delete":
		return verbDeleted
	}
	return verbModified
}

func pathArg(args transcriptObject) string {
	names := []string{"file_path", "filePath", "path", "notebook_path", "absolute_path", "target_file", "filename"}
	if name := args.text(names...); name != "" {
		return name
	}
	return args.object("uri").text("fsPath", "path")
}

// patchArg is the argument of a call that may hold a patch: a string, or the last of a list of strings.
func patchArg(args transcriptObject) string {
	if text := args.text("input", "patch", "cmd", "command"); text != "" {
		return text
	}
	list := args.list("command", "cmd")
	if len(list) == 0 {
		return ""
	}
	var last string
	if json.Unmarshal(list[len(list)-1], &last) != nil {
		return ""
	}
	return last
}

// patch notes the files of a patch in the form of Codex' apply_patch.
func (r *transcriptReader) patch(text string) {
	if !strings.Contains(text, "*** Begin Patch") {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		head, name, found := strings.Cut(strings.TrimSpace(line), ": ")
		if !found {
			continue
		}
		switch head {
		case "*** Add File", "*** Move to":
			r.edit(verbCreated, name)
		case "*** Update File":
			r.edit(verbModified, name)
		case "*** Delete File":
			r.edit(verbDeleted, name)
		}
	}
}

// edit notes a file, once for each run of edits. Its path is relative to the folder of the conversation, if it is
// below.
func (r *transcriptReader) edit(verb, name string) {
	name = relativePath(r.root, name)
	if name == "" || strings.ContainsAny(name, "\n\r\x00") {
		return
	}
	if e := (edit{verb, name}); !slices.Contains(r.edits, e) && len(r.edits) < 1000 {
		r.edits = append(r.edits, e)
	}
}

// relativePath is a path with slashes, below root if it is.
func relativePath(root, name string) string {
	name = strings.ReplaceAll(strings.TrimSpace(name), `\`, "/")
	if name == "" {
		return ""
	}
	name = path.Clean(name)
	root = strings.TrimSuffix(strings.ReplaceAll(root, `\`, "/"), "/")
	if below, found := strings.CutPrefix(name, root+"/"); root != "" && found {
		return below
	}
	return name
}

func editLines(edits []edit) string {
	var b strings.Builder
	for _, e := range edits {
		b.WriteString(e.verb + " " + e.path + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// readEdits reads what editLines wrote.
func readEdits(text string) []edit {
	var out []edit
	for line := range strings.SplitSeq(text, "\n") {
		verb, name, found := strings.Cut(line, " ")
		if found && slices.Contains([]string{verbCreated, verbWrote, verbModified, verbDeleted}, verb) {
			out = append(out, edit{verb, name})
		}
	}
	return out
}

// flushEdits makes one message of the first n files that were changed since the last one.
func (r *transcriptReader) flushEdits(n int) {
	if n == 0 {
		return
	}
	r.out.Messages = append(r.out.Messages, Message{roleEdit, editLines(r.edits[:n])})
	r.edits = slices.Clone(r.edits[n:])
}
