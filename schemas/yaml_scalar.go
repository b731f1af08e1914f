package schemas

import (
	"math"
	"strconv"
	"strings"
)

// maxExact is the largest integer up to which every one has its own float64: what JSON readers agree on.
const maxExact = 1 << 53

// plainScalar sets v to what the unquoted text s means by the core schema of YAML 1.2: yes, no, on, off and dates are
// text. What readers disagree about is refused: the result says why, and what to write instead.
func (v *value) plainScalar(s string) (why, hint string) {
	v.bare = true
	v.raw = s
	switch s {
	case "", "~", "null", "Null", "NULL":
		v.form = null
		return "", ""
	case "true", "True", "TRUE":
		v.form, v.text = boolean, "true"
		return "", ""
	case "false", "False", "FALSE":
		v.form, v.text = boolean, "false"
		return "", ""
	}
	switch s {
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN", ".NAN":
		return s + " is not a number that JSON has", "write it in quotes if it is text"
	}
	if c := s[0]; c > '9' || c != '+' && c != '-' && c != '.' && c < '0' {
		v.form, v.text = text, s
		return "", ""
	}
	return v.numeric(s)
}

// numeric is plainScalar for text that may be a number.
func (v *value) numeric(s string) (why, hint string) {
	sign, digits := "", s
	if s[0] == '-' || s[0] == '+' {
		sign, digits = strings.TrimPrefix(s[:1], "+"), s[1:]
	}
	switch {
	case s == digits && (hasDigits(s, "0x", "0123456789abcdefABCDEF") || hasDigits(s, "0o", "01234567")):
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil || n > maxExact {
			return tooBig(s)
		}
		v.form, v.text = number, strconv.FormatUint(n, 10)
		return "", ""
	case !isDecimal(digits):
		v.form, v.text = text, s
		return "", ""
	case len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9':
		return "a number with a leading zero is octal to some readers and decimal to others",
			`write "` + s + `" in quotes for text, or the number without the zero`
	}
	return v.decimal(sign+digits, s)
}

// decimal sets v to the number that s is; raw is how it was written.
func (v *value) decimal(s, raw string) (why, hint string) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return tooBig(raw)
	}
	v.form, v.raw = number, raw
	if isDigits(strings.TrimPrefix(s, "-")) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n > maxExact || n < -maxExact {
			return tooBig(raw)
		}
		v.text = strconv.FormatInt(n, 10)
		return "", ""
	}
	v.text = formatFloat(f)
	return "", ""
}

