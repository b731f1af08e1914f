// Package process describes the running program: its build, and the tuning of its garbage collector.
package process

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
)

// GCGoal selects the tuning of the garbage collector.
type GCGoal int

const (
	// GCDefault is Go's default.
	GCDefault GCGoal = iota
	// GCLatency trades some memory for time, for a short command on a tree that is not large. Otherwise the collector
	// uses a tenth of the time of a DAG of quick commands.
	GCLatency
	// GCBatch is GCLatency for a short command that reads thousands of files: it practically disables the collector.
	// Set GCLong before long work that needs much memory.
	GCBatch
	// GCLong collects more often than Go's default where much is live: an index of a large repository would leave as much garbage
	// as it has.
	GCLong
)

// Percentages by which the heap may grow before a collection.
const (
	percentDefault = 100 // Go's
	percentBatch   = 1600
	percentLong    = 50
	percentTree    = 20
)

const (
	// maxGrowth bounds how far the heap grows between two collections for the sake of time, with GCLatency. Without that,
	// hundreds of agents at work would leave three times as much garbage as they need.
	maxGrowth = 64 << 20
	// longGrowth is the same with GCLong.
	longGrowth = 192 << 20
	// perFile is how far the heap of a tree grows before anything is collected, for each file.
	perFile = 2500
	// initialHeap is Go's.
	initialHeap = 4 << 20
)

// Collector tunes the garbage collector of the process, by the goal of its command and by the trees that it loads. After each
// collection it sets the percentage by which the heap may grow until the next. Where the environment has GOGC it changes nothing, and neither does
// a nil Collector.
type Collector struct {
	mu       sync.Mutex
	goal     GCGoal
	files    int // of the largest tree
	watching bool
}

// NewCollector returns the collector of a process with that environment.
func NewCollector(getenv func(string) string) *Collector {
	if getenv("GOGC") != "" {
		return nil
	}
	return new(Collector)
}

// Aim sets the goal.
func (c *Collector) Aim(goal GCGoal) {
	c.set(func() { c.goal = goal })
}

// Load prepares for a tree with that number of files. With Go's default the heap may grow to twice the size of a tree, which is more
// than 300 MB for 50,000 objects. Until the heap has the size of such a tree, nothing is collected, since most of the allocations stay
// live; from then on it grows by less than by default.
func (c *Collector) Load(files int) {
	c.set(func() { c.files = max(c.files, files) })
}

// set changes c, and tunes the garbage collector from now on.
func (c *Collector) set(change func()) {
	if c == nil {
		return
	}
	c.mu.Lock()
	change()
	first := !c.watching
	c.watching = true
	c.mu.Unlock()
	c.tune()
	if first {
		afterCollection(c.tune)
	}
}

// tune sets the percentage by which the heap may grow from now on.
func (c *Collector) tune() {
	c.mu.Lock()
	defer c.mu.Unlock()
	debug.SetGCPercent(int(c.percent(liveHeap())))
}

// percent is the percentage by which a heap with that many live bytes may grow. What a tree needs comes before the goal.
func (c *Collector) percent(live uint64) uint64 {
	live = max(live, initialHeap)
	grow := func(to, least uint64) uint64 { return max(least, 100*(max(to, live)-live)/live) }
	switch {
	case c.files > 0:
		return grow(uint64(c.files)*perFile, percentTree)
	case c.goal == GCLatency:
		return min(memstore.HeapGrowth, grow(live+maxGrowth, percentDefault))
	case c.goal == GCBatch:
		return percentBatch
	case c.goal == GCLong:
		return min(percentDefault, grow(live+longGrowth, percentLong))
	}
	return percentDefault
}

// liveHeap is the number of bytes that the last collection found live.
func liveHeap() uint64 {
	m := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(m)
	return m[0].Value.Uint64()
}

// afterCollection calls f after each garbage collection.
func afterCollection(f func()) {
	type cycle struct{ _ *byte }
	var next func(*cycle)
	next = func(*cycle) {
		f()
		runtime.SetFinalizer(new(cycle), next)
	}
	runtime.SetFinalizer(new(cycle), next)
}

// Build identifies the build of the program.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ReadBuild reads the build from the binary; a build without a version has the version "devel".
func ReadBuild() Build {
	v := Build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// Executable is the path of the executable of this process; "" if it is unknown.
func Executable() string {
	name, err := os.Executable()
	if err != nil {
		return ""
	}
	return name
}

// BuildIdentity identifies the build of the executable by its revision, size and modification time, so that any two
// builds differ: those with local changes share their version. Caches use it as a key.
func BuildIdentity() string {
	name, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d", ReadBuild().Revision, info.Size(), info.ModTime().UnixNano())
}
