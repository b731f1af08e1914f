// Package process describes the running program: its build, and the tuning of its garbage collector.
package process

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
)

// GCGoal selects the tuning of the garbage collector.
type GCGoal int

const (
	// GCLatency trades some memory for time, for a short command on a tree that is not large. Otherwise the collector
	// uses a tenth of the time of a DAG of quick commands.
	GCLatency GCGoal = memstore.HeapGrowth
	// GCBatch is GCLatency for a short command that reads thousands of files: it practically disables the collector.
	// Set GCDefault before long work that needs much memory.
	GCBatch GCGoal = 1600
	// GCDefault is Go's default, or the present setting if that collects more often.
	GCDefault GCGoal = 100
)

// TuneGC tunes the percentage of the garbage collector to a goal, unless the environment has GOGC. The percentage is
// how far the heap may grow before a collection.
func TuneGC(getenv func(string) string, goal GCGoal) {
	switch {
	case getenv("GOGC") != "":
	case goal == GCDefault:
		debug.SetGCPercent(min(debug.SetGCPercent(int(goal)), int(goal)))
	default:
		debug.SetGCPercent(int(goal))
		if goal == GCLatency {
			boundGrowth()
		}
	}
}

// maxGrowth bounds how far the heap grows between two collections for the sake of time.
const maxGrowth = 64 << 20

// boundGrowth lowers the percentage after each collection, so that the heap grows by at most maxGrowth, or as with Go's default. Nothing
// raises it again. Without that, hundreds of agents at work would leave three times as much garbage as they need.
func boundGrowth() {
	afterCollection(func() {
		if most := boundedPercent(measured("/gc/heap/live:bytes")); most < measured("/gc/gogc:percent") {
			debug.SetGCPercent(int(most))
		}
	})
}

// boundedPercent is the percentage at which a heap with that many live bytes grows by at most maxGrowth, or doubles.
func boundedPercent(live uint64) uint64 {
	return max(maxGrowth*100/max(live, 1), uint64(GCDefault))
}

// measured is a metric of the runtime.
func measured(name string) uint64 {
	m := []metrics.Sample{{Name: name}}
	metrics.Read(m)
	return m[0].Value.Uint64()
}

// MemorySaver tunes the garbage collector for trees that are loaded. The zero MemorySaver is ready.
type MemorySaver struct {
	floor, growth atomic.Uint64 // see Save
	watching      sync.Once
}

// Save tunes the garbage collector for a tree with that number of files, unless the environment has GOGC. With Go's default the heap may grow
// to twice the size of a tree, which is more than 300 MB for 50,000 objects. Until the heap has the size of such a tree, nothing is
// collected, since most of the allocations stay live; from then on it grows by less than by default, in a large tree least.
func (m *MemorySaver) Save(getenv func(string) string, files int, large bool) {
	if getenv("GOGC") != "" {
		return
	}
	const perFile = 1920 // bytes of the heap
	m.floor.Store(uint64(files) * perFile)
	m.growth.Store(60)
	if large {
		m.growth.Store(20)
	}
	m.tune()
	m.watching.Do(func() { afterCollection(m.tune) })
}

// tune sets the percentage by which the heap may grow from now on.
func (m *MemorySaver) tune() {
	const least = 4 << 20 // Go's initial heap
	debug.SetGCPercent(growthOf(max(measured("/gc/heap/live:bytes"), least), m.floor.Load(), m.growth.Load()))
}

// growthOf is the percentage by which a heap of a given size of live bytes may grow: to floor, but not by less than least percent.
func growthOf(live, floor, least uint64) int {
	return int(max(least, 100*(max(floor, live)-live)/live))
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
