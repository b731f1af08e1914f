package memory

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// failure reads the output of a failed tool; false if o is something else. A wrong use of a tool by the agent, which the
// runner reports to the agent between special tags, does not count as a failure.
func (r *transcriptReader) failure(o transcriptObject) bool {
	text, failed := failedTool(o)
	if failed {
		r.say(roleFailure, text, len(r.edits))
	}
	return failed
}

// failedTool returns the output of a tool, and whether it failed, in any known form.
func failedTool(o transcriptObject) (text string, failed bool) {
	switch typ := o.text("type"); {
	case strings.HasPrefix(typ, "tool_") || typ == "tool" || o.text("role") == "tool": // of Claude Code, MCP and many more
		text = resultOf(o)
		if out := outputOf(o, "content"); out != nil {
			text, failed = out.text("output", "stderr", "error", "stdout"), isExit(exitCode(out))
		}
		failed = failed || o.is("is_error") || o.is("isError") || o.text("status") == "error" || isExit(exitCode(o)) ||
			o.text("role") == "tool" && o["is_error"] == nil && strings.HasPrefix(text, "Traceback (")
		rest, code := exitTold(text)
		return rest, (failed || isExit(code)) && !strings.Contains(text, "<tool_use_error>")
	case typ == "command_execution": // of "codex exec --json"
		return o.text("aggregated_output"), isExit(exitCode(o))
	case typ == "tool.execution_complete": // of Copilot
		data := o.object("data")
		return data.object("error").text("message"), string(data["success"]) == "false"
	case strings.HasSuffix(typ, "_output"): // of Codex: its output is JSON in a string, an object, or a text
		if out := outputOf(o, "output"); out != nil {
			return out.text("output"), isExit(exitCode(out))
		}
		rest, code := exitTold(o.text("output"))
		return rest, isExit(code)
	}
	response := o.object("functionResponse") // of Gemini
	if editTools[toolName(response.text("name"))] != "" {
		return "", false
	}
	out := response.object("response")
	rest, code := exitTold(out.text("error", "output"))
	return rest, out.text("error") != "" || isExit(code)
}

// outputOf is a field that is an object, or an object as JSON in a string; nil for another text.
func outputOf(o transcriptObject, name string) transcriptObject {
	if out := o.object(name); out != nil {
		return out
	}
	return objectOf(json.RawMessage(o.text(name)))
}

// exitTolds match a line in which a tool tells the exit code of a command, and lines that tell nothing about its failure.
var exitTolds = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?mi)^\W*(?:process )?(?:exited with |command exited with )?(?:exit )?code:? (\d{1,3})\W*$`),
		regexp.MustCompile(`(?m)^(?:(?:Command|Directory|Signal|Background PIDs|Process Group PGID|Wall time|Chunk ID): .*|` +
			`[A-Z]\w+: \((?:none|empty)\)|Output:)$\n?`),
		regexp.MustCompile(`(?m)^(?:Output|Stdout|Stderr|Error): `),
	}
})

// exitTold returns the output of a command without what a tool adds to it, and the exit code that the tool tells; "" without
// one. A line inside of the output may be of the command.
func exitTold(text string) (rest, code string) {
	for _, at := range exitTolds()[0].FindAllStringSubmatchIndex(text, -1) {
		if at[0] > 100 && len(text)-at[1] > 200 {
			continue
		}
		rest = text[:at[0]] + text[at[1]:]
		for _, told := range exitTolds()[1:] {
			rest = told.ReplaceAllString(rest, "")
		}
		return rest, text[at[2]:at[3]]
	}
	return text, ""
}

// isExit reports whether an exit code is one of a failure.
func isExit(code string) bool { return code != "" && strings.Trim(code, "0") != "" }

// exitCode returns that of a command, "" if it is unknown.
func exitCode(o transcriptObject) string {
	if inner := o.object("metadata"); inner != nil {
		o = inner
	}
	return string(o["exit_code"])
}

// failureLine matches a line in which compilers, tests and programs say what went wrong.
var failureLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:--- FAIL: \S|panic: \S|(?:fatal|FATAL|error|Error|ERROR)(?:\[\w+\])?: \S|` +
		`(?:\w+\.)*\w*(?:Error|Exception): \S|[\w./-]+\.\w{1,5}(?::\d+(?::\d+)?|\(\d+,\d+\)): \S|FAILED \S|` +
		`Exception in thread "|thread '.*' panicked at \S|● \S.* › \S|not ok \d|\[ERROR\] \S|npm (?:ERR!|error) \S)`)
})

// asideLine matches a line that looks like one that says what went wrong, and tells something else.
var asideLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[^ ]+ (?:warning|note): |^npm (?:ERR!|error) (?:code|errno|A complete log|[./~\w-]*/)`)
})

// continues matches the begin of a line that says what went wrong on the line below it.
var continues = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:--- FAIL|thread ')`) })

// Limits for the text of failures.
const (
	failureChars = 300
	failureLimit = 5 // of a conversation, the last ones
)

// whatFailed returns the error in an output: the first line that reports one, with the line that belongs to it; else its
// last line. "" if it is empty.
func whatFailed(output string) string {
	lines := strings.Split(output, "\n")
	for i, line := range lines {
		text := strings.TrimSpace(line)
		if len(line) > 4*failureChars || !failureLine().MatchString(line) || asideLine().MatchString(text) {
			continue
		}
		if i+1 < len(lines) && len(lines[i+1]) < failureChars && continues().MatchString(text) &&
			(strings.HasPrefix(lines[i+1], " ") || strings.HasSuffix(text, ":")) {
			text = strings.TrimSuffix(text, ":") + ": " + strings.TrimSpace(lines[i+1])
		}
		return cut(text, failureChars)
	}
	for _, line := range slices.Backward(lines) {
		if text := strings.TrimSpace(line); text != "" && !exitLine().MatchString(text) {
			return cut(text, failureChars)
		}
	}
	return ""
}

// exitLine matches a line that says how a command ended, and not why.
var exitLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:FAIL|command failed|(?:process )?(?:exited with )?(?:exit )?(?:code|status) \d+)\W*$`)
})
