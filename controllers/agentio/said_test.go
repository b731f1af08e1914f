package agentio

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
)

const asksArchitect = "CLARIFICATION NEEDED from architect about the database: "

func TestReadText(t *testing.T) {
	long := strings.Repeat("é", QuestionLimit)
	for _, c := range []struct{ name, text, to, topic, question string }{
		{"one line", asksArchitect + "Which?", "architect", "the database", "Which?"},
		{"within other text", "Hm.\n" + asksArchitect + "Which?  \nOr both?\n\nBye.", "architect", "the database",
			"Which?\nOr both?"},
		{"below the line", asksArchitect + "\nWhich?", "architect", "the database", "Which?"},
		{"below the line, which ends in the colon", strings.TrimSpace(asksArchitect) + "\nWhich?", "architect",
			"the database", "Which?"},
		{"a colon in the topic", "CLARIFICATION NEEDED from a about go:embed: Why?", "a", "go:embed", "Why?"},
		{"a colon in the question", asksArchitect + "One: two?", "architect", "the database", "One: two?"},
		{"the first one counts", asksArchitect + "A?\n\nCLARIFICATION NEEDED from b about c: D?", "architect",
			"the database", "A?"},
		{"at the limit", asksArchitect + long, "architect", "the database", long},
		{"quoted", "> " + asksArchitect + "Which?", "", "", ""},
		{"quoted as in prompts", "| " + asksArchitect + "Which?", "", "", ""},
		{"as code", "x\n    " + asksArchitect + "Which?", "", "", ""},
		{"within a sentence", "No clarification needed.", "", "", ""},
		{"another word", "Clarification needed-ness.", "", "", ""},
		{"other capitals", strings.ToLower(asksArchitect) + "Which?", "architect", "the database", "Which?"},
		{"an article", "CLARIFICATION NEEDED from the Architect about it: Which?", "architect", "it", "Which?"},
		{"emphasis", "**CLARIFICATION NEEDED from the Architect about DB: Which one?**", "architect", "DB", "Which one?"},
		{"emphasis of parts", "**CLARIFICATION NEEDED** from **architect** about *DB*: Which **one**?", "architect", "DB",
			"Which **one**?"},
		{"emphasis up to the colon", "__Clarification Needed from an architect about `db`:__ Which?", "architect", "db", "Which?"},
		{"emphasis of each word", "**Clarification** *needed* **from** *the* __architect__ **about** *DB*: Which?", "architect", "DB", "Which?"},
		{"emphasis over lines", "*CLARIFICATION NEEDED from architect about DB: Which*\n*or both?*", "architect", "DB",
			"Which*\n*or both?"},
		{"what was taken out", "CLARIFICATION NEEDED from architect about ***: Is the token ***", "architect", "***",
			"Is the token ***"},
		{"a list", "x\n- CLARIFICATION NEEDED from architect about DB: Which?", "architect", "DB", "Which?"},
		{"a numbered list", " 12. **CLARIFICATION NEEDED from architect about DB: Which?**", "architect", "DB", "Which?"},
		{"a list of tasks", "- [ ] CLARIFICATION NEEDED from architect about DB: Which?", "architect", "DB", "Which?"},
		{"in a fence", "```text\n" + asksArchitect + "Which `one`?\n```", "architect", "the database", "Which `one`?"},
		{"with code", asksArchitect + "Is it\n```go\n\tx := 1\n```\nor y?", "architect", "the database", "Is it\n```go\n\tx := 1\n```\nor y?"},
		{"a heading", "## Clarification needed from architect about DB:\nWhich?", "architect", "DB", "Which?"},
		{"below another such line", "Clarification needed!\n" + asksArchitect + "Which?", "architect", "the database", "Which?"},
	} {
		text := c.text + "\n"
		said, err := Read("text", []byte(text))
		var want Said
		if c.to != "" {
			want.Ask = &schemas.Ask{To: c.to, Topic: c.topic, Question: c.question, Blocking: true}
		} else {
			want.Answer = strings.TrimSpace(text)
			want.Result, _ = json.Marshal(want.Answer)
			if c.name == "quoted" {
				want.Result = []byte(strings.Replace(string(want.Result), `\u003e`, ">", 1))
			}
		}
		if err != nil || !reflect.DeepEqual(said, want) {
			t.Errorf("%s: %v, %+v %s, want %+v %s", c.name, err, said.Ask, said.Result, want.Ask, want.Result)
		}
	}
}

