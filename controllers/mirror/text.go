package mirror

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas/secrets"
)

// gap is an invisible character that breaks words on which GitHub would act.
const gap = "\u200b"

// turnLimit is the maximum length of one shown turn, in characters.
const turnLimit = 9_000

// lineEnds makes line feeds of all ends of lines.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// plainText returns untrusted text without secrets, invisible characters, and characters that reorder text.
func plainText(s string) string {
	s = lineEnds.Replace(strings.ToValidUTF8(secrets.Redact(s), "\ufffd"))
	return strings.Map(func(r rune) rune {
		const softHyphen, joiner = '\u00ad', '\u200d' // the latter is in emoji
		switch {
		case r == '\n' || r == '\t' || r == softHyphen || r == joiner:
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// lineText escapes text of others as one line of Markdown, cut to at most limit characters, so that nothing in it has a
// meaning.
func lineText(s string, limit int) string {
	s, cut := cutRunes(strings.Join(strings.Fields(plainText(s)), " "), limit)
	var b strings.Builder
	escape(&b, s, "*_`")
	if cut {
		b.WriteString("…")
	}
	return b.String()
}

// codeText is a word in a code span. Names are; what cannot be one is escaped.
func codeText(s string) string {
	if !isName(s) && (s == "" || strings.ContainsAny(s, "`|\n\r") || s != plainText(s)) {
		return lineText(s, turnLimit)
	}
	return "`" + s + "`"
}

// isName reports whether a word is made as the names of objects and nodes are, and no longer.
func isName(s string) bool {
	return s != "" && len(s) <= 63 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}

// quoteText returns untrusted text as the lines of a quotation. cut reports that it was longer than the result.
func quoteText(s string) (lines []string, cut bool) {
	s, cut = cutRunes(strings.Trim(plainText(s), "\n"), turnLimit)
	all := strings.Split(s, "\n")
	for i := 0; i < len(all); {
		if fence := clarify.FenceOf(all[i]); fence != "" {
			end := i + 1
			for end < len(all) && !clarify.ClosesFence(all[end], fence) {
				end++
			}
			lines = append(lines, codeBlock(all[i], all[i+1:min(end, len(all))])...)
			i = end + 1
			continue
		}
		lines = append(lines, proseLine(all[i]))
		i++
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight("> "+l, " \t")
	}
	return lines, cut
}

// codeBlock is a block of code between fences that nothing in it closes.
func codeBlock(opening string, code []string) []string {
	fence := "```"
	for _, l := range code {
		for n := longestRun(l); len(fence) <= n; {
			fence += "`"
		}
	}
	language := strings.TrimFunc(opening, func(r rune) bool { return r == '`' || r == '~' || r == ' ' || r == '\t' })
	if len(language) > 20 || strings.ContainsFunc(language, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '+' && r != '-'
	}) || strings.Contains(" mermaid math geojson topojson stl suggestion ", " "+strings.ToLower(language)+" ") {
		language = "" // it is not a language, or one that GitHub draws
	}
	out := append([]string{fence + language}, code...)
	return append(out, fence)
}

// longestRun is the length of the longest run of backquotes.
func longestRun(s string) (most int) {
	for n := 0; s != ""; s = s[1:] {
		if n++; s[0] != '`' {
			n = 0
		}
		most = max(most, n)
	}
	return most
}

// proseLine returns a line of text outside of a block of code: emphasis, list items and code spans keep their form.
func proseLine(line string) string {
	body := strings.TrimLeft(line, " \t")
	indent := strings.ReplaceAll(line[:len(line)-len(body)], "\t", "    ")
	const deepest = 8 // of nested lists
	if limit := deepest; len(indent) > 3 {
		if body == "" || !strings.ContainsRune("-*+0123456789", rune(body[0])) {
			limit = 3 // what stands deeper would be code
		}
		indent = indent[:min(len(indent), limit)]
	}
	var b strings.Builder
	b.WriteString(indent)
	if body != "" && strings.Trim(body, "-=*_ \t:|+") == "" {
		b.WriteByte('\\') // a rule, the underline of a heading, or that of a table's head
	}
	textSpans(&b, body)
	return b.String()
}

// textSpans writes a line with its code spans; backquotes without a partner are text.
func textSpans(b *strings.Builder, line string) {
	for line != "" {
		at := strings.IndexByte(line, '`')
		if at < 0 {
			escape(b, line, "")
			return
		}
		escape(b, line[:at], "")
		line = line[at:]
		run := len(line) - len(strings.TrimLeft(line, "`"))
		inside, rest, ok := cutRun(line[run:], run)
		if !ok {
			b.WriteString(strings.Repeat("\\`", run))
			line = line[run:]
			continue
		}
		mark := strings.Repeat("`", longestRun(inside)+1)
		if strings.HasPrefix(inside, "`") || strings.HasSuffix(inside, "`") {
			inside = " " + inside + " "
		}
		b.WriteString(mark + inside + mark)
		line = rest
	}
}

// cutRun finds in the Markdown of a comment the first run of exactly n backquotes, which ends a code span.
func cutRun(s string, n int) (before, after string, ok bool) {
	for i := 0; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		run := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		if run == n {
			return s[:i], s[i+n:], true
		}
		i += run
	}
	return "", "", false
}

// shortestHash is how many digits of a commit's name GitHub makes a link of.
const shortestHash = 7

// escape writes text so that GitHub takes nothing in it for anything else; further are more characters that Markdown
// acts on and that have no meaning here.
func escape(b *strings.Builder, s, further string) {
	const active = "\\<>[]|~$!#&{}"
	digits := 0 // hexadecimal ones since the last thing between them that is seen
	for i, r := range s {
		switch {
		case strings.ContainsRune("0123456789abcdefABCDEF", r):
			if digits++; digits == shortestHash {
				b.WriteString(gap)
				digits = 1
			}
		case r != '*' && r != '_':
			digits = 0
		}
		if strings.ContainsRune(active, r) || strings.ContainsRune(further, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		if joins(s, i, r) {
			b.WriteString(gap)
		}
	}
}

// joins reports whether the character r at i would, with the text around it, be a mention, a reference or an address.
func joins(s string, i int, r rune) bool {
	next := s[i+utf8.RuneLen(r):]
	switch r {
	case '@', '#':
		return true
	case ':':
		return strings.HasPrefix(next, "//") || hasFoldSuffix(s[:i], "mailto") || hasFoldSuffix(s[:i], "xmpp")
	case '-':
		return hasFoldSuffix(s[:i], "gh") && next != "" && next[0] >= '0' && next[0] <= '9'
	case 'w', 'W':
		return strings.HasPrefix(next, ".") && hasFoldSuffix(s[:i], "ww")
	}
	return false
}

// cutRunes returns at most limit characters of a text.
func cutRunes(s string, limit int) (string, bool) {
	if len(s) <= limit {
		return s, false
	}
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i], true
		}
	}
	return s, false
}

// titleText returns untrusted text as the title of an issue, which is not Markdown: at most 200 characters of it.
func titleText(s string) string {
	const most = 200
	s, _ = cutRunes(strings.Join(strings.Fields(plainText(s)), " "), most)
	return strings.NewReplacer("@", "@"+gap, "#", "#"+gap).Replace(s)
}
