package clarify

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// states brings a matter into each state.
var states = map[string]func(*testing.T) *story{
	"pending":   func(t *testing.T) *story { return newStory(t).human().decide() },
	"stale":     func(t *testing.T) *story { return newStory(t).human().decide().at(31).decide() },
	"answered":  func(t *testing.T) *story { return newStory(t).decide().run(succeeded, "Migrate.").decide() },
	"escalated": func(t *testing.T) *story { return newStory(t).human().decide().at(90).decide() },
	"resolved": func(t *testing.T) *story {
		return newStory(t).decide().run(succeeded, "Migrate.").decide().reply("resolution", "engineer", "Clear.")
	},
	"abandoned": func(t *testing.T) *story { return newStory(t).human().decide().reply("abandonment", "engineer", "no") },
}

// TestRepliesByState checks every type of reply in every state.
func TestRepliesByState(t *testing.T) {
	leads := map[string]map[string]string{
		"pending":   {"answer": "answered", "escalation": "escalated", "abandonment": "abandoned"},
		"stale":     {"answer": "answered", "escalation": "escalated"},
		"answered":  {"question": "pending", "resolution": "resolved", "escalation": "escalated"},
		"escalated": {"resolution": "resolved"},
		"resolved":  {},
		"abandoned": {"abandonment": "abandoned"}, // it agrees
	}
	for state, make := range states {
		for _, typ := range []string{"answer", "question", "resolution", "escalation", "abandonment"} {
			s := make(t)
			before := len(s.v.Status.Refused)
			s.reply(typ, "maria", "With which tool exactly?")
			to, legal := leads[state][typ]
			refused := len(s.v.Status.Refused) > before
			if legal && (refused || s.v.Status.Phase != to) || !legal && (!refused || s.v.Status.Phase != state) {
				t.Errorf("%s of a %s matter: %s, refused: %+v", typ, state, s.v.Status.Phase, s.v.Status.Refused)
			}
			if refused && !strings.Contains(s.v.Status.Refused[before].Message, "CLR-42-001 is "+state) {
				t.Errorf("the refusal does not tell the state: %q", s.v.Status.Refused[before].Message)
			}
		}
	}
}

func TestWhoMaySay(t *testing.T) {
	for _, c := range []struct {
		state, typ, from string
		ok               bool
	}{
		{"pending", "answer", "architect", true}, {"pending", "answer", "maria", true},
		{"pending", "answer", "engineer", false}, {"pending", "answer", "reviewer", false},
		{"pending", "abandonment", "architect", false}, {"pending", "abandonment", "maria", true},
		{"pending", "escalation", "architect", true}, {"pending", "escalation", "reviewer", false},
		{"answered", "question", "architect", false}, {"answered", "question", "engineer", true},
		{"answered", "resolution", "reviewer", false}, {"answered", "resolution", "engineer", true},
		{"escalated", "resolution", "reviewer", true}, {"escalated", "resolution", "maria", true},
	} {
		s := states[c.state](t).reply(c.typ, c.from, "Use the tool that is there.")
		if ok := len(s.v.Status.Refused) == 0; ok != c.ok {
			t.Errorf("%s of %s while %s: taken: %t, want %t: %+v", c.typ, c.from, c.state, ok, c.ok, s.v.Status.Refused)
		}
	}
	s := states["pending"](t).reply("answer", "architect", question).want("pending", 1)
	if len(s.v.Status.Refused) != 1 || !strings.Contains(s.v.Status.Refused[0].Message, "restates") {
		t.Errorf("refused %+v", s.v.Status.Refused)
	}
}

// TestRefusedStaysRefused: what could not be taken when it came is not taken later, unless it is written again.
func TestRefusedStaysRefused(t *testing.T) {
	s := states["pending"](t).reply("resolution", "engineer", "Clear.").want("pending", 1)
	if st, why := StandingOf(s.v.Status, s.m.Replies[0]); st != Refused || why == "" {
		t.Errorf("standing %d %q", st, why)
	}
	s.reply("answer", "maria", "Migrate.").want("answered", 1)
	s.m.Replies[0].Digest = "sha256:edited"
	if st, _ := StandingOf(s.v.Status, s.m.Replies[0]); st != Unheard {
		t.Errorf("standing %d", st)
	}
	s.decide().want("resolved", 2)
	if len(s.v.Status.Refused) != 0 {
		t.Errorf("refused %+v", s.v.Status.Refused)
	}
}

func TestEditedReplyStands(t *testing.T) {
	s := states["pending"](t).reply("answer", "architect", "Migrate.").want("answered", 1)
	spec := *s.m.Replies[0].Spec
	spec.Body = "Dual layer."
	s.m.Replies[0] = Reply{Name: "r00", Digest: "sha256:2", Agent: true, Spec: &spec}
	s.decide().want("answered", 1)
	if st, _ := StandingOf(s.v.Status, s.m.Replies[0]); st != Edited || s.v.Status.Thread[1].Body != "Migrate." {
		t.Errorf("standing %d, thread %+v", st, s.v.Status.Thread)
	}
	s.m.Replies = nil // removed: what was said stands
	if s.decide().want("answered", 1); len(s.v.Status.Thread) != 2 {
		t.Errorf("thread %+v", s.v.Status.Thread)
	}
}

func TestRepliesTogether(t *testing.T) {
	s := newStory(t).human().decide()
	for i, r := range []schemas.ReplySpec{{Type: "answer", From: "architect", Body: "Migrate."},
		{Type: "question", From: "engineer", Body: "With which tool exactly?"},
		{Type: "answer", From: "architect", Body: "Goose."},
		{Type: "resolution", From: "engineer", Body: "Clear."}} {
		s.m.Replies = append(s.m.Replies, Reply{Name: "d" + string(rune('0'+i)), Digest: "x", Agent: true, Spec: &r})
	}
	s.m.Replies[0], s.m.Replies[3] = s.m.Replies[3], s.m.Replies[0]
	if s.decide().want("resolved", 3); len(s.v.Status.Thread) != 5 {
		t.Errorf("thread %+v", s.v.Status.Thread)
	}
}
