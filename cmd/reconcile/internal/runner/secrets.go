package runner

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	hidden "reconcile.dev/reconcile/schemas/secrets"
)

const (
	redacted = "***"
	private  = "[private]"

	// minSecret is the minimum length of a secret: redacting shorter values would corrupt any output.
	minSecret = 6
	// minEncoded is the minimum length of a secret that is looked for in encodings, and minBroken of what is looked for across the ends of
	// lines: shorter ones stand in other text by chance.
	minEncoded = 8
	minBroken  = 16
	// overlap is how far from its end a long line is cut, so that no match of Options.Redact is cut in two.
	overlap = 1 << 10
)

// Secrets are byte sequences that must appear nowhere. A nil *Secrets has none. It is safe for concurrent use.
type Secrets struct {
	list atomic.Pointer[[][]byte] // longest first
	mu   sync.Mutex               // held while the list is replaced
}

// In reports whether there is a secret in b, the content of a file: also in UTF-16, colored, or broken into lines.
func (s *Secrets) In(b []byte) bool {
	values := s.values()
	in := func(b []byte, least int) bool {
		return slices.ContainsFunc(values, func(v []byte) bool { return len(v) >= least && bytes.Contains(b, v) })
	}
	if len(values) == 0 || in(b, 0) {
		return len(values) > 0
	}
	switch {
	case bytes.IndexByte(b, 0) >= 0:
		b = bytes.ReplaceAll(b, []byte{0}, nil)
	case bytes.IndexByte(b, 0x1b) >= 0:
		b = []byte(printable(b))
	}
	if in(b, 0) {
		return true
	}
	return bytes.IndexByte(b, '\n') >= 0 && in(joinLines(b), minBroken)
}

// joinLines returns a text without the ends of its lines and their indentation.
func joinLines(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for line := range bytes.Lines(b) {
		out = append(out, bytes.Trim(line, lineEnds)...)
	}
	return out
}

const lineEnds = " \t\r\n"

// removeBroken is remove for text in which control characters, as those of colors and of UTF-16, or the ends of lines break a secret. A
// text with both becomes printable.
func (s *Secrets) removeBroken(b []byte) []byte {
	b = s.remove(b)
	if len(s.values()) == 0 {
		return b
	}
	if slices.ContainsFunc(b, breaks) {
		if text := []byte(printable(b)); s.In(text) {
			b = s.remove(text)
		}
	}
	if bytes.IndexByte(b, '\n') < 0 {
		return b
	}
	joined := joinLines(b)
	for _, v := range s.values() {
		if len(v) >= minBroken && bytes.Contains(joined, v) {
			b = removeAcross(b, v)
			joined = joinLines(b)
		}
	}
	return b
}

// breaks reports whether a byte may be part of what [printable] leaves out.
func breaks(c byte) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c >= 0x7f }

// removeAcross replaces a value that the ends of lines break, with them.
func removeAcross(b, v []byte) []byte {
	at, start := make([]int, 0, len(b)), 0 // where the bytes of joinLines(b) are in b
	for line := range bytes.Lines(b) {
		from := start + len(line) - len(bytes.TrimLeft(line, lineEnds))
		for i := range bytes.Trim(line, lineEnds) {
			at = append(at, from+i)
		}
		start += len(line)
	}
	joined, out, done := joinLines(b), make([]byte, 0, len(b)), 0
	for from := 0; ; {
		i := bytes.Index(joined[from:], v)
		if i < 0 {
			return append(out, b[done:]...)
		}
		from += i + len(v)
		out = append(append(out, b[done:at[from-len(v)]]...), redacted...)
		done = at[from-1] + 1
	}
}

// values are the byte sequences, longest first.
func (s *Secrets) values() [][]byte {
	if s == nil {
		return nil
	}
	if l := s.list.Load(); l != nil {
		return *l
	}
	return nil
}

// hide adds a secret that is not in this process's environment; "" has no effect.
func (s *Secrets) hide(value string) {
	if value == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replace(appendForms(slices.Clone(s.values()), value))
}

// hideLines hides a value, and each of its lines: a key of several lines may be printed indented.
func (s *Secrets) hideLines(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replace(appendLines(slices.Clone(s.values()), value))
}

