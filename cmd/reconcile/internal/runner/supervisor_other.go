//go:build !linux

package runner

import "os"

// supervisors are none: no process can adopt those of a run here.
type supervisors struct{}

// spawn is [spawn].
func (*supervisors) spawn(path string, argv []string, dir string, env []string, files []*os.File, group *os.File) (*process, error) {
	return spawn(path, argv, dir, env, files, group)
}

// close does nothing here.
func (*supervisors) close() {}

// adopter is 0: no process adopts those of the run whose parents are gone.
func (p *process) adopter() int { return 0 }

// release does nothing here.
func (p *process) release() {}

// Main returns: there is no supervisor here.
func Main([]string) {}
