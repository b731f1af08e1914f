package sections_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/schemas/sections/sectionstest"
)

var format = sections.Format{Magic: "rcntests", Version: 7}

const page = 1 << 16

// parts are sections of these sizes with random content.
func parts(seed uint64, sizes ...int) [][]byte {
	random := rand.New(rand.NewPCG(seed, 1))
	out := make([][]byte, len(sizes))
	for i, n := range sizes {
		out[i] = make([]byte, n)
		for j := range out[i] {
			out[i][j] = byte(random.Uint32())
		}
	}
	return out
}

// TestEncodeAndOpen: sections of all sizes come back, from both writers, with the same bytes.
func TestEncodeAndOpen(t *testing.T) {
	t.Parallel()
	for _, sizes := range [][]int{nil, {0}, {0, 0}, {1}, {63, 64, 65}, {page - 1, 0, page, page + 1}, {40 * page}, {5, 3 * page, 9, 0}} {
		want := parts(1, sizes...)
		data := format.Encode(want...).Bytes()
		var streamed []byte
		var contents []sections.Content
		for _, p := range want {
			contents = append(contents, sections.Of(p[:len(p)/3], p[len(p)/3:]))
		}
		c := format.Content(contents...)
		if err := c.Write(func(b []byte) error { streamed = append(streamed, b...); return nil }); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(streamed, data) || c.Length != uint64(len(data)) {
			t.Errorf("%v: a stream has other bytes: %d, announced %d, want %d", sizes, len(streamed), c.Length, len(data))
		}
		f, err := format.Open(data)
		if err != nil {
			t.Fatalf("%v: %v", sizes, err)
		}
		if err := f.Verify(); err != nil || f.Sections() != len(sizes) {
			t.Errorf("%v: %v, %d sections", sizes, err, f.Sections())
		}
		for i, p := range want {
			if !bytes.Equal(f.Get(i), p) || f.Check(i) != nil {
				t.Errorf("%v: section %d has changed", sizes, i)
			}
		}
		if f.Get(len(sizes)) != nil || f.Check(len(sizes)) != nil {
			t.Error("a section that the file lacks is not empty")
		}
	}
}

// TestContentOfOtherLength: a section that hands out more or less than it announced is an error.
func TestContentOfOtherLength(t *testing.T) {
	t.Parallel()
	c := sections.Of([]byte("abc"))
	for _, c.Length = range []uint64{1, 2, 4} {
		if err := format.Content(c).Write(func([]byte) error { return nil }); err == nil {
			t.Errorf("3 bytes were written as %d", c.Length)
		}
	}
	gone := errors.New("gone")
	if err := format.Content(sections.Of(nil)).Write(func([]byte) error { return gone }); !errors.Is(err, gone) {
		t.Error(err)
	}
}

// TestEveryByteIsChecked: a change of any byte is noticed when the file is opened, or when the page is read.
func TestEveryByteIsChecked(t *testing.T) {
	t.Parallel()
	data := format.Encode(parts(2, 10, 3*page/2, 100)...).Bytes()
	for at := 0; at < len(data); at++ {
		if at > 2000 && at < len(data)-50 && at%131 != 0 {
			continue
		}
		bad := slices.Clone(data)
		bad[at] ^= 0x10
		f, err := format.Open(bad)
		if err != nil {
			continue
		}
		if f.Verify() == nil {
			t.Fatalf("byte %d is changed, and nothing notices", at)
		}
		for i := range f.Sections() {
			s := f.Section(i)
			_, sound := s.Rows(1, 0, len(s.Data))
			if sound != (f.Check(i) == nil) || sound && !bytes.Equal(s.Data, parts(2, 10, 3*page/2, 100)[i]) {
				t.Fatalf("byte %d is changed: section %d is sound: %v", at, i, sound)
			}
		}
	}
}

// TestErrors: what is not a file of the format and version has a typed error.
func TestErrors(t *testing.T) {
	t.Parallel()
	data := format.Encode(parts(3, 200, 5)...).Bytes()
	for n := range len(data) {
		want := sections.ErrDamaged
		if n < 16 {
			want = sections.ErrForeign
		}
		if _, err := format.Open(data[:n]); !errors.Is(err, want) {
			t.Fatalf("%d of %d bytes: %v", n, len(data), err)
		}
	}
	other := format
	other.Magic = "rcnother"
	older, newer := format, format
	older.Version, newer.Version = 6, 8
	for _, c := range []struct {
		data []byte
		want error
		text string
	}{
		{append(slices.Clone(data), 0), sections.ErrDamaged, "damaged: 401 bytes are not the size of its sections"},
		{other.Encode().Bytes(), sections.ErrForeign, "not a file of this format"},
		{nil, sections.ErrForeign, "not a file of this format"},
		{older.Encode().Bytes(), sections.ErrVersion, "another format version: 6, and this program reads 7"},
		{newer.Encode().Bytes(), sections.ErrVersion, "another format version: 8, and this program reads 7"},
	} {
		if _, err := format.Open(c.data); !errors.Is(err, c.want) || err.Error() != c.text {
			t.Errorf("%q: %v, want %s", c.data[:min(8, len(c.data))], err, c.text)
		}
	}
}

