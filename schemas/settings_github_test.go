package schemas

import (
	"slices"
	"strings"
	"testing"
)

func settingsOf(t *testing.T, github string) (*SettingsSpec, string) {
	t.Helper()
	src := "apiVersion: " + APIVersion + "\nkind: Settings\nmetadata: {name: settings}\nspec: {github: " + github + "}\n"
	d := NewDecoder(Kinds{SettingsKind}, 0).Decode(SettingsPath, []byte(src))
	var all []string
	for _, p := range d.Problems {
		all = append(all, p.Field+": "+p.Message+" "+p.Suggestion)
	}
	if d.Object == nil {
		return d.Sound.(*SettingsSpec), strings.Join(all, "\n")
	}
	return d.Object.Spec().(*SettingsSpec), strings.Join(all, "\n")
}

func TestGitHubCommandsDefault(t *testing.T) {
	t.Parallel()
	for github, want := range map[string][]string{
		"{}":                                    {"OWNER", "MEMBER", "COLLABORATOR"},
		"{commands: {allow: [ada, acme/core]}}": {"OWNER", "MEMBER", "COLLABORATOR"},
		"{commands: {roles: [OWNER]}}":          {"OWNER"},
		"{commands: {roles: []}}":               {},
	} {
		s, wrong := settingsOf(t, github)
		if got := *s.GitHub.Commands.Roles; wrong != "" || !slices.Equal(got, want) {
			t.Errorf("%s: roles %q, want %q; %s", github, got, want, wrong)
		}
	}
}

func TestGitHubCommandsCheck(t *testing.T) {
	t.Parallel()
	for github, want := range map[string]string{
		"{commands: {roles: [OWNR]}}":        `did you mean "OWNER"?`,
		"{commands: {allow: ['@ada']}}":      `"@ada" is neither a login, without @, nor a team`,
		"{commands: {allow: [acme/]}}":       `"acme/" is neither`,
		"{commands: {allow: [acme/co/re]}}":  `"acme/co/re" is neither`,
		"{commands: {allow: ['acme/../x']}}": `is neither`,
		"{poll: 0s}":                         "at least 1ms",
	} {
		if _, wrong := settingsOf(t, github); !strings.Contains(wrong, want) {
			t.Errorf("%s: %q, want %q in it", github, wrong, want)
		}
	}
}
