package secrets

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestInFile: bytes that are no text complete no secret by chance, and hide none.
func TestInFile(t *testing.T) {
	wide := "\xff\xfe" + strings.Join(strings.Split("password = hunter2-hunter2", ""), "\x00") + "\x00"
	for name, c := range map[string]struct {
		data string
		want []string
	}{
		"text":            {"password = hunter2-hunter2\n", []string{"password"}},
		"UTF-16":          {wide, []string{"password"}},
		"within bytes":    {"\x00\x01\x02password = hunter2-hunter2\x00\x03", []string{"password"}},
		"before bytes":    {"\x00\x01password = hunter2-hunter2\xff\xfe\x80", []string{"password"}},
		"private":         {"\x00<private>mine</private>\x00", []string{"private"}},
		"bytes as value":  {"\x00pw:\xba\x7f\xc1\\\xa4d\xdd6\xc5\xcdl\xaa\x98\a\x01 \x00", nil},
		"no text at all":  {"\x00\x01\x02", nil},
		"other encodings": {"passwort = h\xfcnter2-h\xfcnter2", []string{"password"}},
		"empty":           {"", nil},
	} {
		if got := InFile([]byte(c.data)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestInRandomFile: Find takes one of 250 such files for one with a password.
func TestInRandomFile(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	data := make([]byte, 3<<20)
	for range 10 {
		_, _ = random.Read(data)
		if found := InFile(data); found != nil {
			t.Errorf("%q in random bytes", found)
		}
	}
}
