package runner

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// playOrphans runs a program that leaves processes in sessions and environments of their own, and ends them.
func playOrphans() {
	p := Program{Argv: []string{"sh", "-c", "for i in 1 2; do setsid env -i sh -c '(sleep 600 & sleep 600) & echo $!' >/dev/null 2>&1 & done; wait"}, Dir: "/",
		Environ: os.Environ(), Timeout: time.Minute, Limit: 1 << 20}
	if err := AdoptOrphans(); err != nil {
		panic(err)
	}
	if e, err := p.Run(context.Background()); err != nil || e.Exit != 0 {
		panic(fmt.Sprint(e, err))
	}
	fmt.Println(len(children()) > 0)
	if err := EndOrphans(); err != nil {
		panic(err)
	}
	fmt.Println(len(children()))
}

// TestOrphansEnd: what leaves its group, its session and its environment is found as well.
func TestOrphansEnd(t *testing.T) {
	const own = "RECONCILE_TEST_ORPHANS" // in a process of its own, whose children are all its own
	if os.Getenv(own) != "" {
		playOrphans()
		os.Exit(0)
	}
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOrphansEnd$")
	cmd.Env = append(os.Environ(), own+"=1")
	out, err := cmd.CombinedOutput()
	if got := strings.Fields(string(out)); err != nil || strings.Join(got, " ") != "true 0" {
		t.Errorf("%q, %v", out, err)
	}
}
