package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// edits is how many times each file of a figure is edited, after one edit that is not counted.
const edits = 20

// edit changes the text of a Go file in a way that it was not changed in before, as the n-th edit of it.
type edit func(text []byte, n int) ([]byte, error)

// editBody has the first function that does something declare a constant of another name and value. The lines of the file
// stay the same from edit to edit, and it compiles: Go minds no constant that is not used.
func editBody(text []byte, n int) ([]byte, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || len(f.Body.List) == 0 {
			continue
		}
		at := files.Position(f.Body.Lbrace).Offset + 1
		return slices.Concat(text[:at], fmt.Appendf(nil, "\n\tconst %s = %d\n", editedName(n), n), text[at:]), nil
	}
	return nil, errors.New("no function to edit")
}

// editedName is the name that the n-th edit of a body brings in: one word, which has no parts that others have, too.
func editedName(n int) string {
	return "edited" + strings.Map(func(digit rune) rune { return rune("bcdfghkmnp"[digit-'0']) }, strconv.Itoa(n))
}

// editWhole adds a function to those that the edits before added.
func editWhole(text []byte, n int) ([]byte, error) {
	text = slices.Clone(text)
	for i := range n + 1 {
		text = fmt.Appendf(text, "\nfunc added%d() int { return %d }\n", i, i)
	}
	return text, nil
}

// editing is a figure: files of Go's own source that are edited in turn, each in the same way.
type editing struct {
	what  string
	files []string
	edit  edit
}

var editings = []editing{
	{"body in sort", []string{"sort/sort.go"}, editBody},
	{"body in strings", []string{"strings/strings.go"}, editBody},
	{"body in os", []string{"os/file.go"}, editBody},
	{"function new in strings", []string{"strings/strings.go"}, editWhole},
	{"bodies in 4 packages", []string{"sort/sort.go", "strings/strings.go", "os/file.go", "net/http/server.go"}, editBody},
}

// editTimes are what index took after each of some edits, and where nothing had changed since it last looked, and git
// status after the same edits.
type editTimes struct{ after, still, git []time.Duration }

// edited measures a refresh of an existing index of Go's own source, as a whole process, compared with git status:
// without changes since the index was built, after edits, and without changes since these were indexed.
func (v *vectorFigures) edited(ctx context.Context, _ []int) error {
	dir, err := v.indexedStd(ctx)
	if err != nil {
		return err
	}
	nothing, err := v.edit(ctx, dir, editing{})
	if err != nil {
		return err
	}
	v.editRow("nothing changed", nothing.still, nothing.git, 0)
	for _, e := range editings {
		t, err := v.edit(ctx, dir, e)
		if err != nil {
			return fmt.Errorf("%s: %w", e.what, err)
		}
		v.editRow(e.what, t.after, t.git, 50)
		v.editRow(e.what+", then nothing", t.still, t.git, 0)
	}
	return nil
}

// editRow prints the median, which has the bound in milliseconds, next to that of git status, and then the longest.
func (v *vectorFigures) editRow(what string, took, git []time.Duration, bound float64) {
	p50, most := quantile(took, 0.5), slices.Max(took)
	v.bench.row("Go's source, "+what, short(p50), short(quantile(git, 0.5)), short(p50), ms(p50), bound, " ms")
	if bound > 0 {
		v.bench.row("Go's source, "+what+", most", short(most), short(slices.Max(git)), short(most), ms(most), 0, "")
	}
}

// edit edits the files in turn, if any, and restores them.
func (v *vectorFigures) edit(ctx context.Context, dir string, e editing) (t editTimes, err error) {
	texts := make([][]byte, len(e.files))
	for i, file := range e.files {
		path := filepath.Join(dir, stdCopy, file)
		if texts[i], err = os.ReadFile(path); err != nil {
			return t, err
		}
		defer func() { err = errors.Join(err, os.WriteFile(path, texts[i], 0o666)) }()
	}
	if _, err := process(v.bench.reconcile(ctx, dir, "index")); err != nil {
		return t, err // what edits before left
	}
	each := max(1, len(e.files)) // the first edits concern files that were not read before
	for n := range (edits + 1) * each {
		if len(e.files) > 0 {
			i := n % len(e.files)
			changed, err := e.edit(texts[i], n)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, stdCopy, e.files[i]), changed, 0o666)
			}
			if err != nil {
				return t, err
			}
		}
		if err := v.look(ctx, dir, len(e.files) > 0, n >= each, &t); err != nil {
			return t, err
		}
	}
	return t, nil
}

// look measures git status and index, which must find that something changed or that nothing did, and then index
// again.
func (v *vectorFigures) look(ctx context.Context, dir string, changed, counts bool, t *editTimes) error {
	git, err := process(gitCommand(ctx, dir, "status", "--short"))
	if err != nil {
		return err
	}
	after, err := v.refreshed(ctx, dir, changed)
	if err != nil {
		return err
	}
	still, err := v.refreshed(ctx, dir, false)
	if err == nil && counts {
		t.git, t.after, t.still = append(t.git, git.wall), append(t.after, after), append(t.still, still)
	}
	return err
}

// What index says where files were edited, and where none was.
var (
	tookIn   = regexp.MustCompile(`took in [1-9]\d* inputs? that changed and 0 that went`)
	upToDate = regexp.MustCompile(`the index is up to date`)
)

// refreshed runs index, which is to find that something changed, or nothing, and returns how long the process took.
func (v *vectorFigures) refreshed(ctx context.Context, dir string, changed bool) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, v.bench.binary, "-C", dir, "index")
	cmd.Env = environment()
	want := upToDate
	if changed {
		want = tookIn
	}
	start := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(start)
	if err == nil && !want.Match(out) {
		err = fmt.Errorf("it does not say %q", want)
	}
	if err != nil {
		err = fmt.Errorf("index: %w\n%.2000s", err, out)
	}
	return took, err
}
