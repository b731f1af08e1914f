package runner

import "os"

// member is not used here: only the first process of a run can be ended.
type member struct{ pid, group int }

// roster is not used here.
type roster struct{}

func (m member) inGroup(pgid int) bool { return m.pid == pgid }

func orphanGroup(int) int { return 0 }

func (m member) signal(bool) {}

func members(*hunt) []member { return nil }

// startingNow is not used here.
func startingNow() member { return member{} }

func ownedBy(marks, map[int]string) []member { return nil }

func holders(*hunt, []*tree) []member { return nil }

// signalGroup kills the first process. Windows has no graceful way that every program supports.
func signalGroup(pid int, _ bool) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill() //nolint:errcheck // it has ended
	}
}

func (t *tree) groupLives() bool { return false }

// Ancestry yields nothing: the environments of other processes are not readable here.
func Ancestry(func(environ []string) bool) {}
