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
func (r *reader) failure(o object) bool {
	text, failed := "", false
	switch typ := o.text("type"); {
	case strings.HasPrefix(typ, "tool") && (o.is("is_error") || o.is("isError")): // of Claude Code, and of MCP
		text = resultOf(o)
		if _, rest, found := strings.Cut(text, "Exit code "); found {
			_, text, _ = strings.Cut(rest, "\n")
		}
		failed = !strings.Contains(text, "<tool_use_error>")
	case strings.HasSuffix(typ, "_output"): // of Codex: its output is JSON in a string, or the object itself
		out := o.object("output")
		if out == nil {
			out = objectOf(json.RawMessage(o.text("output")))
		}
		text, failed = out.text("output"), exitCode(out) != "" && exitCode(out) != "0"
	}
	if failed {
		r.say(roleFailure, text, len(r.edits))
	}
	return failed
}

// exitCode returns that of a command, "" if it is unknown.
func exitCode(o object) string {
	if inner := o.object("metadata"); inner != nil {
		o = inner
	}
	return string(o["exit_code"])
}

// failureLine matches a line in which compilers, tests and programs say what went wrong.
var failureLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:--- FAIL: \S|panic: \S|(?:fatal|FATAL|error|Error|ERROR)(?:\[\w+\])?: \S|` +
		`(?:\w+\.)*\w*(?:Error|Exception): \S|[\w./-]+\.\w{1,5}:\d+(?::\d+)?: \S|FAILED \S)`)
})

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
		if len(line) > 4*failureChars || !failureLine().MatchString(line) {
			continue
		}
		text := strings.TrimSpace(line)
		if i+1 < len(lines) && len(lines[i+1]) < failureChars && strings.HasPrefix(text, "--- FAIL") &&
			strings.HasPrefix(lines[i+1], " ") {
			text += ": " + strings.TrimSpace(lines[i+1])
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
