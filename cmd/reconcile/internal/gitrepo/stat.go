package gitrepo

import (
	"encoding/binary"
	"os"
	"time"

	"reconcile.dev/reconcile/state"
)

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
