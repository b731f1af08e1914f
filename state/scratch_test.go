package state

import "testing"

// What a scratch file has can be read in place, also after it was forgotten; an empty one has nothing.
func TestMapScratch(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	f, err := s.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, _, release, err := MapScratch(f)
	if err != nil || len(data) > 0 {
		t.Errorf("an empty one has %d bytes: %v", len(data), err)
	}
	release()
	if _, err := f.WriteString("put aside"); err != nil {
		t.Fatal(err)
	}
	data, forget, release, err := MapScratch(f)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for range 2 {
		if string(data) != "put aside" {
			t.Errorf("it has %q", data)
		}
		forget()
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if string(data) != "put aside" {
		t.Errorf("closed, it has %q", data)
	}
}
