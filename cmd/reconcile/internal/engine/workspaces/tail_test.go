package workspaces

import (
	"io"
	"strings"
	"testing"
)

// What a setup command prints is bounded, also where it is copied, which prefers a ReadFrom to Write.
func TestTailIsBounded(t *testing.T) {
	out := &tail{}
	if n, err := io.Copy(out, struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 1<<20) + "end")}); err != nil || n != 1<<20+3 {
		t.Fatal(n, err)
	}
	if text := out.kept.String(); len(text) != 2000 || !strings.HasSuffix(text, "xend") {
		t.Errorf("%d bytes are kept", len(text))
	}
}
