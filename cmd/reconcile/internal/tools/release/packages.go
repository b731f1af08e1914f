package main

import (
	"debug/buildinfo"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const (
	homepage   = "https://reconcile.dev"
	summary    = "GitOps for teams of software agents"
	license    = "Apache-2.0"
	maintainer = "The reconcile maintainers <maintainers@reconcile.dev>"
)

var released = regexp.MustCompile(`^v(\d+\.\d+\.\d+)(-[0-9A-Za-z.-]+)?$`)

// packageVersion returns the version in the form that package managers compare; untagged builds precede every
// release.
func packageVersion(version string) string {
	if m := released.FindStringSubmatch(version); m != nil {
		return m[1] + strings.Replace(m[2], "-", "~", 1)
	}
	return "0.0.0~" + regexp.MustCompile(`[^0-9A-Za-z.]`).ReplaceAllString(version, ".")
}

// linuxPackage makes a deb or an rpm package.
func (r *release) linuxPackage(p platform, format, binary string, extras []packed) error {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "reconcile", Arch: p.arch, Platform: p.os, Version: packageVersion(r.version), VersionSchema: "none",
		Section: "devel", Priority: "optional", Maintainer: maintainer, Description: summary, Homepage: homepage,
		License: license, MTime: r.date,
		Overridables: nfpm.Overridables{Depends: []string{"git"}, Contents: r.contents(binary, extras),
			RPM: nfpm.RPM{BuildHost: "reconcile.dev"}}, // else the name of this machine
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	name := r.name(p.String()) + "." + format
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	if err := packager.Package(info, f); err != nil {
		f.Close()
		return err
	}
	r.add(name)
	return f.Close()
}

// contents says where a package puts its files.
func (r *release) contents(binary string, extras []packed) files.Contents {
	out := files.Contents{r.content(binary, "/usr/bin/reconcile", 0o755)}
	installed := map[string]string{}
	for _, c := range completions {
		installed[c.name] = c.installed
	}
	for _, e := range extras {
		to, isScript := installed[e.name]
		switch {
		case isScript && to == "":
			continue
		case isScript:
		case strings.HasPrefix(e.name, "man/"):
			to = "/usr/share/" + e.name
		default:
			to = path.Join("/usr/share/doc/reconcile", e.name)
		}
		out = append(out, r.content(e.file, to, e.mode))
	}
	return out
}

func (r *release) content(from, to string, mode os.FileMode) *files.Content {
	return &files.Content{Source: from, Destination: to,
		FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.date, Owner: "root", Group: "root"}}
}

// sbom lists the modules that a binary was built of, as the binary itself says.
func (r *release) sbom(binary, name string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	main := cdx.Component{BOMRef: "reconcile", Type: cdx.ComponentTypeApplication, Name: info.Main.Path, Version: r.version,
		Description: summary, Licenses: &cdx.Licenses{{License: &cdx.License{ID: license}}}}
	parts := []cdx.Component{{BOMRef: "go", Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion,
		PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}}
	needs := []string{"go"}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		url := "pkg:golang/" + m.Path + "@" + m.Version
		parts = append(parts, cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url})
		needs = append(needs, url)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.date.Format("2006-01-02T15:04:05Z"), Component: &main}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &needs}}
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	if err := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		f.Close()
		return err
	}
	r.add(name)
	return f.Close()
}
