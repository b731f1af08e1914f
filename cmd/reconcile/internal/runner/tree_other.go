//go:build unix && !linux

package runner

import "golang.org/x/sys/unix"

// member stands for a whole process group here: there is no portable way to look into other processes.
type member struct{ pid int }

func (m member) inGroup(pgid int) bool { return m.pid == pgid }

func (m member) signal(s signal) { signalGroup(m.pid, s) }

// members lists the groups of the trees that live.
func members(trees []tree) []member {
	var out []member
	for _, t := range trees {
		if t.pid > 1 && unix.Kill(-t.pid, 0) == nil {
			out = append(out, member{t.pid})
		}
	}
	return out
}

func ownedBy(marks) []member { return nil }

func holders([]tree) []member { return nil }
