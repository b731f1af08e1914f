package admission

import "strings"

// touched counts, for each path, the effects that touch it, and those that touch something below it. A path can be touched
// if no one touches it, anything below it, or a folder that it is in: the cost is the depth of the path, however many
// effects there are.
type touched map[string]touches

type touches struct{ itself, below int }

func (t touched) add(paths []string) {
	for _, p := range paths {
		n := t[p]
		n.itself++
		t[p] = n
		for p != "" {
			p = parent(p)
			n := t[p]
			n.below++
			t[p] = n
		}
	}
}

func (t touched) room(paths []string) bool {
	for _, p := range paths {
		if t[p] != (touches{}) {
			return false
		}
		for p != "" {
			if p = parent(p); t[p].itself > 0 {
				return false
			}
		}
	}
	return true
}

func parent(p string) string { return p[:max(0, strings.LastIndexByte(p, '/'))] }