// formatFloat is the shortest form that reads back as f; whole numbers have no point, so that 1.0 and 1 are one value.
func formatFloat(f float64) string {
	if f == 0 {
		return "0"
	}
	if f == math.Trunc(f) && math.Abs(f) <= maxExact {
		return strconv.FormatInt(int64(f), 10)
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}

func hasDigits(s, prefix, digits string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	return ok && rest != "" && strings.Trim(rest, digits) == ""
}

// isDecimal reports whether s is an unsigned decimal number: (\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?.
func isDecimal(s string) bool {
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
		if len(exponent) > 0 && (exponent[0] == '+' || exponent[0] == '-') {
			exponent = exponent[1:]
		}
		if !isDigits(exponent) {
			return false
		}
	}
	whole, fraction, point := strings.Cut(mantissa, ".")
	switch {
	case !point:
		return isDigits(whole)
	case whole == "":
		return isDigits(fraction)
	}
	return isDigits(whole) && (fraction == "" || isDigits(fraction))
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// tomlNumber is plainScalar for TOML's numbers, which also know inf, nan and 0b.
func (v *value) tomlNumber(s string) (why, hint string) {
	switch bare := strings.TrimLeft(s, "+-"); {
	case bare == "inf" || bare == "nan":
		return s + " is not a number that JSON has", "write it in quotes if it is text"
	case strings.HasPrefix(bare, "0b"):
		return "binary numbers are not supported", "write the number in decimal"
	}
	return v.plainScalar(s)
}

// quoted reads a text in quotes that has none of the rarer escapes. One in single quotes may go on over lines, none of them
// blank, each joined by a space.
func (r *plainReader) quoted(depth int) *value {
	v := r.value(text, depth)
	if v == nil {
		return nil
	}
	mark := r.text[r.at]
	r.at++
	s, simple, closed := r.untilMark(mark)
	if !closed && mark == '\'' {
		simple = false
		s, closed = r.quotedLines(s)
	}
	if !closed {
		return nil
	}
	if v.text = s; simple {
		return v
	}
	return v.unquote(mark)
}

// quotedLines reads the lines of a text in single quotes after its first one.
func (r *plainReader) quotedLines(first string) (s string, closed bool) {
	all := append(make([]byte, 0, 4*len(first)), first...)
	for r.nextLine() && r.indent > 0 && r.at < r.end {
		s, _, closed = r.untilMark('\'')
		if all = append(append(all, ' '), s...); closed {
			return string(all), true
		}
	}
	return "", false
}

// untilMark reads to the quotation mark that closes a text, or to the end of the line. simple reports that the text
// has no escapes.
func (r *plainReader) untilMark(mark byte) (s string, simple, closed bool) {
	start := r.at
	simple = true
	for i := start; i < r.end; i++ {
		switch c := r.text[i]; {
		case c == '\\' && mark == '"':
			simple = false
			i++
		case c == mark && mark == '\'' && i+1 < r.end && r.text[i+1] == mark:
			simple = false
			i++
		case c == mark:
			r.at = i + 1
			return r.text[start:i], simple, true
		}
	}
	return r.text[start:r.end], simple, false
}

// blockText reads "|", "|-", ">" or ">-" and the text below it.
func (r *plainReader) blockText(indent, depth int) *value {
	head := r.rest()
	if head != "|" && head != "|-" && head != ">" && head != ">-" {
		return nil
	}
	v := r.value(text, depth)
	if v == nil {
		return nil
	}
	t := textLines{folded: head[0] == '>'}
	inner, blank := -1, 0
	for r.nextLine() {
		if r.at == r.end {
			if r.end-r.start > 0 || r.next-r.start > 1 || r.next == len(r.text) && r.text[len(r.text)-1] != '\n' {
				return nil // a blank line of spaces may count as text
			}
			blank++
			continue
		}
		if inner < 0 {
			if inner = r.indent; inner <= indent || blank > 0 {
				return nil
			}
		}
		if r.indent < inner {
			return r.endText(v, t.text(), head, indent)
		}
		if r.text[r.next-1] != '\n' || t.folded && (r.indent > inner || r.end != r.next-1) {
			return nil
		}
		if !t.add(r.text[r.start+inner:r.next], blank) {
			return nil
		}
		blank = 0
	}
	r.eof, r.indent = true, -1
	return r.endText(v, t.text(), head, indent)
}

// add takes a line with its line end and the number of empty lines before it; false if there are unusually many.
func (t *textLines) add(line string, blank int) bool {
	const breaks = "\n\n\n\n\n\n\n\n"
	if t.one == "" {
		t.one = line
		return true
	}
	if t.more.Len() == 0 {
		t.more.WriteString(t.one[:len(t.one)-1])
	}
	switch {
	case blank >= len(breaks):
		return false
	case t.folded && blank == 0:
		t.more.WriteByte(' ')
	case t.folded:
		t.more.WriteString(breaks[:blank])
	default:
		t.more.WriteString(breaks[:blank+1])
	}
	t.more.WriteString(line[:len(line)-1])
	return true
}

// textLines puts the lines of a block text together. A single one, the most frequent case, stays where it is.
type textLines struct {
	folded bool
	one    string
	more   strings.Builder
}

// endText finishes a block text of YAML; the reader stands on the line that ended it.
func (r *plainReader) endText(v *value, s, head string, indent int) *value {
	if s == "" {
		return nil
	}
	if v.text = s; len(head) > 1 {
		v.text = strings.TrimSuffix(s, "\n")
	}
	if !r.eof && r.text[r.at] == '#' {
		r.advance()
	}
	if r.indent > indent {
		return nil
	}
	return v
}

// text is the whole text, with one line end.
func (t *textLines) text() string {
	if t.more.Len() == 0 {
		return t.one
	}
	t.more.WriteByte('\n')
	return t.more.String()
}
