package schemas

import (
	"fmt"
	"strings"
	"testing"
)

// canary is a secret that nothing may repeat.
const canary = "hunter2-canary"

// leaks reports whether a problem repeats the canary, in any of its forms.
func leaks(p Problem) bool {
	return strings.Contains(p.Error()+p.Format()+p.Source+p.Suggestion+strings.Join(p.Notes, ""), canary)
}

func decodeOne(t *testing.T, text string) []Problem {
	t.Helper()
	kinds := Kinds{ObservationKind, AgentKind}
	return NewDecoder(kinds, 0).Decode("specs/observations/a.yaml", []byte(text)).Problems
}

const observationHead = "apiVersion: reconcile.dev/v1alpha1\nkind: Observation\nmetadata: {name: a}\nspec:\n" +
	"  agent: lead\n  timestamp: 2026-02-27T10:00:00Z\n  entries:\n"

// TestObservationWithSecretIsRefused: a secret or private text that a person committed is named with its place, and not
// repeated.
func TestObservationWithSecretIsRefused(t *testing.T) {
	for _, c := range []struct {
		entry, code  string
		line, column int
	}{
		{"    - {category: key-fact, content: \"log in with password=" + canary + "\"}\n", "secret", 8, 59},
		{"    - category: key-fact\n      content: |\n        log in\n        with password=" + canary + "\n", "secret", 11, 23},
		{"    - category: key-fact\n      content: fine\n      summary: password=" + canary + "\n", "secret", 10, 25},
		{"    - {category: key-fact, content: \"a <private>" + canary + "</private> b\"}\n", "private", 8, 40},
		{"    - {category: key-fact, content: \"a <PRIVATE>" + canary + "\"}\n", "private", 8, 40},
	} {
		problems := decodeOne(t, observationHead+c.entry)
		if len(problems) != 1 {
			t.Errorf("%q has %d problems: %v", c.entry, len(problems), problems)
			continue
		}
		p := problems[0]
		if p.Code != c.code || p.Severity != Error || p.Line != c.line || p.Column != c.column || p.Suggestion == "" {
			t.Errorf("%q is %+v", c.entry, p)
		}
		if leaks(p) || p.Source != "" {
			t.Errorf("it is repeated: %s", p.Format())
		}
	}
}

// TestProblemsRepeatNoSecret: a line that is wrong in another way, and has a secret, is not shown.
func TestProblemsRepeatNoSecret(t *testing.T) {
	for _, text := range []string{
		observationHead + "    - {category: key-fact, content: fine, password: " + canary + "}\n",
		observationHead + "    - {category: key-fact, content: 'password: " + canary + "', wrong: 1}\n",
		observationHead + "    - {category: key-fact, content: \"password: " + canary + "\n",
		observationHead + "    - {category: \"password=" + canary + "\", content: fine}\n",
		observationHead + "    - {category: \"<private>" + canary + "</private>\", content: fine}\n",
		"password: " + canary + "\npassword: " + canary + "\n",
		"a: b: password: " + canary + "\n",
		"{\"password\": \"" + canary + "\",}\n",
	} {
		problems := decodeOne(t, text)
		if len(problems) == 0 {
			t.Errorf("%q is accepted", text)
		}
		for _, p := range problems {
			if leaks(p) {
				t.Errorf("%q\nis repeated: %s", text, p.Format())
			}
		}
	}
}

// TestProblemsKeepTheirLine: what has no secret is shown as before.
func TestProblemsKeepTheirLine(t *testing.T) {
	problems := decodeOne(t, observationHead+"    - {category: key-facts, content: fine}\n# password: "+canary+"\n")
	if len(problems) != 1 || !strings.Contains(problems[0].Source, "key-facts") || leaks(problems[0]) {
		t.Errorf("%+v", problems)
	}
}

