package embedhttp

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/gofrs/flock"

	"reconcile.dev/reconcile/state/regular"
)

// Cache stores vectors in files that several processes share. Its methods do not fail: an unreadable vector is missing, and
// one that cannot be written is requested again, see [Cache.Err]. It is safe for concurrent use.
//
// Its folder has segments 1, 2, …; vectors are appended to the last one, under a lock. N.vectors has the numbers of the
// vectors, float32 in little-endian; N.keys has a row of 40 bytes for each, with a checksum over key and vector. Torn or
// damaged rows and vectors are not found, and need no repair. When the size exceeds the limit, the oldest segment is
// removed.
type Cache struct {
	root  *os.Root
	dir   string
	limit int64

	mu   sync.Mutex
	rows map[key]row
	read map[int]int64 // read bytes of the keys of each segment
	err  error
}

// key identifies a vector: a cryptographic digest of model and text.
type key [16]byte

func keyOf(model, text string) (k key) {
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, uint64(len(model)))
	_, _ = io.WriteString(h, model)
	_, _ = io.WriteString(h, text)
	copy(k[:], h.Sum(nil))
	return k
}

// row is the position of a key's vector.
type row struct {
	segment    int
	at         uint64 // its place in the file
	dimensions uint32
	sum        uint64
}

const (
	rowSize = 40
	// segments is the number of full segments, so that reaching the limit removes about an eighth.
	segments = 8
	// longestKeys exceeds the size of the keys that one call appends.
	longestKeys = 1 << 20
	lockName    = "lock"
	// longestLock is how long to wait for another appending process. If it hangs, this process's vectors are not stored.
	longestLock = 5 * time.Second
	perm        = 0o644
)

// NewCache returns a cache of vectors with a size limit in the folder dir below root, which is created on demand. limit
// is the approximate maximum size in bytes.
func NewCache(root *os.Root, dir string, limit int64) *Cache {
	return &Cache{root: root, dir: dir, limit: limit, rows: map[key]row{}, read: map[int]int64{}}
}

// Err returns the first error of the cache, if it could not store vectors.
func (c *Cache) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Cache) keys(segment int) string { return path.Join(c.dir, strconv.Itoa(segment)+".keys") }
func (c *Cache) vectors(segment int) string {
	return path.Join(c.dir, strconv.Itoa(segment)+".vectors")
}

