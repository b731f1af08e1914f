package checking

import (
	"bytes"
	"hash/maphash"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/regular"
)

// cacheTag is the file that marks a folder as a cache, as Cargo, pytest and mypy do, and cacheSignature its beginning (bford.info/cachedir).
const (
	cacheTag       = "CACHEDIR.TAG"
	cacheSignature = "Signature: 8a477f597d28d172789f06886806bc55"
)

// WithoutCaches returns the files of a project that its tools did not leave there: by their names, or in folders which they marked as their caches. Only
// what git does not track can be such. A mark hides not itself, and none hides the whole project.
func WithoutCaches(root string, files, untracked []string) []string {
	var caches []string
	for _, f := range untracked {
		dir, name := path.Split(f)
		if name != cacheTag || dir == "" {
			continue
		}
		if text, err := regular.ReadPathUpTo(filepath.Join(root, filepath.FromSlash(f)), comparedBytes); err == nil && bytes.HasPrefix(text, []byte(cacheSignature)) {
			caches = append(caches, dir)
		}
	}
	output, cached := tools.Outputs(files), map[string]bool{}
	for _, f := range untracked {
		in := func(dir string) bool { return strings.HasPrefix(f, dir) }
		cached[f] = output(f) || path.Base(f) != cacheTag && slices.ContainsFunc(caches, in)
	}
	return slices.DeleteFunc(slices.Clone(files), func(f string) bool { return cached[f] })
}

// comparedBytes is the size up to which files are compared by content; larger ones are compared by size and time.
const comparedBytes = 1 << 20

// original is a file as it was before the tools ran.
type original struct {
	stat disk.Stat
	sum  uint64 // of the content; 0 where it is too large
	gone bool   // there was no file that can be read
}

// originals are the files of a project before its tools ran.
type originals struct {
	root  string
	names []string // below root, with slashes
	files []original
	seed  maphash.Seed
}

// remember reads files, to tell later which of them changed.
func remember(root string, names []string) (*originals, error) {
	o := &originals{root: root, names: names, files: make([]original, len(names)), seed: maphash.MakeSeed()}
	return o, o.each(func(d *disk.Dir, i int) { o.files[i] = o.look(d, i) })
}

// each calls visit for every file, several at a time, each time with a folder that nothing else uses.
func (o *originals) each(visit func(d *disk.Dir, i int)) error {
	root, err := regular.Root(o.root)
	if err != nil {
		return err
	}
	defer root.Close()
	var errs [lookers]error
	var g sync.WaitGroup
	for part := range lookers {
		g.Go(func() {
			d, err := disk.OpenDir(root, ".")
			if errs[part] = err; err != nil {
				return
			}
			defer d.Close()
			for i := part * len(o.names) / lookers; i < (part+1)*len(o.names)/lookers; i++ {
				visit(d, i)
			}
		})
	}
	g.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *originals) look(d *disk.Dir, i int) (f original) {
	data, st, err := d.Read(o.names[i], comparedBytes)
	if f.stat = st; err == nil {
		f.sum = maphash.Bytes(o.seed, data)
	} else {
		f.gone = st.Form() != disk.File
	}
	return f
}

// altered lists the files that changed since, with the times of their changes, in the order of the names. began is when the tools began: a file
// with an earlier time changed at a time that nobody knows.
func (o *originals) altered(began time.Time) (out []checks.Altered, err error) {
	now := make([]original, len(o.names))
	err = o.each(func(d *disk.Dir, i int) {
		was := o.files[i]
		if d.Stat([]byte(o.names[i]), &now[i].stat) == nil && now[i].stat == was.stat {
			now[i] = was
			return
		}
		now[i] = o.look(d, i)
	})
	for i, is := range now {
		if is.same(o.files[i]) {
			continue
		}
		a := checks.Altered{File: o.names[i]}
		if at := time.Unix(0, is.stat.Mtime); !is.gone && at.Add(checks.ClockTick).After(began) {
			a.At = at
		}
		out = append(out, a)
	}
	return out, err
}

const executable = 0o100

func (f original) same(was original) bool {
	if f.gone || was.gone {
		return f.gone == was.gone
	}
	if f.sum == 0 && f.stat.Mtime != was.stat.Mtime {
		return false
	}
	return f.sum == was.sum && f.stat.Size == was.stat.Size && f.stat.Mode&executable == was.stat.Mode&executable
}
