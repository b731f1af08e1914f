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
		{"not at the beginning", " " + asksArchitect + "Which?", "", "", ""},
		{"quoted", "> " + asksArchitect + "Which?", "", "", ""},
		{"other capitals", strings.ToLower(asksArchitect) + "Which?", "", "", ""},
		{"nobody", "CLARIFICATION NEEDED about the database: Which?", "", "", ""},
		{"two words", "CLARIFICATION NEEDED from the architect about it: Which?", "", "", ""},
		{"no topic", "CLARIFICATION NEEDED from architect: Which?", "", "", ""},
		{"no colon", "CLARIFICATION NEEDED from architect about the database", "", "", ""},
	} {
		text := c.text
		if c.name != "not at the beginning" {
			text += "\n"
		} else {
			text = "x\n" + text // leading space of the whole output does not count
		}
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
		`{"reconcile":1,"answer":7}`:          "of version 1",
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
		"CLARIFICATION NEEDED from Architect about it: Which?":                       "to: ",
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
