package main

import (
	"slices"
	"strings"
	"testing"
)

func TestConvertRules(t *testing.T) {
	got, err := convertRules([]byte(`
[allowlist]
regexes = ['^x+$']
stopwords = ["b", "a", "a"]

[[rules]]
id = "pair"
regex = '''(?i)[\w.-]{0,50}?(?:foo|ba[rz])(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}([a-z0-9]{4,8})(?:[\x60'"\s;]|\\[nr]|$)'''
entropy = 3.5

[[rules]]
id = "both"
regex = '''\b(?:ab|cd)_[0-9]{4}\b|EF[a-z]+'''
[[rules.allowlists]]
regexes = ["ab_0000"]
[[rules.allowlists]]
condition = "AND"
paths = ["x"]
regexes = ["never"]

[[rules]]
id = "maxmind-license-key"
regex = '''[A-Za-z0-9]{6}_mmk'''
keywords = ["_mmk"]

[[rules]]
id = "private-key"
regex = '''x'''
`))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(got)), "\n")
	want := []string{
		"allow\t*\tsecret\t^x+$",
		"stop\t*\ta b",
		"token\tboth\t0\t0\ttrue\t7\t=ab_ =cd_\t" + `\b(?:ab|cd)_[0-9]{4}\b`,
		"token\tboth\t0\t0\tfalse\t0\t=EF\tEF[a-z]+",
		"allow\tboth\tsecret\tab_0000",
		"near\tmaxmind-license-key\t0\t0\t48\t16\t_mmk\t[A-Za-z0-9]{6}_mmk",
		"pair\tpair\t3.5\t4\t8\t~bar ~baz ~foo\t(?i)[a-z0-9]{4,8}",
	}
	if !slices.Equal(lines[1:], want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines[1:], "\n"), strings.Join(want, "\n"))
	}
}

// TestConvertRulesRefuses: a rule that begins with anything needs a place in the table, which a new version may show.
func TestConvertRulesRefuses(t *testing.T) {
	_, err := convertRules([]byte("[[rules]]\nid = \"new\"\nregex = '[a-z]{4}x'\n"))
	if err == nil || !strings.Contains(err.Error(), "rule new: matches begin with no literal") {
		t.Errorf("got %v", err)
	}
}
