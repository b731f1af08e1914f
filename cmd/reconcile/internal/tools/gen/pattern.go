package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
)

// Most rules of gitleaks are made by one function, which puts a name and the form of a value into these parts.
var pairParts = []struct{ before, between string }{
	{`(?i)[\w.-]{0,50}?(?:`, `)(?:[ \t\w.-]{0,20})[\s'"]{0,3}` + pairOperator},
	{`[\w.-]{0,50}?(?i:[\w.-]{0,50}?(?:`, `)(?:[ \t\w.-]{0,20})[\s'"]{0,3})` + pairOperator},
}

const (
	pairOperator = `(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}(`
	pairEnd      = `)(?:[\x60'"\s;]|\\[nr]|$)`
)

// pair is a rule of the form: name, operator, value.
type pair struct{ names, value string }

func parsePair(re string) (pair, bool) {
	for i, part := range pairParts {
		rest, ok := strings.CutPrefix(re, part.before)
		if !ok {
			continue
		}
		names, value, ok := strings.Cut(rest, part.between)
		if !ok {
			continue
		}
		if value, ok = strings.CutSuffix(value, pairEnd); ok {
			if i == 0 {
				value = "(?i)" + value
			}
			return pair{names, value}, true
		}
	}
	return pair{}, false
}

func (p pair) write(b *bytes.Buffer, r gitleaksRule) error {
	// The longer of these two names is the shorter one with a tail, as which it is found, too.
	names, err := syntax.Parse("(?i)"+strings.TrimPrefix(p.names, "MailchimpSDK.initialize|"), syntax.Perl)
	if err != nil {
		return err
	}
	value, err := syntax.Parse(p.value, syntax.Perl)
	if err != nil {
		return err
	}
	heads := prefixes(names)
	if slices.ContainsFunc(heads, func(h head) bool { return !h.complete }) {
		return fmt.Errorf("the names %s cannot be listed", p.names)
	}
	shortest, longest := lengths(value)
	fmt.Fprintf(b, "pair\t%s\t%v\t%d\t%d\t%s\t%s\n", r.ID, r.Entropy, shortest, longest,
		strings.Join(texts(heads), " "), p.value)
	return nil
}

// token is a rule whose matches begin with one of some literals.
type token struct {
	boundary bool // a match begins at a word's boundary
	longest  int  // bytes that a match has at most; 0 means any number
	heads    []string
}

func parseToken(re string) (token, error) {
	parsed, err := syntax.Parse(re, syntax.Perl)
	if err != nil {
		return token{}, err
	}
	heads := prefixes(parsed)
	if len(heads) == 0 || slices.ContainsFunc(heads, func(h head) bool { return len(h.text) < 2 }) {
		return token{}, errors.New("matches begin with no literal: give it a span in nearRules")
	}
	_, longest := lengths(parsed)
	return token{
		boundary: strings.HasPrefix(strings.TrimPrefix(re, "(?i)"), `\b`), longest: longest, heads: texts(heads),
	}, nil
}

// alternatives splits a regular expression at the bars outside of any group, and repeats leading flags.
func alternatives(re string) []string {
	flags := ""
	if strings.HasPrefix(re, "(?i)") {
		flags = "(?i)"
	}
	var out []string
	depth, class, start := 0, false, 0
	for i := 0; i < len(re); i++ {
		switch c := re[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
			if i+1 < len(re) && re[i+1] == ']' || strings.HasPrefix(re[i:], "[[:") {
				i += 2
			}
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			out, start = append(out, re[start:i]), i+1
		}
	}
	out = append(out, re[start:])
	for i := range out[1:] {
		out[i+1] = flags + out[i+1]
	}
	return out
}

// head is a literal that matches begin with.
type head struct {
	text     string
	fold     bool // in any case
	complete bool // nothing else belongs to the match
}

// maxHeads bounds the literals of a rule: a rule with more is not selected by its beginning.
const maxHeads = 96

