package formats

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reconcile.dev/reconcile/controllers/checks"
)

// reader reads one format.
type reader func(data []byte, o Options) (checks.Report, error)

// readers are the formats that programs read. Declared formats are data.
func readers() map[string]reader {
	return map[string]reader{
		"sarif": readSARIF, "checkstyle": readCheckstyle, "rdjson": readRDJSON, "rdjsonl": readRDJSONL, "cargo-json": readCargo,
		"go-test-json": readGoTest, "junit": readJUnit, "trx": readTRX, "tap": readTAP, "lsp": readLSP,
		"jest-json": readJest, "rspec": readRSpec, "dart-test": readDartTest, "zig-test": readZig,
		"libtest": lazy(libtest), "unittest": lazy(unittest), "exunit": lazy(exunit), "minitest": lazy(minitest), "nextest": lazy(nextest), "alcotest": lazy(alcotest),
		"go-cover": readGoCover, "lcov": readLCOV, "cobertura": readCobertura, "coverage-py": readCoveragePy, "istanbul": readIstanbul,
	}
}

// Names returns the names of all formats, sorted.
func Names() []string {
	names := slices.Collect(maps.Keys(readers()))
	for name := range declared() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Ends reports whether output in a format shows where it ends: else one that is cut between two lines looks like a whole one.
func Ends(name string) bool {
	if format, ok := declared()[name]; ok {
		f := format()
		return f.end != nil || len(f.Lines) == 0 && !f.Each
	}
	return name != "rdjsonl"
}

// Read reads output in the format of a name. The error says why the output is not in that format.
func Read(name string, data []byte, o Options) (checks.Report, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var r checks.Report
	var err error
	if read, ok := readers()[name]; ok {
		r, err = read(data, o)
	} else if f, ok := declared()[name]; ok {
		r, err = f().read(data, o)
	} else {
		return r, fmt.Errorf("there is no format %q", name)
	}
	if err != nil {
		return checks.Report{}, err
	}
	return finish(r, o), nil
}

// ReadAll reads several documents of a format as one report, such as those of the suites of a run. There has to be one.
func ReadAll(name string, documents [][]byte, o Options) (checks.Report, error) {
	if len(documents) == 0 {
		return checks.Report{}, errors.New("it wrote no report")
	}
	all := checks.Report{Complete: true}
	for _, data := range documents {
		r, err := Read(name, data, o)
		if err != nil {
			return checks.Report{}, err
		}
		all.Findings, all.Tests, all.Broken = append(all.Findings, r.Findings...), append(all.Tests, r.Tests...), append(all.Broken, r.Broken...)
		all.Complete, all.Ignored = all.Complete && r.Complete, all.Ignored+r.Ignored
		all.Stopped = all.Stopped || r.Stopped
		all.Missed = append(all.Missed, r.Missed...)
		if r.Files < 0 || all.Files < 0 {
			all.Files = -1
		} else {
			all.Files += r.Files
		}
	}
	return all, nil
}

// finish cleans what a reader found, and bounds it.
func finish(r checks.Report, o Options) checks.Report {
	if len(r.Findings) > maxFindings {
		r.Findings, r.Complete = r.Findings[:maxFindings], false
	}
	if len(r.Tests) > maxTests {
		r.Tests, r.Complete = r.Tests[:maxTests], false
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Tool, f.Category = o.Tool, o.Category
		f.Message, f.Suggestion = clean(f.Message), clean(f.Suggestion)
		if f.Message == "" {
			f.Message = f.Rule
		}
		if !slices.Contains(checks.Severities(), f.Severity) {
			f.Severity = checks.Medium
		}
		f.Range = sane(f.Range)
	}
	for i := range r.Tests {
		t := &r.Tests[i]
		for _, text := range []*string{&t.Message, &t.Expected, &t.Actual, &t.Stack, &t.Output} {
			*text = clean(*text)
		}
	}
	return r
}
