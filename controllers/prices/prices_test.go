package prices

import (
	"math"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// names are models, and what a million tokens of their input costs; below 0: the price is not known.
var names = []struct {
	model string
	want  float64
}{
	{"claude-sonnet-4-5", 3}, {"claude-sonnet-4-5-20250929", 3}, {"claude-sonnet-4-20250514", 3}, {"claude-opus-4-5-20251101", 5},
	{"claude-opus-4-5@20251101", 5}, {"gpt-5", 1.25}, {"gpt-5-2025-08-07", 1.25}, {"gpt-5-mini-2025-08-07", 0.25},
	{"models/gemini-2.5-pro", 1.25}, {"gemini-2.5-flash-preview-09-2025", 0.3}, {"gemini-2.0-flash-001", -1},
	// A similar name is another model.
	{"gpt-5-pro", -1}, {"gpt-5.9", -1}, {"claude-sonnet-4-9", -1}, {"claude", -1}, {"", -1}, {"fake-model", -1},
	{"xgpt-5", -1}, {"openai/gpt-5", -1},
}

func TestPricesAreOfTheModelAndNoOther(t *testing.T) {
	for _, c := range names {
		p, ok := Find(nil, c.model)
		if ok != (c.want >= 0) || ok && p.Input != c.want {
			t.Errorf("%q: %v, %v; want %v", c.model, p.Input, ok, c.want)
		}
	}
}

func TestPricesOfTheSettingsWin(t *testing.T) {
	own := map[string]schemas.Price{"gpt-5": {Input: 9}, "local/*": {}, "openai/gpt-5": {Input: 7}, "gpt-5-turbo*": {Input: 8}}
	for model, want := range map[string]float64{"gpt-5-2025-08-07": 9, "local/qwen": 0, "openai/gpt-5-2025-08-07": 7, "gpt-5-turbo-x": 8, "gpt-5-mini": 0.25} {
		if p, ok := Find(own, model); !ok || p.Input != want {
			t.Errorf("%s: %v, %v; want %v", model, p.Input, ok, want)
		}
	}
}

func TestCost(t *testing.T) {
	cached, write := 0.5, 2.0
	p := schemas.Price{Input: 1, Output: 10, Cached: &cached, CacheWrite: &write, Above: 1000, Long: &schemas.LongPrice{Input: 4, Output: 20}}
	for _, c := range []struct {
		u    schemas.Usage
		want float64 // in millionths of a dollar
	}{
		{schemas.Usage{InputTokens: 1000, OutputTokens: 10}, 1100},
		{schemas.Usage{InputTokens: 1000, CachedInputTokens: 600, CacheWriteTokens: 300, OutputTokens: 10}, 100 + 300 + 600 + 100},
		{schemas.Usage{InputTokens: 1001, CachedInputTokens: 600, OutputTokens: 10}, 4*1001 + 200}, // without prices of their own
		{schemas.Usage{}, 0},
	} {
		if got := Cost(p, c.u) * 1e6; math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%+v costs %v, want %v", c.u, got, c.want)
		}
	}
}

func TestBuiltinPricesArePlausible(t *testing.T) {
	built := read()
	if len(built.Models) < 30 || built.Date == "" {
		t.Fatalf("%d models of %s", len(built.Models), built.Date)
	}
	for name := range built.Models {
		p, ok := Find(nil, name)
		if !ok || p.Input <= 0 || p.Output < p.Input || p.Cached == nil || *p.Cached >= p.Input || (p.Long == nil) != (p.Above == 0) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
