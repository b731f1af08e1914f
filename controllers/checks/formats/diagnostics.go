package formats

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/segmentio/encoding/json"

	"reconcile.dev/reconcile/controllers/checks"
)

// rdPosition and what follows are the Reviewdog Diagnostic Format (github.com/reviewdog/reviewdog, proto/rdf).
type rdPosition struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

type rdRange struct {
	Start rdPosition `json:"start"`
	End   rdPosition `json:"end"`
}

func (r rdRange) rangeOf() checks.Range {
	return checks.Range{Line: r.Start.Line, Column: r.Start.Column, EndLine: r.End.Line, EndColumn: r.End.Column}
}

type rdDiagnostic struct {
	Message  string `json:"message"`
	Location struct {
		Path  string  `json:"path"`
		Range rdRange `json:"range"`
	} `json:"location"`
	Severity any `json:"severity"` // a word, or the number of the enumeration
	Code     struct {
		Value string `json:"value"`
		URL   string `json:"url"`
	} `json:"code"`
	Suggestions []struct {
		Range rdRange `json:"range"`
		Text  string  `json:"text"`
	} `json:"suggestions"`
}

func (d *rdDiagnostic) finding(word string, o Options) checks.Finding {
	if d.Severity != nil {
		word = fmt.Sprint(d.Severity)
	}
	severity := map[string]checks.Severity{"1": checks.High, "2": checks.Medium, "3": checks.Low}[word]
	if severity == "" {
		severity = severityOf(strings.TrimPrefix(word, "UNKNOWN_SEVERITY"))
	}
	f := checks.Finding{File: o.file(d.Location.Path), Range: d.Location.Range.rangeOf(), Severity: severity, Message: d.Message, Rule: d.Code.Value, URL: d.Code.URL}
	for _, s := range d.Suggestions {
		f.Fixes = append(f.Fixes, checks.Edit{Range: s.Range.rangeOf(), Text: s.Text})
	}
	return f
}

func readRDJSON(data []byte, o Options) (checks.Report, error) {
	var in struct {
		Severity    any             `json:"severity"`
		Diagnostics *[]rdDiagnostic `json:"diagnostics"`
	}
	if err := oneDocument(data, &in); err != nil {
		return checks.Report{}, err
	}
	if in.Diagnostics == nil {
		return checks.Report{}, errors.New("it has no diagnostics")
	}
	word := ""
	if in.Severity != nil {
		word = fmt.Sprint(in.Severity)
	}
	r := checks.Report{Files: -1, Complete: true}
	for _, d := range *in.Diagnostics {
		r.Findings = append(r.Findings, d.finding(word, o))
	}
	return r, nil
}

func readRDJSONL(data []byte, o Options) (checks.Report, error) {
	r := checks.Report{Files: -1, Complete: true}
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var d rdDiagnostic
		if err := json.Unmarshal(line, &d); err != nil {
			return r, fmt.Errorf("a line of it is no JSON: %w", err)
		}
		if d.Message == "" && d.Location.Path == "" {
			r.Ignored++
			continue
		}
		r.Findings = append(r.Findings, d.finding("", o))
	}
	return r, nil
}

// cargoMessage is a line of cargo --message-format json (The Cargo Book, "External tools").
type cargoMessage struct {
	Reason  string     `json:"reason"`
	Success *bool      `json:"success"`
	Message *rustError `json:"message"`
}

type rustError struct {
	Message string `json:"message"`
	Level   string `json:"level"`
	Code    *struct {
		Code string `json:"code"`
	} `json:"code"`
	Spans    []rustSpan  `json:"spans"`
	Children []rustError `json:"children"`
}

type rustSpan struct {
	File        string  `json:"file_name"`
	LineStart   int     `json:"line_start"`
	LineEnd     int     `json:"line_end"`
	ColumnStart int     `json:"column_start"`
	ColumnEnd   int     `json:"column_end"`
	Primary     bool    `json:"is_primary"`
	Replacement *string `json:"suggested_replacement"`
}

func (s rustSpan) rangeOf() checks.Range {
	return checks.Range{Line: s.LineStart, Column: s.ColumnStart, EndLine: s.LineEnd, EndColumn: s.ColumnEnd}
}

// readCargo reads the messages of the compiler and of clippy. It is complete when the build is said to have finished.
func readCargo(data []byte, o Options) (checks.Report, error) {
	r := checks.Report{Files: -1}
	messages := 0
	said := map[string]bool{} // the library and its tests are compiled both, with the same messages
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var m cargoMessage
		if line[0] != '{' || json.Unmarshal(line, &m) != nil || m.Reason == "" {
			r.Ignored++
			continue
		}
		messages++
		switch {
		case m.Reason == "build-finished":
			r.Complete = true
		case m.Reason == "compiler-message" && m.Message != nil:
			f, ok := m.Message.finding(o)
			if key := fmt.Sprint(f); ok && !said[key] {
				said[key] = true
				r.Findings = append(r.Findings, f)
			}
			r.Stopped = r.Stopped || ok && m.Message.Level == "error" && !isLint(f.Rule)
		}
	}
	if messages == 0 {
		return r, errors.New("it has no message of cargo")
	}
	return r, nil
}

