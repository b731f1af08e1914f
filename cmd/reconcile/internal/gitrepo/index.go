package gitrepo

import (
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// index is git's index file (gitformat-index(5), versions 2 to 4), parsed just enough to exchange entries. Entries
// that are not exchanged keep their bytes.
type index struct {
	version  uint32
	entries  []indexEntry // by path, then stage
	folders  *cacheTree   // extension TREE, or nil
	resolved []byte       // extension REUC, unchanged
	unhashed bool         // written with index.skipHash: the checksum is zero
}

// indexEntry is one entry: the fixed part with its flags, and the path.
type indexEntry struct {
	fixed []byte // 62 bytes, or 64 with extended flags
	path  string
}

// Offsets in the fixed part, and flags.
const (
	fixedSize    = 62
	modeOffset   = 24
	sizeOffset   = 36
	hashOffset   = 40
	flagsOffset  = 60
	flagExtended = 0x4000
	flagStage    = 0x3000
	flagName     = 0x0fff
	flagIntent   = 0x2000 // of the extended flags: git add --intent-to-add
	flagSkip     = 0x4000 // of the extended flags: outside of a sparse checkout
)

func (e indexEntry) flags() uint16 { return binary.BigEndian.Uint16(e.fixed[flagsOffset:]) }

func (e indexEntry) extended() uint16 {
	if len(e.fixed) == fixedSize {
		return 0
	}
	return binary.BigEndian.Uint16(e.fixed[fixedSize:])
}

func (e indexEntry) stage() int { return int(e.flags()&flagStage) >> 12 }

func (e indexEntry) blob() blob {
	return blob{binary.BigEndian.Uint32(e.fixed[modeOffset:]), plumbing.Hash(e.fixed[hashOffset : hashOffset+20])}
}

// newEntry creates an entry for a file. old, if any, supplies the user's flags: assume-unchanged and skip-worktree.
func newEntry(path string, b blob, st fileStat, old indexEntry) indexEntry {
	e := indexEntry{fixed: make([]byte, fixedSize), path: path}
	if old.fixed != nil {
		e.fixed = slices.Clone(old.fixed)
	}
	st.put(e.fixed)
	binary.BigEndian.PutUint32(e.fixed[modeOffset:], b.mode)
	copy(e.fixed[hashOffset:], b.hash[:])
	flags := e.flags()&^flagName | uint16(min(len(path), flagName))
	binary.BigEndian.PutUint16(e.fixed[flagsOffset:], flags)
	if len(e.fixed) > fixedSize {
		binary.BigEndian.PutUint16(e.fixed[fixedSize:], e.extended()&^flagIntent)
	}
	return e
}

// parseIndex parses an index file; empty data is the empty index. It returns needsGit for an index that only git
// can keep intact.
func parseIndex(data []byte) (*index, error) {
	if len(data) == 0 {
		return &index{version: 2}, nil
	}
	body, unhashed, err := checkIndex(data)
	if err != nil {
		return nil, err
	}
	x := &index{version: binary.BigEndian.Uint32(body[4:]), unhashed: unhashed}
	if x.version < 2 || x.version > 4 {
		return nil, &needsGit{fmt.Sprintf("the index has version %d", x.version)}
	}
	rest, err := x.parseEntries(body[12:], int(binary.BigEndian.Uint32(body[8:])))
	if err != nil {
		return nil, err
	}
	return x, x.parseExtensions(rest)
}

// checkIndex verifies the signature and the checksum, and returns the bytes before the checksum.
func checkIndex(data []byte) (body []byte, unhashed bool, err error) {
	if len(data) < 12+sha1.Size || string(data[:4]) != "DIRC" {
		return nil, false, errDamagedIndex
	}
	body, sum := data[:len(data)-sha1.Size], data[len(data)-sha1.Size:]
	if plumbing.Hash(sum).IsZero() {
		return body, true, nil
	}
	if sha1.Sum(body) != [sha1.Size]byte(sum) {
		return nil, false, errDamagedIndex
	}
	return body, false, nil
}

var errDamagedIndex = fmt.Errorf("the index is damaged; rebuild it with: rm .git/index && git reset")

func (x *index) parseEntries(data []byte, n int) ([]byte, error) {
	if n > len(data)/fixedSize {
		return nil, errDamagedIndex
	}
	x.entries = make([]indexEntry, 0, n)
	text := string(data) // paths are slices of one string
	previous := ""
	for range n {
		e, size, ok := parseEntry(data, text[len(text)-len(data):], x.version, previous)
		if !ok {
			return nil, errDamagedIndex
		}
		x.entries = append(x.entries, e)
		data, previous = data[size:], e.path
	}
	return data, nil
}

// parseEntry parses one entry and returns its length in bytes. text is data as a string.
func parseEntry(data []byte, text string, version uint32, previous string) (e indexEntry, size int, ok bool) {
	if len(data) < fixedSize {
		return e, 0, false
	}
	fixed := fixedSize
	if version > 2 && binary.BigEndian.Uint16(data[flagsOffset:])&flagExtended != 0 {
		fixed += 2
	}
	if len(data) < fixed {
		return e, 0, false
	}
	e.fixed = data[:fixed:fixed]
	if version == 4 {
		path, n, ok := unprefixEntry(text[fixed:], previous)
		e.path = path
		return e, fixed + n, ok
	}
	end := strings.IndexByte(text[fixed:], 0)
	if end < 0 {
		return e, 0, false
	}
	e.path = text[fixed : fixed+end]
	size = (fixed + end + 8) &^ 7
	return e, size, size <= len(data)
}

// unprefixEntry reads a version 4 path: how many bytes to drop from the end of the previous path, then what to append.
func unprefixEntry(text, previous string) (path string, size int, ok bool) {
	drop := 0
	for i := range len(text) {
		c := text[i]
		if drop = drop<<7 | int(c&0x7f); drop > len(previous) {
			return "", 0, false
		}
		if c&0x80 != 0 {
			drop++
			continue
		}
		end := strings.IndexByte(text[i+1:], 0)
		if end < 0 {
			return "", 0, false
		}
		return previous[:len(previous)-drop] + text[i+1:i+1+end], i + 1 + end + 1, true
	}
	return "", 0, false
}

// parseExtensions keeps extensions that stay valid when entries change, drops those that git recreates (fsmonitor,
// offset tables), and returns needsGit for those that would be lost.
func (x *index) parseExtensions(data []byte) error {
	for len(data) > 0 {
		if len(data) < 8 {
			return errDamagedIndex
		}
		name, size := string(data[:4]), int(binary.BigEndian.Uint32(data[4:]))
		if size > len(data)-8 {
			return errDamagedIndex
		}
		body := data[8 : 8+size]
		data = data[8+size:]
		switch {
		case name == "TREE":
			x.folders = parseCacheTree(body)
		case name == "REUC":
			x.resolved = body
		case name == "UNTR":
			return &needsGit{"the index has an untracked cache"}
		case name[0] < 'A' || name[0] > 'Z':
			return &needsGit{fmt.Sprintf("the index has the extension %q (split or sparse index)", name)}
		}
	}
	return nil
}

// encode returns the file.
func (x *index) encode() []byte {
	size := 12 + sha1.Size + 64
	for _, e := range x.entries {
		size += len(e.fixed) + len(e.path) + 8
	}
	buf := make([]byte, 0, size+len(x.resolved)+x.folders.size())
	buf = append(buf, "DIRC"...)
	buf = binary.BigEndian.AppendUint32(buf, x.version)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(x.entries)))
	previous := ""
	for _, e := range x.entries {
		buf = x.appendEntry(buf, e, previous)
		previous = e.path
	}
	if x.folders != nil {
		buf = appendExtension(buf, "TREE", x.folders.append(nil))
	}
	if x.resolved != nil {
		buf = appendExtension(buf, "REUC", x.resolved)
	}
	var sum [sha1.Size]byte
	if !x.unhashed {
		sum = sha1.Sum(buf)
	}
	return append(buf, sum[:]...)
}

