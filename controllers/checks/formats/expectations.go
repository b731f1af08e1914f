package formats

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// expecting are the forms in which frameworks report expectations: pairs of patterns for the expected and the actual value.
var expecting = sync.OnceValue(func() [][2]*regexp.Regexp {
	pair := func(expected, actual string) [2]*regexp.Regexp {
		return [2]*regexp.Regexp{regexp.MustCompile(expected), regexp.MustCompile(actual)}
	}
	return [][2]*regexp.Regexp{
		pair(`(?m)^\s*Expected(?: value)?:\s*(\S.*)$`, `(?m)^\s*(?:Received|Actual)(?: value)?:\s*(\S.*)$`),               // jest, vitest
		pair(`(?m)^\s*expected\s*:\s*(\S.*)$`, `(?m)^\s*(?:actual|received|got)\s*:\s*(\S.*)$`),                           // testify, TAP
		pair(`(?m)^E?\s*assert .+ == (.+)$`, `(?m)^E?\s*assert (.+?) == .+$`),                                             // pytest
		pair(`(?m)expected: ?<(.*?)> but was: ?<.*?>`, `(?m)expected: ?<.*?> but was: ?<(.*?)>`),                          // JUnit
		pair(`(?m)expected:? \[?(.+?)\]? but (?:was|found):? .+$`, `(?m)expected:? .+? but (?:was|found):? \[?(.+?)\]?$`), // TestNG, AssertJ
		pair(`(?m)^\s*right: ?(.+?)$`, `(?m)^\s*left: ?(.+?),?$`),                                                         // Rust
		pair(`(?m)expected .+ to (?:deeply )?(?:equal|be) (.+)$`, `(?m)expected (.+?) to (?:deeply )?(?:equal|be) .+$`),   // chai, vitest
		pair(`(?m)Failed asserting that .+ (?:matches expected|is identical to) (.+?)\.$`, `(?m)Failed asserting that (.+?) (?:matches expected|is identical to) .+\.$`),
		pair(`^expected (.+), found .+`, `^expected .+?, found (.+)`),               // zig
		pair(`(?m)AssertionError: .+ != (.+)$`, `(?m)AssertionError: (.+?) != .+$`), // unittest
		pair(`(?m)\bwant(?:ed)?:?\s+(.+?)(?:[,;]|$)`, `(?m)\b(?:got|have):?\s+(.+?)(?:[,;]|$)`),
	}
})

// expectations finds the expected and the actual value in the text of a failure; "" for none.
func expectations(text string) (expected, actual string) {
	if len(text) > maxText {
		text = text[:maxText]
	}
	for _, p := range expecting() {
		e, a := p[0].FindStringSubmatch(text), p[1].FindStringSubmatch(text)
		if e != nil && a != nil {
			return value(e[1]), value(a[1])
		}
	}
	return "", ""
}

// value takes what frameworks write after a value away.
func value(s string) string {
	return strings.TrimSuffix(strings.TrimSpace(strings.TrimSuffix(s, " // Object.is equality")), ",")
}

var placePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:^|[\s("'])((?:[A-Za-z]:)?[\w./\\@+-]+\.[A-Za-z]{1,5}):(\d+)`)
})

// placeIn finds the line of a file in a stack: of the file itself if it is known, else the first place that the stack names.
func placeIn(file, stack string, o Options) (string, int) {
	for _, m := range placePattern().FindAllStringSubmatch(stack[:min(len(stack), maxText)], 50) {
		at := o.file(m[1])
		if file == "" || at == file {
			line, err := strconv.Atoi(m[2])
			if err == nil && !strings.Contains(at, "node_modules/") {
				return at, line
			}
		}
	}
	return file, 0
}
