package formats

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/segmentio/encoding/json"

	"reconcile.dev/reconcile/controllers/checks"
)

// goEvent is a line of "go test -json" (cmd/test2json and, for ImportPath, cmd/go).
type goEvent struct {
	Action      string
	Package     string
	Test        string
	Output      string
	Elapsed     float64
	ImportPath  string
	FailedBuild string
}

// goTests collects the tests of a run.
type goTests struct {
	o       Options
	tests   map[string]*goTest
	order   []*goTest
	inside  map[string][]*goTest // by package
	running map[string]bool      // packages that have begun and not ended
	failed  map[string]string    // packages that failed, and what they printed beside their tests
	broken  []string
	built   map[string]*bytes.Buffer // what a build printed
	unbuilt map[string]bool          // builds that failed, and no package yet because of them
	ended   bool                     // a package has ended
	ignored int
}

type goTest struct {
	checks.Test
	out  bytes.Buffer
	done bool
	key  string
}

// readGoTest reads the events of "go test -json". A test fails only for itself: one whose subtests fail is skipped. It is complete when
// each package that began has ended, and each build that failed has failed a package.
func readGoTest(data []byte, o Options) (checks.Report, error) {
	g := &goTests{o: o, tests: map[string]*goTest{}, inside: map[string][]*goTest{}, running: map[string]bool{}, failed: map[string]string{},
		built: map[string]*bytes.Buffer{}, unbuilt: map[string]bool{}}
	events := 0
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		var e goEvent
		if line[0] != '{' || json.Unmarshal(line, &e) != nil || e.Action == "" {
			if !bytes.HasPrefix(line, []byte("go: ")) { // go's own words about modules
				g.ignored++
			}
			continue
		}
		events++
		g.take(e)
	}
	if events == 0 {
		if len(bytes.TrimSpace(data)) == 0 {
			return checks.Report{}, errors.New("it is empty")
		}
		return checks.Report{}, errors.New("it has no event of go test -json")
	}
	return g.report(), nil
}

func (g *goTests) take(e goEvent) {
	switch {
	case e.Action == "build-output":
		b := g.built[e.ImportPath]
		if b == nil {
			b = &bytes.Buffer{}
			g.built[e.ImportPath] = b
		}
		appendBounded(b, e.Output)
	case e.Action == "build-fail":
		g.unbuilt[e.ImportPath] = true
	case e.Test == "":
		g.takePackage(e)
	default:
		g.takeTest(e)
	}
}

func (g *goTests) takePackage(e goEvent) {
	switch e.Action {
	case "start":
		g.running[e.Package] = true
	case "output":
		if !strings.HasPrefix(e.Output, "FAIL") && !strings.HasPrefix(e.Output, "ok ") {
			g.failed[e.Package] += boundedText(e.Output, maxText-len(g.failed[e.Package]))
		}
	case "pass", "skip", "fail":
		g.ended = true
		delete(g.running, e.Package)
		delete(g.unbuilt, e.FailedBuild)
		if e.Action != "fail" {
			delete(g.failed, e.Package)
			return
		}
		found := false
		if e.FailedBuild != "" || strings.Contains(g.failed[e.Package], "[build failed]") || strings.Contains(g.failed[e.Package], "[setup failed]") {
			g.broken = append(g.broken, e.Package)
			found = true
		}
		g.unfinished(e, found)
	}
}

// unfinished fails the tests of a package that had not ended when it failed: by a panic, a timeout or os.Exit.
// found says that the reason of the failure is known.
func (g *goTests) unfinished(e goEvent, found bool) {
	for _, t := range g.inside[e.Package] {
		if !t.done {
			t.done, t.Outcome = true, checks.TestFailed
		}
		found = found || t.Outcome == checks.TestFailed
	}
	if !found { // TestMain, an init, or a panic outside of tests
		t := g.test(goEvent{Package: e.Package, Test: "(package)"})
		t.done, t.Outcome, t.Seconds = true, checks.TestFailed, e.Elapsed
		appendBounded(&t.out, g.failed[e.Package])
	}
}

func (g *goTests) test(e goEvent) *goTest {
	key := e.Package + "\x00" + e.Test
	t := g.tests[key]
	if t == nil {
		t = &goTest{Test: checks.Test{Name: e.Test, Suite: e.Package}, key: key}
		g.tests[key] = t
		g.order = append(g.order, t)
		g.inside[e.Package] = append(g.inside[e.Package], t)
	}
	return t
}

func (g *goTests) takeTest(e goEvent) {
	t := g.test(e)
	switch e.Action {
	case "output":
		if !isFraming(e.Output) {
			appendBounded(&t.out, e.Output)
		}
	case "pass", "fail", "skip":
		t.done, t.Seconds = true, e.Elapsed
		t.Outcome = map[string]checks.TestOutcome{"pass": checks.TestPassed, "fail": checks.TestFailed, "skip": checks.TestSkipped}[e.Action]
	case "run", "pause", "cont", "bench":
	default:
		if e.Action != "attr" && e.Action != "artifacts" {
			g.ignored++
		}
	}
}

// isFraming reports whether a line is a mark of the testing package.
func isFraming(line string) bool {
	line = strings.TrimLeft(line, " ")
	for _, p := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "=== ATTR", "--- PASS", "--- FAIL", "--- SKIP"} {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return false
}

