package gitrepo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// conversion describes how git converts a file between the work tree and the object store: the attributes text,
// eol, ident and working-tree-encoding, with core.autocrlf and core.eol. The zero value converts nothing.
type conversion struct {
	text     textMode
	crlf     bool   // line ends in the work tree are CRLF
	ident    bool   // $Id$ is expanded in the work tree
	encoding string // of the work tree; "" is UTF-8
	filter   bool   // a program converts the file as well
}

// textMode selects the files whose line ends are converted.
type textMode int

const (
	binaryFile textMode = iota
	textFile
	textIfGuessed // the content decides
)

// lineEnds holds the configured line-end settings.
type lineEnds struct {
	auto textMode // for files without a text attribute
	crlf bool     // text has CRLF in the work tree unless attributes decide
}

func readLineEnds(ctx context.Context, c *gitConfig) (e lineEnds) {
	if v, _ := c.get(ctx, "core.autocrlf"); strings.EqualFold(v, "input") {
		return lineEnds{auto: textIfGuessed}
	}
	if c.flag(ctx, "core.autocrlf", false) {
		return lineEnds{auto: textIfGuessed, crlf: true}
	}
	v, _ := c.get(ctx, "core.eol")
	switch strings.ToLower(v) {
	case "crlf":
		e.crlf = true
	case "lf":
	default:
		e.crlf = runtime.GOOS == "windows"
	}
	return e
}

// conversion returns the conversion of a file.
func (r *rules) conversion(file string) conversion {
	says := r.attributes(file)
	c := conversion{text: r.ends.auto, crlf: r.ends.crlf, ident: says["ident"] == attrSet, filter: r.hasFilter(says["filter"])}
	eol := says["eol"]
	switch textValue(says) {
	case attrClear:
		c.text, eol = binaryFile, ""
	case attrSet:
		c.text = textFile
	case "input":
		c.text, c.crlf = textFile, false
	case "auto":
		c.text = textIfGuessed
	default:
		if eol == "lf" || eol == "crlf" {
			c.text = textFile
		}
	}
	if eol == "lf" || eol == "crlf" {
		c.crlf = eol == "crlf"
	}
	if enc := says["working-tree-encoding"]; !strings.HasPrefix(enc, "\x00") && !isUTF8(enc) {
		c.encoding = enc
	}
	return c
}

// textValue returns the value of the attribute text, or of crlf, its old name.
func textValue(says map[string]string) string {
	switch v := says["text"]; v {
	case attrSet, attrClear, "input", "auto":
		return v
	}
	return says["crlf"]
}

func isUTF8(enc string) bool {
	return enc == "" || strings.EqualFold(enc, "UTF-8") || strings.EqualFold(enc, "UTF8")
}

// plain reports whether git stores and checks out the bytes as they are.
func (c conversion) plain() bool { return c == conversion{crlf: c.crlf} }

// native reports whether this package can write the file as git would check it out.
func (c conversion) native() bool {
	if c.encoding == "" {
		return !c.filter
	}
	w, err := wideOf(c.encoding)
	return !c.filter && err == nil && w.order != nil
}

// clean converts a file's content to the form that git stores. indexed returns the file's content in the index, or
// nil: where git guesses, a file with CRLF in the index keeps it. An error means that git cannot convert it either,
// or that only git can.
func (c conversion) clean(data []byte, indexed func() []byte) ([]byte, error) {
	if c.encoding != "" && len(data) > 0 {
		var err error
		if data, err = toUTF8(c.encoding, data); err != nil {
			return nil, err
		}
	}
	if c.text != binaryFile {
		data = c.withLF(data, indexed)
	}
	if c.ident {
		data = collapseIdent(data)
	}
	return data, nil
}

func (c conversion) withLF(data []byte, indexed func() []byte) []byte {
	if c.text == textFile {
		return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	}
	s := countText(data)
	if s.crlf == 0 || s.binary() {
		return data
	}
	if was := countText(indexed()); was.crlf > 0 && !was.binary() {
		return data
	}
	return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
}

// smudge converts stored content to the form that git writes to the work tree.
func (c conversion) smudge(data []byte) ([]byte, error) {
	if c.ident {
		data = expandIdent(data)
	}
	if c.text != binaryFile && c.crlf {
		data = c.withCRLF(data)
	}
	if c.encoding == "" || len(data) == 0 {
		return data, nil
	}
	return fromUTF8(c.encoding, data)
}

func (c conversion) withCRLF(data []byte) []byte {
	s := countText(data)
	if s.lf == 0 || c.text == textIfGuessed && (s.cr > 0 || s.crlf > 0 || s.binary()) {
		return data
	}
	out := make([]byte, 0, len(data)+s.lf)
	for i, b := range data {
		if b == '\n' && (i == 0 || data[i-1] != '\r') {
			out = append(out, '\r')
		}
		out = append(out, b)
	}
	return out
}