// list returns the numbers of the segments, the oldest first.
func (c *Cache) list() []int {
	entries, _ := regular.List(c.root, c.dir)
	var out []int
	for _, e := range entries {
		name, isKeys := strings.CutSuffix(e.Name(), ".keys")
		if n, err := strconv.Atoi(name); err == nil && isKeys && n > 0 && strconv.Itoa(n) == name {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// refresh reads the keys added since the last call, also by other processes.
func (c *Cache) refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, segment := range c.list() {
		c.readKeys(segment)
	}
}

func (c *Cache) readKeys(segment int) {
	f, info, err := regular.Open(c.root, c.keys(segment))
	if err != nil {
		return
	}
	defer f.Close()
	if info.Size() > c.limit/segments+longestKeys {
		return
	}
	from := c.read[segment]
	if from > info.Size() {
		from = 0 // the cache was deleted and recreated
	}
	data := make([]byte, (info.Size()-from)/rowSize*rowSize)
	if _, err := f.ReadAt(data, from); err != nil {
		return
	}
	for r := range slices.Chunk(data, rowSize) {
		c.rows[key(r)] = row{segment: segment, at: binary.LittleEndian.Uint64(r[16:]),
			dimensions: binary.LittleEndian.Uint32(r[24:]), sum: binary.LittleEndian.Uint64(r[32:])}
	}
	c.read[segment] = from + int64(len(data))
}

// get returns the vectors of keys, nil for missing or damaged ones.
func (c *Cache) get(keys []key, dimensions int) [][]float32 {
	out := make([][]float32, len(keys))
	files := map[int]*os.File{} // nil if it cannot be opened
	defer func() {
		for _, f := range files {
			_ = f.Close() // closing nil is allowed
		}
	}()
	for i, k := range keys {
		c.mu.Lock()
		r, there := c.rows[k]
		c.mu.Unlock()
		if !there || int64(r.dimensions) != int64(dimensions) || r.at > math.MaxInt64 {
			continue
		}
		f, opened := files[r.segment]
		if !opened {
			f, _, _ = regular.Open(c.root, c.vectors(r.segment))
			files[r.segment] = f
		}
		out[i] = readVector(f, k, r)
	}
	return out
}

// readVector reads the vector of a row; nil if it is damaged. f may be nil.
func readVector(f *os.File, k key, r row) []float32 {
	data := make([]byte, 4*int(r.dimensions))
	if _, err := f.ReadAt(data, int64(r.at)); err != nil || sumOf(k, data) != r.sum {
		return nil
	}
	v := make([]float32, r.dimensions)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v
}

func sumOf(k key, vector []byte) uint64 {
	var h xxhash.Digest
	h.Reset()
	_, _ = h.Write(k[:])
	_, _ = h.Write(vector)
	return h.Sum64()
}

// add appends vectors.
func (c *Cache) add(keys []key, vectors [][]float32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.append(keys, vectors); err != nil && c.err == nil {
		c.err = fmt.Errorf("vectors could not be kept in %s, and will be asked for again: %w", c.dir, err)
	}
}

func (c *Cache) append(keys []key, vectors [][]float32) error {
	if err := c.root.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	segment, err := c.last()
	if err != nil {
		return err
	}
	return c.appendTo(segment, keys, vectors)
}

// lock excludes other appending processes. The root opens the file first: it refuses paths that lead out of the tree.
func (c *Cache) lock() (unlock func(), err error) {
	name := path.Join(c.dir, lockName)
	f, _, err := regular.OpenFile(c.root, name, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(c.root.Name(), filepath.FromSlash(name)))
	wait, stop := context.WithTimeout(context.Background(), longestLock)
	defer stop()
	if _, err := l.TryLockContext(wait, 2*time.Millisecond); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return func() { _ = l.Close() }, nil
}

// last returns the number of the segment for appends. A full one is followed by the next, and then the oldest are removed.
func (c *Cache) last() (int, error) {
	all := c.list()
	if len(all) == 0 {
		return 1, nil
	}
	n := all[len(all)-1]
	if c.size(n) < c.limit/segments {
		return n, nil
	}
	total := int64(0)
	for _, segment := range slices.Backward(all) {
		if total += c.size(segment); total <= c.limit-c.limit/segments {
			continue
		}
		// The keys are removed first: vectors without keys are not found, and are removed the next time.
		if err := c.root.Remove(c.keys(segment)); err != nil {
			return 0, err
		}
		if err := c.root.Remove(c.vectors(segment)); err != nil && !os.IsNotExist(err) {
			return 0, err
		}
		delete(c.read, segment)
	}
	return n + 1, nil
}

// size returns the size of a segment in bytes.
func (c *Cache) size(segment int) (n int64) {
	for _, name := range []string{c.keys(segment), c.vectors(segment)} {
		if info, err := c.root.Stat(name); err == nil {
			n += info.Size()
		}
	}
	return n
}

// appendTo appends the vectors, then their keys: a vector with a key is complete, unless the power failed.
func (c *Cache) appendTo(segment int, keys []key, vectors [][]float32) error {
	var numbers, rows []byte
	file, at, err := c.end(c.vectors(segment), 1)
	if err != nil {
		return err
	}
	defer file.Close()
	for i, v := range vectors {
		begin := len(numbers)
		for _, x := range v {
			numbers = binary.LittleEndian.AppendUint32(numbers, math.Float32bits(x))
		}
		rows = append(rows, keys[i][:]...)
		rows = binary.LittleEndian.AppendUint64(rows, uint64(at)+uint64(begin))
		rows = binary.LittleEndian.AppendUint64(rows, uint64(len(v)))
		rows = binary.LittleEndian.AppendUint64(rows, sumOf(keys[i], numbers[begin:]))
	}
	if _, err := file.WriteAt(numbers, at); err != nil {
		return err
	}
	index, end, err := c.end(c.keys(segment), rowSize)
	if err != nil {
		return err
	}
	defer index.Close()
	_, err = index.WriteAt(rows, end)
	return err
}

// end opens a file of rows of this size, and returns the position of the next one, which overwrites a torn one.
func (c *Cache) end(name string, size int64) (*os.File, int64, error) {
	f, info, err := regular.OpenFile(c.root, name, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size() / size * size, nil
}