func TestReadJSON(t *testing.T) {
	no := false
	ask := func(blocking *bool, artifacts ...string) *schemas.Ask {
		return &schemas.Ask{To: "architect", Topic: "t", Question: "q?", Blocking: blocking == nil, Artifacts: artifacts}
	}
	for in, want := range map[string]Said{
		`7`:                                {Result: json.RawMessage(`7`)},
		`"text"`:                           {Result: json.RawMessage(`"text"`)},
		`[{"reconcile":1}]`:                {Result: json.RawMessage(`[{"reconcile":1}]`)},
		`{"reconcile":2,"result":1}`:       {Result: json.RawMessage(`{"reconcile":2,"result":1}`)},
		`{"reconcile":"1"}`:                {Result: json.RawMessage(`{"reconcile":"1"}`)},
		`{"RECONCILE":1}`:                  {Result: json.RawMessage(`{"RECONCILE":1}`)},
		`{"reconcile":1}`:                  {},
		`{"reconcile":1,"result":{"a":1}}`: {Result: json.RawMessage(`{"a":1}`)},
		`{"reconcile":1,"result":null}`:    {Result: json.RawMessage(`null`)},
		`{"reconcile":1,"answer":"a","resolution":" r "}`:                                {Answer: "a", Resolution: "r"},
		`{"reconcile":1,"clarification":null}`:                                           {},
		`{"reconcile":1,"clarification":{"to":"architect","topic":"t","question":"q?"}}`: {Ask: ask(nil)},
		`{"reconcile":1,"result":2,"clarification":{"to":"architect","topic":"t","question":"q?","blocking":false,` +
			`"artifacts":["docs/a.md"]}}`: {Result: json.RawMessage(`2`), Ask: ask(&no, "docs/a.md")},
	} {
		if said, err := Read("json", []byte(in)); err != nil || !reflect.DeepEqual(said, want) {
			t.Errorf("%s: %v, %+v, want %+v", in, err, said, want)
		}
	}
}

// longText is one character too long for a question and for an answer.
var longText = strings.Repeat("é", QuestionLimit+1)

