package schemas

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// conformer judges documents of every kind both ways.
type conformer struct{ decoder *Decoder }

func newConformer() conformer {
	return conformer{NewDecoder(Kinds{SessionKind, AgentKind, WorkflowKind, DAGKind, ClarificationRequestKind, ReplyKind,
		ActionKind, ObservationKind, SettingsKind}, 0)}
}

// judge fails the test if the quick judgement accepts what the validator refuses. It reports what each said.
func (c conformer) judge(t *testing.T, text string) (quick, valid bool) {
	t.Helper()
	s := newSource("specs/x.yaml")
	root := s.parse([]byte(text), DefaultFileSize)
	if root == nil || len(s.problems) > 0 {
		return false, false
	}
	k, ok := c.decoder.kinds.Find(root.str("kind"))
	if !ok {
		return false, false
	}
	compiled := c.decoder.compiled(k)
	validator, err := compiled.validator()
	if err != nil || compiled.err != nil {
		t.Fatal(err, compiled.err)
	}
	quick = compiled.shape.conforms(root)
	err = validator.Validate(root.plain())
	if quick && err != nil {
		t.Fatalf("conforms accepts what the validator refuses: %v\n%s", err, text)
	}
	return quick, err == nil
}

func TestExamplesConform(t *testing.T) {
	c := newConformer()
	for name, text := range samples(t) {
		if quick, valid := c.judge(t, text); valid && !quick {
			t.Errorf("%s: left to the validator", name)
		}
	}
}

// TestConformsAgrees damages examples: a value is replaced, or a line dropped, repeated or renamed.
func TestConformsAgrees(t *testing.T) {
	c := newConformer()
	values := []string{
		"1", "-1", "0", "1.5", "1e30", "true", "null", "[]", "[x]", "[x, 1]", "{}", "{a: b}", `""`, "x", "10m", "-10m", "0", `"0"`, "1h1",
		"1h99999h", "2026-01-01T00:00:00Z", `"2026-13-01T00:00:00Z"`, "high", "low", "Active", "cancel", "answer", strings.Repeat("é", 63),
		strings.Repeat("é", 64), strings.Repeat("ab", 1000), strings.Repeat("ab", 1001), "9007199254740992", "50", "100000000", "100000001",
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	texts := samples(t)
	quickly, refused := 0, 0
	for range rounds(t) / 100 {
		for _, text := range texts {
			quick, valid := c.judge(t, damaged(rnd, text, values))
			if quick {
				quickly++
			}
			if !valid {
				refused++
			}
		}
	}
	if quickly < 100 || refused < 100 {
		t.Errorf("%d accepted quickly, %d refused: the test says little", quickly, refused)
	}
}

func damaged(rnd *rand.Rand, text string, values []string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	i := rnd.IntN(len(lines))
	switch key, _, ok := strings.Cut(lines[i], ": "); {
	case ok && rnd.IntN(4) > 0:
		lines[i] = key + ": " + values[rnd.IntN(len(values))]
	case rnd.IntN(2) == 0:
		lines = append(lines[:i], lines[i+1:]...)
	default:
		lines[i] = strings.Replace(lines[i], ":", "x:", 1)
	}
	return strings.Join(lines, "\n") + "\n"
}

func FuzzConforms(f *testing.F) {
	for _, text := range samples(f) {
		f.Add(text)
	}
	c := newConformer()
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 4096 {
			c.judge(t, text)
		}
	})
}