func (g *goTests) report() checks.Report {
	r := checks.Report{Files: -1, Complete: g.ended && len(g.running)+len(g.unbuilt) == 0, Ignored: g.ignored}
	parents := map[string]bool{} // of failed tests
	for _, t := range g.order {
		if t.Outcome == checks.TestFailed {
			for name := t.Name; ; {
				i := strings.LastIndexByte(name, '/')
				if i < 0 {
					break
				}
				name = name[:i]
				parents[t.Suite+"\x00"+name] = true
			}
		}
	}
	for _, t := range g.order {
		switch {
		case !t.done:
			r.Complete = false
			continue
		case t.Outcome == checks.TestFailed && parents[t.key] && strings.TrimSpace(t.out.String()) == "":
			continue // it failed only through its subtests
		}
		if t.Outcome != checks.TestPassed {
			g.explain(t)
		}
		r.Tests = append(r.Tests, t.Test)
	}
	slices.Sort(g.broken)
	for _, p := range slices.Compact(g.broken) {
		r.Broken = append(r.Broken, p)
		r.Findings = append(r.Findings, g.buildErrors(p)...)
	}
	return r
}

var goPlace = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*([\w./-]+_test\.go):(\d+)(?::\d+)?:\s?(.*)`) })

// The forms in which testify, go-cmp and common idioms report expectations.
var goExpected = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?s)expected\s*:\s(.*?)\n\s*actual\s*:\s(.*?)\n`),
		regexp.MustCompile(`(?m)\bwant:?\s+(.+?)[,;]\s+(?:got|have):?\s+(.+)$`),
	}
})

var goGot = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:\bgot|\bhave|=)[:\s]\s*(.+?)[,;]\s+(?:want(?:ed)?|expected):?\s+(.+)$`)
})

// explain fills in the place of a failure, its message, and the expected value.
func (g *goTests) explain(t *goTest) {
	text := t.out.String()
	t.Output = text
	if m := goPlace().FindStringSubmatch(text); m != nil {
		t.File, t.Message = g.testFile(t.Suite, m[1]), m[3]
		t.Line, _ = strconv.Atoi(m[2])
		if t.Message == "" {
			_, rest, _ := strings.Cut(text, m[0])
			t.Message = strings.TrimSpace(rest)
		}
	} else {
		t.Message = strings.TrimSpace(text)
	}
	if strings.Contains(text, "WARNING: DATA RACE") {
		g.explainRace(t)
		return
	}
	if i := strings.Index(text, "panic: "); i >= 0 {
		t.Stack = text[i:]
		t.Message, _, _ = strings.Cut(text[i:], "\n")
	}
	for _, p := range goExpected() {
		if m := p.FindStringSubmatch(text + "\n"); m != nil {
			t.Expected, t.Actual = strings.TrimSpace(m[1]), strings.TrimSpace(m[2])
			return
		}
	}
	if m := goGot().FindStringSubmatch(text); m != nil {
		t.Actual, t.Expected = strings.TrimSpace(m[1]), strings.TrimSpace(m[2])
	}
}

var goFrame = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s+(\S+\.go):(\d+) \+0x`) })

// explainRace places a race at its first access in a file of the project. The file is absolute in what the detector prints, and below the name of
// the module with -trimpath.
func (g *goTests) explainRace(t *goTest) {
	t.Stack, t.Message = t.Output, "data race"
	for _, m := range goFrame().FindAllStringSubmatch(t.Output, -1) {
		file := m[1]
		if rest, ok := strings.CutPrefix(file, g.o.Module+"/"); ok && g.o.Module != "" {
			file = rest
		}
		if file = g.o.file(file); !(checks.Finding{File: file}).Outside() {
			t.File = file
			t.Line, _ = strconv.Atoi(m[2])
			return
		}
	}
}

// testFile places a file name of a test's output below the root, by its package and the module of the tool's folder.
func (g *goTests) testFile(pkg, name string) string {
	if strings.Contains(name, "/") {
		return g.o.file(name)
	}
	pkg = strings.TrimSuffix(pkg, "_test")
	if pkg == g.o.Module {
		return g.o.file(name)
	}
	if rest, ok := strings.CutPrefix(pkg, g.o.Module+"/"); ok && g.o.Module != "" {
		return g.o.file(path.Join(rest, name))
	}
	return name
}

var goError = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:vet: )?(.+\.go):(\d+)(?::(\d+))?: (.*)$`) })

// buildErrors are what a build of a package printed.
func (g *goTests) buildErrors(pkg string) (out []checks.Finding) {
	seen := 0
	for _, path := range slices.Sorted(maps.Keys(g.built)) {
		if strings.Fields(path + " ")[0] != pkg && !strings.HasPrefix(path, pkg+".test") && !strings.HasPrefix(path, pkg+"_test") {
			continue
		}
		for line := range strings.Lines(g.built[path].String()) {
			if m := goError().FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
				f := checks.Finding{File: g.o.file(m[1]), Severity: checks.High, Message: m[4], Rule: "build"}
				f.Line, _ = strconv.Atoi(m[2])
				f.Column, _ = strconv.Atoi(m[3])
				out = append(out, f)
				seen++
			}
		}
	}
	if seen == 0 {
		said := g.failed[pkg]
		if b := g.built[pkg]; b != nil {
			said = b.String()
		}
		out = append(out, checks.Finding{Severity: checks.High, Rule: "build", Message: fmt.Sprintf("%s does not build: %s", pkg, strings.TrimSpace(said))})
	}
	return out
}

func appendBounded(b *bytes.Buffer, s string) { b.WriteString(boundedText(s, maxText-b.Len())) }

func boundedText(s string, room int) string { return s[:min(len(s), max(room, 0))] }
