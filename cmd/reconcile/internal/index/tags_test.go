package index

import (
	"context"
	"errors"
	"testing"
)

// A run that is given up while symbols are looked for says that, and not that a program was killed.
func TestTagsGivenUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &survey{
		files: &files{}, tagger: &tagger{program: "ctags", dir: t.TempDir()},
		warn: func(err error) { t.Errorf("warned of: %v", err) },
	}
	_, err := s.parts(ctx, []input{{name: "file:a.py"}}, func(string, int, int) {})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was given up", err)
	}
}
