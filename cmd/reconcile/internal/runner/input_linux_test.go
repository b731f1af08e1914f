package runner

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInputBlocks: a command that reads waits for its input. Without that, one that reads while another process that is just starting still
// holds the writing end sees an error ("Resource temporarily unavailable") in place of the end of its input.
func TestInputBlocks(t *testing.T) {
	t.Parallel()
	for _, stdin := range []string{"", "short", strings.Repeat("long\n", pipeRoom)} {
		g := newRig(t, Options{})
		e := sh("sed -n 's/^flags:\t*//p' /proc/self/fdinfo/0; cat > /dev/null")
		e.Command().Stdin = stdin
		var flags int
		if _, err := fmt.Sscanf(g.do(e).Output, "%o", &flags); err != nil || flags&unix.O_NONBLOCK != 0 {
			t.Errorf("input of %d bytes: flags %o, %v", len(stdin), flags, err)
		}
	}
}