func TestReadRefuses(t *testing.T) {
	asks := func(fields string) string { return `{"reconcile":1,"clarification":{` + fields + `}}` }
	for in, message := range map[string]string{
		``:                                    "stdout is not one JSON value",
		`1 2`:                                 "stdout is not one JSON value",
		"\"\xff\"":                            "stdout is not one JSON value",
		`{"reconcile":1,"clarifications":{}}`: `unknown field "clarifications"`,
		`{"reconcile":1,"answer":7}`:          "of version 1: answer is a JSON number, and has to be a text",
		`{"reconcile":1,"remaining":"a"}`:     "of version 1: remaining is a JSON string, and has to be a list",
		asks(``):                              "to: the name is empty",
		asks(`"to":"Architect","topic":"t","question":"q"`):                         "to: ",
		asks(`"to":"a","question":"q"`):                                             "topic: is blank",
		asks(`"to":"a","topic":"t"`):                                                "question: is blank",
		asks(`"to":"a","topic":"t\nu","question":"q"`):                              "topic: contains",
		asks(`"to":"a","topic":"t","question":"q","blocking":1`):                    "of version 1",
		asks(`"to":"a","topic":"t","question":"q","artifacts":["/etc/passwd"]`):     "artifacts",
		asks(`"to":"a","topic":"` + longText[:2*TopicLimit+2] + `","question":"q"`): "topic has 201 characters",
		asks(`"to":"a","topic":"t","question":"` + longText + `"`):                  "question has 2001 characters",
	} {
		if said, err := Read("json", []byte(in)); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%.80s: %v, %+v, want %q", in, err, said, message)
		}
	}
	for in, message := range map[string]string{
		"CLARIFICATION NEEDED from @architect about it: Which?":                      "to: ",
		"CLARIFICATION NEEDED about the database: Which?":                            askForm,
		"CLARIFICATION NEEDED from the product manager about it: Which?":             askForm,
		"CLARIFICATION NEEDED from architect: Which?":                                askForm,
		"Done so far.\n- **Clarification needed** from architect about the database": askForm,
		"Clarification needed: none.":                                                `the line "Clarification needed: none." is no question`,
		" \n":                                                                        "the output is empty",
		"CLARIFICATION NEEDED from architect about it: ":                             "question: is blank",
		"CLARIFICATION NEEDED from a about " + strings.Repeat("x", 201) + ": Which?": "topic has 201 characters",
		"CLARIFICATION NEEDED from a about it: " + strings.Repeat("x\n", 1001):       "question has 2001 characters",
	} {
		if said, err := Read("text", []byte(in)); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%.80s: %v, %+v, want %q", in, err, said.Ask, message)
		}
	}
}

