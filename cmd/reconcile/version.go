package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print which build of reconcile this is",
		Example: "  reconcile version -o json",
		Args:    arguments(0, 0, ""),
		RunE:    func(*cobra.Command, []string) error { return a.version() },
	}
}

// buildVersion says where this program comes from.
type buildVersion struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) version() error {
	v := readBuild()
	if a.global.output != formatTable {
		return a.print(v)
	}
	line := "reconcile " + v.Version
	if v.Revision != "" {
		line += " (" + v.Revision + ")"
	}
	if v.Modified {
		line += " with local changes"
	}
	_, err := fmt.Fprintf(a.stdout, "%s, %s, %s\n", line, v.Go, v.Platform)
	return err
}

// readBuild asks the binary itself; a build without a version calls itself "devel".
func readBuild() buildVersion {
	v := buildVersion{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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

// buildIdentity tells this binary from every other build, for caches of what it made: what the file system says of its
// file. A build's version does not serve, because builds with local changes share it.
func buildIdentity() string {
	name, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d", readBuild().Revision, info.Size(), info.ModTime().UnixNano())
}
