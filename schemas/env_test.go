package schemas

import (
	"encoding/json"
	"testing"
)

func TestEnvValuesAreTextsOrSources(t *testing.T) {
	for text, want := range map[string]EnvValue{
		`"a"`:                          {Text: "a"},
		`""`:                           {},
		`{"from":"env"}`:               {EnvSource: EnvSource{From: EnvFromCaller}},
		`{"from":"file","path":"x/y"}`: {EnvSource: EnvSource{From: EnvFromFile, Path: "x/y"}},
	} {
		got := EnvValue{Text: "before"}
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if back, err := json.Marshal(got); err != nil || string(back) != text {
			t.Errorf("%s: back as %s, %v", text, back, err)
		}
	}
	if err := json.Unmarshal([]byte(`5`), new(EnvValue)); err == nil {
		t.Error("a number is taken")
	}
}
