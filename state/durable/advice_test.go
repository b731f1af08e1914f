package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

func TestAdvise(t *testing.T) {
	for err, want := range map[error]string{
		syscall.ENOSPC: "free some space", syscall.EDQUOT: "your share", syscall.EROFS: "read-only",
		syscall.EIO: "check the disk", fs.ErrPermission: "who owns",
	} {
		got := Advise(fmt.Errorf("make x: %w", err))
		if !strings.HasPrefix(got.Error(), "make x: "+err.Error()+" (") || !strings.Contains(got.Error(), want) || !errors.Is(got, err) {
			t.Errorf("%v became %q, want %q in it", err, got, want)
		}
		again := fmt.Errorf("lock the tree: %w", got)
		if Advise(again) != again {
			t.Errorf("%q is advised twice", again)
		}
	}
	if err := errors.New("other"); Advise(err) != err || Advise(nil) != nil {
		t.Error("what is not of the file system was changed")
	}
}
