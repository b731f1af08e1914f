package tools

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/schemas"
)

// asserted finds what makes a test fail, in a line: an assertion, or a failure that is called by hand.
var asserted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:t|tb|b|f|s|st|tt|c)\.(?:Fatal|Fatalf|Fail|FailNow|Errorf)\(|\b(?:t|tb|b|f|s|st|tt|c)\.Error\([^)]|\b(?:assert|require|expect|should|must|qt|is)\.\w+\(|` +
		`\bassert\b\s*[^\s.(=:]|\b(?:debug_)?assert\w*!?\(|\.assert\w*\(|\bexpect\w*\(|\bpytest\.(?:raises|warns|fail)\(|\bself\.fail\w*\(|\b(?:ASSERT|EXPECT|REQUIRE|CHECK|TEST_ASSERT)\w*\(|` +
		`\bAssert\.\w+\(|\bXCT\w+\(|\bis_expected\b|\bt\.(?:is|not|truthy|falsy|true|false|ok|notOk|equals?|notEquals?|same|notSame|like|match|deepEquals?|notDeepEquals?|strictEquals?|throws|rejects|snapshot)\(|` +
		`\bpanic!\(|\.(?:must|should)(?:_\w+|\.)|\bassert_\w+|\brefute\w*\b`)
})

// constant finds an assertion that holds whatever the code does.
var constant = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bassert\w*!?[\s(]+(?:t,\s*)?(?:true|True|1|not False|!false)\s*(?:[,);#]|$|//)|\bassert(?:\.False|False)\(\s*(?:t,\s*)?(?:false|False)\s*[,)]|` +
		`\b(?:assert|require)\.(?:True|ok|isTrue|is_true|equal|Equal)\(\s*(?:t,\s*)?(?:true|1)\s*\)|\b(?:assert|require)\.True\(\s*t,\s*true\b|\bor True\b|\|\| true\b|` +
		`\bexpect\(\s*(?:true|false|\d+|null|undefined|'[^']*'|"[^"]*")\s*\)\.(?:not\.)?to|\b(?:ASSERT|EXPECT|REQUIRE|CHECK)\w*\(\s*(?:true|1)\s*\)`)
})

// pairs finds the two sides of an assertion that compares.
var pairs = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bassert(?:_eq!|Equals?|Same|\.(?:Equal|equal|strictEqual|deepEqual|Same))\(\s*(?:t,\s*)?([^,()]+),\s*([^,()]+?)\s*[,)]|\bassert\s+([^=,]+?)\s*==\s*([^=,#]+?)\s*(?:$|,|#)|` +
		`\bexpect\(([^()]+)\)\.to\w*\(([^()]+)\)|\b(?:ASSERT|EXPECT)_EQ\(\s*([^,()]+),\s*([^,()]+?)\s*\)`)
})

// topLevel finds a declaration that ends the test above it.
var topLevel = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:func|def|class|async def|fn|pub fn|function|export|const|let|var|type)\b`)
})

// compares finds a command of a shell that fails where something is not as it should be.
var compares = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:! )?(?:\[\[? |test )`) })

// nothing finds a line of a test that does nothing.
var nothing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[\[\](){};,.]*|pass|end|\.\.\.|return(?: nil| None)?;?|t\.(?:Helper|Parallel)\(\)|_ = \w+)$`)
})

// assertionsOf are the assertions of a file that may fail, by the test in which they are; "" has those outside of tests, as in helpers. Of tests with one name all count.
// code counts the lines of each test that do something, and judged has the tests that may leave the assertions to what they call. What follows where a test
// returns at once is not there. It looks at lines, without a parser.
func assertionsOf(file string, text []byte) (out map[string][]string, code map[string]int, judged map[string]bool) {
	out, code, judged = map[string][]string{}, map[string]int{}, map[string]bool{}
	comment := "//"
	switch path.Ext(file) {
	case ".py", ".rb", ".sh", ".bats", ".ex", ".exs", ".pl", ".t", ".r":
		comment = "#"
	}
	test, end, ended := "", "", false
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(line)
		if end != "" {
			if strings.Contains(trimmed, end) {
				end = ""
			}
			continue
		}
		switch {
		case strings.HasPrefix(trimmed, comment), trimmed == "":
			continue
		case comment == "//" && strings.HasPrefix(trimmed, "/*"):
			if !strings.Contains(trimmed, "*/") {
				end = "*/"
			}
			continue
		case comment == "#" && (strings.HasPrefix(trimmed, `"""`) || strings.HasPrefix(trimmed, "'''")):
			if !strings.Contains(trimmed[3:], trimmed[:3]) {
				end = trimmed[:3]
			}
			continue
		}
		if name, ok := declaredTest(line); ok {
			if out[name] == nil {
				out[name] = []string{}
			}
			test, ended = name, false
		} else if topLevel().MatchString(line) {
			test, ended = "", false
		} else if test != "" {
			ended = ended || code[test] == 0 && strings.HasPrefix(trimmed, "return") && nothing().MatchString(trimmed)
			if !ended && !nothing().MatchString(trimmed) {
				code[test]++
			}
		}
		if ended {
			continue
		}
		n := len(asserted().FindAllString(trimmed, -1))
		if path.Ext(file) == ".bats" && compares().MatchString(trimmed) {
			n++
		}
		judged[test] = judged[test] || judges().MatchString(trimmed)
		if n > 0 && !isConstant(trimmed) {
			said := strings.Join(strings.Fields(trimmed), " ")
			for range n {
				out[test] = append(out[test], said)
			}
		}
	}
	return out, code, judged
}

// judges finds a call of a function that may fail a test.
var judges = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[(,]\s*(?:t|tb|f|s\.T\(\)|self)\s*[,)]|(?i)(?:check|verif|expect|ensure|must|should|want|compare|match|assert|fail|raise|throw|panic|unwrap|output|diff|same)`)
})

// isConstant reports whether a line asserts what holds whatever the code does.
func isConstant(line string) bool {
	if constant().MatchString(line) {
		return true
	}
	m := pairs().FindStringSubmatch(line)
	for i := 1; i+1 < len(m); i += 2 {
		if m[i] != "" && m[i] == m[i+1] {
			return true
		}
	}
	return false
}

// declaredTest is the name of the test that a line declares.
func declaredTest(line string) (string, bool) {
	m := declared().FindStringSubmatch(line)
	if m == nil {
		return "", false
	}
	name := strings.Join(m[1:], "")
	return name, name != ""
}

// DeclaresTests reports whether a line of a text declares a test.
func DeclaresTests(text string) bool {
	for line := range strings.Lines(text) {
		if _, is := declaredTest(line); is {
			return true
		}
	}
	return false
}

// asserting compares the assertions of files before and after a change.
type asserting struct {
	before, after map[string]map[string][]string // by file after the change, and test
	emptied       []string                       // what is said of single files
	judged        map[string]bool                // by file and test
	rows          int                            // of tables that are gone from all files together
	shorter       []string                       // files with fewer rows
	gone          map[string]string              // the tests that the change removes, which may be in another file now
}

// add notes the texts of a file, which has another name before the change; before is nil for a new one.
func (a *asserting) add(from, file string, before, after []byte) {
	if a.before == nil {
		a.before, a.after, a.judged = map[string]map[string][]string{}, map[string]map[string][]string{}, map[string]bool{}
	}
	if n := rows(before) - rows(after); n != 0 {
		if a.rows += n; n > 0 {
			a.shorter = append(a.shorter, file)
		}
	}
	var is map[string]int
	var judged map[string]bool
	a.after[file], is, judged = assertionsOf(file, after)
	for test, j := range judged {
		a.judged[file+"\x00"+test] = j
	}
	if a.before[file] = nil; before == nil {
		return
	}
	var was map[string]int
	a.before[file], was, _ = assertionsOf(from, before)
	if n := otherwise(before, after); n > 0 {
		a.emptied = append(a.emptied, fmt.Sprintf("expects %s in %s", schemas.Count(n, "other value"), file))
	}
	if n := longer(before, after); n > 0 {
		a.emptied = append(a.emptied, fmt.Sprintf("raises %s in %s", schemas.Count(n, "time limit"), file))
	}
	for _, test := range slices.Sorted(maps.Keys(was)) {
		if now, there := a.after[file][test]; there && len(now)+is[test] == 0 && len(a.before[file][test]) == 0 {
			a.emptied = append(a.emptied, fmt.Sprintf("empties the test %s in %s", test, file))
		}
	}
}

// doubts names the tests that have fewer assertions than before, unless these are in another place now. A removed test is not among them.
func (a *asserting) doubts() []string {
	out := a.emptied
	elsewhere := map[string]int{}
	for file, tests := range a.after {
		for test, now := range tests {
			for _, said := range minus(now, a.before[file][test]) {
				elsewhere[said]++
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(a.before)) {
		for _, test := range slices.Sorted(maps.Keys(a.before[file])) {
			was := a.before[file][test]
			now, there := a.after[file][test]
			fewer := len(was) - len(now)
			if fewer <= 0 || !there && test != "" {
				continue
			}
			for _, said := range minus(was, now) {
				if elsewhere[said] > 0 {
					elsewhere[said]--
					fewer--
				}
			}
			what := "the test " + test
			if test == "" {
				what = "what tests share"
			}
			if fewer > 0 {
				out = append(out, fmt.Sprintf("takes %s out of %s in %s", schemas.Count(fewer, "assertion"), what, file))
			}
		}
	}
	if a.rows > 0 {
		out = append(out, fmt.Sprintf("takes %s out of tables in %s", schemas.Count(a.rows, "row"), schemas.Shorten(a.shorter, 3)))
	}
	return append(out, a.hollow()...)
}

// value finds a value that is written out in a line.
var value = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`|\\b(?:\\d[\\w.]*|true|false|True|False|nil|null|None)\\b")
})

// expected finds a line that compares with what is expected, apart from the text of a failure that is called by hand.
var expected = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:\} else )?if .*(?:!=|==)|^want\w* :?= `) })

// otherwise counts the lines of tests that compare with other values than before, and are the same but for these. What a new test expects does not count.
func otherwise(before, after []byte) (n int) {
	of := func(text []byte) map[string][]string {
		out, test := map[string][]string{}, ""
		for line := range strings.Lines(string(text)) {
			said := strings.Join(strings.Fields(line), " ")
			if name, is := declaredTest(line); is {
				test = name
			}
			if expected().MatchString(said) || asserted().MatchString(said) && !byHand().MatchString(said) {
				out[test] = append(out[test], said)
			}
		}
		return out
	}
	was, is := of(before), of(after)
	for test := range was {
		left := map[string]int{}
		for _, said := range minus(is[test], was[test]) {
			left[value().ReplaceAllString(said, "?")]++
		}
		for _, said := range minus(was[test], is[test]) {
			if like := value().ReplaceAllString(said, "?"); left[like] > 0 {
				left[like]--
				n++
			}
		}
	}
	return n
}

// byHand finds a failure that is called by hand, in a line.
var byHand = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:t|tb|b|f|s)\.(?:Fatal|Fail|Error|Skip)|\bpanic!?\(`)
})

// hollow says that no test that the change adds asserts anything.
func (a *asserting) hollow() []string {
	was := map[string]bool{}
	for test := range a.gone {
		was[test] = true
	}
	for _, tests := range a.before {
		for test := range tests {
			was[test] = true
		}
	}
	n, where := 0, ""
	for _, file := range slices.Sorted(maps.Keys(a.after)) {
		for test, asserts := range a.after[file] {
			switch {
			case test == "" || was[test] || test == "TestMain" || strings.HasPrefix(test, "Example"):
			case len(asserts) > 0 || a.judged[file+"\x00"+test]:
				return nil
			default:
				n, where = n+1, file
			}
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("adds %s without any assertion, as in %s", schemas.Count(n, "test"), where)}
}

// minus are the texts of all that are not in others, each as often as it is more often there.
func minus(all, others []string) (out []string) {
	left := map[string]int{}
	for _, o := range others {
		left[o]++
	}
	for _, s := range all {
		if left[s]--; left[s] < 0 {
			out = append(out, s)
		}
	}
	return out
}
