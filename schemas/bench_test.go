package schemas_test

import (
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// BenchmarkDecode decodes one example of each kind in turn, all steps included.
func BenchmarkDecode(b *testing.B) {
	d := schemas.NewDecoder(all, 0)
	type file struct {
		path string
		src  []byte
	}
	var files []file
	size := 0
	for _, k := range all {
		path, src := example(b, k.Singular()+".yaml")
		files = append(files, file{path, src})
		size += len(src)
		d.Decode(path, src)
	}
	b.SetBytes(int64(size / len(files)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		f := files[i%len(files)]
		i++
		if d.Decode(f.path, f.src).Object == nil {
			b.Fatalf("%s: no object", f.path)
		}
	}
}

// BenchmarkFirstDecode is what a process pays once: the first object of every kind.
func BenchmarkFirstDecode(b *testing.B) {
	for b.Loop() {
		d := schemas.NewDecoder(all, 0)
		for _, k := range all {
			path, src := example(b, k.Singular()+".yaml")
			if d.Decode(path, src).Object == nil {
				b.Fatalf("%s: no object", path)
			}
		}
	}
}
