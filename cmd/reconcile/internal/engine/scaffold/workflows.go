package scaffold

import (
	"bytes"
	"regexp"
	"strings"
)

// ReleaseMark is in the action in the place of the release that is installed.
const ReleaseMark = `"VERSION"`

// releaseForm is that of a version which always means the same: no branch, no "latest", no build with local changes.
var releaseForm = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// fileForm is a file of a release with its sum, or a path in the repository: what the action takes besides a version.
var fileForm = regexp.MustCompile(`^(https://[!-~]+#sha256=[0-9a-f]{64}|\./[0-9A-Za-z._/-]+)$`)

// IsVersion reports whether a text is a version that always means the same.
func IsVersion(s string) bool { return releaseForm.MatchString(s) }

// IsRelease reports whether the action can install a text: a version, a file of a release with its sum, or a path in the
// repository.
func IsRelease(s string) bool { return IsVersion(s) || fileForm.MatchString(s) }

// Workflows returns the workflows for GitHub Actions, and the action that they share, which installs a release; "" leaves
// its mark there.
func Workflows(release string) []File {
	files := filesOf("actions")
	for i := range files {
		if release != "" {
			files[i].Data = bytes.ReplaceAll(files[i].Data, []byte(ReleaseMark), []byte(yamlText(release)))
		}
	}
	return files
}

// yamlText is a release, file or path as a YAML value: a # after a blank would begin a comment, and none has a quote.
func yamlText(s string) string {
	if IsVersion(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}
