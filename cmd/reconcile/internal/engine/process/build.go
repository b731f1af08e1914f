// Package process describes the running program: its build, and the tuning of its garbage collector.
package process

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

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
