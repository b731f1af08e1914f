package clarify

import "strings"

// FenceOf returns the backquotes or tildes with which a line of what was said opens a block of code, or "" (CommonMark
// 0.31.2, 4.5).
func FenceOf(line string) string {
	line = strings.TrimLeft(line, " ")
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 && !(c == "`" && strings.Contains(line[n:], "`")) {
			return line[:n]
		}
	}
	return ""
}

// ClosesFence reports whether a line closes the block of code that fence opened.
func ClosesFence(line, fence string) bool {
	mark := FenceOf(line)
	return len(mark) >= len(fence) && mark != "" && mark[0] == fence[0] && strings.TrimSpace(line) == mark
}
