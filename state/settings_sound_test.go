package state

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSoundSettings: a mistake in one field of the settings does not turn on what another one turns off.
func TestSoundSettings(t *testing.T) {
	const head = "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: "
	tests := []struct {
		name, text       string
		wrong, unusable  bool
		enabled          bool
		tokens, sessions int
		specs            string
	}{
		{"sound", head + "{memory: {enabled: false}}", false, false, false, 20000, 100, "specs"},
		{"unknown field", head + "{memory: {enabled: false, foo: 1}}", true, false, false, 20000, 100, "specs"},
		{"out of range", head + "{memory: {enabled: false, maxTokens: -1}, limits: {sessions: 3}}", true, false, false, 20000, 3, "specs"},
		{"not a number", head + "{memory: {enabled: false, weights: {recency: .nan}}}", true, false, false, 20000, 100, "specs"},
		{"folders in each other", head + "{memory: {maxTokens: 7}, folders: {specs: state/specs}}", true, true, true, 20000, 100, "specs"},
		{"no YAML", "spec: {memory: {enabled: false", true, true, true, 20000, 100, "specs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "reconcile.yaml"), []byte(tt.text), 0o644); err != nil {
				t.Fatal(err)
			}
			s := open(t, dir)
			wrong, unusable := s.CheckSettings()
			if (wrong != nil) != tt.wrong || unusable != tt.unusable {
				t.Errorf("CheckSettings: %v, unusable %v; want wrong %v, unusable %v", wrong, unusable, tt.wrong, tt.unusable)
			}
			got := s.Settings()
			if *got.Memory.Enabled != tt.enabled || *got.Memory.MaxTokens != tt.tokens || got.Limits.Sessions != tt.sessions ||
				got.Folders.Specs != tt.specs {
				t.Errorf("settings are enabled %v, %d tokens, %d sessions, specs in %s; want %v, %d, %d, %s", *got.Memory.Enabled,
					*got.Memory.MaxTokens, got.Limits.Sessions, got.Folders.Specs, tt.enabled, tt.tokens, tt.sessions, tt.specs)
			}
		})
	}
}
