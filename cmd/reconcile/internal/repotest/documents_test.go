package repotest

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are the pages for people.
func documents(t *testing.T) []string {
	t.Helper()
	pages := slices.DeleteFunc(tracked(t), func(p string) bool {
		return path.Ext(p) != ".md" || strings.Contains("/"+p, "/testdata/") || strings.HasPrefix(p, "cmd/")
	})
	if len(pages) == 0 {
		t.Fatal("no documents found")
	}
	return pages
}

func read(t *testing.T, p string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(p)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fence = regexp.MustCompile("(?ms)^```.*?^```$")
	span  = regexp.MustCompile("`([^`\n]+)`")
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// pathLike is a path as it is written in prose: no blanks, no placeholders, no patterns, no options.
	pathLike = regexp.MustCompile(`^[A-Za-z0-9._][A-Za-z0-9._/-]*$`)
)

// pathsNamed returns the paths that a page names in back quotes outside of code blocks: what has a slash and begins with
// something that is there at the top level.
func pathsNamed(page string, top []string) []string {
	var named []string
	for _, m := range span.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		first, _, slash := strings.Cut(m[1], "/")
		if slash && pathLike.MatchString(m[1]) && slices.Contains(top, first) || slices.Contains(top, m[1]) {
			named = append(named, strings.TrimSuffix(m[1], "/"))
		}
	}
	return named
}

// topLevel lists what is at the root of the repository.
func topLevel(t *testing.T) []string {
	t.Helper()
	var top []string
	for _, p := range tracked(t) {
		first, _, _ := strings.Cut(p, "/")
		top = append(top, first)
	}
	slices.Sort(top)
	return slices.Compact(top)
}

// present reports whether a path is there, or is one of those that git ignores because they come into being later.
func present(t *testing.T, p string) bool {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root(t), filepath.FromSlash(p))); err == nil {
		return true
	}
	cmd := exec.Command("git", "check-ignore", "-q", "--", p)
	cmd.Dir = root(t)
	return cmd.Run() == nil
}

// TestArchitectureNamesWhatExists is stricter on that page than on others: it names nothing that is not there.
func TestArchitectureNamesWhatExists(t *testing.T) {
	named := pathsNamed(read(t, "ARCHITECTURE.md"), topLevel(t))
	if len(named) < 20 {
		t.Errorf("only %d paths found: %q", len(named), named)
	}
	for _, p := range named {
		if !present(t, p) {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", p)
		}
	}
}

func TestArchitectureNamesEveryPackage(t *testing.T) {
	named := pathsNamed(read(t, "ARCHITECTURE.md"), topLevel(t))
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if dir := s.folder(); !seen[dir] && !slices.Contains(named, dir) {
			t.Errorf("ARCHITECTURE.md does not name the package %s", dir)
		}
		seen[s.folder()] = true
	}
}

// programPaths are the first words of paths that belong to the project and not to the tree of whoever reads the page.
var programPaths = []string{"cmd", "controllers", "schemas", ".ci", ".github", "docs", "examples"}

func TestDocumentsNameWhatExists(t *testing.T) {
	for _, page := range documents(t) {
		for _, p := range pathsNamed(read(t, page), programPaths) {
			if !present(t, p) {
				t.Errorf("%s names %s, which does not exist", page, p)
			}
		}
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, page), ""), -1) {
			u, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
				continue
			}
			if u.Scheme != "" {
				continue
			}
			target := page
			if u.Path != "" {
				target = path.Join(path.Dir(page), u.Path)
			}
			if !present(t, target) {
				t.Errorf("%s links to %s: %s does not exist", page, m[1], target)
			} else if u.Fragment != "" && !slices.Contains(anchors(read(t, target)), u.Fragment) {
				t.Errorf("%s links to %s: %s has no such heading", page, m[1], target)
			}
		}
	}
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noSlug  = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors returns the names under which the headings of a page can be linked to.
func anchors(page string) []string {
	var names []string
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		names = append(names, strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return names
}

func TestAnchors(t *testing.T) {
	got := anchors("# One, two\n```\n# no heading\n```\n### `run` it\n")
	if want := []string{"one-two", "run-it"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestPathsAreFoundInProse(t *testing.T) {
	page := "See `cmd/reconcile/`, `go.mod` and `cmd/<kind>.go`; `a/b` and `cmd/*.go` too.\n" +
		"```\n`cmd/in/code`\n```\nEnd `cmd/x.go`."
	got := pathsNamed(page, []string{"cmd", "go.mod"})
	if want := []string{"cmd/reconcile", "go.mod", "cmd/x.go"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestNothingNamesThisMachine: where the checkout is, who works in it and where modules come from is nobody's business.
func TestNothingNamesThisMachine(t *testing.T) {
	secrets := thisMachine(t)
	for _, p := range tracked(t) {
		text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(p)))
		if err != nil {
			continue // removed and not yet committed
		}
		for what, secret := range secrets {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s names %s of this machine: %s", p, what, secret)
			}
		}
	}
}

// thisMachine returns what would tell that a file was written here, by what it is. Short and common words are left out:
// they may stand in any file by chance.
func thisMachine(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	add := func(what, secret string) {
		if len(secret) >= 8 && secret != "localhost" {
			found[what] = secret
		}
	}
	add("the checkout", root(t))
	if home, err := os.UserHomeDir(); err == nil {
		add("the home folder", home+string(filepath.Separator))
	}
	out, err := exec.Command("go", "env", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	comma := func(r rune) bool { return r == ',' || r == '|' }
	for i, proxy := range strings.FieldsFunc(strings.TrimSpace(string(out)), comma) {
		if u, err := url.Parse(proxy); err == nil && u.Host != "proxy.golang.org" {
			add(fmt.Sprintf("module proxy %d", i+1), u.Hostname())
		}
	}
	return found
}
