package vectors_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"reconcile.dev/reconcile/vectors"
)

// broken is a scratch that fails when it is read.
type broken struct{ error }

func (b broken) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (b broken) ReadAt([]byte, int64) (int, error)      { return 0, b.error }

// full is a scratch that has no room.
type full struct{ broken }

func (f full) WriteAt([]byte, int64) (int, error) { return 0, f.error }

// Where vectors are kept meanwhile makes no difference, and what cannot be kept is an error.
func TestScratch(t *testing.T) {
	t.Parallel()
	w := newWorld(5)
	want := build(t, w.inputs(), options())
	f, err := os.Create(filepath.Join(t.TempDir(), "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o := options()
	o.Scratch = f
	if got := build(t, w.inputs(), o); !bytes.Equal(got, want) {
		t.Error("the bytes are others with a scratch")
	}
	if fi, err := f.Stat(); err != nil || fi.Size() == 0 {
		t.Errorf("nothing was put into the scratch: %v", err)
	}
	gone := errors.New("it is gone")
	for _, s := range []vectors.Scratch{broken{gone}, full{broken{gone}}} {
		o.Scratch = s
		if _, err := vectors.Build(t.Context(), w.inputs(), o); !errors.Is(err, gone) {
			t.Errorf("%T: %v", s, err)
		}
	}
}

// A build that is given up tells that, and writes nothing.
func TestBuildEnds(t *testing.T) {
	t.Parallel()
	over := errors.New("over")
	for _, last := range []string{"learn words", "embed"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		o := vectors.Options{Dims: 64, Progress: func(step string, _, _ int) {
			if step == last {
				cancel(over)
			}
		}}
		if _, err := vectors.Build(ctx, newWorld(6).inputs(), o); !errors.Is(err, over) {
			t.Errorf("%s: %v, want the cause", last, err)
		}
	}
}
