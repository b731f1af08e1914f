package index

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/source"
)

// tagger finds symbols with universal-ctags.
type tagger struct {
	program string // "" if not installed
	version string // part of the inputs' digests
	dir     string
}

// tagsCache holds the program's stat data and its version.
const tagsCache = ".reconcile/cache/index-ctags"

// newTagger looks for a universal-ctags that prints JSON, and uses no other ctags. The program is asked once; the answer is
// cached until the file changes.
func newTagger(ctx context.Context, store *state.Store) *tagger {
	program, err := exec.LookPath("ctags")
	if err != nil {
		return &tagger{}
	}
	fi, err := os.Stat(program)
	if err != nil {
		return &tagger{}
	}
	key := fmt.Sprintf("%s %d %d\n", program, fi.Size(), fi.ModTime().UnixNano())
	if known, _, err := store.ReadFile(tagsCache, 1<<12); err == nil {
		if version, ok := strings.CutPrefix(string(known), key); ok {
			return verifyFound(program, version, store.Dir())
		}
	}
	version := askVersion(ctx, program)
	if ctx.Err() == nil {
		_ = store.Replace(tagsCache, []byte(key+version)) // otherwise it is asked again
	}
	return verifyFound(program, version, store.Dir())
}

// askVersion returns the version of universal-ctags; "" for another program, or one that prints no JSON.
func askVersion(ctx context.Context, program string) string {
	features, err := exec.CommandContext(ctx, program, "--options=NONE", "--list-features").Output()
	if err != nil || !bytes.Contains(features, []byte("json")) {
		return ""
	}
	out, err := exec.CommandContext(ctx, program, "--options=NONE", "--version").Output()
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(out), "\n")
	first, _, _ = strings.Cut(first, ",")
	return first
}

// mostTags is the maximum number of symbols of all files of one call.
const mostTags = 5_000_000

// tags returns the symbols of files, by path; with an error those found before it. No option file of the user or of the
// tree is read, because these can name programs.
func (t *tagger) tags(ctx context.Context, paths []string) (map[string][]source.Tag, error) {
	if t.program == "" || len(paths) == 0 {
		return nil, nil
	}
	options := append([]string{"--options=NONE", "--output-format=json", "--fields=+neZKSl", "--links=no",
		"--map-TypeScript=+.tsx", "--map-JavaScript=+.jsx"}, source.TagPatterns()...)
	cmd := exec.CommandContext(ctx, t.program, append(options, "-f", "-", "-L", "-")...)
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
	tags, err := readTags(out)
	if err != nil {
		_ = cmd.Process.Kill()
	}
	if exit := cmd.Wait(); err == nil {
		err = exit
	}
	if err != nil {
		return tags, fmt.Errorf("%s: %w", t.program, err)
	}
	return tags, nil
}

// readTags reads the output of ctags to the end.
func readTags(from io.Reader) (map[string][]source.Tag, error) {
	tags := map[string][]source.Tag{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for n := 0; lines.Scan(); n++ {
		if n == mostTags {
			return tags, fmt.Errorf("there are more than %d symbols", mostTags)
		}
		var tag source.Tag
		if json.Unmarshal(lines.Bytes(), &tag) == nil && tag.Path != "" {
			p := strings.TrimPrefix(filepath.ToSlash(tag.Path), "./")
			tags[p] = append(tags[p], tag)
		}
	}
	return tags, lines.Err()
}

// tagged returns the files that ctags may support.
func (s *survey) tagged(wanted []input) []string {
	var out []string
	for _, in := range wanted {
		if p, ok := strings.CutPrefix(in.name, "file:"); ok && !source.IsMarkdown(p) {
			out = append(out, p)
		}
	}
	return out
}

func renameTag(id *string, to string) string {
	*id = cmp.Or(to, *id)
	return *id
}
