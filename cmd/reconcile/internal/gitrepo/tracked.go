package gitrepo

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// trackedPaths are the paths that git's index has, below the work tree and sorted. git ignores none of them, whatever the
// rules say. Of an index that cannot be read there are none: who commits is told of it.
func (r *Repo) trackedPaths(ctx context.Context) []string {
	data, _, _, err := readIndex(filepath.Join(r.gitDir, "index"))
	if err != nil {
		return nil
	}
	paths, err := indexPaths(data)
	var other *needsGit
	if k, ok := r.command.(*command); ok && errors.As(err, &other) {
		out, err := k.run(ctx, call{}, "ls-files", "-z", "--cached")
		if err != nil {
			return nil
		}
		paths = nulSplit(out)
	}
	return paths
}

// indexPaths reads the paths of an index file, and nothing else: its checksum would take longer than all of it.
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

// has reports whether the sorted paths have one, or, of a folder, one below it.
func has(paths []string, p string, isDir bool) bool {
	if isDir {
		p += "/"
	}
	i, found := slices.BinarySearch(paths, p)
	return found || isDir && i < len(paths) && strings.HasPrefix(paths[i], p)
}
