//go:build !linux

package state

// watch is never told anything here: the calls that would tell want every file to be opened, or miss changes.
type watch struct{}

func openWatch() *watch { return nil }

func (*watch) close()                        {}
func (*watch) restart()                      {}
func (*watch) add(*folder, string)           {}
func (*watch) hear()                         {}
func (*watch) told() (map[string]bool, bool) { return nil, false }
func (*watch) stands() bool                  { return false }
func (*watch) covers(string) bool            { return false }
func (*watch) take() (map[string]bool, bool) { return nil, false }
