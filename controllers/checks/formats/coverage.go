package formats

import (
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
)

// lines are the lines of a file that could run, and whether they did.
type lines map[int]bool

// covered makes a report of the lines of files.
func covered(files map[string]lines) (checks.Report, error) {
	if len(files) == 0 {
		return checks.Report{}, errors.New("it has no file")
	}
	c := &checks.Coverage{}
	all, ran := 0, 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := checks.FileCoverage{File: name}
		var missed []int
		hit := 0
		for n, yes := range files[name] {
			if yes {
				hit++
			} else {
				missed = append(missed, n)
			}
		}
		all, ran = all+len(files[name]), ran+hit
		f.Percent, f.Uncovered = percent(hit, len(files[name])), spans(missed)
		c.Files = append(c.Files, f)
	}
	c.Percent = percent(ran, all)
	return checks.Report{Coverage: c, Complete: true, Files: len(files)}, nil
}

func percent(part, all int) float64 {
	if all == 0 {
		return 100
	}
	return 100 * float64(part) / float64(all)
}

// spans joins numbers of lines that follow one another.
func spans(numbers []int) (out []checks.LineRange) {
	sort.Ints(numbers)
	for _, n := range numbers {
		if k := len(out); k > 0 && out[k-1].Last+1 >= n {
			out[k-1].Last = n
		} else {
			out = append(out, checks.LineRange{First: n, Last: n})
		}
	}
	return out
}

// mostLines bounds the lines in all blocks of a profile.
const mostLines = 10_000_000

// readGoCover reads a profile of go test -coverprofile (cmd/cover). The percentage is that of statements, as go prints it.
func readGoCover(data []byte, o Options) (checks.Report, error) {
	text := string(data)
	if !strings.HasPrefix(text, "mode: ") {
		return checks.Report{}, errors.New(`it does not begin with "mode:"`)
	}
	if !strings.HasSuffix(text, "\n") {
		return checks.Report{}, errors.New("it ends early: its last line has no end")
	}
	type block struct{ statements, count int }
	blocks := map[string]block{}
	files := map[string]lines{}
	statements := map[string][2]int{}
	total := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "mode: ") {
			continue
		}
		i := strings.LastIndexByte(line, ':')
		if i < 0 {
			return checks.Report{}, fmt.Errorf("a line of it is no block: %.80q", line)
		}
		var first, column, last, end, n, count int
		if _, err := fmt.Sscanf(line[i+1:], "%d.%d,%d.%d %d %d", &first, &column, &last, &end, &n, &count); err != nil || last < first {
			return checks.Report{}, fmt.Errorf("a line of it is no block: %.80q", line)
		}
		if total += last - first + 1; total > mostLines || last-first >= mostLines {
			return checks.Report{}, errors.New("its blocks have too many lines")
		}
		key := line[:strings.LastIndexByte(line[:strings.LastIndexByte(line, ' ')], ' ')]
		b := blocks[key] // a block is there once for each package that was tested
		b.statements, b.count = n, b.count+count
		blocks[key] = b
	}
	for key, b := range blocks {
		i := strings.LastIndexByte(key, ':')
		name := key[:i]
		if rest, ok := strings.CutPrefix(name, o.Module+"/"); ok && o.Module != "" {
			name = rest
		}
		name = o.file(name)
		var first, column, last, end int
		if _, err := fmt.Sscanf(key[i+1:], "%d.%d,%d.%d", &first, &column, &last, &end); err != nil {
			return checks.Report{}, err
		}
		s := statements[name]
		s[1] += b.statements
		if b.count > 0 {
			s[0] += b.statements
		}
		statements[name] = s
		if files[name] == nil {
			files[name] = lines{}
		}
		for n := first; n <= last; n++ {
			files[name][n] = files[name][n] || b.count > 0
		}
	}
	r, err := covered(files)
	if err != nil {
		return r, err
	}
	all, ran := 0, 0
	for i := range r.Coverage.Files {
		f := &r.Coverage.Files[i]
		s := statements[f.File]
		f.Percent = percent(s[0], s[1])
		all, ran = all+s[1], ran+s[0]
	}
	r.Coverage.Percent = percent(ran, all)
	return r, nil
}

// readLCOV reads a tracefile of lcov (geninfo manual, "Files").
func readLCOV(data []byte, o Options) (checks.Report, error) {
	files := map[string]lines{}
	name := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, ":")
		switch key {
		case "SF":
			name = o.file(value)
			if files[name] == nil {
				files[name] = lines{}
			}
		case "DA":
			n, rest, _ := strings.Cut(value, ",")
			count, _, _ := strings.Cut(rest, ",")
			if name == "" || number(n) == 0 {
				return checks.Report{}, fmt.Errorf("a line of it is wrong: %.80q", line)
			}
			files[name][number(n)] = files[name][number(n)] || number(count) > 0
		case "end_of_record":
			name = ""
		}
	}
	if name != "" {
		return checks.Report{}, errors.New("it ends early: its last record has no end")
	}
	return covered(files)
}

// readCobertura reads the XML of Cobertura.
func readCobertura(data []byte, o Options) (checks.Report, error) {
	files := map[string]lines{}
	name, source := "", ""
	err := elements(data, []string{"coverage"}, func(at []string, e xml.StartElement, d *xml.Decoder) (bool, error) {
		switch e.Name.Local {
		case "source":
			err := d.DecodeElement(&source, &e)
			return true, err
		case "class":
			name = attribute(e, "filename")
			if base := strings.TrimSpace(source); path.IsAbs(base) && !path.IsAbs(name) {
				name = path.Join(base, name)
			}
			name = o.file(name)
			if files[name] == nil {
				files[name] = lines{}
			}
		case "line":
			if n := number(attribute(e, "number")); n > 0 && name != "" {
				files[name][n] = files[name][n] || number(attribute(e, "hits")) > 0
			}
		}
		return false, nil
	})
	if err != nil {
		return checks.Report{}, err
	}
	return covered(files)
}

// readCoveragePy reads the JSON of coverage.py (coverage json).
func readCoveragePy(data []byte, o Options) (checks.Report, error) {
	var in struct {
		Files map[string]struct {
			Executed []int `json:"executed_lines"`
			Missing  []int `json:"missing_lines"`
		} `json:"files"`
	}
	if err := oneDocument(data, &in); err != nil {
		return checks.Report{}, err
	}
	files := map[string]lines{}
	for name, f := range in.Files {
		l := lines{}
		for _, n := range f.Missing {
			l[n] = false
		}
		for _, n := range f.Executed {
			l[n] = true
		}
		files[o.file(name)] = l
	}
	return covered(files)
}

// readIstanbul reads coverage-final.json of istanbul, c8, jest and vitest.
func readIstanbul(data []byte, o Options) (checks.Report, error) {
	var in map[string]struct {
		Path       string `json:"path"`
		Statements map[string]struct {
			Start struct {
				Line int `json:"line"`
			} `json:"start"`
		} `json:"statementMap"`
		Counts map[string]int `json:"s"`
	}
	if err := oneDocument(data, &in); err != nil {
		return checks.Report{}, err
	}
	files := map[string]lines{}
	for name, f := range in {
		if f.Path != "" {
			name = f.Path
		}
		l := lines{}
		for id, s := range f.Statements {
			l[s.Start.Line] = l[s.Start.Line] || f.Counts[id] > 0
		}
		files[o.file(name)] = l
	}
	return covered(files)
}
