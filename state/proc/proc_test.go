package proc_test

import (
	"os"
	"os/exec"
	"testing"

	"reconcile.dev/reconcile/state/proc"
)

func TestSelfIsNotGone(t *testing.T) {
	if id := proc.Self(); id.Gone() || id.PID != os.Getpid() {
		t.Errorf("Self() = %+v, Gone() = %v", id, id.Gone())
	}
}

func TestGone(t *testing.T) {
	self := proc.Self()
	if self.Tag == "" {
		t.Skip("this system does not tell boots apart")
	}
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := child.Process.Pid
	id := proc.ID{Tag: self.Tag, PID: pid, Start: proc.Start(pid)}
	reused := id
	reused.Start--
	elsewhere := id
	elsewhere.Tag = "another boot"
	unknown := id
	unknown.Start = 0
	check := func(what string, id proc.ID, want bool) {
		t.Helper()
		if got := id.Gone(); got != want {
			t.Errorf("%s: Gone() = %v, want %v", what, got, want)
		}
	}
	check("a running child", id, false)
	check("a running child of unknown start", unknown, false)
	check("its number with another start", reused, true)
	check("a process elsewhere", elsewhere, false)
	check("the zero ID", proc.ID{}, false)
	_ = in.Close()
	ended := waitZombie(t, pid)
	if ended {
		check("a zombie", id, true)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	check("a child that was waited for", id, true)
	check("elsewhere, number unused", elsewhere, false)
}
