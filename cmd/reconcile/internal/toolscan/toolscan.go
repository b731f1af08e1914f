// Package toolscan collects the facts about a project, so that its tools can be discovered: languages by file names, manifests and
// configurations, and the programs that are installed for it. It runs nothing.
package toolscan

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/manifests"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/state/regular"
)

// maxText is the largest manifest that is read, in bytes.
const maxText = 1 << 20

// maxFirstLine is what is read of a file to find out which program runs it.
const maxFirstLine = 256

// localBins are the folders in which projects have programs of their own.
var localBins = []string{"node_modules/.bin", ".venv/bin", "venv/bin", ".venv/Scripts", "venv/Scripts", "vendor/bin", tools.Programs + "/bin", "bin"}

// Scan collects the facts about a project from the names of its files, sorted, with slashes below root. Files that others wrote, as in vendor and
// testdata, do not count. searchPath is a PATH for the programs of the machine.
func Scan(root string, files []string, searchPath string) tools.Facts {
	f := tools.Facts{Folders: map[string]*tools.Folder{"": {}}, Programs: map[tools.Place]tools.Program{}}
	vendored := map[string]bool{}
	for _, file := range files {
		folder, name := path.Split(file)
		folder = strings.TrimSuffix(folder, "/")
		others, known := vendored[folder]
		if !known {
			others = strings.HasPrefix(folder+"/", ".reconcile/") || folder != "" && folder[0] != '.' && tools.Vendored(folder)
			vendored[folder] = others
		}
		if others {
			continue
		}
		x := f.Folders[folder]
		if x == nil {
			x = &tools.Folder{}
			f.Folders[folder] = x
		}
		x.Files = append(x.Files, name)
		l := tools.LanguageOf(name)
		if l == "" {
			l = ScriptLanguage(root, file)
		}
		if l != "" && !tools.Configures(name) {
			if x.Languages == nil {
				x.Languages = map[string]int{}
			}
			x.Languages[l]++
		}
		if tools.IsTelling(name) && wanted(folder, name) {
			if text, err := regular.ReadPathUpTo(filepath.Join(root, filepath.FromSlash(file)), maxText); err == nil {
				if x.Texts == nil {
					x.Texts = map[string]string{}
				}
				x.Texts[name] = string(text)
			}
		}
	}
	findUnlisted(root, f)
	findPrograms(root, searchPath, f)
	return f
}