// textCount holds the counts by which git tells text from binary content.
type textCount struct{ nul, cr, lf, crlf, printable, other int }

func countText(data []byte) (s textCount) {
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case b == '\r' && i+1 < len(data) && data[i+1] == '\n':
			s.crlf++
			i++
		case b == '\r':
			s.cr++
		case b == '\n':
			s.lf++
		case b == '\b', b == '\t', b == '\x1b', b == '\f':
			s.printable++
		case b == 0:
			s.nul++
			s.other++
		case b < 32, b == 127:
			s.other++
		default:
			s.printable++
		}
	}
	if n := len(data); n > 0 && data[n-1] == '\x1a' { // a DOS end-of-file mark
		s.other--
	}
	return s
}

func (s textCount) binary() bool { return s.cr > 0 || s.nul > 0 || s.printable>>7 < s.other }

// eachIdent copies data and calls found for each $Id$ and $Id: …$. The result of found replaces the text between
// the dollars.
func eachIdent(data []byte, found func(inner []byte) []byte) []byte {
	var out []byte
	for {
		i := bytes.Index(data, []byte("$Id"))
		if i < 0 {
			return append(out, data...)
		}
		out = append(out, data[:i+1]...)
		data = data[i+1:]
		rest := data[len("Id"):]
		if len(rest) == 0 || rest[0] != '$' && rest[0] != ':' {
			continue
		}
		end := bytes.IndexByte(rest, '$')
		if end < 0 {
			return append(out, data...)
		}
		inner := data[:len("Id")+end]
		if bytes.IndexByte(inner, '\n') >= 0 {
			continue
		}
		now := found(inner)
		if now == nil {
			continue
		}
		out = append(append(out, now...), '$')
		data = data[len(inner)+1:]
	}
}

func collapseIdent(data []byte) []byte {
	return eachIdent(data, func(inner []byte) []byte {
		if len(inner) == len("Id") {
			return nil // its second dollar may start another one
		}
		return []byte("Id")
	})
}

// expandIdent inserts the blob's hash. An identifier that contains blanks belongs to another system.
func expandIdent(data []byte) []byte {
	hash := hashObject(plumbing.BlobObject, data).String()
	return eachIdent(data, func(inner []byte) []byte {
		const head = len("Id: ")
		if len(inner) > head {
			if i := bytes.IndexByte(inner[head:], ' '); i >= 0 && head+i < len(inner)-1 {
				return nil
			}
		}
		return []byte("Id: " + hash + " ")
	})
}

// attributes returns the attributes of a file, by name.
func (r *rules) attributes(file string) map[string]string {
	levels := append([][]attrLine{binaryMacro}, r.attrBase...)
	dirs := make([]string, len(levels), len(levels)+8)
	for _, dir := range foldersOf(file) {
		own, ok := r.attrs[dir]
		if !ok {
			name := filepath.Join(r.l.worktree, filepath.FromSlash(dir), ".gitattributes")
			if !isLink(name) { // git does not follow links
				own = readAttributes(name, dir == "")
			}
			r.attrs[dir] = own
		}
		levels, dirs = append(levels, own), append(dirs, dir)
	}
	levels, dirs = append(levels, r.attrLast), append(dirs, "")
	return attributesOf(file, levels, dirs, r.fold)
}

// hasFilter reports whether the configuration has a filter driver of this name, the value of the attribute filter.
func (r *rules) hasFilter(name string) bool {
	if name == "" || strings.HasPrefix(name, "\x00") {
		return false
	}
	has, known := r.filters[name]
	if !known {
		for _, key := range []string{"clean", "smudge", "process", "required"} {
			_, there := r.cfg.get(context.Background(), "filter."+name+"."+key)
			has = has || there
		}
		r.filters[name] = has
	}
	return has
}

// errEncoding reports an encoding that only git supports.
type errEncoding struct{ name string }

func (e *errEncoding) Error() string { return fmt.Sprintf("working-tree-encoding %s", e.name) }

// indexContent returns the content of a file in the index, or nil.
func indexContent(ix *index, store *objectStore, file string) []byte {
	e, conflict := ix.find(file)
	if e.fixed == nil || conflict {
		return nil
	}
	data, err := store.read(plumbing.BlobObject, e.blob().hash)
	if err != nil {
		return nil
	}
	return data
}

func isLink(name string) bool {
	fi, err := os.Lstat(name)
	return err == nil && fi.Mode()&os.ModeSymlink != 0
}
