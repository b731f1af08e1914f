package memory

import (
	"slices"
	"strings"
)

// phrases is a set of phrases, by their first words.
type phrases map[string][][]string

// phrasesOf reads phrases parted by |. Of a word, * stands for any one word.
func phrasesOf(list string) phrases {
	out := phrases{}
	for phrase := range strings.SplitSeq(list, "|") {
		words := strings.Fields(phrase)
		out[words[0]] = append(out[words[0]], words)
	}
	return out
}

// at returns how many words of words[i:] are a phrase of the set, the most of them; 0 if they begin with none.
func (p phrases) at(words []string, i int) int {
	longest := 0
	for _, phrase := range p[words[i]] {
		if len(phrase) > longest && len(phrase) <= len(words)-i && matches(phrase, words[i:]) {
			longest = len(phrase)
		}
	}
	return longest
}

func matches(phrase, words []string) bool {
	for i, want := range phrase {
		if want != "*" && want != words[i] {
			return false
		}
	}
	return true
}

// find returns where the first phrase of the set stands in words, from from on; -1 if none does.
func (p phrases) find(words []string, from int) int {
	for i := max(from, 0); i < len(words); i++ {
		if p.at(words, i) > 0 {
			return i
		}
	}
	return -1
}

func (p phrases) in(words []string) bool { return p.find(words, 0) >= 0 }

func (p phrases) begin(words []string) bool { return len(words) > 0 && p.at(words, 0) > 0 }

// before reports whether one of a set of single words stands among the n words before words[i].
func (p phrases) before(words []string, i, n int) bool {
	return slices.ContainsFunc(words[max(0, i-n):i], func(w string) bool { return p[w] != nil })
}
