//go:build !linux

package state

import (
	"os"
	"testing"
)

// asNobody leaves out a test that needs the permissions of files where the system lets whoever runs it write everywhere.
func asNobody(t *testing.T) func() {
	t.Helper()
	if os.Geteuid() <= 0 { // root, or Windows
		t.Skip("SKIPPED: whoever runs this may write everywhere")
	}
	return func() {}
}