func (x *index) appendEntry(buf []byte, e indexEntry, previous string) []byte {
	start := len(buf)
	buf = append(buf, e.fixed...)
	if x.version == 4 {
		common := 0
		for common < min(len(previous), len(e.path)) && previous[common] == e.path[common] {
			common++
		}
		buf = appendOffset(buf, len(previous)-common)
		buf = append(buf, e.path[common:]...)
		return append(buf, 0)
	}
	buf = append(buf, e.path...)
	return append(buf, make([]byte, 8-(len(buf)-start)%8)...)
}

// appendOffset is the variable-length number of gitformat-pack(5), "offset encoding".
func appendOffset(buf []byte, n int) []byte {
	digits := []byte{byte(n & 0x7f)}
	for n >>= 7; n > 0; n >>= 7 {
		n--
		digits = append(digits, byte(n&0x7f)|0x80)
	}
	slices.Reverse(digits)
	return append(buf, digits...)
}

func appendExtension(buf []byte, name string, body []byte) []byte {
	buf = append(buf, name...)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(body)))
	return append(buf, body...)
}

// find returns the entry of a path at stage 0, and whether the path is in conflict (has other stages).
func (x *index) find(path string) (e indexEntry, conflict bool) {
	i, _ := slices.BinarySearchFunc(x.entries, path, comparePath)
	if i == len(x.entries) || x.entries[i].path != path {
		return indexEntry{}, false
	}
	return x.entries[i], x.entries[i].stage() != 0
}

func comparePath(e indexEntry, path string) int { return strings.Compare(e.path, path) }

