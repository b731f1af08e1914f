package modeltest

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Team decides what a model says to Claude Code and to Codex in examples/team. The engineer asks the architect first; then it, and
// the builder, do not get an answer: the test kills them. Continued, the builder meets a rate limit, as the tester does at first.
// Its decisions depend on the latest task and on the work since. Each works with the tools that it has.
func Team() func(body string) Answer {
	asked := map[string]int{} // how often the first request of a task came
	return func(body string) Answer {
		q := read(body)
		if !q.tools {
			return Answer{Text: "ok"} // a request besides, as for a title
		}
		a, name := teamTask(q)
		a.Input, a.Output = 1000, 20
		if q.results > 0 {
			return a
		}
		asked[name]++
		switch n := asked[name]; {
		case n == 1 && (name == "circle" || name == "triangle"):
			a.Wait = make(chan struct{}) // for ever
		case n == 1 && name == "tests", n == 2 && name == "triangle":
			return Answer{Status: 429, Kind: "rate_limit_error", Message: "too many requests", RetryAfter: "1"}
		}
		return a
	}
}

// teamTask is the next step in a task of the team, and its name; "" for one without a story.
func teamTask(q request) (Answer, string) {
	switch {
	case strings.Contains(q.task, "asks you, architect"):
		return Answer{Text: "Use math.Pi: it is exact enough for every shape."}, ""
	case strings.Contains(q.task, "Add the circle") && !strings.Contains(q.task, "Use math.Pi"):
		return Answer{Text: "CLARIFICATION NEEDED from architect about pi: How exact does it have to be?"}, ""
	case strings.Contains(q.task, "Add the circle"):
		return q.shape("circle", "circle(1)", "package main\n\nimport \"math\"\n\n// circle returns the area of a circle by its radius.\n"+
			"func circle(radius float64) float64 { return math.Pi * radius * radius }\n"), "circle"
	case strings.Contains(q.task, "Add the triangle"):
		return q.shape("triangle", "triangle(3, 2)", "package main\n\n// triangle returns the area of a triangle by its base and height.\n"+
			"func triangle(base, height float64) float64 { return base * height / 2 }\n"), "triangle"
	case strings.Contains(q.task, "Test the area"):
		return q.play("The square is tested.", q.file("shapes_test.go", "package main\n\nimport \"testing\"\n\nfunc TestSquare(t *testing.T) {\n"+
			"\tif got := square(3); got != 9 {\n\t\tt.Errorf(\"square(3) = %v, want 9\", got)\n\t}\n}\n")), "tests"
	}
	return Answer{Text: "ok"}, ""
}

// shape adds a shape to the list, and its function in a file of its own.
func (q request) shape(name, call, text string) Answer {
	const last = "\t{\"square\", square(2)},\n"
	return q.play("The "+name+" is there.", q.reads("shapes.go"), q.inserts("shapes.go", last, "\t{\""+name+"\", "+call+"},\n"), q.file(name+".go", text))
}

// Writer decides what a model says to any coding agent whose task is to write a text file, as in "Write a.txt.": it uses the tool
// that the agent has for that, and then reports that.
func Writer() func(body string) Answer {
	return func(body string) Answer {
		q := read(body)
		if !q.tools && strings.Contains(body, "complexity_score") { // Gemini chooses a model so
			return Answer{Text: `{"complexity_reasoning": "one file", "complexity_score": 10}`, Input: 100, Output: 20}
		}
		a := Answer{Text: "ok"} // a request besides, as for a title
		if name := written.FindStringSubmatch(q.task); q.tools && name != nil {
			// Some tools want an absolute path: every agent tells its model the folder.
			a = q.play("It is written.", q.file(path.Join(workspace.FindString(body), name[1]), "It was me.\n"))
		}
		a.Input, a.Output = 1000, 20
		return a
	}
}

var (
	written   = regexp.MustCompile(`Write (\S+\.txt)`)
	workspace = regexp.MustCompile(`/[^\s"\\<]+/reconcile/ws/[^\s"\\</]+/[\w.-]*\w`)
)

// file is the call that writes a file, with the agent's own tool.
func (q request) file(name, text string) Answer {
	for _, t := range []struct {
		tool       string
		path, body string
	}{{"Write", "file_path", "content"}, {"write_file", "file_path", "content"}, {"write", "filePath", "content"}, {"create", "path", "file_text"}} {
		if tool := q.tool(t.tool); tool != "" {
			return Answer{Tool: tool, Args: object{t.path: name, t.body: text}}
		}
	}
	return Answer{Tool: q.tool("exec_command"), Args: object{"cmd": "mkdir -p " + path.Dir(name) + " && cat > " + name + " <<'END'\n" + text + "END\n"}}
}

// reads is the call that reads a file: Claude Code changes none that it has not read.
func (q request) reads(name string) Answer {
	if shell := q.tool("exec_command"); shell != "" {
		return Answer{Tool: shell, Args: object{"cmd": "cat " + name}}
	}
	return Answer{Tool: "Read", Args: object{"file_path": name}}
}

// inserts is the call that adds a line after another line of a file.
func (q request) inserts(name, after, line string) Answer {
	if shell := q.tool("exec_command"); shell != "" {
		return Answer{Tool: shell, Args: object{"cmd": fmt.Sprintf("cat > line <<'END'\n%sEND\nn=$(grep -nF '%s' %s | cut -d : -f 1)\nsed -i.bak \"${n}r line\" %[3]s && rm line %[3]s.bak",
			line, strings.TrimSpace(after), name)}}
	}
	return Answer{Tool: "Edit", Args: object{"file_path": name, "old_string": after, "new_string": after + line}}
}

// play returns the call after those that are done, at last the text.
func (q request) play(text string, calls ...Answer) Answer {
	if q.results < len(calls) {
		return calls[q.results]
	}
	return Answer{Text: text}
}
