package budget

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/state/regular"
)

// Files that agent programs read, as patterns of [fs.Glob].
var (
	instructionFiles = []string{
		"AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", ".github/copilot-instructions.md",
		".github/instructions/*.md", ".cursorrules", ".cursor/rules/*.mdc", ".cursor/rules/*.md", ".cursor/rules/*/*.mdc",
	}
	skillFiles = []string{".claude/skills/*/SKILL.md", ".github/skills/*/SKILL.md", "skills/*/SKILL.md"}
)

const templateFolder = ".github/templates"

// Limits for reading files.
const (
	budgetFileLimit = 1 << 20 // counted bytes of a file; the rest is estimated from them
	budgetFiles     = 1000    // maximum matches of a pattern
)

// contextFiles counts the files of an agent's context. A file counts once even if several names lead to it: CLAUDE.md
// is often a link to AGENTS.md.
type contextFiles struct {
	root    *os.Root
	counted []countedFile
}

type countedFile struct {
	name string
	info os.FileInfo
}

// matching counts the files below the root that match the patterns, in the order of the patterns. A file that leads out
// of the tree or cannot be read is listed with the reason and zero tokens.
func (c *contextFiles) matching(patterns ...string) []render.BudgetItem {
	var out []render.BudgetItem
	for _, p := range patterns {
		names := []string{p}
		if strings.ContainsRune(p, '*') {
			names, _ = fs.Glob(regular.FS(c.root), p) // the patterns are constants and well-formed
		}
		out = append(out, c.named(names[:min(len(names), budgetFiles)]...)...)
	}
	return out
}

// named counts files by name; missing files are omitted.
func (c *contextFiles) named(names ...string) []render.BudgetItem {
	var out []render.BudgetItem
	for _, name := range names {
		if it, ok := c.count(name); ok {
			out = append(out, it)
		}
	}
	return out
}

// count counts one file; false if it does not exist or is a folder.
func (c *contextFiles) count(name string) (render.BudgetItem, bool) {
	it := render.BudgetItem{Name: name}
	info, err := c.root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.IsDir():
		return it, false
	case err != nil:
		it.Note = "not counted: it cannot be read, or leads out of the tree"
		return it, true
	}
	same := func(f countedFile) bool { return os.SameFile(f.info, info) }
	if i := slices.IndexFunc(c.counted, same); i >= 0 {
		it.Note = "the same file as " + c.counted[i].name
		return it, c.counted[i].name != name
	}
	c.counted = append(c.counted, countedFile{name, info})
	text, err := readBeginning(c.root, name)
	if err != nil {
		it.Note = fmt.Sprintf("not counted: %v", regular.Cause(err))
		return it, true
	}
	return text.item(name), true
}

// boundedText is the beginning of a file, with the size of the whole file.
type boundedText struct {
	text string
	size int64
}

// readBeginning reads at most budgetFileLimit bytes of a file below the root.
func readBeginning(root *os.Root, name string) (boundedText, error) {
	f, info, err := regular.Open(root, name)
	if err != nil {
		return boundedText{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, budgetFileLimit))
	return boundedText{string(data), max(info.Size(), int64(len(data)))}, err
}

// item counts the text. The unread rest is estimated with the tokens per byte of the text.
func (b boundedText) item(name string) render.BudgetItem {
	it := render.BudgetItem{Name: name}
	if strings.ContainsRune(b.text, 0) {
		it.Note = "not counted: it is no text"
		return it
	}
	it.Tokens = tokens.Count(b.text)
	if read := int64(len(b.text)); read > 0 && read < b.size {
		it.Tokens, it.Estimated = int(float64(it.Tokens)*float64(b.size)/float64(read)), true
	}
	if !utf8.ValidString(b.text) && !it.Estimated {
		it.Note = "has bytes that are not UTF-8"
	}
	return it
}