// reveal removes a secret that was hidden and is worth nothing any more; "" has no effect.
func (s *Secrets) reveal(value string) {
	if value == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	forms := appendForms([][]byte{[]byte(value)}, value)
	s.replace(slices.DeleteFunc(slices.Clone(s.values()), func(v []byte) bool {
		return slices.ContainsFunc(forms, func(f []byte) bool { return bytes.Equal(f, v) })
	}))
}

// replace replaces the list.
func (s *Secrets) replace(values [][]byte) {
	slices.SortFunc(values, func(a, b []byte) int { return cmp.Or(len(b)-len(a), bytes.Compare(a, b)) })
	values = slices.CompactFunc(values, bytes.Equal)
	s.list.Store(&values)
}

// FindSecrets collects the values of the variables whose names look secret, except well-known ones such as dir, the tree's path.
func FindSecrets(environ []string, dir string) *Secrets {
	var values [][]byte
	known := []string{dir, lookup(environ, "HOME"), lookup(environ, "USER"), lookup(environ, "PATH")}
	if real, err := realPath(dir); err == nil {
		known = append(known, real)
	}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !secretName(name) || slices.Contains(known, value) {
			continue
		}
		values = appendLines(values, value)
	}
	s := new(Secrets)
	s.replace(values)
	return s
}

// appendLines appends a value and each of its lines.
func appendLines(values [][]byte, value string) [][]byte {
	values = appendForms(values, value)
	for line := range strings.SplitSeq(value, "\n") {
		values = appendForms(values, strings.TrimSpace(line)) // a key of several lines may be printed indented
	}
	return values
}

// appendForms appends a secret value that is removed from the output of commands, also in its JSON-escaped and URL-escaped forms, in
// hexadecimal and in base64.
func appendForms(values [][]byte, value string) [][]byte {
	if len(value) < minSecret {
		return values
	}
	forms := []string{value, url.QueryEscape(value), url.PathEscape(value)}
	for _, escapeHTML := range []bool{true, false} { // as Go escapes it, and as most others do
		var buf bytes.Buffer
		e := json.NewEncoder(&buf)
		e.SetEscapeHTML(escapeHTML)
		if e.Encode(value) == nil {
			inQuotes := strings.TrimSpace(buf.String())
			quoted := inQuotes[1 : len(inQuotes)-1]
			forms = append(forms, quoted, strings.ReplaceAll(quoted, "/", `\/`))
		}
	}
	if len(value) >= minEncoded {
		code := hex.EncodeToString([]byte(value))
		forms = append(forms, code, strings.ToUpper(code))
		forms = append(forms, base64Forms(value)...)
	}
	for _, f := range forms {
		values = append(values, []byte(f))
	}
	return values
}

// base64Forms are what base64 makes of a value in a longer text: by how many bytes are before it, without the characters that have bits of
// its neighbours, too.
func base64Forms(value string) (forms []string) {
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := e.EncodeToString(append(make([]byte, before), value...))
			forms = append(forms, text[(before*8+5)/6:(before+len(value))*8/6])
		}
	}
	return forms
}

// secretName reports whether a variable of this name holds a secret.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	for _, part := range []string{"TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "APIKEY", "PRIVATE"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	for word := range strings.SplitSeq(name, "_") {
		switch word {
		case "KEY", "KEYS", "PAT", "AUTH", "PASS", "PWD", "COOKIE", "DSN":
			return name != "PWD" && name != "OLDPWD"
		}
	}
	return false
}

// remove replaces the secrets.
func (s *Secrets) remove(b []byte) []byte {
	for _, v := range s.values() {
		if bytes.Contains(b, v) {
			b = bytes.ReplaceAll(b, v, []byte(redacted))
		}
	}
	return b
}

// straddler returns the start of a secret, or of a mark of private text, that extends across cut, or -1.
func (s *Secrets) straddler(b []byte, cut int) int {
	for _, v := range s.values() {
		if i := across(b, v, cut); i >= 0 {
			return i
		}
	}
	from := max(cut-longMark, 0)
	around := bytes.ToLower(b[from:min(cut+longMark, len(b))])
	for _, mark := range []string{privateStart, privateEnd, `\u003cprivate\u003e`, `\u003c/private\u003e`} {
		if i := across(around, []byte(mark), cut-from); i >= 0 {
			return from + i
		}
	}
	return -1
}

