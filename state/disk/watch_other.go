//go:build !linux

package disk

// Watch reports nothing on this system: its notification needs every file to be open, or misses changes.
type Watch struct{}

// OpenWatch returns nil: file notification is not available.
func OpenWatch() *Watch { return nil }

func (*Watch) Close()                           {}
func (*Watch) Restart()                         {}
func (*Watch) AddLater(func())                  {}
func (*Watch) Wait()                            {}
func (*Watch) Lose()                            {}
func (*Watch) Add(*Dir, string, bool)           {}
func (*Watch) ReadEvents()                      {}
func (*Watch) Pending() (map[string]bool, bool) { return nil, false }
func (*Watch) Complete() bool                   { return false }
func (*Watch) Covers(string) bool               { return false }
func (*Watch) Take() (map[string]bool, bool)    { return nil, false }
