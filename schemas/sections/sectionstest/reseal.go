// Package sectionstest changes files of package sections, for tests of what reads them.
package sectionstest

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

const page = 1 << 16

// Reseal makes the checksums of a file right whose bytes were changed, so that a test gets to the code behind them. It
// leaves data that is not as large as its header says.
func Reseal(data []byte) {
	if len(data) < 64 {
		return
	}
	count := uint64(binary.LittleEndian.Uint32(data[12:]))
	body := (16 + 8*count + 8 + 63) &^ 63
	if count > 1<<12 || body > uint64(len(data)) {
		return
	}
	header := data[body-8 : body]
	binary.LittleEndian.PutUint64(header, xxhash.Sum64(data[:body-8]))
	end := body
	for i := range count {
		n := binary.LittleEndian.Uint64(data[16+8*i:])
		if n > uint64(len(data)) || end > uint64(len(data)) {
			return
		}
		end += (n + 63) &^ 63
	}
	pages := (end + page - 1) / page
	if end == body {
		pages = 0
	}
	if end+8*pages+8 != uint64(len(data)) {
		return
	}
	for n := range pages {
		from, to := max(n*page, body), min(n*page+page, end)
		binary.LittleEndian.PutUint64(data[end+8*n:], xxhash.Sum64(data[from:to]))
	}
	binary.LittleEndian.PutUint64(data[end+8*pages:], xxhash.Sum64(append(header[:8:8], data[end:end+8*pages]...)))
}
