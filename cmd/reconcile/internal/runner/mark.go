package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"time"
)

// chainVar names the environment variable that marks every process of a run. Its value lists the runs that the process
// is inside of, outermost first, separated by colons; each is "root.runner.key", three digests.
const chainVar = "RECONCILE_CHAIN"

// marks makes and recognises the marks of one runner.
type marks struct {
	root   string // digest of the tree's path
	runner string // digest that is this runner's own
	outer  string // the chain that this process itself runs in, with a colon at its end; or empty
}

func newMarks(dir string, environ []string) marks {
	m := marks{root: digest(dir), runner: digest(strconv.Itoa(os.Getpid()) + time.Now().String())}
	if outer := lookup(environ, chainVar); outer != "" {
		m.outer = outer + ":"
	}
	return m
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// chain is the value of chainVar for a run.
func (m marks) chain(key string) string {
	return m.outer + m.root + "." + m.runner + "." + digest(key)
}

// ofRun reports whether a process with this chain is inside a run of key in our tree, whichever runner started it.
func (m marks) ofRun(chain, key string) bool {
	want := digest(key)
	return anyLink(chain, func(root, _, k string) bool { return root == m.root && k == want })
}

// ofRunner reports whether a process with this chain was started by this runner.
func (m marks) ofRunner(chain string) bool {
	return anyLink(chain, func(_, runner, _ string) bool { return runner == m.runner })
}

func anyLink(chain string, ok func(root, runner, key string) bool) bool {
	for link := range strings.SplitSeq(chain, ":") {
		root, rest, _ := strings.Cut(link, ".")
		runner, key, _ := strings.Cut(rest, ".")
		if ok(root, runner, key) {
			return true
		}
	}
	return false
}

// InsideRun reports whether this process is part of a run of the tree in dir, at any depth, and the key of the
// innermost run that it is part of. environ is os.Environ().
func InsideRun(dir string, environ []string) (key string, inside bool) {
	root, chain := lookup(environ, "RECONCILE_ROOT"), lookup(environ, chainVar)
	if root == "" && chain == "" {
		return "", false
	}
	real, err := realPath(dir)
	if err != nil {
		return "", false
	}
	want := digest(real)
	inside = root == real || anyLink(chain, func(root, _, _ string) bool { return root == want })
	if !inside {
		return "", false
	}
	return lookup(environ, "RECONCILE_RUN"), true
}

// lookup returns the value of a variable in an environment; empty if there is none.
func lookup(environ []string, name string) string {
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v
		}
	}
	return ""
}
