package gitrepo

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"reconcile.dev/reconcile/state/mutants"
)

// convertCase is a repository with random configuration, attributes and files.
type convertCase struct {
	t     *testing.T
	r     *rand.Rand
	dir   string
	files map[string][]byte
}

var (
	convertPatterns = []string{"*", "*.txt", "*.bin", "a.*", "/a.txt", "sub/*", "sub/**", "**/b.txt", "sub/deep/a.txt", "[ab].txt",
		"[!a].txt", "s?b/*.txt", "\"*.txt\"", "\"sub/\\142.txt\"", "deep", "deep/", "sub/", "/sub/deep/**", "*.[[:alpha:]]xt", "!a.txt",
		"**", "**/deep/**", "sub/**/a.txt", "b*", "*t", "\\*.txt", "d*p/a.txt"}
	convertWords = []string{"text", "-text", "!text", "text=auto", "text=input", "text=other", "eol=lf", "eol=crlf", "-eol", "!eol", "ident",
		"-ident", "!ident", "binary", "-binary", "!binary", "crlf", "-crlf", "crlf=input", "own", "mine", "-own", "diff", "merge=x",
		"working-tree-encoding=UTF-16LE", "working-tree-encoding=utf16be", "working-tree-encoding=UTF-16",
		"working-tree-encoding=UTF-16LE-BOM", "working-tree-encoding=UTF-32BE", "!working-tree-encoding", "working-tree-encoding=UTF-8",
		"filter=none", "bad*name", "-", "text =x"}
	convertPaths = []string{"a.txt", "b.txt", "c.bin", "noext", "sub/a.txt", "sub/b.txt", "sub/x.TXT", "sub/deep/a.txt", "sub/deep/d.bin",
		"*.txt", "bb"}
	convertParts = []string{"line", "\n", "\r\n", "\r", "\x00", "\x1a", "\x7f", "$Id$", "$Id: 123 $", "$Id: foreign id v1 $", "$Id:$", "$Id: \n$",
		"$Id", "$", "ü", "\U0001F600", "\t", "\x01", " ", "$Id: x", "text text text\n", "crlf\r\n"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func (c *convertCase) attributes(macros bool) string {
	var b strings.Builder
	for range c.r.IntN(5) {
		if macros && c.r.IntN(4) == 0 {
			fmt.Fprintf(&b, "[attr]%s", pick(c.r, []string{"own", "mine"}))
		} else {
			b.WriteString(pick(c.r, convertPatterns))
		}
		for range 1 + c.r.IntN(3) {
			b.WriteString(pick(c.r, []string{" ", "\t", "  "}) + pick(c.r, convertWords))
		}
		b.WriteString(pick(c.r, []string{"\n", "\n", "\r\n", " \n\n# no\n"}))
	}
	return b.String()
}

func (c *convertCase) content() []byte {
	var b bytes.Buffer
	parts := convertParts
	if c.r.IntN(2) == 0 {
		parts = []string{"line", "\n", "\r\n", "$Id$", "$Id: 0 $"}
	}
	for range c.r.IntN(12) {
		b.WriteString(pick(c.r, parts))
	}
	if c.r.IntN(4) > 0 {
		return b.Bytes()
	}
	data, err := fromUTF8(pick(c.r, []string{"UTF-16LE", "UTF-16BE", "UTF-16LE-BOM", "UTF-32BE"}), b.Bytes())
	if err != nil {
		c.t.Fatal(err)
	}
	return data
}

func (c *convertCase) write(name string, data []byte) {
	c.t.Helper()
	full := filepath.Join(c.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(full, data, 0o644); err != nil {
		c.t.Fatal(err)
	}
}

func (c *convertCase) git(stdin string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = c.dir, strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() < 0 { // git 2.39 does, of a few attributes that are not valid
		c.t.Skipf("git %v crashes: %v: %s", args, err, stderr.Bytes())
	}
	if err != nil {
		c.t.Fatalf("git %v: %v: %s", args, err, stderr.Bytes())
	}
	return string(out)
}

func newConvertCase(t *testing.T, seed uint64) *convertCase {
	c := &convertCase{t: t, r: rand.New(rand.NewPCG(seed, 14)), dir: t.TempDir(), files: map[string][]byte{}}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", os.Getenv("HOME"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	c.git("", "init", "-q")
	config := fmt.Sprintf("[core]\n\tsafecrlf = false\n\tattributesFile = %s/user\n", filepath.ToSlash(c.dir))
	if v := pick(c.r, []string{"", "", "true", "false", "input", "TRUE"}); v != "" {
		config += "\tautocrlf = " + v + "\n"
	}
	if v := pick(c.r, []string{"", "lf", "crlf", "native"}); v != "" && !strings.Contains(config, "input") {
		config += "\teol = " + v + "\n"
	}
	old, err := os.ReadFile(filepath.Join(c.dir, ".git/config"))
	if err != nil {
		t.Fatal(err)
	}
	c.write(".git/config", append(old, config...))
	c.write("user", []byte(c.attributes(true)))
	c.write(".git/info/attributes", []byte(c.attributes(true)))
	for _, dir := range []string{"", "sub/", "sub/deep/"} {
		c.write(dir+".gitattributes", []byte(c.attributes(dir == "" || c.r.IntN(4) == 0)))
	}
	for _, p := range convertPaths {
		c.files[p] = c.content()
		c.write(p, c.files[p])
	}
	return c
}

func (c *convertCase) rules() *rules {
	c.t.Helper()
	repo, err := Open(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	cfg, err := loadConfig(repo.layout, "git")
	if err != nil {
		c.t.Fatal(err)
	}
	return newRules(context.Background(), repo.layout, cfg)
}

func (c *convertCase) explain() string {
	var b strings.Builder
	for _, name := range []string{".git/config", "user", ".gitattributes", "sub/.gitattributes", "sub/deep/.gitattributes", ".git/info/attributes"} {
		data, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			c.t.Fatal(err)
		}
		fmt.Fprintf(&b, "-- %s --\n%s", name, data)
	}
	return b.String()
}

// TestConversionsAreGits compares what is stored and checked out of random files under random attributes with git's own result.
func TestConversionsAreGits(t *testing.T) {
	for seed := range mutants.Size(5, 20, 200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := newConvertCase(t, uint64(seed))
			paths := slices.Clone(convertPaths)
			c.compareHashes(paths, func(string) []byte { return nil },
				strings.Fields(c.git(strings.Join(paths, "\n")+"\n", "hash-object", "--stdin-paths")))
			c.compareIndexed(paths)
			c.compareCheckout(paths)
		})
	}
}

func (c *convertCase) compareHashes(paths []string, indexed func(string) []byte, want []string) {
	c.t.Helper()
	rules := c.rules()
	for i, p := range paths {
		got, err := rules.conversion(p).clean(c.files[p], func() []byte { return indexed(p) })
		if err != nil {
			continue // git refuses to add it
		}
		if hash := hashObject(plumbing.BlobObject, got).String(); hash != want[i] {
			c.t.Errorf("%s %q: stored as %q, not as git stores it (%v)\n%s", p, c.files[p], got, rules.conversion(p), c.explain())
		}
	}
}

// compareIndexed adds files over other content that the index has.
func (c *convertCase) compareIndexed(paths []string) {
	c.t.Helper()
	before := map[string][]byte{}
	var info strings.Builder
	for _, p := range paths {
		before[p] = c.content()
		cmd := exec.Command("git", "hash-object", "-w", "--no-filters", "--stdin")
		cmd.Dir, cmd.Stdin = c.dir, bytes.NewReader(before[p])
		hash, err := cmd.Output()
		if err != nil {
			c.t.Fatal(err)
		}
		fmt.Fprintf(&info, "100644 %s\t%s\n", bytes.TrimSpace(hash), p)
	}
	c.git(info.String(), "update-index", "--index-info")
	rules := c.rules()
	paths = slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		_, err := rules.conversion(p).clean(c.files[p], func() []byte { return before[p] })
		return err != nil // git adds nothing then
	})
	c.git(strings.Join(paths, "\x00")+"\x00", "update-index", "--add", "-z", "--stdin")
	want := make([]string, len(paths))
	for i, p := range paths {
		want[i] = strings.Fields(c.git("", "ls-files", "-s", "--", ":(literal)"+p))[1]
	}
	c.compareHashes(paths, func(p string) []byte { return before[p] }, want)
}

