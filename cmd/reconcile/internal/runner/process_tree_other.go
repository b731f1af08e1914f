//go:build unix && !linux

package runner

import "golang.org/x/sys/unix"

// member is a whole process group on this system: other processes cannot be inspected portably.
type member struct{ pid, group int }

// roster is not used here.
type roster struct{}

func (m member) inGroup(pgid int) bool { return m.pid == pgid }

// orphanGroup returns the group of an orphan's tree. Its lease is held, so the number is not reused yet, unless all
// remaining processes moved to another group.
func orphanGroup(pid int) int { return pid }

func (m member) signal(force bool) { signalGroup(m.pid, force) }

// members lists the live groups of the hunted trees.
func members(h *hunt) []member {
	var out []member
	for _, t := range h.trees {
		if t.pid > 1 && unix.Kill(-t.pid, 0) == nil {
			out = append(out, member{t.pid, t.pid})
		}
	}
	return out
}

// startingNow is not used here.
func startingNow() member { return member{} }

func ownedBy(marks, map[int]string) []member { return nil }

func holders(*hunt, []*tree) []member { return nil }

// Ancestry yields nothing: the environments of other processes are not readable here.
func Ancestry(func(environ []string) bool) {}
