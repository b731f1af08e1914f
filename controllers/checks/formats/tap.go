package formats

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"reconcile.dev/reconcile/controllers/checks"
)

var tapLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^( *)(not )?ok\b(?: +(\d+))?(?: *- )? *(.*)$`)
})

var tapPlan = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^( *)1\.\.(\d+)(?: *# *(.*))?$`) })

// batsPlace is how bats names the place of a failure.
var batsPlace = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`in test file (.+?), line (\d+)`) })

// readTAP reads TAP 13 and 14 (testanything.org): plans, results, directives, YAML diagnostics and subtests. It is complete when there were as
// many results as planned, also in subtests, and its last line has an end; a run that bails out is not. The sum of a
// subtest counts as a test only if it fails alone.
func readTAP(data []byte, o Options) (checks.Report, error) {
	r := checks.Report{Files: -1}
	planned, seen, open, tap := -1, 0, 0, false
	var around []subtest // a line
	asPlanned := true
	lines := strings.Split(string(data), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimRight(lines[i], " \t\r")
		switch {
		case strings.HasPrefix(line, "TAP version "):
			tap = true
		case strings.HasPrefix(strings.TrimLeft(line, " "), "Bail out!"):
			r.Broken = append(r.Broken, strings.TrimSpace(line))
			return r, nil
		case strings.HasPrefix(strings.TrimLeft(line, " "), "# Subtest: "):
			name := strings.TrimLeft(line, " ")
			depth := (len(line) - len(name)) / 4
			around = append(around[:min(depth, len(around))], subtest{name: strings.TrimPrefix(name, "# Subtest: "), planned: -1})
			if len(around) > maxDepth {
				return r, errors.New("its subtests are nested too deep")
			}
		case strings.TrimSpace(line) == "}" && open > 0: // of a subtest that began with its result
			s := around[len(around)-1]
			open, around = open-1, around[:len(around)-1]
			asPlanned = asPlanned && (s.planned < 0 || s.planned == s.seen)
			if s.seen == 0 || s.sum.Outcome == checks.TestFailed && !s.failed {
				r.Tests = append(r.Tests, s.sum)
			}
		default:
			if m := tapPlan().FindStringSubmatch(line); m != nil {
				if m[1] == "" {
					n, err := strconv.Atoi(m[2])
					if err != nil {
						return r, fmt.Errorf("line %d: %w", i+1, err)
					}
					planned, tap = n, true
				} else if k := len(m[1]) / 4; k > 0 && k <= len(around) {
					around[k-1].planned = number(m[2])
				}
				continue
			}
			m := tapLine().FindStringSubmatch(line)
			if m == nil {
				continue // comments, and what the tests print
			}
			tap = true
			depth := len(m[1]) / 4
			var opens bool
			if m[4], opens = strings.CutSuffix(m[4], " {"); opens && depth >= maxDepth {
				return r, errors.New("its subtests are nested too deep")
			}
			t := tapTest(m)
			if diagnostic, next := tapDiagnostic(lines, i+1, len(m[1])); next > i+1 {
				t.explainTAP(diagnostic, o)
				i = next - 1
			} else if t.Outcome == checks.TestFailed {
				i = t.comments(lines, i, o)
			}
			failed, sum := t.Outcome == checks.TestFailed, false
			if len(around) > depth { // node announces each test as a subtest
				s := around[depth]
				around = around[:depth]
				asPlanned = asPlanned && (s.planned < 0 || s.planned == s.seen)
				sum = s.seen > 0 && (s.failed || !failed)
				failed = failed || s.failed
			}
			t.Suite = suiteOf(around[:min(depth, len(around))])
			switch {
			case depth == 0:
				seen++
			case depth <= len(around):
				outer := &around[depth-1]
				outer.seen++
				outer.failed = outer.failed || failed
			}
			if opens {
				open, around = open+1, append(around, subtest{name: t.Name, planned: -1, sum: t.Test})
				continue
			}
			if !sum {
				r.Tests = append(r.Tests, t.Test)
			}
		}
	}
	if !tap {
		if strings.TrimSpace(string(data)) == "" {
			return r, errors.New("it is empty")
		}
		return r, errors.New("it has neither a plan nor a result of TAP")
	}
	r.Complete = planned >= 0 && seen == planned && asPlanned && open == 0 && strings.HasSuffix(string(data), "\n")
	return r, nil
}