// compareCheckout has git check out blobs.
func (c *convertCase) compareCheckout(paths []string) {
	c.t.Helper()
	rules := c.rules()
	stored := map[string][]byte{}
	c.git("", "read-tree", "--empty")
	var info strings.Builder
	for _, p := range paths {
		data := c.content()
		if _, err := rules.conversion(p).smudge(data); err != nil || !rules.conversion(p).native() {
			continue
		}
		stored[p] = data
		cmd := exec.Command("git", "hash-object", "-w", "--no-filters", "--stdin")
		cmd.Dir, cmd.Stdin = c.dir, bytes.NewReader(data)
		hash, err := cmd.Output()
		if err != nil {
			c.t.Fatal(err)
		}
		fmt.Fprintf(&info, "100644 %s\t%s\n", bytes.TrimSpace(hash), p)
	}
	c.git(info.String(), "update-index", "--index-info")
	c.git("", "checkout-index", "-a", "-f", "--prefix=out/")
	for p, data := range stored {
		want, err := os.ReadFile(filepath.Join(c.dir, "out", filepath.FromSlash(p)))
		if err != nil {
			c.t.Fatal(err)
		}
		if got, err := rules.conversion(p).smudge(data); err != nil || !bytes.Equal(got, want) {
			c.t.Errorf("%s %q: checked out as %q, git %q (%v, %v)\n%s", p, data, got, want, rules.conversion(p), err, c.explain())
		}
	}
}
