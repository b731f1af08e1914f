package schemas

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/schemas/validator"
)

// checkRef reports a name of another object that cannot be one.
func checkRef(s Spot, name string) {
	if err := CheckName(name); err != nil {
		s.Errorf("bad-name", "%v", err)
	}
}

// checkRefs is checkRef over a list, which must not name anything twice.
func checkRefs(r *Report, names []string, field ...any) {
	seen := map[string]int{}
	for i, n := range names {
		s := r.At(field...).At(i)
		checkRef(s, n)
		if first, ok := seen[n]; ok {
			s.Errorf("duplicate", "%q is listed twice", n).also("the first time", r.At(field...).At(first).field...)
			continue
		}
		seen[n] = i
	}
}

// checkLine reports characters that have no place in a title or an identifier: controls, line ends, and characters
// that are not seen or turn the direction of text, with which one text can pass for another.
func checkLine(s Spot, text string) {
	for _, r := range text {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			s.Errorf("bad-character", "contains %s", describeRune(r)).suggest("remove it")
			return
		}
	}
}

// checkFilled reports text that is blank.
func checkFilled(s Spot, text string) {
	if strings.TrimSpace(text) == "" {
		s.Errorf("blank", "is blank")
	}
}

// Uses of a path. A path that is written to must not be the root.
type pathUse bool

const (
	reads  pathUse = false
	writes pathUse = true
)

// checkPath reports a path that is not a plain slash path below the root, or leads into git's or reconcile's own files.
func checkPath(s Spot, p string, use pathUse) (ok bool) {
	if why, hint := badPath(p, use); why != "" {
		f := s.Errorf("bad-path", "%s", why)
		if hint != "" {
			f.suggest("write %q", hint)
		}
		return false
	}
	return true
}

func checkPaths(r *Report, paths []string, field ...any) {
	for i, p := range paths {
		checkPath(r.At(field...).At(i), p, reads)
	}
}

// checkOutput is checkPath for a file that a spec has written, which must stay out of the folder of observed state too.
func checkOutput(s Spot, p string) {
	if !checkPath(s, p, writes) {
		return
	}
	if folder := cmp.Or(s.report.state, defaultStateFolder); treepath.Within(p, folder) {
		s.Errorf("bad-path", "leads into %s, which only reconcile writes", folder)
	}
}

// IsPath reports whether p is a valid path for a spec to read: nothing is bad about it. It is below the root, in its
// shortest form, with slashes, without characters that are not seen, and not git's or reconcile's own.
func IsPath(p string) bool {
	why, _ := badPath(p, reads)
	return why == ""
}