// across returns the start of a v that extends across cut, or -1.
func across(b, v []byte, cut int) int {
	from := max(cut-len(v)+1, 0)
	if i := bytes.Index(b[from:min(cut+len(v)-1, len(b))], v); i >= 0 {
		return from + i
	}
	return -1
}

// trimPartial removes the beginning of a secret from the end of b, where b was cut.
func (s *Secrets) trimPartial(b []byte) []byte {
	for _, v := range s.values() {
		for n := min(len(v)-1, len(b)); n >= minSecret/2; n-- {
			if bytes.HasSuffix(b, v[:n]) {
				b = b[:len(b)-n]
				break
			}
		}
	}
	return b
}

// longest returns the length of the longest secret.
func (s *Secrets) longest() int {
	if all := s.values(); len(all) > 0 {
		return len(all[0])
	}
	return 0
}

// filter redacts one stream of text.
type filter struct {
	runner *Runner
	stream hidden.Stream
}

func (r *Runner) newFilter() *filter { return &filter{runner: r, stream: hidden.Stream{Mark: private}} }

// lines filters whole lines, or pieces of a long line from cut.
func (f *filter) lines(b []byte) []byte {
	b = f.runner.secrets.removeBroken(f.stream.Hide(b))
	if f.runner.o.Redact != nil {
		b = f.runner.o.Redact(b)
	}
	return b
}

// cut returns where to cut a long line: not inside a secret, and not inside a word if possible.
func (f *filter) cut(b []byte) int {
	margin := max(overlap, f.runner.secrets.longest(), len(privateEnd))
	cut := len(b) - margin
	if cut <= 0 {
		return len(b)
	}
	if i := bytes.LastIndexAny(b[max(cut-margin, 0):cut], " \t,;"); i >= 0 {
		cut = max(cut-margin, 0) + i + 1
	}
	for {
		i := f.runner.secrets.straddler(b, cut)
		if i <= 0 {
			return cut
		}
		cut = i
	}
}

const (
	privateStart = "<private>"
	privateEnd   = "</private>"
	// longMark is the length of the longest mark of private text: the end mark, JSON-escaped.
	longMark = len(`\u003c/private\u003e`)
)

// cleanLines filters a whole text.
func (r *Runner) cleanLines(b []byte) []byte { return r.newFilter().lines(bytes.Clone(b)) }

// clean filters one string.
func (r *Runner) clean(s string) string { return string(r.cleanLines([]byte(s))) }

// cleanField filters a field's value, given as text or as a number: its name may mark it as a secret.
func (r *Runner) cleanField(name, value string, number bool) (clean string, changed bool) {
	clean = value
	if !number {
		clean = r.clean(value)
	}
	if r.o.Redact == nil {
		return clean, clean != value
	}
	quoted, before := clean, strconv.Quote(name)+": "
	if !number {
		quoted = strconv.Quote(clean)
	}
	got, ok := strings.CutPrefix(string(r.o.Redact([]byte(before+quoted))), before)
	if !ok {
		return redacted, true
	}
	if got == quoted {
		return clean, clean != value
	}
	if text, err := strconv.Unquote(got); err == nil {
		return text, true
	}
	return redacted, true
}

// cleanValue redacts every string of a JSON value, in place.
func (r *Runner) cleanValue(v any) any {
	switch v := v.(type) {
	case string:
		return r.clean(v)
	case []any:
		for i := range v {
			v[i] = r.cleanValue(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[r.clean(k)] = r.cleanNamed(k, e)
		}
		return out
	}
	return v
}

// cleanNamed is cleanValue for the value of a field.
func (r *Runner) cleanNamed(name string, v any) any {
	switch s := v.(type) {
	case string:
		clean, _ := r.cleanField(name, s, false)
		return clean
	case json.Number:
		if clean, changed := r.cleanField(name, s.String(), true); changed {
			return clean
		}
		return v
	}
	return r.cleanValue(v)
}