// subtest is a subtest whose own result has not come.
type subtest struct {
	name          string
	planned, seen int // results; planned is -1 without a plan
	failed        bool
	sum           checks.Test // its result, where that comes first
}

func suiteOf(around []subtest) string {
	names := make([]string, len(around))
	for i, s := range around {
		names[i] = s.name
	}
	return strings.Join(names, " > ")
}

type tapResult struct{ checks.Test }

func tapTest(m []string) *tapResult {
	t := &tapResult{checks.Test{Name: m[4], Outcome: checks.TestPassed}}
	if m[2] != "" {
		t.Outcome = checks.TestFailed
	}
	if i := strings.LastIndex(t.Name, " # "); i >= 0 || strings.HasPrefix(t.Name, "# ") {
		directive := strings.TrimPrefix(t.Name[max(i, 0):], " ")
		t.Name = strings.TrimSpace(t.Name[:max(i, 0)])
		word, rest, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(directive, "#")), " ")
		switch w := strings.ToLower(strings.TrimSuffix(word, ":")); {
		case strings.HasPrefix(w, "skip"):
			t.Outcome, t.Message = checks.TestSkipped, strings.Trim(rest, "- ")
		case w == "todo": // a failure that is expected, and no success yet
			t.Outcome, t.Message = checks.TestSkipped, strings.TrimSpace("todo: "+rest)
		case strings.HasPrefix(w, "time="):
			if ms, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimPrefix(w, "time="), "ms"), 64); err == nil {
				t.Seconds = ms / 1000
			}
		}
	}
	t.Name = strings.ReplaceAll(t.Name, `\#`, "#")
	if t.Name == "" {
		t.Name = "test " + m[3]
	}
	return t
}

// tapDiagnostic returns the YAML block that begins at a line, and the line after it.
func tapDiagnostic(lines []string, at, indent int) (string, int) {
	if at >= len(lines) || strings.TrimSpace(lines[at]) != "---" {
		return "", at
	}
	var b strings.Builder
	for i := at + 1; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) == "..." {
			return b.String(), i + 1
		}
		line := lines[i]
		cut := min(indent+2, len(line)-len(strings.TrimLeft(line, " ")))
		b.WriteString(line[cut:] + "\n")
		if b.Len() > 4*maxText {
			break
		}
	}
	return "", at
}

// explainTAP fills in what a diagnostic says.
func (t *tapResult) explainTAP(text string, o Options) {
	var d map[string]any
	if yaml.Unmarshal([]byte(text), &d) != nil {
		t.Output = text
		return
	}
	word := func(names ...string) string {
		for _, n := range names {
			v := d[n]
			if m, ok := v.(map[string]any); ok {
				v = m["message"]
			}
			if v != nil {
				return strings.TrimSpace(fmt.Sprint(v))
			}
		}
		return ""
	}
	if t.Outcome == checks.TestFailed {
		t.Message, t.Expected, t.Actual = word("error", "message"), word("expected", "wanted"), word("actual", "found", "got")
		t.Stack = word("stack")
	}
	if ms, err := strconv.ParseFloat(word("duration_ms"), 64); err == nil {
		t.Seconds = ms / 1000
	}
	at := word("location", "at")
	if m := placePattern().FindStringSubmatch(" " + at); m != nil {
		t.File, t.Line = o.file(m[1]), number(m[2])
	}
}

// comments takes the lines after a failed result that explain it, and returns the last one: comments, as bats and prove write them, or indented
// text, as mocha does.
func (t *tapResult) comments(lines []string, at int, o Options) int {
	var said []string
	for at+1 < len(lines) && explains(lines[at+1]) {
		at++
		said = append(said, strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(lines[at]), "#"), " "))
	}
	t.Message = strings.Join(said, "\n")
	t.Expected, t.Actual = expectations(t.Message)
	if m := batsPlace().FindStringSubmatch(t.Message); m != nil {
		t.File, t.Line = o.file(m[1]), number(m[2])
	}
	return at
}

func explains(line string) bool {
	comment := strings.HasPrefix(strings.TrimSpace(line), "#") && !strings.Contains(line, "# Subtest: ")
	return comment || strings.HasPrefix(line, "  ") && tapLine().FindString(line) == "" && tapPlan().FindString(line) == ""
}
