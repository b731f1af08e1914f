package schemas

import (
	"math"
	"regexp"
	"strconv"
	"sync"
)

// NodeLimits bound what the processes of a run use together. See docs/nodes.md for what enforces them.
type NodeLimits struct {
	// Memory is the most memory, in bytes or with a unit: Ki, Mi, Gi, Ti (1024), k, M, G, T (1000). A run that needs more is ended.
	Memory string `json:"memory,omitempty" jsonschema:"maxLength=30,example=512Mi"`
	// CPUs is the most time of processors per time: 0.5 is half of one, 2 are two whole ones.
	CPUs float64 `json:"cpus,omitempty" jsonschema:"minimum=0,maximum=10000,example=1.5"`
	// PIDs is the most processes and threads at once.
	PIDs int `json:"pids,omitempty" jsonschema:"minimum=1,maximum=4194304"`
}

// RunLimits says what bounded a run.
type RunLimits struct {
	// By is LimitsByGroup, LimitsByProcess or LimitsByNone; Why says what could not be bounded, and the cause.
	By  string `json:"by"`
	Why string `json:"why,omitempty"`
	// Exceeded is LimitMemory for a run that failed since it had no more memory.
	Exceeded string `json:"exceeded,omitempty"`
}

// What bounds a run.
const (
	LimitsByGroup   = "cgroup" // a control group of all its processes
	LimitsByProcess = "rlimit" // a limit of each process
	LimitsByNone    = "none"
	LimitMemory     = "memory"
)

var bytesPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)(Ki|Mi|Gi|Ti|k|M|G|T)?$`) })

var bytesUnits = map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}

// leastMemory is less than what any program needs.
const leastMemory = 1 << 20

const leastCPUs = 0.01

// MemoryBytes is Memory in bytes; 0 without one, or if it is no size.
func (l *NodeLimits) MemoryBytes() int64 {
	m := bytesPattern().FindStringSubmatch(l.Memory)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if n *= bytesUnits[m[2]]; err != nil || n >= math.MaxInt64 {
		return 0
	}
	return int64(n)
}

func (l *NodeLimits) check(at Spot) {
	switch {
	case l == nil:
	case *l == (NodeLimits{}):
		at.Errorf("missing", "limits nothing").suggest("add memory, cpus or pids, or remove limits")
	case l.Memory != "" && l.MemoryBytes() == 0:
		at.At("memory").Errorf("bad-size", "%q is no size", l.Memory).suggest("write a number of bytes, or one with a unit such as 512Mi or 2G")
	case l.Memory != "" && l.MemoryBytes() < leastMemory:
		at.At("memory").Errorf("bad-size", "no program can work with %s of memory", l.Memory).suggest("write a size such as 512Mi")
	case l.CPUs != 0 && l.CPUs < leastCPUs:
		at.At("cpus").Errorf("bad-size", "no program can work with %v of a processor", l.CPUs).suggest("write a number of processors, 0.01 or more")
	}
}
