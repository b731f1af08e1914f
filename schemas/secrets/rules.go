package secrets

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// gitleaks are the rules of gitleaks, as cmd/reconcile/internal/tools/gen writes them.
//
//go:embed gitleaks.rules
var gitleaks string

// loaded is the detector, made when the first text is searched: some programs never search any.
var loaded = sync.OnceValue(newDetector)

// genericRule is the rule of gitleaks that judges by a name and how random its value looks.
const genericRule = "generic-api-key"

// rule is how one sort of secret is recognized.
type rule struct {
	id      string
	entropy float64 // bits a character that the secret has to have more of; 0 means any
	group   int     // of the regular expression, that is the secret; see the generator
	// shortest and longest bound the bytes of a pair's value, and longest those of a token's match; 0 means no bound.
	shortest, longest int
	before, after     int  // of a near rule: the text around a word that is searched
	boundary          bool // of a token: it begins at a word's boundary
	allow             []*allowance
	stop              func() *automaton // words that no secret has; nil for none

	source string
	once   sync.Once
	re     *regexp.Regexp
}

// pattern is the rule's regular expression, compiled when it is needed first.
func (r *rule) pattern() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.source) })
	return r.re
}

// allowance excludes matches of a rule that are not secrets.
type allowance struct {
	target string // the compared part: "secret", "match" or "line"
	source string
	once   sync.Once
	re     *regexp.Regexp
}

func (a *allowance) match(s string) bool {
	a.once.Do(func() { a.re = regexp.MustCompile(a.source) })
	return a.re.MatchString(s)
}

// use is what a word in a text means: a rule may apply there.
type use struct {
	rule  *rule
	shape shape
	exact string // the word with its case, where that matters
	// length is that of the word.
	length int
	act    func(s *secretScanner, end int)
}

// shape tells how a rule is applied.
type shape byte

const (
	pairShape  shape = iota // name, operator, value
	tokenShape              // the text from the word on
	nearShape               // the text around the word
	ownShape                // a function of this package
)

// detector is all rules, by the words that lead to them.
type detector struct {
	words *automaton
	uses  [][]use      // by word
	every []*allowance // of every rule
}

// ruleBuilder collects the rules.
type ruleBuilder struct {
	detector *detector
	list     []string
	index    map[string]int
	rules    map[string][]*rule // by id
	// alphabets are the stop words of every rule.
	alphabets []string
}

func newDetector() *detector {
	b := ruleBuilder{detector: new(detector), index: map[string]int{}, rules: map[string][]*rule{}}
	for line := range strings.Lines(gitleaks) {
		b.line(strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	for _, o := range ownTokens {
		b.token(&rule{id: o.id, entropy: o.entropy, boundary: true, source: "^(?:" + o.pattern + ")"}, o.heads)
	}
	for _, w := range speechWords {
		b.add(w, use{shape: ownShape, act: (*secretScanner).speech})
	}
	for _, o := range ownWords {
		b.add(o.word, use{shape: ownShape, act: o.act})
	}
	b.detector.words = newAutomaton(b.list)
	return b.detector
}

// line parses one line of the rules' file, whose format the generator documents.
func (b *ruleBuilder) line(f []string) {
	switch f[0] {
	case "pair":
		r := b.rule(f[1], f[2], "^(?:"+f[6]+")$")
		r.shortest, r.longest = number(f[3]), number(f[4])
		b.heads(f[5], use{rule: r, shape: pairShape})
	case "token":
		r := b.rule(f[1], f[2], "^(?:"+f[7]+")")
		r.group, r.boundary, r.longest = number(f[3]), f[4] == "true", number(f[5])
		b.heads(f[6], use{rule: r, shape: tokenShape})
	case "near":
		r := b.rule(f[1], f[2], f[7])
		r.group, r.before, r.after = number(f[3]), number(f[4]), number(f[5])
		for word := range strings.SplitSeq(f[6], " ") {
			b.add(word, use{rule: r, shape: nearShape})
		}
	case "allow":
		b.allow(f[1], &allowance{target: f[2], source: f[3]})
	case "stop":
		b.stop(f[1], strings.Split(f[2], " "))
	}
}

func (b *ruleBuilder) rule(id, entropy, source string) *rule {
	r := &rule{id: id, source: source}
	r.entropy, _ = strconv.ParseFloat(entropy, 64)
	b.rules[id] = append(b.rules[id], r)
	return r
}

// heads adds a rule's words: "=Exact" or "~any case".
func (b *ruleBuilder) heads(words string, u use) {
	for word := range strings.SplitSeq(words, " ") {
		u.exact = ""
		if word[0] == '=' {
			u.exact = word[1:]
		}
		b.add(strings.ToLower(word[1:]), u)
	}
}

func (b *ruleBuilder) token(r *rule, heads string) {
	b.heads(heads, use{rule: r, shape: tokenShape})
}

func (b *ruleBuilder) add(word string, u use) {
	i, ok := b.index[word]
	if !ok {
		i = len(b.list)
		b.index[word] = i
		b.list, b.detector.uses = append(b.list, word), append(b.detector.uses, nil)
	}
	u.length = len(word)
	b.detector.uses[i] = append(b.detector.uses[i], u)
}

// wideAllowances are exceptions of gitleaks that we do not make: who hides a documented example loses nothing, and who
// shows what only looks like one may lose a key.
var wideAllowances = []string{`.+EXAMPLE$`, `(?i)^true|false|null$`}

func (b *ruleBuilder) allow(id string, a *allowance) {
	switch a.source {
	case wideAllowances[0]:
		return
	case wideAllowances[1]:
		a.source = `(?i)^(?:true|false|null)$` // not every secret that has "false" somewhere in it
	}
	if id == "*" {
		b.detector.every = append(b.detector.every, a)
	}
	for _, r := range b.rules[id] {
		r.allow = append(r.allow, a)
	}
}

// stop sets the stop words of a rule: no secret contains them. Those for every rule are example alphabets, which
// only the generic rule takes for secrets; in other rules they would excuse parts of keys of a known form.
func (b *ruleBuilder) stop(id string, words []string) {
	if id == "*" {
		b.alphabets = words
		return
	}
	for _, r := range b.rules[id] {
		if id == genericRule {
			words = slices.Concat(words, b.alphabets)
		}
		r.stop = sync.OnceValue(func() *automaton { return newAutomaton(words) })
	}
}

// allowed reports whether a match of a rule is not a secret: secret within match within line.
func (d *detector) allowed(r *rule, secret, match, line string) bool {
	for _, list := range [][]*allowance{d.every, r.allow} {
		for _, a := range list {
			target := secret
			switch a.target {
			case "match":
				target = match
			case "line":
				target = line
			}
			if a.match(target) {
				return true
			}
		}
	}
	return r.stop != nil && r.stop().has(secret)
}

// ruleGroup is the part of a match that is the secret.
func ruleGroup(m []int, wanted, offset int) span {
	if wanted > 0 {
		return span{offset + m[2*wanted], offset + m[2*wanted+1]}
	}
	for i := 2; i < len(m) && wanted == 0; i += 2 {
		if m[i] < m[i+1] {
			return span{offset + m[i], offset + m[i+1]}
		}
	}
	return span{offset + m[0], offset + m[1]}
}