// below returns the entries whose paths begin with prefix.
func (x *index) below(prefix string) []indexEntry {
	i, _ := slices.BinarySearchFunc(x.entries, prefix, comparePath)
	n := 0
	for i+n < len(x.entries) && strings.HasPrefix(x.entries[i+n].path, prefix) {
		n++
	}
	return x.entries[i : i+n]
}

// readIndex reads the index file, its mode and its mtime; a missing file is empty.
func readIndex(path string) ([]byte, fs.FileMode, fileTime, error) {
	fi, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, fileTime{}, nil
	}
	if err != nil {
		return nil, 0, fileTime{}, err
	}
	data, err := regular.ReadPath(path)
	return data, fi.Mode().Perm(), timeOf(fi), err
}

// tagged sets an entry's stage, and its skip-worktree flag.
func (e indexEntry) tagged(stage uint16, skip bool) indexEntry {
	flags := e.flags() | stage<<12
	if skip {
		flags |= flagExtended
		e.fixed = append(e.fixed, flagSkip>>8, 0)
	}
	e.fixed[flagsOffset], e.fixed[flagsOffset+1] = byte(flags>>8), byte(flags)
	return e
}

// fileTime is a time as the index keeps it.
type fileTime struct{ sec, nsec uint32 }

func (t fileTime) before(o fileTime) bool { return t.sec < o.sec || t.sec == o.sec && t.nsec < o.nsec }

// fileStat is the part of lstat(2) that the index stores, cut to 32 bits each. The zero value matches no file, so
// that git compares contents.
type fileStat struct {
	ctime, mtime             fileTime
	dev, ino, uid, gid, size uint32
}

// put writes the stat data into the fixed part of an index entry, without the mode.
func (s fileStat) put(fixed []byte) {
	for i, v := range []uint32{s.ctime.sec, s.ctime.nsec, s.mtime.sec, s.mtime.nsec, s.dev, s.ino} {
		binary.BigEndian.PutUint32(fixed[4*i:], v)
	}
	for i, v := range []uint32{s.uid, s.gid, s.size} {
		binary.BigEndian.PutUint32(fixed[modeOffset+4+4*i:], v)
	}
}

// matches reports whether an index entry holds exactly these data. It ignores the device, as git does, which changes when
// a network file system is remounted, and the owner, whose change also changes ctime.
func (s fileStat) matches(fixed []byte) bool {
	var other [fixedSize]byte
	s.put(other[:])
	return [16]byte(fixed[:16]) == [16]byte(other[:16]) && [4]byte(fixed[20:24]) == [4]byte(other[20:24]) &&
		[4]byte(fixed[sizeOffset:]) == [4]byte(other[sizeOffset:])
}

// statOfListed is statOf without the device and the owner.
func statOfListed(st *state.Stat) fileStat {
	return fileStat{ctime: timeOfNanos(st.Ctime), mtime: timeOfNanos(st.Mtime), ino: uint32(st.Ino), size: uint32(st.Size)}
}

// timeOfNanos cuts a time in nanoseconds since 1970 to the index's format.
func timeOfNanos(ns int64) fileTime {
	t := time.Unix(0, ns)
	return fileTime{uint32(t.Unix()), uint32(t.Nanosecond())}
}

func mtimeOf(fixed []byte) fileTime {
	return fileTime{binary.BigEndian.Uint32(fixed[8:]), binary.BigEndian.Uint32(fixed[12:])}
}

// timeOf cuts a file's mtime to the index's format.
func timeOf(fi os.FileInfo) fileTime {
	t := fi.ModTime()
	return fileTime{uint32(t.Unix()), uint32(t.Nanosecond())}
}

func isLink(name string) bool {
	fi, err := os.Lstat(name)
	return err == nil && fi.Mode()&os.ModeSymlink != 0
}

// indexPaths reads only the paths of an index file: verifying its checksum would take longer.
func indexPaths(data []byte) ([]string, error) {
	const header, sum = 12, 20
	if len(data) < header+sum || string(data[:4]) != "DIRC" {
		return nil, errDamagedIndex
	}
	version, n := binary.BigEndian.Uint32(data[4:]), int(binary.BigEndian.Uint32(data[8:]))
	rest := data[header : len(data)-sum]
	if version < 2 || version > 4 || n > len(rest)/fixedSize {
		return nil, errDamagedIndex
	}
	paths, text, previous := make([]string, 0, n), string(rest), ""
	for range n {
		e, size, ok := parseEntry(rest, text[len(text)-len(rest):], version, previous)
		if !ok {
			return nil, errDamagedIndex
		}
		paths = append(paths, e.path)
		rest, previous = rest[size:], e.path
	}
	if len(rest) >= 4 && string(rest[:4]) == "link" {
		return nil, &needsGit{"the index is split"} // most of its entries are in another file
	}
	return paths, nil
}
