// Package preview describes changes of files: a unified diff that git apply takes, its hunks and numbers of lines, and what a person
// should look at before the change is made. It reads no files.
package preview

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"reconcile.dev/reconcile/controllers/languages"
	"reconcile.dev/reconcile/controllers/manifests"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
)

// What becomes of a file.
const (
	Added    = "added"
	Removed  = "removed"
	Modified = "modified"
	Renamed  = "renamed"
)

// Hunk is a place of change: the first line and the number of lines, before and after.
type Hunk struct {
	OldStart int `json:"oldStart"`
	OldLines int `json:"oldLines"`
	NewStart int `json:"newStart"`
	NewLines int `json:"newLines"`
}

// Flag is what a person should look at.
type Flag struct {
	Name    string `json:"name"` // one of the Flag constants
	Message string `json:"message"`
}

// The flags.
const (
	FlagRemoves   = "removes-many" // more than [mostRemoved] lines
	FlagSensitive = "sensitive"    // a file whose change has effects beyond the code, see [Sensitive]
	FlagSecret    = "secret"       // an added line looks like one
	FlagBinary    = "binary"
	FlagMode      = "mode"
	FlagReview    = "review" // a refactoring that is large enough for a review
)

// The bounds of flags.
const (
	mostRemoved = 100 // lines
	largeLines  = 400 // added and removed in all files
	largeFiles  = 20
)

// File is the change of one file.
type File struct {
	Path     string `json:"path"`
	From     string `json:"from,omitempty"` // its former path
	Status   string `json:"status"`
	Language string `json:"language,omitempty"` // a hint for highlighting
	Added    int    `json:"added"`              // lines
	Removed  int    `json:"removed"`
	// Changed is how many of both are pairs: a removed line with an added one in its place.
	Changed int    `json:"changed"`
	Hunks   []Hunk `json:"hunks"`
	OldMode string `json:"oldMode,omitempty"` // where it changes
	NewMode string `json:"newMode,omitempty"`
	Binary  bool   `json:"binary,omitempty"`
	Flags   []Flag `json:"flags,omitempty"`
	Diff    string `json:"diff"`
}

// Change is the change of several files.
type Change struct {
	Files   []File `json:"files"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Changed int    `json:"changed"`
	Hunks   int    `json:"hunks"`
	Flags   []Flag `json:"flags,omitempty"` // of the whole
}

// Lines is the size of a change: all lines that are added or removed.
func (c *Change) Lines() int { return c.Added + c.Removed }

// Measure returns the size of a change. Binary files count without lines.
func Measure(files []File) (c schemas.Change) {
	for i := range files {
		f := &files[i]
		c.Lines += f.Added + f.Removed
		if f.Binary || Sensitive(f.Path) != "" || Sensitive(f.From) != "" {
			c.Sensitive = append(c.Sensitive, f.Path)
		}
	}
	slices.Sort(c.Sensitive)
	return c
}

// Parse reads what git diff printed, with the prefixes a/ and b/.
func Parse(diff string) []File {
	var files []File
	for part := range parts(diff) {
		files = append(files, parseFile(part))
	}
	return files
}

// parts yields the parts of a diff, one for each file. The lines of hunks begin with a sign, so none looks like a head.
func parts(diff string) func(func(string) bool) {
	const head = "diff --git "
	return func(yield func(string) bool) {
		for diff != "" {
			end := strings.Index(diff[min(1, len(diff)):], "\n"+head)
			part := diff
			if end >= 0 {
				part = diff[:end+2]
			}
			diff = diff[len(part):]
			if strings.HasPrefix(part, head) && !yield(part) {
				return
			}
		}
	}
}

// parseFile reads the part of one file.
func parseFile(part string) File {
	f := File{Status: Modified, Diff: part, Hunks: []Hunk{}}
	old, now := "", ""
	inHunk := false
	var dels, adds int // of the block of changes at hand
	pair := func() { f.Changed += min(dels, adds); dels, adds = 0, 0 }
	for line := range strings.Lines(part) {
		line = strings.TrimSuffix(line, "\n")
		if h, ok := parseHunk(line); ok {
			pair()
			f.Hunks, inHunk = append(f.Hunks, h), true
			continue
		}
		if inHunk {
			switch {
			case strings.HasPrefix(line, "+"):
				f.Added++
				adds++
			case strings.HasPrefix(line, "-"):
				if adds > 0 {
					pair()
				}
				f.Removed++
				dels++
			case !strings.HasPrefix(line, `\`):
				pair()
			}
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "diff --git "):
			old, now = headPaths(strings.TrimPrefix(line, "diff --git "))
		case strings.HasPrefix(line, "new file mode "):
			f.Status, f.NewMode = Added, strings.TrimPrefix(line, "new file mode ")
		case strings.HasPrefix(line, "deleted file mode "):
			f.Status, f.OldMode = Removed, strings.TrimPrefix(line, "deleted file mode ")
		case strings.HasPrefix(line, "old mode "):
			f.OldMode = strings.TrimPrefix(line, "old mode ")
		case strings.HasPrefix(line, "new mode "):
			f.NewMode = strings.TrimPrefix(line, "new mode ")
		case strings.HasPrefix(line, "rename from "):
			f.Status, old = Renamed, unquote(strings.TrimPrefix(line, "rename from "))
		case strings.HasPrefix(line, "rename to "):
			now = unquote(strings.TrimPrefix(line, "rename to "))
		case word == "---" && strings.TrimSpace(rest) != "/dev/null":
			old = side(rest)
		case word == "+++" && strings.TrimSpace(rest) != "/dev/null":
			now = side(rest)
		case strings.HasPrefix(line, "Binary files "), line == "GIT binary patch":
			f.Binary = true
		}
	}
	pair()
	if f.Path = now; f.Status == Removed || now == "" {
		f.Path = old
	}
	if f.Status == Renamed {
		f.From = old
	}
	return f
}

// headPaths are the two paths of the head of a part. Only where they are equal the head alone says where one ends; otherwise other lines
// have them.
func headPaths(rest string) (old, now string) {
	if strings.HasPrefix(rest, `"`) {
		if q, err := strconv.QuotedPrefix(rest); err == nil {
			return side(q), side(strings.TrimSpace(rest[len(q):]))
		}
	}
	if n := len(rest) / 2; n < len(rest) && rest[n] == ' ' {
		return side(rest[:n]), side(rest[n+1:])
	}
	return "", ""
}

