// Package prices says what requests to models cost, by a table of prices: a built-in one, in builtin.yaml, which settings extend
// and replace. A model that the table does not have has no price: none is guessed. Everything here is a pure function of its
// arguments.
package prices

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"reconcile.dev/reconcile/schemas"
)

//go:embed builtin.yaml
var builtin []byte

// table is the built-in table.
type table struct {
	// Date is when the figures were published.
	Date   string                   `json:"date"`
	Models map[string]schemas.Price `json:"models"`
}

var read = sync.OnceValue(func() table {
	var t table
	if err := yaml.UnmarshalStrict(builtin, &t); err != nil {
		panic(fmt.Sprintf("built-in prices: %v", err)) // a test decodes them
	}
	return t
})

// version is what may follow the name of a model: a date, a number of a version, or latest and preview.
var version = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{3}|latest|preview(-\d{2}-\d{2,4})?)$`)
})

// Find returns the price of a model: that of the longest name of the table which is the model's without its version, or which
// ends in * and begins the model's. Names of the settings win over equal ones.
func Find(own map[string]schemas.Price, model string) (price schemas.Price, ok bool) {
	model = strings.TrimPrefix(model, "models/")
	longest := -1
	for _, t := range []map[string]schemas.Price{own, read().Models} {
		for name, p := range t {
			if n := len(strings.TrimSuffix(name, "*")); n > longest && matches(name, model) {
				longest, price, ok = n, p, true
			}
		}
	}
	return price, ok
}

func matches(name, model string) bool {
	if begin, rest := strings.CutSuffix(name, "*"); rest {
		return strings.HasPrefix(model, begin)
	}
	rest, ok := strings.CutPrefix(model, name)
	return ok && (rest == "" || version().MatchString(rest))
}

// Cost is what one request costs, in US dollars. The input of its usage includes tokens that were read from a cache and written to one.
func Cost(p schemas.Price, u schemas.Usage) float64 {
	at := schemas.LongPrice{Input: p.Input, Output: p.Output, Cached: p.Cached, CacheWrite: p.CacheWrite}
	if p.Long != nil && u.InputTokens > p.Above {
		at = *p.Long
	}
	or := func(price *float64) float64 {
		if price == nil {
			return at.Input
		}
		return *price
	}
	fresh := u.InputTokens - u.CachedInputTokens - u.CacheWriteTokens
	sum := float64(fresh)*at.Input + float64(u.CachedInputTokens)*or(at.Cached) + float64(u.CacheWriteTokens)*or(at.CacheWrite) +
		float64(u.OutputTokens)*at.Output
	return sum / 1e6
}