// ScriptLanguage is the language of a file without an extension by its first line, for which a tool of the catalogue checks such files; "" for none.
func ScriptLanguage(root, file string) string {
	if path.Ext(file) != "" {
		return ""
	}
	f, _, err := regular.OpenPath(filepath.Join(root, filepath.FromSlash(file)), os.O_RDONLY, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	first := make([]byte, maxFirstLine)
	n, _ := io.ReadFull(f, first)
	if l := tools.ScriptLanguage(file, first[:n]); tools.ChecksScripts(l) {
		return l
	}
	return ""
}

// findUnlisted finds configurations of tools in folders below the root that are not listed, since git ignores what was built there.
func findUnlisted(root string, f tools.Facts) {
	unlisted := map[string][]string{}
	for _, t := range tools.Catalog() {
		entries := t.Configs
		for _, r := range t.Roles {
			entries = slices.Concat(entries, r.Where)
		}
		for _, entry := range entries {
			folder, name := path.Split(entry)
			folder = strings.TrimSuffix(folder, "/")
			if folder == "" || strings.Contains(name, "#") || f.Folders[folder] != nil {
				continue
			}
			if fi, err := os.Lstat(filepath.Join(root, filepath.FromSlash(entry))); err == nil && fi.Mode().IsRegular() {
				unlisted[folder] = append(unlisted[folder], name)
			}
		}
	}
	for folder, names := range unlisted {
		slices.Sort(names)
		f.Folders[folder] = &tools.Folder{Files: slices.Compact(names)}
	}
}

// wanted reports whether a manifest is read: of files in YAML only those of CI.
func wanted(folder, name string) bool {
	if ext := path.Ext(name); ext != ".yml" && ext != ".yaml" {
		return true
	}
	return folder == ".github/workflows" || folder == "" && strings.HasPrefix(name, ".gitlab-ci")
}

// findPrograms looks up the programs of the catalogue: for each folder with a place for programs of its own, and for the machine.
func findPrograms(root, searchPath string, f tools.Facts) {
	var bins []string
	for folder, x := range f.Folders {
		for _, bin := range binsOf(folder, x) {
			if fi, err := os.Stat(filepath.Join(root, filepath.FromSlash(bin))); err == nil && fi.IsDir() {
				bins = append(bins, bin)
			}
		}
	}
	slices.Sort(bins)
	for _, t := range tools.Catalog() {
		if strings.ContainsAny(t.Program, "/\\") {
			continue
		}
		findWrappers(root, t, f)
		for _, bin := range bins {
			p := filepath.Join(root, filepath.FromSlash(bin), t.Program)
			if !runnable(p) {
				continue
			}
			folder := folderOfBin(bin)
			if _, known := f.Programs[tools.Place{Folder: folder, Program: t.Program}]; !known {
				f.Programs[tools.Place{Folder: folder, Program: t.Program}] = tools.Program{Path: p, Version: nodeVersion(root, bin, t)}
			}
		}
		if _, known := f.Programs[tools.Place{Program: t.Program}]; known {
			continue
		}
		for _, dir := range filepath.SplitList(searchPath) {
			if p := filepath.Join(dir, t.Program); filepath.IsAbs(dir) && runnable(p) {
				f.Programs[tools.Place{Program: t.Program}] = tools.Program{Path: p}
				break
			}
		}
	}
}

// findWrappers finds the wrapper of a tool in the folders of projects. Its version is that of what it downloads, by the name of that file.
func findWrappers(root string, t tools.Tool, f tools.Facts) {
	if t.Wrapper == "" {
		return
	}
	for folder, x := range f.Folders {
		dir := filepath.Join(root, filepath.FromSlash(folder))
		if p := filepath.Join(dir, t.Wrapper); slices.ContainsFunc(x.Files, func(n string) bool { return strings.TrimSuffix(n, path.Ext(n)) == t.Wrapper }) && runnable(p) {
			found := tools.Program{Path: p}
			for _, at := range []string{"gradle/wrapper/gradle-wrapper.properties", ".mvn/wrapper/maven-wrapper.properties"} {
				if text, err := regular.ReadPathUpTo(filepath.Join(dir, filepath.FromSlash(at)), maxText); err == nil && strings.HasPrefix(path.Base(at), t.Name) {
					found.Version = tools.WrappedVersion(string(text))
				}
			}
			f.Programs[tools.Place{Folder: folder, Program: t.Program}] = found
		}
	}
}

// binsOf are the folders that may have programs of a project in a folder: only the root and folders with a manifest are projects.
func binsOf(folder string, x *tools.Folder) (out []string) {
	if folder != "" && !slices.ContainsFunc(x.Files, manifests.Known) {
		return nil
	}
	for _, bin := range localBins {
		if folder == "" || bin != "bin" && bin != tools.Programs+"/bin" {
			out = append(out, path.Join(folder, bin))
		}
	}
	return out
}

func folderOfBin(bin string) string {
	for _, b := range localBins {
		if bin == b {
			return ""
		}
		if folder, ok := strings.CutSuffix(bin, "/"+b); ok {
			return folder
		}
	}
	return ""
}

// runnable reports whether a path is a program that may be executed.
func runnable(p string) bool {
	found, err := exec.LookPath(p)
	return err == nil && found != ""
}

// nodeVersion is the version of an npm package by its package.json, so that the program need not run.
func nodeVersion(root, bin string, t tools.Tool) string {
	name := t.Packages["npm"]
	if name == "" || path.Base(bin) != ".bin" {
		return ""
	}
	data, err := regular.ReadPathUpTo(filepath.Join(root, filepath.FromSlash(path.Dir(bin)), filepath.FromSlash(name), "package.json"), maxText)
	var m struct {
		Version string `json:"version"`
	}
	if err != nil || json.Unmarshal(data, &m) != nil {
		return ""
	}
	return m.Version
}
