package schemas

import "strings"

// IssueTitle returns the title of an issue's text in Markdown: its first heading; "" without one.
func IssueTitle(text string) string {
	title, _ := SplitIssue(text)
	return title
}

// SplitIssue returns the title of an issue's text, its first heading, and the text without that line. Lines in fenced code are no headings.
func SplitIssue(text string) (title, body string) {
	fenced, at := false, 0
	for line := range strings.Lines(text) {
		end := at + len(line)
		line = strings.TrimSpace(line)
		level := len(line) - len(strings.TrimLeft(line, "#"))
		switch {
		case strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~"):
			fenced = !fenced
		case fenced || level == 0 || level > 6 || !strings.HasPrefix(line[level:], " "):
		default:
			if title = strings.TrimSpace(strings.TrimRight(line[level:], "# ")); title != "" {
				return title, strings.TrimSpace(text[:at] + text[end:])
			}
		}
		at = end
	}
	return "", strings.TrimSpace(text)
}