// TestNothingOfAnObservationIsASecret: not only texts are looked at, and the problem is not the place to read it.
func TestNothingOfAnObservationIsASecret(t *testing.T) {
	const key, name = "AKIAZ7QW3LX5T2KD9PHM", "glpat-abcdefghij0123456789"
	const entry = "    - {category: key-fact, content: fine"
	whole := observationHead + entry + "}\n"
	id := "obs-lead-3-1772186400000-abc123"
	for _, c := range []struct{ text, field, code string }{
		{observationHead + entry + ", anchors: [src/" + key + ".go]}\n", "spec.entries[0].anchors[0]", "secret"},
		{observationHead + entry + ", digests: {src/" + key + ": absent}}\n", "spec.entries[0].digests", "secret"},
		{observationHead + entry + ", digests: {src/a.go: " + key + "}}\n", "spec.entries[0].digests", "secret"},
		{observationHead + entry + ", repeats: obs-x}\n", "spec.entries[0].repeats", "bad-id"},
		{observationHead + entry + ", supersedes: [" + id + ", obs-x]}\n", "spec.entries[0].supersedes[1]", "bad-id"},
		{observationHead + entry + ", repeats: obs-" + key + "}\n", "spec.entries[0].repeats", "secret"},
		{strings.Replace(whole, "agent: lead", "agent: "+name, 1), "spec.agent", "secret"},
		{strings.Replace(whole, "agent: lead", "agent: lead\n  session: "+name, 1), "spec.session", "secret"},
		{strings.Replace(whole, "agent: lead", "agent: lead\n  run: dags/"+name+"/x", 1), "spec.run", "secret"},
		{strings.Replace(whole, "name: a", "name: "+name, 1), "metadata.name", "secret"},
		{strings.Replace(whole, "name: a", "name: a, labels: {a: "+key+"}", 1), "metadata.labels", "secret"},
		{strings.Replace(whole, "name: a", "name: a, labels: {"+key+": a}", 1), "metadata.labels", "secret"},
		{strings.Replace(whole, "name: a", "name: a, annotations: {a: \"<private>"+key+"\"}", 1),
			"metadata.annotations", "private"},
	} {
		problems := decodeOne(t, c.text)
		found := false
		for _, p := range problems {
			found = found || p.Field == c.field && p.Code == c.code
			all := p.Error() + p.Format() + p.Source + p.Suggestion + strings.Join(p.Notes, "")
			if strings.Contains(all, key) || strings.Contains(strings.ReplaceAll(all, p.Ref.String(), ""), name) {
				t.Errorf("%q is repeated: %s", c.text, p.Format())
			}
		}
		if !found {
			t.Errorf("%q has no problem %s of %s: %v", c.text, c.code, c.field, problems)
		}
	}
	if problems := decodeOne(t, observationHead+entry+", supersedes: ["+id+"], repeats: "+id+"}\n"); len(problems) > 0 {
		t.Errorf("sound ids are refused: %v", problems)
	}
}

// TestWhatIsReadOfASpecHasNoSecret: statuses and prompts are made of what a person may have committed with one.
func TestWhatIsReadOfASpecHasNoSecret(t *testing.T) {
	const key = "AKIAZ7QW3LX5T2KD9PHM"
	for _, s := range []Spec{
		&ClarificationRequestSpec{Topic: "of " + key, Question: "is it " + key + "?"},
		&ReplySpec{From: "ada <private>" + key, Body: "it is " + key}, &ActionSpec{By: key, Reason: key},
	} {
		s.Default()
		if text := fmt.Sprintf("%+v", s); strings.Contains(text, key) {
			t.Errorf("left in %s", text)
		}
	}
}

// TestDecodedAgainWithoutSecrets: what is decoded again has no secret either, and what had none is as before.
func TestDecodedAgainWithoutSecrets(t *testing.T) {
	for text, spec := range map[string]string{
		"What is it?": "kind: ClarificationRequest\nmetadata: {name: a}\nspec: {issue: 1, from: a, to: b, topic: T, question: \"%s\", blocking: true}\n",
		"It is it.":   "kind: Reply\nmetadata: {name: a}\nspec: {clarification: a, from: b, type: answer, body: \"%s\"}\n",
	} {
		for _, secret := range []string{"", " password=" + canary} {
			d := NewDecoder(Kinds{ClarificationRequestKind, ReplyKind}, 0).Decode("specs/a.yaml", []byte("apiVersion: reconcile.dev/v1alpha1\n"+fmt.Sprintf(spec, text+secret)))
			if d.Object == nil {
				t.Fatal(d.Problems)
			}
			first := fmt.Sprintf("%+v", d.Object.Spec())
			d.Object.Release()
			again := fmt.Sprintf("%+v", d.Object.Spec())
			if again != first || strings.Contains(again, canary) || !strings.Contains(again, text) || d.Object.plain != (secret == "") {
				t.Errorf("%s, then %s", first, again)
			}
		}
	}
}