func badPath(p string, use pathUse) (why, hint string) {
	switch {
	case p == "":
		return "the path is empty", ""
	case strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~"):
		return "is not a path below the root of the tree", ""
	case len(p) > 1 && p[1] == ':':
		return "is a path with a drive letter; paths are relative to the root of the tree", ""
	case strings.Contains(p, `\`):
		return "contains a backslash; paths are written with slashes", strings.ReplaceAll(p, `\`, "/")
	}
	parts := strings.Split(p, "/")
	if slices.Contains(parts, "..") {
		return `contains ".."; paths stay below the root of the tree`, ""
	}
	for _, r := range p {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return "contains " + describeRune(r), ""
		}
	}
	if clean := path.Clean(p); clean != p {
		return "is not in its shortest form", clean
	}
	if p == "." && use == writes {
		return "is the root of the tree itself", ""
	}
	return badParts(parts), ""
}

func badParts(parts []string) string {
	for _, part := range parts {
		switch {
		case part == ".":
		case strings.TrimRight(part, ". ") != part:
			return "has a part that ends in a dot or a space, which Windows drops"
		case treepath.OfName(part) != treepath.User:
			return "leads into " + part + ", which is not the spec's to name"
		}
	}
	return ""
}

// checkGlobs reports patterns that cannot match anything below the root.
func checkGlobs(r *Report, globs []string, field ...any) {
	for i, g := range globs {
		s := r.At(field...).At(i)
		switch {
		case g == "":
			s.Errorf("bad-glob", "the pattern is empty")
		case strings.HasPrefix(g, "/"):
			s.Errorf("bad-glob", "patterns are relative to the root of the tree").
				suggest("write %q", strings.TrimLeft(g, "/"))
		case slices.Contains(strings.Split(g, "/"), ".."):
			s.Errorf("bad-glob", `contains ".."; patterns stay below the root of the tree`)
		case !doublestar.ValidatePattern(g):
			s.Errorf("bad-glob", "%q is not a valid pattern", g).suggest("close every [ and {, and end no pattern in \\")
		}
	}
}

// checkEnv reports invalid names of environment variables, and those that reconcile sets.
func checkEnv(r *Report, env map[string]string, field ...any) {
	for name, value := range env {
		checkVariable(r, name, value, field)
	}
}

func checkVariable(r *Report, name, value string, field []any) {
	s := func() Spot { return r.At(field...).At(name) }
	switch {
	case !isEnvName(name):
		s().Errorf("bad-env", "%q is not a name for a variable; use letters, digits and _, no digit first", name)
	case strings.HasPrefix(strings.ToUpper(name), "RECONCILE_"):
		s().Errorf("bad-env", "variables that begin with RECONCILE_ are set by reconcile")
	case strings.ContainsRune(value, 0):
		s().Errorf("bad-env", "the value contains a NUL character")
	}
}

// checkArgv reports a command that cannot be started.
func checkArgv(s Spot, argv []string) {
	if len(argv) > 0 && strings.TrimSpace(argv[0]) == "" {
		s.At(0).Errorf("blank", "the program's name is blank")
	}
}

// checkBranch reports names that git refuses for a branch (git-check-ref-format).
func checkBranch(s Spot, b string) {
	bad := strings.HasPrefix(b, "-") || strings.HasPrefix(b, "/") || strings.HasSuffix(b, "/") ||
		strings.HasSuffix(b, ".") || b == "@" || b == "HEAD" || strings.ContainsAny(b, " ~^:?*[\\\x7f")
	for _, seq := range []string{"..", "//", "@{", "/."} {
		bad = bad || strings.Contains(b, seq)
	}
	for part := range strings.SplitSeq(b, "/") {
		bad = bad || strings.HasPrefix(part, ".") && part != "" || strings.HasSuffix(part, ".lock")
	}
	if b != "" && bad {
		s.Errorf("bad-branch", "%q is not a name that git accepts for a branch", b)
		return
	}
	checkLine(s, b)
}

// checkTimeout reports a time limit that nothing can keep.
func checkTimeout(s Spot, d *Duration) {
	if d != nil && *d < Duration(time.Millisecond) {
		s.Errorf("out-of-range", "a time limit is at least 1ms").suggest("leave it out for none")
	}
}

func isRepo(s string) bool {
	owner, name, ok := strings.Cut(s, "/")
	return ok && isRepoPart(owner) && isRepoPart(name)
}

func isRepoPart(s string) bool {
	bad := func(r rune) bool { return !isNameRune(r) && (r < 'A' || r > 'Z') }
	return s != "" && s != "." && s != ".." && !strings.ContainsFunc(s, bad)
}

// CheckResult validates the result of a node by its outputs.schema. The error has the path and the cause for each of the
// first violations; nil: the result is valid. An empty result counts as missing.
func CheckResult(schema, result []byte) error {
	const most = 5
	if len(result) == 0 {
		return errors.New("there is no result, and outputs.schema asks for one")
	}
	compiled, err := validator.Compile(schema, nil)
	if err != nil {
		return fmt.Errorf("outputs.schema: %w", err)
	}
	v, err := validator.Value(result)
	if err != nil {
		return fmt.Errorf("the result cannot be judged by outputs.schema: %w", err)
	}
	found, err := compiled.Validate(v)
	if err != nil || len(found) == 0 {
		return err
	}
	var b strings.Builder
	b.WriteString("the result does not keep outputs.schema")
	for i, violation := range found[:min(len(found), most)] {
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		if at := pathText(validator.Steps(v, violation.Path)); at != "" {
			b.WriteString(at + ": ")
		}
		b.WriteString(shorten.Text(violation.Message, 300))
	}
	if more := len(found) - most; more > 0 {
		fmt.Fprintf(&b, "; and %s", Count(more, "further problem"))
	}
	return errors.New(b.String())
}

// Nameable limits.
const (
	maxName = 63
	nearMax = 64 // longer words are not compared: typos of one letter do not matter there
)

// CheckName returns an error for a name that objects must not have: empty, too long, with a bad start, end or character, or
// that of a device on Windows. A valid name matches ^[a-z0-9][a-z0-9._-]{0,62}$, and no file system reserves it (con, nul,
// …, a trailing dot). Names become file names on every system.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the name is empty")
	case len(name) > maxName:
		return fmt.Errorf("the name has %d bytes, at most %d are allowed", len(name), maxName)
	case !isNameStart(name[0]):
		return fmt.Errorf("%q does not start with a lower-case letter or digit", name)
	case strings.HasSuffix(name, "."):
		return fmt.Errorf("%q ends in a dot, which Windows drops", name)
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return !isNameRune(r) }); i >= 0 {
		r := []rune(name[i:])[0]
		return fmt.Errorf("%q contains %s; use lower-case letters, digits, '.', '_' and '-'", name, describeRune(r))
	}
	if stem, _, _ := strings.Cut(name, "."); isDevice(stem) {
		return fmt.Errorf("%q is the name of a device on Windows", name)
	}
	return nil
}

func isNameStart(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-'
}

// isDevice reports whether Windows reserves the lower-case stem of a file name.
func isDevice(stem string) bool {
	switch stem {
	case "con", "prn", "aux", "nul":
		return true
	}
	port := strings.TrimPrefix(strings.TrimPrefix(stem, "com"), "lpt")
	return len(stem) == 4 && len(port) == 1 && '0' <= port[0] && port[0] <= '9'
}

// isSnake reports whether s is ^[a-z][a-z0-9_]{0,62}$.
func isSnake(s string) bool {
	if s == "" || len(s) > maxName || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isNameStart(c) && c != '_' {
			return false
		}
	}
	return true
}

// isNodeName reports whether s is ^[a-z][a-z0-9_-]{0,62}$.
func isNodeName(s string) bool { return isSnake(strings.ReplaceAll(s, "-", "_")) }

// snake turns s into a snake_case name, or "" if nothing of it can be kept.
func snake(s string) string {
	var b strings.Builder
	lower := false // whether the last rune was a lower-case letter or digit: then an upper-case one starts a word
	for _, r := range s {
		switch {
		case 'A' <= r && r <= 'Z':
			if lower {
				b.WriteByte('_')
			}
			b.WriteRune(r - 'A' + 'a')
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			b.WriteRune(r)
		case r >= 0x80 && unicode.IsLetter(r):
			return ""
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
		lower = 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	}
	out := strings.Trim(b.String(), "_")
	if len(out) > maxName {
		out = out[:maxName]
	}
	if !isSnake(out) {
		return ""
	}
	return out
}

// checkLabel describes the problem of an invalid key or value of a label, by which the command line selects.
func checkLabel(s string) string {
	bad := func(r rune) bool { return !isNameRune(r) && r != '/' && (r < 'A' || r > 'Z') }
	if i := strings.IndexFunc(s, bad); i >= 0 {
		return "contains " + describeRune([]rune(s[i:])[0]) + "; use letters, digits, '.', '_', '-' and '/'"
	}
	if len(s) > 2*maxName {
		return fmt.Sprintf("has %d characters, at most %d are allowed", len(s), 2*maxName)
	}
	return ""
}

// isLogin reports whether GitHub may have an account of this name.
func isLogin(s string) bool {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}
	return s != "" && len(s) <= 39 && !strings.ContainsFunc(s, odd)
}

// isAbsolute reports whether a path is absolute on some system.
func isAbsolute(p string) bool {
	return strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && (p[2] == '/' || p[2] == '\\')
}

// checkFilePath reports a path of a file that is neither absolute, nor below the home folder or the root.
func checkFilePath(at Spot, file string) {
	if rest, home := strings.CutPrefix(file, "~/"); home || isAbsolute(file) {
		if rest == "" || strings.Contains("/"+strings.ReplaceAll(file, `\`, "/")+"/", "/../") {
			at.Errorf("bad-path", "is not the path of a file without ..")
		}
		checkLine(at, file)
		return
	}
	checkPath(at, file, writes)
}