// side is a path without its prefix, which git quotes if it has odd characters. A tab ends it where it has blanks.
func side(s string) string {
	s = unquote(strings.TrimSuffix(s, "\t"))
	return strings.TrimPrefix(strings.TrimPrefix(s, "a/"), "b/")
}

func unquote(s string) string {
	if u, err := strconv.Unquote(s); err == nil && strings.HasPrefix(s, `"`) {
		return u
	}
	return s
}

// parseHunk reads "@@ -1,2 +3,4 @@"; a number of lines that is left out is 1.
func parseHunk(line string) (h Hunk, ok bool) {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return h, false
	}
	words := strings.Fields(rest)
	if len(words) < 3 || words[2] != "@@" || !strings.HasPrefix(words[1], "+") {
		return h, false
	}
	span := func(s string) (from, n int) {
		a, b, two := strings.Cut(s, ",")
		from, _ = strconv.Atoi(a)
		if n = 1; two {
			n, _ = strconv.Atoi(b)
		}
		return from, n
	}
	h.OldStart, h.OldLines = span(words[0])
	h.NewStart, h.NewLines = span(words[1][1:])
	return h, true
}

// Side is a file before or after a change; with a nil Text the file does not exist.
type Side struct {
	Text []byte
	Mode string // as git writes it; "" is 100644
	// Large says that the text is too large to be read. Such a side differs from each other one, as a binary file does.
	Large bool
}

// Compare returns the change of a file at a path between two texts; false if they are the same.
func Compare(p string, was, now Side) (File, bool) {
	binary := was.Large || now.Large || isBinary(was.Text) || isBinary(now.Text)
	if !was.Large && !now.Large && string(was.Text) == string(now.Text) && (was.Text == nil) == (now.Text == nil) && was.Mode == now.Mode {
		return File{}, false
	}
	a, b := quoted("a/"+p), quoted("b/"+p)
	var d strings.Builder
	fmt.Fprintf(&d, "diff --git %s %s\n", a, b)
	from, to := a, b
	switch mode := func(s Side) string {
		if s.Mode == "" {
			return "100644"
		}
		return s.Mode
	}; {
	case was.Text == nil:
		fmt.Fprintf(&d, "new file mode %s\n", mode(now))
		from = "/dev/null"
	case now.Text == nil:
		fmt.Fprintf(&d, "deleted file mode %s\n", mode(was))
		to = "/dev/null"
	case mode(was) != mode(now):
		fmt.Fprintf(&d, "old mode %s\nnew mode %s\n", mode(was), mode(now))
	}
	switch {
	case binary:
		fmt.Fprintf(&d, "Binary files %s and %s differ\n", from, to)
	case string(was.Text) != string(now.Text):
		edits := udiff.Lines(string(was.Text), string(now.Text))
		text, err := udiff.ToUnified(from, to, string(was.Text), edits, udiff.DefaultContextLines)
		if err != nil { // only edits that do not fit their text do this
			text = ""
		}
		d.WriteString(text)
	}
	return parseFile(d.String()), true
}

// quoted is a path as git writes it in a diff.
func quoted(p string) string {
	if strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }) {
		return strconv.Quote(p)
	}
	return p
}

// isBinary applies git's test.
func isBinary(b []byte) bool { return slices.Contains(b[:min(len(b), 8000)], 0) }

