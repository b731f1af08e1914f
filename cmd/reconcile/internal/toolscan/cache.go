package toolscan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

const (
	cacheFile = "discovered.json"
	// Lasting is how long a discovery is kept.
	Lasting = time.Hour
	// briefly is how long it is kept where a program was too late to tell its version.
	briefly = time.Minute
	// tick is more than the resolution of the times of files: what changed this shortly before a scan may change again unseen.
	tick = 20 * time.Millisecond
)

// cache is a discovery on file.
type cache struct {
	Key     string       `json:"key"`
	At      time.Time    `json:"at"`
	Watched []string     `json:"watched"` // files and folders, below the root or absolute
	Stamp   string       `json:"stamp"`   // of what is watched
	Found   []found      `json:"found"`
	Open    []tools.Open `json:"open"`
}

// Discovery is the result of a discovery of a project's tools: those that were found, and the questions that remain.
type Discovery struct {
	Found []tools.Discovered
	Open  []tools.Open
}

type found struct {
	tools.Discovered
	Role tools.Role `json:"role"`
}

// Load returns the discovery that Save kept in the folder dir of root, unless it is older than an hour, was made with
// another key, or a dependency of it has changed.
func Load(root *os.Root, dir, project, key string, now time.Time) (d Discovery, ok bool) {
	data, err := regular.Read(root, path.Join(dir, cacheFile))
	var c cache
	if err != nil || json.Unmarshal(data, &c) != nil || c.Key != key || now.Before(c.At) || now.Sub(c.At) > c.lasting() {
		return d, false
	}
	if is, _ := stamp(project, c.Watched); is != c.Stamp {
		return d, false
	}
	d = Discovery{make([]tools.Discovered, len(c.Found)), c.Open}
	for i, f := range c.Found {
		d.Found[i] = f.Discovered
		d.Found[i].Role = f.Role
	}
	return d, true
}

func (c *cache) lasting() time.Duration {
	if slices.ContainsFunc(c.Found, func(f found) bool { return f.Unversioned != "" }) {
		return briefly
	}
	return Lasting
}

// Save keeps a discovery, for [Load], by way of the folder temp. Its scan began at a time; now is the time for its age. One of files that have only just changed is not kept.
func Save(root *os.Root, dir, temp, project, key string, watched []string, all Discovery, began, now time.Time) error {
	c := cache{Key: key, At: now, Watched: watched, Found: make([]found, len(all.Found)), Open: all.Open}
	newest := time.Time{}
	if c.Stamp, newest = stamp(project, watched); !newest.Before(began.Add(-tick)) {
		return nil
	}
	for i, d := range all.Found {
		c.Found[i] = found{d, d.Role}
	}
	data, err := json.Marshal(c)
	if err == nil {
		err = durable.Replace(root, temp, path.Join(dir, cacheFile), data)
	}
	return err
}

// stamp is a digest of the kinds, sizes and times of files and folders, and the newest of these times.
func stamp(project string, watched []string) (_ string, newest time.Time) {
	parts := make([][]byte, watchers)
	times := make([]time.Time, watchers)
	var g sync.WaitGroup
	for i := range watchers {
		part := watched[i*len(watched)/watchers : (i+1)*len(watched)/watchers]
		g.Go(func() { parts[i], times[i] = looks(project, part) })
	}
	g.Wait()
	sum := sha256.Sum256(slices.Concat(parts...))
	return hex.EncodeToString(sum[:]), slices.MaxFunc(times, time.Time.Compare)
}

// watchers look at files at the same time.
const watchers = 4

// looks has the kind, size and time of each file, and the newest time.
func looks(project string, watched []string) (out []byte, newest time.Time) {
	out = make([]byte, 0, 24*len(watched))
	for _, w := range watched {
		at := w
		if !filepath.IsAbs(at) {
			at = project + string(filepath.Separator) + filepath.FromSlash(w)
		}
		fi, err := os.Stat(at)
		if err != nil {
			out = append(out, make([]byte, 24)...)
			continue
		}
		size := fi.Size()
		if fi.IsDir() {
			size = 0
		}
		out = binary.LittleEndian.AppendUint64(out, uint64(fi.Mode().Type())+1)
		out = binary.LittleEndian.AppendUint64(out, uint64(size))
		out = binary.LittleEndian.AppendUint64(out, uint64(fi.ModTime().UnixNano()))
		if fi.ModTime().After(newest) {
			newest = fi.ModTime()
		}
	}
	return out, newest
}

// Watched lists what a discovery depends on: the folders that were read and those directly below them, the texts that were read, what git ignores,
// where its HEAD is, and the programs with the folders in which they were looked up.
func Watched(root, searchPath string, f tools.Facts, all []tools.Discovered) []string {
	seen := map[string]bool{}
	for folder, x := range f.Folders {
		for at := folder; !seen[at+"/"]; at = checks.Folder(at) {
			seen[at+"/"] = true
		}
		for name := range x.Texts {
			seen[path.Join(folder, name)] = true
		}
		if slices.Contains(x.Files, ".gitignore") {
			seen[path.Join(folder, ".gitignore")] = true
		}
		for _, bin := range binsOf(folder, x) {
			seen[bin], seen[path.Dir(bin)] = true, true
		}
	}
	for folder := range f.Folders {
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(folder)))
		for _, e := range entries {
			if below := path.Join(folder, e.Name()); err == nil && e.IsDir() && !seen[below+"/"] && e.Name() != ".git" && e.Name() != ".reconcile" &&
				!tools.Vendored(e.Name()) {
				seen[below+"/"] = true
			}
		}
	}
	for _, d := range all {
		seen[d.Config], seen[d.Program] = true, true
	}
	for _, dir := range filepath.SplitList(searchPath) {
		seen[dir] = filepath.IsAbs(dir)
	}
	for _, file := range gitFiles(root) {
		seen[file] = true
	}
	var out []string
	for w, ok := range seen {
		if ok && w != "" {
			out = append(out, strings.TrimSuffix(w, "/"))
		}
	}
	slices.Sort(out)
	return append(slices.Compact(out), ".")
}

// gitFiles are the files of git that change when HEAD or the branch moves, or other files are ignored.
func gitFiles(root string) []string {
	l, err := worktree.Find(root)
	if err != nil {
		return nil
	}
	head := filepath.Join(l.GitDir, "HEAD")
	out := []string{head, filepath.Join(l.GitDir, "logs", "HEAD"), filepath.Join(l.Common, "packed-refs"), filepath.Join(l.Common, "info", "exclude")}
	text, err := regular.ReadPath(head)
	if ref, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "ref: "); err == nil && ok && filepath.IsLocal(ref) {
		out = append(out, filepath.Join(l.Common, filepath.FromSlash(ref)))
	}
	return out
}