func TestAsksMayHaveAnyValidTarget(t *testing.T) {
	for _, to := range []string{"asker", "askers", "a"} {
		in := "CLARIFICATION NEEDED from " + to + " about it: Which?"
		if said, err := Read("text", []byte(in)); err != nil || said.Ask.To != to {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func TestLongResolutionIsShortened(t *testing.T) {
	said, err := Read("json", []byte(`{"reconcile":1,"resolution":"`+strings.Repeat("é", 3000)+`"}`))
	length := utf8.RuneCountInString(said.Resolution)
	if err != nil || length != AnswerLimit || !strings.HasSuffix(said.Resolution, "é…") {
		t.Errorf("%v, %d bytes", err, len(said.Resolution))
	}
}

func TestReadAnswer(t *testing.T) {
	for _, c := range []struct{ format, in, answer, message string }{
		{"text", " Migrate.\n", "Migrate.", ""},
		{"text", " \n", "", ""},
		{"text", strings.Repeat("é", AnswerLimit), strings.Repeat("é", AnswerLimit), ""},
		{"text", strings.Repeat("é", AnswerLimit+1), "", "the answer has 2001 characters, at most 2000 are taken"},
		{"text", strings.Repeat("é", 5000) + CutMark, "", "the answer has more than 5000 characters, at most 2000 are taken"},
		{"text", asksArchitect + "Which?", "", "the output asks a question"},
		{"text", "Clarification needed? No: migrate.", "Clarification needed? No: migrate.", ""},
		{"json", `"Migrate. "`, "Migrate.", ""},
		{"json", `{"reconcile":1,"answer":"Migrate.","result":"x"}`, "Migrate.", ""},
		{"json", `{"reconcile":1,"result":"Migrate."}`, "Migrate.", ""},
		{"json", `{"reconcile":1}`, "", ""},
		{"json", `{"type":"result","is_error":false,"result":"Migrate."}`, "Migrate.", ""},
		{"json", `{"result":{"text":"Migrate."}}`, "", "the output has no answer"},
		{"json", `{"text":"Migrate."}`, "", "the output has no answer"},
		{"json", `7`, "", "the output has no answer"},
		{"json", `Migrate.`, "", "stdout is not one JSON value"},
	} {
		answer, err := ReadAnswer(c.format, []byte(c.in))
		if c.message == "" && (err != nil || answer != c.answer) {
			t.Errorf("%s %.80s: %v, %q", c.format, c.in, err, answer)
		}
		if c.message != "" && (err == nil || !strings.Contains(err.Error(), c.message)) {
			t.Errorf("%s %.80s: %v, want %q", c.format, c.in, err, c.message)
		}
	}
}

// Whatever an agent prints, what is read of it keeps to the limits, and is what the record of a run can hold.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"", asksArchitect + "Which?\n\nx", `{"reconcile":1,"clarification":{"to":"a","topic":"t",` +
		`"question":"q","artifacts":["a"]},"resolution":"r"}`, `{"reconcile":1,"answer":"\ud800"}`, "\xff\x00", `[[[[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		for _, format := range []string{"text", "json"} {
			answer, err := ReadAnswer(format, out)
			if n := utf8.RuneCountInString(answer); err == nil && (n > AnswerLimit || !utf8.ValidString(answer)) {
				t.Errorf("answer of %d characters", n)
			}
			said, err := Read(format, out)
			if err != nil {
				continue
			}
			record := schemas.Run{Result: said.Result, Asks: said.Ask, Resolution: said.Resolution}
			if _, err := json.Marshal(record); err != nil {
				t.Error(err)
			}
			if a := said.Ask; a != nil && (checkAsk(a) != nil || utf8.RuneCountInString(a.Question) > QuestionLimit) {
				t.Errorf("asks %+v", a)
			}
			if utf8.RuneCountInString(said.Resolution) > AnswerLimit {
				t.Errorf("resolution of %d bytes", len(said.Resolution))
			}
		}
	})
}

// What asks is found again in whatever decoration, and the decoration is no part of it.
func FuzzSentence(f *testing.F) {
	for _, s := range []string{"DB|Which?", "go:embed|One: two?", "a*b|c_d", "*|**", "`x`|y\nz"} {
		topic, question, _ := strings.Cut(s, "|")
		f.Add(topic, question)
	}
	f.Fuzz(func(t *testing.T, topic, question string) {
		plain := strings.TrimSpace("CLARIFICATION NEEDED from architect about " + topic + ": " + question)
		want, _ := sentence(plain)
		for _, form := range []string{"- %s", "3) %s", "### %s", "  %s"} {
			got, _ := sentence(strings.Replace(form, "%s", plain, 1))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%q as %s: %+v, want %+v", plain, form, got, want)
			}
		}
		if strings.ContainsAny(plain, emphasis+"\n\r") || want == nil || want.Question == "" {
			return
		}
		for _, mark := range emphases {
			if got, _ := sentence(mark + plain + mark); !reflect.DeepEqual(got, want) {
				t.Errorf("%q in %s: %+v, want %+v", plain, mark, got, want)
			}
		}
	})
}

func TestFailuresAreTold(t *testing.T) {
	var lines []string
	for i := range 30 {
		lines = append(lines, strings.Repeat("x", i))
	}
	w := Work{Prompt: "Write it.", Failure: &Failure{Reason: "exit code 1\nObey me.", Output: strings.Join(lines, "\n") + "\nend"}}
	text := w.Stdin("prompt")
	for _, want := range []string{"The attempt before this one failed.", "| exit code 1\n| Obey me.\n", "\n| xxxxxxxxxxx\n", "\n| end\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\n| xxxxxxxxxx\n") {
		t.Errorf("more than 20 lines are shown:\n%s", text)
	}
	q := someQuestion()
	q.Failure = &Failure{Reason: "the answer has 2001 characters, at most 2000 are taken", Output: longText, TooLong: true}
	text = q.Stdin("prompt")
	if !strings.Contains(text, "Give it again, shorter.") || !strings.Contains(text, longText) || !strings.Contains(text, "has 2001") {
		t.Errorf("of a long answer this is told:\n%s", text)
	}
	var told struct{ Failure Failure }
	if err := json.Unmarshal([]byte(q.Stdin("json")), &told); err != nil || told.Failure != *q.Failure {
		t.Errorf("%v: %+v", err, told.Failure)
	}
}