// TestRows: rows that do not exist are refused.
func TestRows(t *testing.T) {
	t.Parallel()
	f, err := format.Open(format.Encode(parts(4, 41)...).Bytes())
	if err != nil {
		t.Fatal(err)
	}
	const most = 1<<63 - 1
	for _, c := range []struct {
		from, n int
		ok      bool
	}{{0, 10, true}, {9, 1, true}, {10, 0, true}, {3, 0, true}, {0, 11, false}, {10, 1, false}, {-1, 1, false}, {1, -1, false}, {most, 1, false}, {1, most, false}} {
		rows, ok := f.Section(0).Rows(4, c.from, c.n)
		if ok != c.ok || ok && len(rows) != 4*c.n {
			t.Errorf("%d rows from %d: %d bytes, %v", c.n, c.from, len(rows), ok)
		}
	}
	if _, ok := f.Section(1).Rows(4, 0, 1); ok {
		t.Error("a row of a section that the file lacks")
	}
}

// TestReseal: the helper of tests makes the checksums that a writer makes.
func TestReseal(t *testing.T) {
	t.Parallel()
	before, after := parts(5, 3*page, 70), parts(5, 3*page, 70)
	after[0][page+1]++
	data := format.Encode(before...).Bytes()
	copy(data[64:], after[0])
	sectionstest.Reseal(data)
	if !bytes.Equal(data, format.Encode(after...).Bytes()) {
		t.Error("a changed and resealed file is another one than one with the changed sections")
	}
}

// TestSum: the sum of a file depends on its content and on its sections, and files in memory have that of their bytes.
func TestSum(t *testing.T) {
	t.Parallel()
	seen := map[uint64]string{}
	for _, of := range [][][]byte{nil, {nil}, {[]byte("a")}, {[]byte("b")}, {[]byte("a"), nil}, {[]byte("a\x00")}} {
		sum := format.Encode(of...).Sum()
		if was, twice := seen[sum]; twice {
			t.Errorf("%q and %s have one sum", of, was)
		}
		seen[sum] = fmt.Sprintf("%q", of)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	want := []float32{0, -1.5, 3e30}
	raw := sections.Raw(want)
	for skip := range 5 {
		data := append(make([]byte, skip, 40), raw...)[skip:]
		if got := sections.Numbers[float32](append(data, 1, 2)); !slices.Equal(got, want) {
			t.Errorf("%d bytes from an aligned place: %v", skip, got)
		}
	}
	if got := sections.Numbers[uint64](sections.Raw([]uint64{1 << 40})); len(got) != 1 || got[0] != 1<<40 || sections.Numbers[int32]([]byte{1, 2}) != nil {
		t.Error(got)
	}
	if x := sections.Raw([]uint32{1}); x[0] != 1 {
		t.Error("numbers are not little-endian")
	}
}

// FuzzOpen: whatever the bytes are, nothing panics, and a sound file has the bytes of its sections written again.
func FuzzOpen(f *testing.F) {
	f.Add(format.Encode().Bytes(), false)
	f.Add(format.Encode(parts(5, 3, 70, 0)...).Bytes(), true)
	f.Add(binary.LittleEndian.AppendUint64(format.Encode([]byte("x")).Bytes()[:16], 1<<63), true)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if data = slices.Clone(data); sealed && len(data) >= 12 {
			copy(data, format.Magic)
			binary.LittleEndian.PutUint32(data[8:], format.Version)
			sectionstest.Reseal(data)
		}
		x, err := format.Open(data)
		if err != nil {
			if !errors.Is(err, sections.ErrDamaged) && !errors.Is(err, sections.ErrForeign) && !errors.Is(err, sections.ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		var all [][]byte
		for i := range x.Sections() {
			s := x.Section(i)
			s.Rows(3, len(data)%5, len(data)%7)
			sections.Numbers[uint64](s.Data)
			all = append(all, s.Data)
		}
		if again := format.Encode(all...); x.Verify() == nil && again.Sum() != x.Sum() && gapsAreZero(x) {
			t.Error("the sections of a sound file make another one")
		}
	})
}

// gapsAreZero reports whether the bytes between the sections are zeros, as a writer leaves them.
func gapsAreZero(x *sections.File) bool {
	var all [][]byte
	for i := range x.Sections() {
		all = append(all, x.Get(i))
	}
	return bytes.Equal(format.Encode(all...).Bytes(), x.Bytes())
}

func BenchmarkOpen(b *testing.B) {
	data := format.Encode(parts(6, 64<<20, 100)...).Bytes()
	for b.Loop() {
		if _, err := format.Open(data); err != nil {
			b.Fatal(err)
		}
	}
}
