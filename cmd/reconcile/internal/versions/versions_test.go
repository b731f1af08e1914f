package versions

import (
	"io"
	"strings"
	"testing"
)

// What a program prints in place of a version is bounded, also where it is copied, which prefers a ReadFrom to Write.
func TestHeadIsBounded(t *testing.T) {
	out := &head{}
	if n, err := io.Copy(out, struct{ io.Reader }{strings.NewReader("tool 1.2\n" + strings.Repeat("x", 1<<20))}); err != nil || n != 1<<20+9 {
		t.Fatal(n, err)
	}
	if text := out.kept.String(); len(text) != maxOutput || !strings.HasPrefix(text, "tool 1.2\n") {
		t.Errorf("%d bytes are kept", len(text))
	}
}

// TestVersionLine: what a program says of itself comes before what it says of others.
func TestVersionLine(t *testing.T) {
	for text, want := range map[string]string{
		"openjdk version \"17.0.15\"\n\n---\nGradle 4.4.1\n---\nBuild time: 2012\n": "Gradle 4.4.1",
		"gradle is here\nversion 2\nversion 3\n":                                    "version 2",
		"\nunknown\n":                                                               "unknown",
	} {
		if got := versionLine("gradle", []byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