// isLint reports whether the code of a message is the name of a lint. Errors of the compiler have other codes, or none, and end its work.
func isLint(code string) bool { return code != "" && code[0] >= 'a' && code[0] <= 'z' }

// finding is a message with a place; sums ("2 warnings emitted") have none.
func (e *rustError) finding(o Options) (f checks.Finding, ok bool) {
	f = checks.Finding{Severity: severityOf(e.Level), Message: e.Message}
	if e.Code != nil {
		f.Rule = e.Code.Code
	}
	for _, s := range e.Spans {
		if s.Primary {
			f.File, f.Range = o.file(s.File), s.rangeOf()
			break
		}
	}
	for _, c := range e.Children {
		if url, ok := strings.CutPrefix(c.Message, "for further information visit "); ok {
			f.URL = url
		} else if c.Level == "help" && f.Suggestion == "" {
			f.Suggestion = c.Message
			for _, s := range c.Spans {
				if s.Replacement != nil && o.file(s.File) == f.File {
					f.Fixes = append(f.Fixes, checks.Edit{Range: s.rangeOf(), Text: *s.Replacement})
				}
			}
		}
	}
	sum := strings.HasPrefix(e.Message, "aborting due to") || strings.HasSuffix(e.Message, "emitted") || strings.HasPrefix(e.Message, "For more information") ||
		e.Level == "failure-note"
	return f, f.File != "" || !sum && (e.Level == "error" || e.Level == "warning")
}

// readLSP reads textDocument/publishDiagnostics: one notification or its parameters, or a list of them (LSP 3.17). Lines and columns count from 0
// there.
func readLSP(data []byte, o Options) (checks.Report, error) {
	type position struct {
		Line      int `json:"line"`
		Character int `json:"character"`
	}
	type parameters struct {
		URI         string `json:"uri"`
		Diagnostics *[]struct {
			Range struct {
				Start, End position
			} `json:"range"`
			Severity int    `json:"severity"`
			Code     any    `json:"code"`
			Source   string `json:"source"`
			Message  string `json:"message"`
			Details  struct {
				Href string `json:"href"`
			} `json:"codeDescription"`
		} `json:"diagnostics"`
	}
	type notification struct {
		parameters
		Method string      `json:"method"`
		Params *parameters `json:"params"`
	}
	messages, framed, err := lspMessages(data)
	if err != nil {
		return checks.Report{}, err
	}
	last := map[string]*parameters{} // what a server says of a file takes the place of what it said before
	for _, raw := range messages {
		var n notification
		if err := json.Unmarshal(raw, &n); err != nil {
			if framed {
				continue // a message of another form
			}
			return checks.Report{}, err
		}
		p := &n.parameters
		if n.Params != nil {
			p = n.Params
		}
		switch {
		case framed && n.Method != "textDocument/publishDiagnostics":
		case p.Diagnostics == nil:
			return checks.Report{}, errors.New("it has no diagnostics")
		default:
			last[p.URI] = p
		}
	}
	r := checks.Report{Files: len(last), Complete: true}
	for _, uri := range slices.Sorted(maps.Keys(last)) {
		p := last[uri]
		for _, d := range *p.Diagnostics {
			f := checks.Finding{File: o.file(p.URI), Message: d.Message, URL: d.Details.Href,
				Severity: map[int]checks.Severity{1: checks.High, 2: checks.Medium, 3: checks.Info, 4: checks.Info}[d.Severity],
				Range:    checks.Range{Line: d.Range.Start.Line + 1, Column: d.Range.Start.Character + 1, EndLine: d.Range.End.Line + 1, EndColumn: d.Range.End.Character + 1}}
			if d.Code != nil {
				f.Rule = fmt.Sprint(d.Code)
			}
			r.Findings = append(r.Findings, f)
		}
	}
	return r, nil
}

// lspMessages are the messages of an array or an object, or of what a server wrote, with its headers.
func lspMessages(data []byte) (all []json.RawMessage, framed bool, err error) {
	for rest := data; len(bytes.TrimSpace(rest)) > 0; {
		head, body, ok := bytes.Cut(rest, []byte("\r\n\r\n"))
		length := -1
		for line := range bytes.Lines(head) {
			if v, is := bytes.CutPrefix(line, []byte("Content-Length:")); is {
				length, err = strconv.Atoi(string(bytes.TrimSpace(v)))
			}
		}
		switch {
		case length < 0 && len(all) == 0 && err == nil: // it has no headers
			var raw json.RawMessage
			if err = oneDocument(data, &raw); err == nil && raw[0] == '[' {
				err = json.Unmarshal(raw, &all)
				return all, false, err
			}
			return []json.RawMessage{raw}, false, err
		case !ok || err != nil || length < 0 || length > len(body):
			return nil, true, errors.New("a message ends early")
		}
		all, rest = append(all, body[:length]), body[length:]
	}
	if len(all) == 0 {
		return nil, false, errors.New("it is empty")
	}
	return all, true, nil
}
