package index

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/vectors/source"
)

// tagger finds symbols with universal-ctags.
type tagger struct {
	program string // "" if there is none
	version string // part of what inputs are known by
	dir     string
}

// newTagger looks for universal-ctags that prints JSON. Other programs of the name are not used.
func newTagger(ctx context.Context, dir string) *tagger {
	program, err := exec.LookPath("ctags")
	if err != nil {
		return &tagger{}
	}
	features, err := exec.CommandContext(ctx, program, "--options=NONE", "--list-features").Output()
	if err != nil || !bytes.Contains(features, []byte("json")) {
		return &tagger{}
	}
	out, err := exec.CommandContext(ctx, program, "--options=NONE", "--version").Output()
	if err != nil {
		return &tagger{}
	}
	first, _, _ := strings.Cut(string(out), "\n")
	first, _, _ = strings.Cut(first, ",")
	return &tagger{program: program, version: first, dir: dir}
}

// mostTags is how many symbols are read of all files of one call.
const mostTags = 5_000_000

// tags are the symbols of files, by path. No option file of the user or of the tree is read: these can name programs.
func (t *tagger) tags(ctx context.Context, paths []string) (map[string][]source.Tag, error) {
	if t.program == "" || len(paths) == 0 {
		return nil, nil
	}
	cmd := exec.CommandContext(ctx, t.program, "--options=NONE", "--output-format=json", "--fields=+neZKS", "--links=no", "-f", "-", "-L", "-")
	cmd.Dir = t.dir
	var list bytes.Buffer
	for _, p := range paths {
		if !strings.ContainsAny(p, "\n\r") {
			list.WriteString("./" + filepath.FromSlash(p) + "\n")
		}
	}
	cmd.Stdin = &list
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", t.program, err)
	}
	found := map[string][]source.Tag{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for n := 0; lines.Scan() && n < mostTags; n++ {
		var tag source.Tag
		if json.Unmarshal(lines.Bytes(), &tag) == nil && tag.Path != "" {
			p := strings.TrimPrefix(filepath.ToSlash(tag.Path), "./")
			found[p] = append(found[p], tag)
		}
	}
	if lines.Err() != nil {
		_ = cmd.Process.Kill()
	}
	if err := cmd.Wait(); err != nil && lines.Err() == nil {
		return nil, fmt.Errorf("%s: %w", t.program, err)
	}
	return found, lines.Err()
}
