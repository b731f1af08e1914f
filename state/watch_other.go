//go:build !linux

package state

// watch reports nothing on this system: its notification needs every file to be open, or misses changes.
type watch struct{}

func openWatch() *watch { return nil }

func (*watch) close()                           {}
func (*watch) restart()                         {}
func (*watch) add(*folder, string)              {}
func (*watch) readEvents()                      {}
func (*watch) pending() (map[string]bool, bool) { return nil, false }
func (*watch) complete() bool                   { return false }
func (*watch) covers(string) bool               { return false }
func (*watch) take() (map[string]bool, bool)    { return nil, false }
