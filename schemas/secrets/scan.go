package secrets

import "strings"

// secretScanner searches one text.
type secretScanner struct {
	detector *detector
	text     string
	found    []Finding

	next  map[*rule]int    // where each rule may match again: its matches do not overlap
	spans map[*rule][]span // the text that near rules search
	token span             // the last word that a pair's value was looked for in
	key   int              // the end of the last private key
	// covered is the end of the last assigned value that was found: names in it are ignored.
	covered int
	// secretData is the end of the last document in which the data of a Secret was looked for.
	secretData int
	address    span // the last address that was looked at
	sign       int  // the last @ in it, -1 for none
}

// span is text[start:end].
type span struct{ start, end int }

func (s *secretScanner) scan() {
	s.detector.words.scan(s.text, func(word, end int) bool {
		s.hit(s.detector.uses[word], end)
		return true
	})
	for r, spans := range s.spans {
		s.near(r, spans)
	}
}

// hit applies the rules of a word that ends before end.
func (s *secretScanner) hit(uses []use, end int) {
	looked := false // for a pair's values, which are the same for all rules
	var values pairValues
	for i := range uses {
		u := &uses[i]
		if u.exact != "" && s.text[end-u.length:end] != u.exact {
			continue
		}
		switch u.shape {
		case pairShape:
			if !looked {
				looked = true
				values = s.pairValues(end)
			}
			if values.n > 0 {
				s.pair(u.rule, end, &values)
			}
		case tokenShape:
			s.prefixed(u, end)
		case nearShape:
			s.addSpan(u.rule, end)
		case ownShape:
			u.act(s, end)
		}
	}
}

// report takes a secret in, unless it is allowed.
func (s *secretScanner) report(r *rule, secret, match span) {
	text, m := s.text[secret.start:secret.end], s.text[match.start:match.end]
	if text == "" || r.entropy > 0 && entropy(text) <= r.entropy ||
		s.detector.allowed(r, text, strings.Trim(m, "\n"), s.lines(match)) {
		return
	}
	s.add(r.id, secret.start, secret.end)
}

func (s *secretScanner) add(id string, start, end int) {
	s.found = append(s.found, Finding{id, start, end})
}

// maxLine bounds what of a line is compared with exceptions.
const maxLine = 4096

// lines are the lines that a match is on, without their end.
func (s *secretScanner) lines(m span) string {
	from, to := max(m.start-maxLine, 0), min(m.end+maxLine, len(s.text))
	if i := strings.LastIndexByte(s.text[from:m.start], '\n'); i >= 0 {
		from += i + 1
	}
	if i := strings.IndexByte(s.text[m.end:to], '\n'); i >= 0 {
		to = m.end + i
	}
	return s.text[from:to]
}

// free reports whether a match of the rule may begin at start, and take keeps others from overlapping one.
func (s *secretScanner) free(r *rule, start int) bool { return start >= s.next[r] }

func (s *secretScanner) take(r *rule, end int) {
	if s.next == nil {
		s.next = map[*rule]int{}
	}
	s.next[r] = end
}

// longToken is how much of a token without a bound is looked at.
const longToken = 4096

// prefixed applies a rule whose matches begin with the word before end.
func (s *secretScanner) prefixed(u *use, end int) {
	r := u.rule
	start := end - u.length
	if r.boundary && start > 0 && isWord(s.text[start-1]) || !s.free(r, start) {
		return
	}
	limit := len(s.text)
	if r.longest > 0 {
		limit = min(limit, start+r.longest+8) // with what follows a match, and more, so that "$" is the text's end
	} else {
		limit = min(limit, start+longToken)
	}
	m := r.pattern().FindStringSubmatchIndex(s.text[start:limit])
	if m == nil {
		return
	}
	secret, match := ruleGroup(m, r.group, start), span{start + m[0], start + m[1]}
	s.take(r, match.end)
	for secret.end < len(s.text) && (isWord(s.text[secret.end]) || s.text[secret.end] == '-') {
		secret.end++ // a rule for 20 characters leaves nothing of a token of 30
	}
	s.report(r, secret, match)
}

// addSpan remembers the text around the word before end.
func (s *secretScanner) addSpan(r *rule, end int) {
	if s.spans == nil {
		s.spans = map[*rule][]span{}
	}
	list := s.spans[r]
	next := span{s.wordStart(max(end-r.before-16, 0)), min(end+r.after, len(s.text))}
	if n := len(list); n > 0 && next.start <= list[n-1].end {
		list[n-1].end = max(list[n-1].end, next.end)
		return
	}
	s.spans[r] = append(list, next)
}

// wordStart goes back to where the word at i begins, if that is not far.
func (s *secretScanner) wordStart(i int) int {
	for back := max(i-64, 0); i > back && isWord(s.text[i-1]); {
		i--
	}
	return i
}

// near applies a rule to the text around its words.
func (s *secretScanner) near(r *rule, spans []span) {
	for _, p := range spans {
		for _, m := range r.pattern().FindAllStringSubmatchIndex(s.text[p.start:p.end], -1) {
			s.report(r, ruleGroup(m, r.group, p.start), span{p.start + m[0], p.start + m[1]})
		}
	}
}

func (s *secretScanner) at(i int, any ...string) bool {
	for _, a := range any {
		if strings.HasPrefix(s.text[i:], a) {
			return true
		}
	}
	return false
}

func (s *secretScanner) atFold(i int, lowered string) bool {
	return len(s.text)-i >= len(lowered) && strings.EqualFold(s.text[i:i+len(lowered)], lowered)
}

func (s *secretScanner) before(i int, any ...string) bool {
	for _, a := range any {
		if strings.HasSuffix(s.text[max(i-len(a), 0):i], a) {
			return true
		}
	}
	return false
}
