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
