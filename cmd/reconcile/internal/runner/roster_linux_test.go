package runner

import (
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
)

// TestRosterIsShared: those who ask before a list is begun share it, and those who ask later do not.
func TestRosterIsShared(t *testing.T) {
	var r roster
	first, mine := r.join()
	for range 10 {
		if same, too := r.join(); same != first || !mine || too {
			t.Fatal("those who ask before a list is begun do not share it")
		}
	}
	r.begin()
	if later, mine := r.join(); later == first || !mine {
		t.Error("a list is shared with one who asked after it was begun")
	}
	r.begin()

	// Each of many who ask at once sees a process that was started before.
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			cmd := exec.Command("cat")
			in, err := cmd.StdinPipe()
			if err != nil || cmd.Start() != nil {
				t.Error("cat does not start")
				return
			}
			defer cmd.Wait() //nolint:errcheck // it ends with its input
			defer in.Close()
			at := slices.IndexFunc(r.look(), func(m member) bool { return m.pid == cmd.Process.Pid })
			if at < 0 {
				t.Errorf("a process that lives is not listed by %d", os.Getpid())
			}
		})
	}
	all.Wait()
}