// Of puts files together and flags what a person should look at. Files are sorted by path.
func Of(files []File) *Change {
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	c := &Change{Files: files}
	if files == nil {
		c.Files = []File{}
	}
	for i := range files {
		f := &files[i]
		f.Language = languages.Of(f.Path)
		f.flag()
		c.Added, c.Removed, c.Changed, c.Hunks = c.Added+f.Added, c.Removed+f.Removed, c.Changed+f.Changed, c.Hunks+len(f.Hunks)
	}
	if c.Removed > mostRemoved {
		c.Flags = append(c.Flags, Flag{FlagRemoves, fmt.Sprintf("removes %d lines; more than %d", c.Removed, mostRemoved)})
	}
	if c.Lines() > largeLines || len(files) > largeFiles {
		c.Flags = append(c.Flags, Flag{FlagReview,
			fmt.Sprintf("%d lines in %d files: have it reviewed, or divide it", c.Lines(), len(files))})
	}
	return c
}

func (f *File) flag() {
	add := func(name, format string, args ...any) {
		f.Flags = append(f.Flags, Flag{name, fmt.Sprintf(format, args...)})
	}
	if f.Removed > mostRemoved {
		add(FlagRemoves, "removes %d lines; more than %d", f.Removed, mostRemoved)
	}
	for _, p := range []string{f.Path, f.From} {
		if what := Sensitive(p); what != "" {
			add(FlagSensitive, "%s", what)
			break
		}
	}
	if f.addsSecret() {
		add(FlagSecret, "an added line looks like a secret")
	}
	if f.Binary {
		add(FlagBinary, "its content cannot be shown")
	}
	switch {
	case f.Status == Modified && f.OldMode != f.NewMode, f.Status == Renamed && f.OldMode != f.NewMode:
		add(FlagMode, "its mode changes from %s to %s", f.OldMode, f.NewMode)
	case f.Status == Added && f.NewMode != "100644" && f.NewMode != "":
		add(FlagMode, "it is new with mode %s", f.NewMode)
	}
}

// addsSecret reports whether an added line looks like a secret.
func (f *File) addsSecret() bool {
	var b strings.Builder
	for line := range strings.Lines(f.Diff) {
		if strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "+++ ") {
			b.WriteString(line[1:])
		}
	}
	return len(secrets.Find(b.String())) > 0
}

// sensitive has patterns of names, and why a change of such a file matters. A pattern with a slash is for a path from the root.
var sensitive = []struct {
	why      string
	patterns []string
}{
	{"it may hold secrets", []string{".env", ".env.*", "*.env", ".npmrc", ".pypirc", ".netrc", ".htpasswd", ".git-credentials", "credentials", "credentials.json", "credentials.y*ml", "credentials.toml",
		"secrets.json", "secrets.y*ml", "secrets.toml", "secrets.properties", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
		"kubeconfig", "service-account*.json"}},
	{"it is a workflow of the CI", []string{".github/workflows/*", ".github/actions/*", ".gitlab-ci.yml", ".circleci/*", "Jenkinsfile", ".travis.yml", ".drone.yml",
		"azure-pipelines.yml", "bitbucket-pipelines.yml", ".buildkite/*", ".woodpecker/*"}},
	{"it fixes versions of dependencies", []string{"bun.lock", "bun.lockb", "deno.lock", "flake.lock", "Pipfile.lock", "pdm.lock", "mix.lock", "pubspec.lock",
		"Package.resolved", "gradle.lockfile"}},
	{"it decides what git or its hooks do, or who reviews", []string{".gitattributes", ".gitmodules", ".husky/*", ".pre-commit-config.yaml", "CODEOWNERS"}},
	{"it has the settings of reconcile", []string{"reconcile.yaml"}},
}

// Sensitive says why a change of a file matters beyond the code, by its path; "" if it does not.
func Sensitive(p string) string {
	if p == "" || isExample(p) {
		return ""
	}
	if manifests.IsLock(p) {
		return "it fixes versions of dependencies"
	}
	for _, s := range sensitive {
		for _, pattern := range s.patterns {
			if dir, below := strings.CutSuffix(pattern, "/*"); below {
				if strings.HasPrefix(p, dir+"/") {
					return s.why
				}
			} else if ok, err := path.Match(pattern, path.Base(p)); ok && err == nil {
				return s.why
			}
		}
	}
	return ""
}

// isExample reports whether a name says that the file is only an example of another one, or has a public key.
func isExample(p string) bool {
	switch path.Ext(p) {
	case ".example", ".sample", ".template", ".dist", ".pub":
		return true
	}
	return false
}

// mostChanges bounds what Changes lists.
const mostChanges = 100

// Changes lists the files of a diff, the first of them, each with its kind of change.
func Changes(diff string) (out []schemas.FileChange) {
	types := map[string]string{Added: schemas.FileCreated, Removed: schemas.FileDeleted}
	for _, f := range Parse(diff) {
		c := schemas.FileChange{Path: f.Path, ChangeType: cmp.Or(types[f.Status], schemas.FileModified), Summary: fmt.Sprintf("+%d -%d lines", f.Added, f.Removed)}
		if f.From != "" {
			c.Summary += ", was " + f.From
		}
		if out = append(out, c); len(out) == mostChanges {
			break
		}
	}
	return out
}