// prefixes lists the literals that matches of re begin with; each match begins with one of them.
func prefixes(re *syntax.Regexp) []head {
	switch re.Op {
	case syntax.OpLiteral:
		fold := re.Flags&syntax.FoldCase != 0
		if text := string(re.Rune); fold && len(text) == 1 { // as [Mm] is parsed
			return []head{{strings.ToUpper(text), false, true}, {strings.ToLower(text), false, true}}
		}
		return []head{{string(re.Rune), fold, true}}
	case syntax.OpEmptyMatch, syntax.OpWordBoundary, syntax.OpBeginLine, syntax.OpBeginText:
		return []head{{complete: true}}
	case syntax.OpCapture:
		return prefixes(re.Sub[0])
	case syntax.OpCharClass:
		return classHeads(re)
	case syntax.OpQuest:
		return append(prefixes(re.Sub[0]), head{complete: true})
	case syntax.OpPlus:
		return incomplete(prefixes(re.Sub[0]))
	case syntax.OpRepeat:
		if re.Min > 0 {
			return incomplete(prefixes(re.Sub[0]))
		}
	case syntax.OpAlternate:
		var out []head
		for _, sub := range re.Sub {
			out = append(out, prefixes(sub)...)
		}
		return out
	case syntax.OpConcat:
		return concatHeads(re.Sub)
	}
	return []head{{}}
}

func classHeads(re *syntax.Regexp) []head {
	var out []head
	for i := 0; i < len(re.Rune); i += 2 {
		if re.Rune[i+1]-re.Rune[i] > 3 || len(out) > 4 {
			return []head{{}}
		}
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			out = append(out, head{string(r), re.Flags&syntax.FoldCase != 0, true})
		}
	}
	return out
}

func incomplete(heads []head) []head {
	for i := range heads {
		heads[i].complete = false
	}
	return heads
}

func concatHeads(subs []*syntax.Regexp) []head {
	out := []head{{complete: true}}
	for _, sub := range subs {
		var next []head
		tails := prefixes(sub)
		for _, h := range out {
			if !h.complete {
				next = append(next, h)
				continue
			}
			for _, t := range tails {
				next = append(next, head{h.text + t.text, h.fold || t.fold, t.complete})
			}
		}
		if len(next) > maxHeads {
			return incomplete(out)
		}
		out = next
	}
	return out
}

// texts writes heads: "=" before those of exact case, and "~" and lower case for the others.
func texts(heads []head) []string {
	var out []string
	for _, h := range heads {
		if h.fold {
			out = append(out, "~"+strings.ToLower(h.text))
		} else {
			out = append(out, "="+h.text)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lengths returns how many characters a match has at least and at most, which are bytes in all that can be a secret; 0
// means any number.
func lengths(re *syntax.Regexp) (shortest, longest int) {
	shortest, longest = bounds(re)
	return shortest, max(longest, 0)
}

// bounds is as lengths, with -1 for any number.
func bounds(re *syntax.Regexp) (shortest, longest int) {
	switch re.Op {
	case syntax.OpLiteral:
		return len(string(re.Rune)), len(string(re.Rune))
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1, 1
	case syntax.OpCapture:
		return bounds(re.Sub[0])
	case syntax.OpStar:
		return 0, -1
	case syntax.OpPlus:
		s, _ := bounds(re.Sub[0])
		return s, -1
	case syntax.OpQuest:
		_, l := bounds(re.Sub[0])
		return 0, l
	case syntax.OpRepeat:
		s, l := bounds(re.Sub[0])
		if re.Max < 0 || l < 0 {
			return s * re.Min, -1
		}
		return s * re.Min, l * re.Max
	case syntax.OpConcat, syntax.OpAlternate:
		return manyBounds(re)
	}
	return 0, 0
}

func manyBounds(re *syntax.Regexp) (shortest, longest int) {
	for i, sub := range re.Sub {
		s, l := bounds(sub)
		if re.Op == syntax.OpConcat {
			shortest += s
			if longest >= 0 && l >= 0 {
				longest += l
			} else {
				longest = -1
			}
			continue
		}
		if i == 0 || s < shortest {
			shortest = s
		}
		if l < 0 || longest < 0 {
			longest = -1
		} else {
			longest = max(longest, l)
		}
	}
	return shortest, longest
}
