package modeltest

import (
	"encoding/json"
	"strings"
)

// Team decides what a model says to Claude Code in examples/team: the engineer asks the architect first, the tester meets a rate
// limit first, and each works with the tools Read, Edit and Write. It goes by the latest task and by what was done since.
func Team() func(body string) Answer {
	limited := false
	return func(body string) Answer {
		task, results, tools := latest(body)
		a := Answer{Text: "ok"} // a request besides, as for a title
		switch {
		case !tools:
		case strings.Contains(task, "asks you, architect"):
			a = Answer{Text: "Use math.Pi: it is exact enough for every shape."}
		case strings.Contains(task, "Add the circle"):
			a = Answer{Text: "CLARIFICATION NEEDED from architect about pi: How exact does it have to be?"}
			if strings.Contains(task, "Use math.Pi") {
				a = shape(results, "circle", "circle(1)", "package main\n\nimport \"math\"\n\n// circle returns the area of a circle by its radius.\n"+
					"func circle(radius float64) float64 { return math.Pi * radius * radius }\n")
			}
		case strings.Contains(task, "Add the triangle"):
			a = shape(results, "triangle", "triangle(3, 2)", "package main\n\n// triangle returns the area of a triangle by its base and height.\n"+
				"func triangle(base, height float64) float64 { return base * height / 2 }\n")
		case strings.Contains(task, "Test the area") && !limited:
			limited = true
			return Answer{Status: 429, Kind: "rate_limit_error", Message: "too many requests", RetryAfter: "1"}
		case strings.Contains(task, "Test the area"):
			a = play(results, "The square is tested.", file("shapes_test.go", "package main\n\nimport \"testing\"\n\nfunc TestSquare(t *testing.T) {\n"+
				"\tif got := square(3); got != 9 {\n\t\tt.Errorf(\"square(3) = %v, want 9\", got)\n\t}\n}\n"))
		}
		a.Input, a.Output = 1000, 20
		return a
	}
}

// shape adds a shape to the list, and its function in a file of its own.
func shape(done int, name, call, text string) Answer {
	const last = "\t{\"square\", square(2)},\n"
	return play(done, "The "+name+" is there.", Answer{Tool: "Read", Args: object{"file_path": "shapes.go"}},
		Answer{Tool: "Edit", Args: object{"file_path": "shapes.go", "old_string": last, "new_string": last + "\t{\"" + name + "\", " + call + "},\n"}},
		file(name+".go", text))
}

func file(name, text string) Answer {
	return Answer{Tool: "Write", Args: object{"file_path": name, "content": text}}
}

// play returns the call after those that are done, at last the text.
func play(done int, text string, calls ...Answer) Answer {
	if done < len(calls) {
		return calls[done]
	}
	return Answer{Text: text}
}

// latest returns the latest text of the user in a request of Anthropic's format, how many results of tools came after it, and
// whether there are tools.
func latest(body string) (task string, results int, tools bool) {
	var q struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []json.RawMessage
	}
	_ = json.Unmarshal([]byte(body), &q) // another format has no messages
	for _, m := range q.Messages {
		var blocks []struct{ Type, Text string }
		var text string
		if json.Unmarshal(m.Content, &text) != nil {
			_ = json.Unmarshal(m.Content, &blocks)
		}
		found := 0
		for _, b := range blocks {
			if b.Type == "tool_result" {
				found++
			} else if !strings.HasPrefix(b.Text, "<system-reminder>") {
				text += b.Text
			}
		}
		switch {
		case m.Role != "user":
		case found > 0:
			results += found
		case text != "":
			task, results = text, 0
		}
	}
	return task, results, len(q.Tools) > 0
}
