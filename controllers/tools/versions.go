package tools

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Question asks a program for its version: its path, and arguments that are separated by spaces.
type Question struct{ Path, Arguments string }

// Questions lists the programs to ask for the versions of the tools that were found, each once.
func Questions(found []Discovered) []Question {
	var out []Question
	for _, t := range found {
		if t.Program == "" || t.Version != "" {
			continue
		}
		of, _ := entry(t.Tool)
		if q := of.question(t.Program); !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}

func (t Tool) question(program string) Question {
	if t.Version == nil {
		return Question{program, "--version"}
	}
	return Question{program, strings.Join(t.Version, " ")}
}

var (
	dotted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d+(?:\.\d+)+[-+.\w]*`) })
	digits = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d+`) })
)

// WrappedVersion is the version of what a wrapper downloads, by its properties; "" if they do not tell.
func WrappedVersion(properties string) string {
	for line := range strings.Lines(properties) {
		if url, ok := strings.CutPrefix(strings.TrimSpace(line), "distributionUrl="); ok {
			return strings.TrimSuffix(strings.TrimSuffix(dotted().FindString(path.Base(url)), "-bin.zip"), "-all.zip")
		}
	}
	return ""
}

// number is the number in the printed version of a program, one with dots before others; "" for none.
func number(said string) string {
	return cmp.Or(dotted().FindString(said), digits().FindString(said))
}

// fits reports whether an entry applies to a version. One that is unknown is taken for the newest.
func (r Role) fits(version string) bool {
	v := number(version)
	if v == "" {
		return r.Before == ""
	}
	return (r.Since == "" || compareVersions(v, r.Since) >= 0) && (r.Before == "" || compareVersions(v, r.Before) < 0)
}

// compareVersions compares numbers that are separated by dots, up to the first other part.
func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		x, xErr := part(as, i)
		y, yErr := part(bs, i)
		if xErr != nil || yErr != nil {
			return 0
		}
		if x != y {
			return x - y
		}
	}
	return 0
}

func part(all []string, i int) (int, error) {
	if i >= len(all) {
		return 0, nil
	}
	return strconv.Atoi(digits().FindString(all[i]))
}
