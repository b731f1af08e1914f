package index

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/source"
)

// goFolder holds the Go files of a folder. Each file is an input, and so is the package: the part of a file depends on what
// the other files declare, which its context captures, see [source.GoFolder.Contexts]. So a change of one file changes few
// inputs.
type goFolder struct {
	looked *looked
	files  []*file
	now    uint64 // the present key of the folder
	before uint64 // digest of the declarations when the contexts were last known; 0 if never
	id     string // of the package
	parsed *source.GoFolder
	at     map[string]int // index of a file in parsed
	bare   bool           // unchanged files were parsed for declarations only
	whole  bool           // the files did not change since they were found
}

// wholePackage is the file index of a package's input.
const wholePackage = -1

// addGo reads the cached state of a folder's Go files, and creates the input of their package.
func (l *looked) addGo(files []*file) {
	if len(files) == 0 {
		l.key, l.declared = 0, 0
		return
	}
	g := &goFolder{looked: l, files: files, id: source.Folder(files[0].path)}
	h := xxhash.New()
	for _, f := range files {
		_, _ = h.WriteString(f.path)
		_, _ = h.Write(binary.LittleEndian.AppendUint64([]byte{0}, f.digest))
	}
	g.now = max(h.Sum64(), 1)
	if l.key != g.now {
		if l.key != 0 {
			g.before = l.declared
		}
		l.key, l.declared, l.same = 0, 0, false
	}
	l.folder = g
	l.inputs = append(l.inputs, input{name: "go:" + g.id, folder: g, at: wholePackage})
}

// known reports whether the contexts of the files are known.
func (g *goFolder) known() bool { return g.looked.key == g.now }

// mostParsed is how many bytes of source stay parsed until they are read: more are parsed again.
const mostParsed = 16 << 20

// parse reads and parses the files, computes their contexts, and returns their size in bytes. While the folder's
// declarations do not change, contexts of unchanged files stay valid: their function bodies need not be parsed.
func (g *goFolder) parse(s *survey, threads int) (size int) {
	var texts []source.File
	g.at, g.whole, g.bare = map[string]int{}, true, g.before != 0
	for _, f := range g.files {
		text, _, err := s.files.store.ReadFile(f.path, s.files.limit)
		if err == nil {
			g.at[f.path] = len(texts)
			texts = append(texts, source.File{Path: f.path, Text: text, Declares: g.bare && f.kept})
			size += len(text)
		}
		g.whole = g.whole && err == nil && f.holds(text)
	}
	g.parsed, g.looked.key, g.looked.declared = nil, 0, 0
	if len(texts) == 0 {
		return 0
	}
	g.parsed = source.ParseGo(texts, threads)
	if declared := g.parsed.Declared(); g.bare && declared != g.before {
		return g.parseAll(s, threads)
	} else if g.whole {
		g.looked.key, g.looked.declared = g.now, declared
	}
	contexts := g.parsed.Contexts(threads)
	for _, f := range g.files {
		if i, ok := g.at[f.path]; ok && !texts[i].Declares {
			f.context = contexts[i]
		}
	}
	return size
}

// parseAll is parse with all bodies.
func (g *goFolder) parseAll(s *survey, threads int) (size int) {
	g.before = 0
	return g.parse(s, threads)
}

// digest returns the digest of an input.
func (g *goFolder) digest(s *survey, at int) uint64 {
	if !g.known() {
		return changing
	}
	if at != wholePackage {
		return digestOf(s.module, *g.files[at])
	}
	heads := make([]file, len(g.files))
	for i, f := range g.files {
		heads[i] = file{path: f.path, digest: f.context.Head}
	}
	return digestOf("", heads...)
}

// read returns the parts of some inputs, and of all others of the folder if their parts may depend on each other. The
// context of each is then the whole folder.
func (g *goFolder) read(s *survey, ins []*input, threads int) (out []vectors.Input) {
	if g.parsed == nil {
		g.parse(s, threads)
	}
	if g.parsed == nil { // all files are gone
		for _, in := range ins {
			out = append(out, vectors.Input{Name: in.name, Digest: changing})
		}
		return out
	}
	defer func() { g.parsed = nil }() // it takes far more memory than the text
	if g.bare && slices.ContainsFunc(ins, func(in *input) bool { return in.at != wholePackage && g.files[in.at].kept }) {
		g.parseAll(s, threads) // the index is older than the cached digests
	}
	parts, sound := g.parsed.Parts(g.wanted(ins), s.modules, threads)
	if !sound {
		if g.bare {
			g.parseAll(s, threads)
		}
		for _, f := range g.files {
			f.context.Declared = g.now
		}
		g.looked.declared, g.looked.same = 0, false
		ins = s.inputsOf(g)
		parts, _ = g.parsed.Parts(nil, s.modules, threads)
	}
	for _, in := range ins {
		to := vectors.Input{Name: in.name, Digest: g.digest(s, in.at)}
		if in.at == wholePackage {
			to.Part = g.parsed.Package()
		} else if i, ok := g.place(in.at); ok {
			to.Part = parts[i]
		}
		out = append(out, to)
	}
	return out
}

// wanted reports, for each parsed file, whether it is among the inputs.
func (g *goFolder) wanted(ins []*input) []bool {
	out := make([]bool, len(g.at))
	for _, in := range ins {
		if i, ok := g.place(in.at); ok {
			out[i] = true
		}
	}
	return out
}

// place returns the index of a file in parsed; ok is false for the package, and for a deleted file.
func (g *goFolder) place(at int) (i int, ok bool) {
	if at == wholePackage {
		return 0, false
	}
	i, ok = g.at[g.files[at].path]
	return i, ok
}

func isGo(name string) bool { return strings.HasSuffix(name, ".go") }
