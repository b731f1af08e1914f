package schemas

import "strings"

// PreferenceKind is the kind Preference.
var PreferenceKind = Kind{
	Name: "Preference", Plural: "preferences", Aliases: []string{"pref"},
	Short:          "What a person chose, or an agent inferred that people prefer, for a session or for all.",
	New:            func() Spec { return new(PreferenceSpec) },
	NewStatus:      func() Status { return new(PreferenceStatus) },
	StatusOptional: true,
}

// PreferenceTools is the domain of preferences about the tools that check code: the key is LANGUAGE/CATEGORY, the value a tool.
const PreferenceTools = "tools"

// Sources of preferences, the strongest first.
const (
	PreferenceExplicit = "explicit"
	PreferenceImplicit = "implicit"
	PreferenceInferred = "inferred"
)

// PreferenceSpec is one preference. Of several about the same key those of people win over inferred ones, those of the session over
// general ones, and newer ones over older ones.
type PreferenceSpec struct {
	// Domain is what the preference is about: tools, or a word of your own.
	Domain string `json:"domain" jsonschema:"minLength=1,maxLength=63,example=tools"`
	// Key is the question within the domain: of tools LANGUAGE/CATEGORY, as python/formatter.
	Key string `json:"key" jsonschema:"minLength=1,maxLength=200"`
	// Value is the answer: of tools the name of a tool, as "reconcile tools" shows it.
	Value string `json:"value" jsonschema:"minLength=1,maxLength=1000"`
	// Confidence is how sure it is, 0 to 1. Default 1.
	Confidence float64 `json:"confidence,omitempty" jsonschema:"minimum=0,maximum=1,default=1"`
	// Source says where it comes from: a person said it (explicit), a person's action shows it (implicit), or an agent thinks so
	// (inferred). An agent can only infer. Default explicit.
	Source string `json:"source,omitempty" jsonschema:"enum=explicit,enum=implicit,enum=inferred,default=explicit"`
	// Session is the session that it is for; without it, all.
	Session string `json:"session,omitempty" jsonschema:"maxLength=63"`
	// Reason says why.
	Reason string `json:"reason,omitempty" jsonschema:"maxLength=2000"`
	// By is who chose.
	By string `json:"by,omitempty" jsonschema:"maxLength=100"`
	// Proof says how it is known who that is: the token of a run, the account of the process, or not at all (claimed).
	Proof string `json:"proof,omitempty" jsonschema:"enum=run,enum=account,enum=claimed"`
	// At is when.
	At Time `json:"at,omitzero"`
}

// PreferenceStatus exists for the preferences of people, and while something is wrong with another.
type PreferenceStatus struct {
	Common
	// During is the key of a run without a sandbox during which the file appeared; nothing shows that a person wrote it, so it counts as inferred.
	During string `json:"during,omitempty"`
}

// Distrusted says why a preference, as its file has the digest, counts as inferred; "" if nothing is known against it.
func (s *PreferenceStatus) Distrusted(digest string) string {
	if s == nil || s.ObservedDigest != digest {
		return ""
	}
	return distrusted(s.During)
}

// Default fills in that a person is sure. It takes out secrets and private text.
func (s *PreferenceSpec) Default() {
	orDefault(&s.Source, PreferenceExplicit)
	orDefault(&s.Confidence, 1)
	withoutSecrets(&s.By, &s.Reason)
}

// Check reports a key of tools that is no language and category, and a session that cannot be one.
func (s *PreferenceSpec) Check(r *Report) {
	checkLine(r.At("by"), s.By)
	checkLine(r.At("value"), s.Value)
	checkLine(r.At("key"), s.Key)
	if s.Session != "" {
		checkRef(r.At("session"), s.Session)
	}
	if language, category, ok := strings.Cut(s.Key, "/"); s.Domain == PreferenceTools && (!ok || language == "" || category == "") {
		r.At("key").Errorf("bad-key", "%q is not LANGUAGE/CATEGORY", s.Key).suggest("write python/formatter, for example, or run reconcile tools choose")
	}
}

// References is the session.
func (s *PreferenceSpec) References() []Reference {
	if s.Session == "" {
		return nil
	}
	return []Reference{{Field: []any{"session"}, To: Ref{Kind: SessionKind.Name, Name: s.Session}}}
}

// OfPeople reports whether a preference is a person's.
func (s *PreferenceSpec) OfPeople() bool { return s != nil && s.Source != PreferenceInferred }
