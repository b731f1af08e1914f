package similar

import (
	"math"
	"slices"
	"testing"
)

func TestOfWords(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"Dual layer or migrate?", "Migrate.", 0.5},
		{"The adapter, pools connections!", "adapter POOLS connections", 1},
		{"", "", 1}, {"?", "?", 1}, {"?", "!", 0}, {"the", "The", 1}, {"one", "", 0},
		{"red green blue", "red green black", 2. / 3},
		{"word word word", "word", 1},
		{"ÄRGER über Öl", "ärger ÜBER öl", 1},
		{"数据库迁移", "数据库适配", 0.6},
		{"do not migrate", "do migrate", 2. / 3},
	} {
		got, back := OfWords(c.a, c.b), OfWords(c.b, c.a)
		if math.Abs(got-c.want) > 1e-9 || got != back {
			t.Errorf("%q and %q: %v and %v, want %v", c.a, c.b, got, back, c.want)
		}
	}
}

func TestPairsTellTheOrder(t *testing.T) {
	const a, b = "use Postgres, not MySQL", "use MySQL, not Postgres"
	if OfWords(a, b) != 1 {
		t.Errorf("the words differ: %v", OfWords(a, b))
	}
	if got := Dice(Pairs(a), Pairs(b)); got != 0.2 { // of five each, the beginning with use
		t.Errorf("the pairs are alike: %v", got)
	}
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"the store keeps it", "Store keeps", 1}, {"", "", 0}, {"the", "a", 0}, {"one", "one", 1}, {"one", "two", 0},
		{"red green blue", "red green black", 0.5}, // of four pairs each, two: the beginning with red, red with green
	} {
		if got := Dice(Pairs(c.a), Pairs(c.b)); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%q and %q: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// FuzzDice: the measure is symmetric, between 0 and 1, and 1 for a text and itself.
func FuzzDice(f *testing.F) {
	f.Add("a b c", "b c d")
	f.Add("数据库", "\xff\x00")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, of := range []func(string) Set{Words, Pairs} {
			x, y := of(a), of(b)
			d := Dice(x, y)
			if d != Dice(y, x) || d < 0 || d > 1 || len(x) > 0 && Dice(x, x) != 1 {
				t.Errorf("%q, %q: %v", a, b, d)
			}
			if !slices.IsSorted(x) || len(slices.Compact(slices.Clone(x))) != len(x) {
				t.Errorf("%q: %v is no set", a, x)
			}
		}
	})
}
