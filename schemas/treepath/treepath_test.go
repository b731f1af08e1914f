package treepath

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var cases = []struct {
	path string
	want Owner
}{
	{".", User}, {"a", User}, {"src/.github/x", User}, {".gitignore", User}, {"a/.gitattributes", User}, {"git", User}, {"git~2", User},
	{".reconciled", User}, {"reconcile.yaml", User}, {"vectors/a", User}, {"..a/b..", User}, {"a.git", User}, {"état/b", User}, {"x:y", Outside},
	{"ab:c", User}, {"a/.gitx:b", User},
	{".git", Git}, {".git/config", Git}, {"sub/.git/hooks/pre-commit", Git}, {".GIT", Git}, {".Git/x", Git}, {"git~1", Git}, {"GIT~1/x", Git},
	{".git.", Git}, {".git ", Git}, {".git . .", Git}, {".git::$INDEX_ALLOCATION/x", Git}, {".git:x", Git}, {"git~1 .:s", Git},
	{".g\u200cit", Git}, {"\ufeff.git", Git}, {".gi\u202et/config", Git}, {".gİt", Git},
	{".reconcile", Local}, {".reconcile/locks/x", Local}, {"a/.Reconcile/b", Local}, {".reconcile. ", Local}, {"reconc~1/x", Local},
	{".RECON\u206acile::$DATA", Local},
	{"", Outside}, {"/", Outside}, {"/etc/passwd", Outside}, {"..", Outside}, {"../x", Outside}, {"a/../b", Outside}, {"a//b", Outside},
	{"a/", Outside}, {"./a", Outside}, {"a/./b", Outside}, {`a\b`, Outside}, {`..\x`, Outside}, {`\\host\x`, Outside}, {"c:", Outside},
	{"C:/x", Outside}, {"a\x00b", Outside}, {"...", Outside}, {"a/. .", Outside}, {"a/ /b", Outside}, {"a/:b", Outside}, {"\xff", User}, {"\xff/.git", Git},
	{".git/../a", Outside}, {".reconcile/../../a", Outside}, {".reconcile/x/.git/y", Git}, {".git/.reconcile/y", Git},
}

func TestOf(t *testing.T) {
	for _, c := range cases {
		if got := Of(c.path); got != c.want {
			t.Errorf("%q: %d, want %d", c.path, got, c.want)
		}
	}
}

// TestMutants: whatever rule is left out, a case notices it.
func TestBelow(t *testing.T) {
	for _, c := range []struct {
		p, dir string
		want   bool
	}{
		{"a", "a", true}, {"a/b", "a", true}, {"a/b/c", "a/b", true}, {"a/b", ".", true}, {".", ".", true}, {"../x", "..", true},
		{"ab", "a", false}, {"a", "a/b", false}, {"A/b", "a", false}, {"..x", "..", false}, {".", "a", false},
	} {
		if got := Below(c.p, c.dir); got != c.want {
			t.Errorf("Below(%q, %q) = %t", c.p, c.dir, got)
		}
	}
}

func TestMutants(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"case":    func(s string) string { return mask(s, func(r rune) bool { return r >= 'A' && r <= 'Z' || r == 'İ' }) },
		"streams": func(s string) string { return mask(s, func(r rune) bool { return r == ':' }) },
		"dots": func(s string) string {
			return strings.ReplaceAll(s, ". ", "._") + strings.Repeat("_", len(s)-len(strings.TrimRight(s, ". ")))
		},
		"short":      func(s string) string { return mask(s, func(r rune) bool { return r == '~' }) },
		"ignored":    func(s string) string { return mask(s, func(r rune) bool { return r > 0x2000 }) },
		"backslash":  func(s string) string { return mask(s, func(r rune) bool { return r == '\\' }) },
		"NUL":        func(s string) string { return mask(s, func(r rune) bool { return r == 0 }) },
		"only first": func(s string) string { first, _, _ := strings.Cut(s, "/"); return first },
	} {
		caught := false
		for _, c := range cases {
			caught = caught || Of(change(c.path)) != c.want
		}
		if !caught {
			t.Errorf("no case needs the rule about %s", name)
		}
	}
}

// mask hides characters from the rules.
func mask(s string, hide func(rune) bool) string {
	return strings.Map(func(r rune) rune {
		if hide(r) {
			return '_'
		}
		return r
	}, s)
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		path, dir string
		want      bool
	}{
		{"state", "state", true}, {"state/dags/a.json", "state", true}, {"State /x", "state", true}, {"state:s/x", "state", true},
		{"stat", "state", false}, {"states/x", "state", false}, {"a/state", "state", false}, {"var/state/x", "var/state", true}, {"var", "var/state", false},
	} {
		if got := Within(c.path, c.dir); got != c.want {
			t.Errorf("%q within %q: %v", c.path, c.dir, got)
		}
	}
}

// FuzzOf: what is called a file of the user's is a local path on every system, and stays that however its names are disguised;
// and no disguise of git's folder is the user's.
func FuzzOf(f *testing.F) {
	for _, c := range cases {
		f.Add(c.path, ".git", uint8(3))
	}
	disguises := []func(string) string{
		strings.ToUpper, strings.ToTitle,
		func(s string) string { return s + "." }, func(s string) string { return s + " " }, func(s string) string { return s + "::$DATA" },
		func(s string) string { return strings.Join(strings.SplitAfter(s, ""), "\u200d") }, func(s string) string { return "\ufeff" + s },
	}
	f.Fuzz(func(t *testing.T, p, owned string, n uint8) {
		owner := Of(p)
		if owner == User && (utf8.ValidString(p) && !fs.ValidPath(p) || !filepath.IsLocal(p) || strings.ContainsAny(p, "\x00\\")) {
			t.Errorf("%q is the user's", p)
		}
		if Of(p) != Outside && p != "." && (Of("a/"+p) != owner || Of(p+"/b") != owner || Of(p+"/../b") != Outside) {
			t.Errorf("%q: %d, in a folder %d, with a file %d", p, owner, Of("a/"+p), Of(p+"/b"))
		}
		for _, name := range []string{gitName, gitShort, localName, localShort} {
			for ; n > 0; n /= 8 {
				name = disguises[int(n)%len(disguises)](name)
			}
			if got := OfName(name); got != Git && got != Local {
				t.Errorf("%q: %d", name, got)
			}
			if Of("a/"+name+"/"+p) == User {
				t.Errorf("%q is the user's", "a/"+name+"/"+p)
			}
		}
		if folded := fold(owned); Of(owned) == User && owned != "." && !strings.Contains(owned, "/") && (folded == gitName || folded == localName) {
			t.Errorf("%q is the user's", owned)
		}
	})
}
