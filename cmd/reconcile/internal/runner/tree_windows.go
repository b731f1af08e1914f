package runner

import "os"

// member does not exist here: only the first process of a run can be ended.
type member struct{ pid, group int }

func (m member) inGroup(pgid int) bool { return m.pid == pgid }

func orphanGroup(int) int { return 0 }

func (m member) signal(bool) {}

func members(*hunt) []member { return nil }

func ownedBy(marks) []member { return nil }

func holders([]*tree) []member { return nil }

// signalGroup ends the first process. There is no polite way that every program understands.
func signalGroup(pid int, _ bool) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill() //nolint:errcheck // it has ended
	}
}

func (t *tree) groupLives() bool { return false }

// Ancestry yields nothing: the environments of other processes cannot be read here.
func Ancestry(func(environ []string) bool) {}
